# ---- claim -------------------------------------------------------------------------------------------------------------

# Takes the entry -> _ty_handle, _ty_file. 1: somebody else was first.
_ty_take() {
    local name=${_ty_entry##*/} lane=${_ty_entry%%/*} lease='' holder=$_ty_worker target='' fence='' nonce='' sync=''
    _ty_split "$name" "$lane" && [ -z "$_ty_uses$_ty_due$_ty_lease" ] || return 1
    ! _ty_unread || [ -z "$_ty_body" ] || return 100
    _ty_lane_json "$lane" || return
    lease=${_ty_asked_lease:-${_ty_own_lease:-${_ty_usual_lease:-$_ty_set_lease}}}
    case $lane in *@*) holder=@ ;; esac
    [ "$_ty_durability" != strict ] || sync=sync
    _ty_draw
    nonce=${_ty_word}1 fence=$((_ty_fence + 1))
    target="$_ty_id.$fence.e$_ty_errors.c$_ty_crashes$_ty_own.$lane.l$lease.$holder-$nonce.json"
    _ty_tell claimed "$_ty_id" "$fence" "$_ty_by"
    _ty_now= # a rename moves ctime: the claim's own moment
    _ty_shift "$_ty_root/todo/$_ty_entry" "$_ty_root/processing" "$target" $sync || return
    _ty_handle=$_ty_id.$fence.$nonce _ty_fence=$fence _ty_lease=$lease _ty_nonce=$nonce
    _ty_file=$_ty_root/processing/$target
    [ -z "$_ty_body" ] || _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
    [ -f "$_ty_file" ] && [ ! -L "$_ty_file" ] && [ -r "$_ty_file" ] && return 0
    _ty_rest=_ty_give_up
    ! _ty_unread || return 100
    _ty_give_up
}

_ty_take_next() { # of the kinds in _ty_wanted
    local fresh=0 swept=0 code=''
    while :; do
        if _ty_pick $fresh; then
            fresh=0 code=0
            _ty_take || code=$?
            case $code in
                0) _ty_lost=$((_ty_lost / 2)) && return ;;
                1) _ty_lost=$((_ty_lost + 1)) ;;
                *) return $code ;;
            esac
        elif [ $fresh -eq 0 ]; then
            fresh=1 # a list is only a hint: once more from the disk
        elif [ $swept -eq 0 ]; then
            ! _ty_unread || return 100
            swept=1 _ty_told=
            _ty_sweep || return
            [ -n "$_ty_told" ] || return 3
        else
            return 3
        fi
    done
}

_ty_claim_next() { # [id | kind...]
    local code=0
    _ty_open || return
    # A kind may look like an id or a short name: then it is one, if no task has it.
    if [ $# -eq 1 ] && _ty_is_id "$1"; then
        ! _ty_unread || return 100
        _ty_h_seg=${1%?????????????????}
        if _ty_is_there "$1"; then
            _ty_take_named "$1" || return
            _ty_hand_over
            return
        fi
    elif [ $# -eq 1 ] && _ty_is_short "$1" && [ -e "$_ty_root/segments/$_ty_h_seg" ]; then
        ! _ty_unread || return 100
        _ty_lengthen "$1" || code=$?
        [ $code -ne 6 ] || return 6
        if [ $code -eq 0 ]; then
            _ty_take_named "$_ty_text" || return
            _ty_hand_over
            return
        fi
        code=0
    fi
    _ty_kinds "$@" || return
    _ty_take_next || code=$?
    [ $code -ne 3 ] || _ty_say_nothing_is_ready
    [ $code -eq 0 ] || return $code
    _ty_hand_over
}

_ty_hand_over() {
    # For scripts that source this; reading the line would take them longer than all else of the claim.
    # shellcheck disable=SC2034
    TASK_HANDLE=$_ty_handle TASK_FILE=$_ty_file
    printf '%s\t%s\n' "$_ty_handle" "$_ty_file"
}

claim_task() { _ty_call _ty_claim_next "$@"; }

[ -z "$_ty_is_program" ] || _ty_at_once claim_task "$@"

# ========================================================================================================================
# All else, in the order in which it is needed: reading what is not plain, records, add, late verbs, endings, the sweep, the
# loop, and the rest of the doors.
