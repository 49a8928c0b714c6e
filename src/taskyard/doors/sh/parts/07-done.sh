# ---- done --------------------------------------------------------------------------------------------------------------

_ty_tidy() { # the claim's folder goes if it is empty
    local folder=$_ty_root/attempts/$_ty_h_seg/$_ty_h_id/$_ty_handle
    [ ! -d "$folder" ] || rmdir -- "$folder" 2>/dev/null
    return 0
}

_ty_end_done() { # handle [result]
    local code=0 target='' folder=''
    _ty_handle "$1" || return
    _ty_find || {
        ! _ty_unread || return 100
        _ty_late 'done' 'done' null "${2-}"
        return
    }
    _ty_lane_json "$_ty_lane" && _ty_holder_json || return
    _ty_tell 'done' "$_ty_id" "$_ty_fence" "$_ty_json"
    target=$_ty_name
    _ty_now=
    if [ -n "${2-}" ]; then
        _ty_record 'done' null "$2" || return
        target=${_ty_name%.json}.r.json
        _ty_now=
    fi
    folder=$_ty_root/done/$_ty_seg
    _ty_shift "$_ty_root/processing/$_ty_name" "$folder" "$target" sync || code=$?
    if [ $code -eq 1 ]; then
        ! _ty_unread || return 100
        _ty_late 'done' 'done' null "${2-}"
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_tidy
    # By a listing from the top: a file server's client may remember that there was nothing.
    for target in "$_ty_root/followers/$_ty_seg"*/"$_ty_id"*; do
        [ "$target" = "$_ty_root/followers/$_ty_seg/$_ty_id" ] || continue
        _ty_rest="_ty_follow $_ty_id"
        ! _ty_unread || return 100
        _ty_follow "$_ty_id"
    done
    [ -z "${2-}" ] || [ "$_ty_second" -eq 0 ] || _ty_late 'done' 'done' null "$2"
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
