# ---- done --------------------------------------------------------------------------------------------------------------

# End the claim by its move to _ty_folder/_ty_target. An ending that comes too late, or differs from what the same claim has
# recorded before (_ty_second), gets its answer from _ty_late.
_ty_end() { # verb [outcome reason-json result]
    local code=0 sync=sync
    [ "$1" != release ] || sync=
    _ty_shift "$_ty_root/processing/$_ty_name" "$_ty_folder" "$_ty_target" $sync || code=$?
    [ $code -le 1 ] || return $code
    if [ $code -eq 0 ]; then
        _ty_remove_workdir "$_ty_handle"
        [ "$1" != 'done' ] || _ty_free_followers || return
        [ "$_ty_second" -ne 0 ] || return 0
    fi
    ! _ty_unread || return 100
    _ty_late "$@"
}

_ty_remove_workdir() { # handle: the claim's folder, if it is empty
    local folder=$_ty_root/attempts/$_ty_h_seg/$_ty_h_id/$1
    [ ! -d "$folder" ] || rmdir -- "$folder" 2>/dev/null
    return 0
}

_ty_free_followers() { # of the task that is done
    local folder=''
    # By a listing from the top: the client of a file server may still show that there was nothing.
    for folder in "$_ty_root/followers/$_ty_seg"*/"$_ty_id"* "$_ty_root/sheets/$_ty_seg"/*; do
        [ "$folder" = "$_ty_root/followers/$_ty_seg/$_ty_id" ] || [ -f "$folder" ] || continue
        _ty_rest="_ty_follow $_ty_id"
        ! _ty_unread || return 100
        _ty_follow "$_ty_id"
        break
    done
    return 0
}

_ty_end_done() { # handle [result]
    _ty_handle "$1" || return
    _ty_find || {
        ! _ty_unread || return 100
        _ty_late 'done' 'done' null "${2-}"
        return
    }
    _ty_holder_json && _ty_event 'done' "$_ty_id" "$_ty_fence" "$_ty_json" || return
    _ty_folder=$_ty_root/done/$_ty_seg _ty_target=$_ty_name _ty_second=0
    if [ -n "${2-}" ]; then
        _ty_record 'done' null "$2" || return
        _ty_target=${_ty_name%.json}.r.json
    fi
    _ty_now=
    _ty_end 'done' 'done' null "${2-}"
}

_ty_complete() { # handle [file]
    _ty_json=
    if [ $# -eq 2 ]; then
        ! _ty_unread || return 100
        _ty_value "$2" || return
        [ "$_ty_json" != null ] || _ty_json=
    fi
    _ty_handle "$1" || return
    if _ty_find && [ -n "$_ty_verified" ]; then
        ! _ty_unread || return 100
        set -- "$1" "$_ty_json"
        _ty_verify_by_hand "$2" || return
        _ty_json=$2
    fi
    _ty_end_done "$1" "$_ty_json"
}
