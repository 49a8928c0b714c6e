# ---- claim -------------------------------------------------------------------------------------------------------------

_ty_body_of() { # path of a name that was split -> _ty_file, the file that holds the task
    _ty_file=$1
    [ -z "$_ty_body" ] || _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
}

# Claim the file, whose name was split, under a new fence and nonce -> _ty_handle, _ty_file. 1: another process was first.
_ty_hold() { # file lane lease holder [more of the event]
    local fence=$((_ty_fence + 1)) nonce='' target='' sync=''
    [ "$_ty_durability" != strict ] || sync=sync
    _ty_draw
    nonce=${_ty_word}1
    target="$_ty_id.$fence.e$_ty_errors.c$_ty_crashes$_ty_own.$2.l$3.$4-$nonce.json"
    _ty_event claimed "$_ty_id" "$fence" "$_ty_by" "${5-}" || return
    _ty_now= # a rename moves ctime: the claim's own moment
    _ty_shift "$1" "$_ty_root/processing" "$target" $sync || return
    _ty_handle=$_ty_id.$fence.$nonce _ty_fence=$fence _ty_lease=$3 _ty_nonce=$nonce
    _ty_body_of "$_ty_root/processing/$target"
}

_ty_take() { # claims _ty_entry -> _ty_handle, _ty_file. 1: another process was first.
    local lane=${_ty_entry%%/*} holder=$_ty_worker
    _ty_split "${_ty_entry##*/}" "$lane" && [ -z "$_ty_uses$_ty_deadline$_ty_due$_ty_lease" ] || return 1
    ! _ty_unread || [ -z "$_ty_body" ] || return 100
    case $lane in *@*) holder=@ ;; esac
    _ty_hold "$_ty_root/todo/$_ty_entry" "$lane" "${_ty_asked_lease:-${_ty_own_lease:-${_ty_usual_lease:-$_ty_set_lease}}}" "$holder" || return
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
            fresh=1 # the list may be old: look at the disk once more
        elif [ $swept -eq 0 ]; then
            ! _ty_unread || return 100
            swept=1 _ty_moved=
            _ty_note_asked
            _ty_sweep || return
            [ -n "$_ty_moved" ] || return 3
        else
            return 3
        fi
    done
}

_ty_claim_next() { # [id | kind...]
    local code=0
    _ty_open || return
    # A word that looks like an id or a short name is a kind if no task has that name.
    if [ $# -eq 1 ]; then
        code=1
        if _ty_is_id "$1"; then
            ! _ty_unread || return 100
            _ty_text=$1 _ty_h_seg=${1%?????????????????}
            ! _ty_is_there "$1" || code=0
        elif _ty_is_short "$1" && [ -e "$_ty_root/segments/$_ty_h_seg" ]; then
            ! _ty_unread || return 100
            code=0
            _ty_lengthen "$1" || code=$?
        fi
        [ $code -ne 6 ] || return 6
        if [ $code -eq 0 ]; then
            _ty_take_named "$_ty_text" && _ty_hand_over
            return
        fi
        code=0
    fi
    _ty_kinds "$@" || return
    _ty_take_next || code=$?
    [ $code -ne 3 ] || {
        _ty_report "nothing is ready; 'taskyard why' says why"
        _ty_report_left
    }
    [ $code -eq 0 ] || return $code
    _ty_hand_over
}

_ty_hand_over() {
    # For scripts that source this: to read the printed line would cost them more than the claim.
    # shellcheck disable=SC2034
    TASK_HANDLE=$_ty_handle TASK_FILE=$_ty_file
    printf '%s\t%s\n' "$_ty_handle" "$_ty_file"
}

claim_task() { _ty_call _ty_claim_next "$@"; }

[ -z "$_ty_is_program" ] || _ty_at_once claim_task "$@"

# ========================================================================================================================
# The rest, in the order in which it is needed. A program that only claims or completes does not parse it.
