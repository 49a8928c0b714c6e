# ---- add ---------------------------------------------------------------------------------------------------------------

# Take a place in this segment, by one byte in its marker -> _ty_seg, and _ty_marked, the segment's lane. 1: it has none.
_ty_room() { # segment lane
    local path=$_ty_root/segments/$1 size='' opened=''
    _ty_marked=
    [ -f "$path" ] && [ ! -L "$path" ] || return 1
    size=$(stat -c %s -- "$path" 2>/dev/null) && [ "$size" -le 65536 ] || return 1 # a shell would read for minutes
    { read -r opened _ty_marked; } 2>/dev/null <"$path"
    [ "$_ty_marked" = "$2" ] && [ $((size - ${#opened} - ${#_ty_marked} - 2)) -lt 1024 ] || return 1
    _ty_seg=$1
    { printf . >>"$path"; } 2>/dev/null
    return 0
}

_ty_segments() { # paths -> _ty_text, those that name segments, the highest first
    local path=''
    _ty_text=
    for path; do
        case ${path##*/} in
            *[!0-9a-hjkmnp-tv-z]*) ;; # also the pattern itself, which the shell would look up here
            ????) _ty_text="${path##*/} $_ty_text" ;;
        esac
    done
}

_ty_number() { # segment -> _ty_nth
    local rest=$1 digits=''
    _ty_nth=0
    while [ -n "$rest" ]; do
        digits=0123456789abcdefghjkmnpqrstvwxyz
        digits=${digits%%"${rest%"${rest#?}"}"*}
        _ty_nth=$((_ty_nth * 32 + ${#digits})) rest=${rest#?}
    done
}

# The next new segment -> _ty_text, empty if all are taken, and _ty_newest, the segments below it. It is the one after the
# highest. Where a segment near the end is taken, it is the highest with 1024 free ones in a row, so that most can be used.
_ty_next() { # segments, the highest first
    local above=1048576 less='' number=''
    _ty_newest='' _ty_text=
    while [ $# -gt 0 ]; do
        _ty_number "$1"
        [ $((above - _ty_nth)) -le 1024 ] || break
        if [ $((above - _ty_nth)) -gt 1 ] && [ -z "$number" ]; then
            less=$* number=$((_ty_nth + 1))
        fi
        above=$_ty_nth
        shift
    done
    if [ $# -gt 0 ]; then
        _ty_newest=$* number=$((_ty_nth + 1))
    elif [ $above -ge 1024 ]; then
        number=0
    elif [ -n "$number" ]; then
        _ty_newest=$less
    elif [ $above -gt 0 ]; then
        number=0
    fi
    [ -z "$number" ] || _ty_base32 "$number" 4
}

_ty_list_next() { # as _ty_next, with the segments of this yard
    _ty_segments "$_ty_root"/segments/????
    # shellcheck disable=SC2086  # segments
    _ty_next $_ty_text
}

_ty_segment() { # lane -> _ty_seg, with a byte of ours in its marker; lanes that differ by the mission alone share segments
    local segment='' many=8 code=''
    set -- "${1%%~*}"
    _ty_segments "$_ty_root/todo/$1"/????
    for segment in $_ty_text; do
        _ty_room "$segment" "$1" && return
        [ "$_ty_marked" != "$1" ] && [ $((many -= 1)) -gt 0 ] || break
    done
    _ty_list_next
    many=16
    for segment in $_ty_newest; do
        _ty_room "$segment" "$1" && return
        [ $((many -= 1)) -gt 0 ] || break
    done
    while [ -n "$_ty_text" ]; do
        segment=$_ty_text code=0
        _ty_draft && _ty_write "$_ty_now $1" && _ty_sync_draft || return
        _ty_publish "$_ty_root/segments" "$segment" || code=$?
        [ $code -le 1 ] || return $code
        [ $code -ne 0 ] || _ty_sync "$_ty_root/segments"
        _ty_room "$segment" "$1" && return # ours, or another process made it for the same lane
        [ $code -ne 0 ] || _ty_refuse 8 "the new segment $segment cannot be used" || return
        _ty_list_next
    done
    _ty_refuse 7 "this yard has used up all its segments, a thousand million tasks; begin a new yard"
}

# The new task of _ty_lane in _ty_seg, at the time of the last answer -> _ty_id, _ty_folder, _ty_line
_ty_name_task() {
    local tick=$(((_ty_now - 1577836800000) * 32 + _ty_micros % 1000 * 32 / 1000))
    [ $tick -gt "$_ty_last_tick" ] || tick=$((_ty_last_tick + 1)) # ids of one process rise
    _ty_last_tick=$tick
    _ty_base32 $tick 9
    _ty_id=$_ty_seg$_ty_text
    _ty_draw
    _ty_id=$_ty_id$_ty_word _ty_folder=$_ty_root/todo/$_ty_lane/$_ty_seg
    _ty_event added "$_ty_id" 0 null
}

_ty_is_bounded() { # do the settings bound how many tasks may wait for a worker?
    grep -q '"max_todo"' "$_ty_root/yard.json"
}

_ty_add() { # [-p priority] kind [file]
    local priority=5 data=null code=0
    if [ "${1-}" = -p ]; then
        case ${2-} in [0-9]) priority=$2 ;; *) _ty_refuse 2 "a priority is 0 (first) to 9, not ${2-}" || return ;; esac
        shift 2
    fi
    [ $# -ge 1 ] && [ $# -le 2 ] || _ty_refuse 2 "usage: add_task [-p 0..9] KIND [FILE]" || return
    _ty_open && _ty_kind_name "$1" || return
    ! _ty_is_bounded || _ty_refuse 7 "the settings of $_ty_root have a max_todo, which the shell client cannot count: add with 'taskyard add'" || return
    _ty_lane=$priority-$_ty_text
    if [ $# -eq 2 ]; then
        _ty_value "$2" || return
        data=$_ty_json
    fi
    _ty_segment "$_ty_lane" && _ty_draft || return
    _ty_name_task
    _ty_write "{\"taskyard\":1,\"id\":\"$_ty_id\",\"kind\":$_ty_kind,\"priority\":$priority,\"data\":$data}" && _ty_sync_draft || return
    _ty_shift "$_ty_path" "$_ty_folder" "$_ty_id.0.e0.c0.json" || code=$?
    [ $code -ne 1 ] || _ty_refuse 8 "the new task's file was removed before it was in place" || return
    [ $code -eq 0 ] || {
        rm -f -- "$_ty_path"
        return 8
    }
    _ty_sync "$_ty_folder" || return
    printf '%s\n' "$_ty_id"
}
