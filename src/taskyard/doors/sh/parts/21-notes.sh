# ---- heartbeats and notes ----------------------------------------------------------------------------------------------

_ty_renew() { # verb: begins the lease of the claim in _ty_handle anew
    # The listing comes first: on a file server a touch still succeeds after another client has moved the name away.
    if _ty_find; then
        _ty_error=$(touch -c -- "$_ty_root/processing/$_ty_name" 2>&1) || {
            ! _ty_find || _ty_trouble "the lease cannot be renewed" || return
        }
        _ty_find && return
    fi
    _ty_late "$1"
}

_ty_beat() { # handle
    _ty_handle "$1" && _ty_renew heartbeat
}

_ty_note() { # handle text; or the text alone, where TASKYARD_CLAIM names the claim
    local folder='' text=''
    # shellcheck disable=SC2031
    [ $# -ne 1 ] || set -- "${TASKYARD_CLAIM-}" "$1"
    case ${2-} in
        *[![:space:]]*) ;;
        *) set -- ;;
    esac
    [ $# -eq 2 ] && [ -n "$1" ] || _ty_refuse 2 "usage: note_task HANDLE TEXT" || return
    [ ${#2} -le 65536 ] || set -- "$1" "$(printf '%.65536s' "$2")"
    _ty_string "$2"
    text=$_ty_json
    _ty_open && _ty_handle "$1" && _ty_renew note || return
    _ty_find || return 4
    folder=$_ty_root/attempts/$_ty_seg/$_ty_id/$_ty_handle
    [ -d "$folder" ] || _ty_make "$folder" || return
    _ty_moment "$_ty_root/processing/$_ty_name" || return
    _ty_date "$_ty_now"
    _ty_holder_json
    { printf '%s\n' "{\"claim\": \"$_ty_handle\", \"fence\": $_ty_fence, \"worker\": $_ty_json, \"text\": $text, \"at\": \"$_ty_stamp\"}" >>"$folder/notes.jsonl"; } 2>/dev/null || _ty_refuse 8 "the note cannot be written (is the disk full?)" || return
    _ty_event noted "$_ty_id" "$_ty_fence" "$_ty_json" ",\"text\":$text"
    _ty_log_line
}
