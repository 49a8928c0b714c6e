# ---- moves -------------------------------------------------------------------------------------------------------------

_ty_sync() { # files and folders, after a move that must survive a power cut
    [ "$_ty_durability" != fast ] || return 0
    _ty_error=$(sync "$@" 2>&1) || _ty_error=$(sync 2>&1) || _ty_trouble "what was written cannot be made sure of"
}

_ty_make() { # folder: with its parents, each synced in its own
    [ -d "$_ty_root/processing" ] || _ty_refuse 8 "the yard $_ty_root is gone" || return
    _ty_error=$(mkdir -p -- "$1" 2>&1) || [ -d "$1" ] || _ty_trouble "a folder cannot be made" || return
    _ty_sync "${1%/*/*}" "${1%/*}"
}

# The one way in which a task changes its state. 0: moved by us. 1: it was not there any more. 8: it cannot be moved.
# mv may fail although the rename took place (a lost reply of a file server; a signal). No other process uses the new name.
_ty_move() { # file folder name
    local tries=0
    _ty_unsure=
    _ty_is_folder "${1%/*}" && _ty_is_folder "$2" && _ty_is_folder "${2%/*}" || return
    while :; do
        _ty_error=$(mv -fT -- "$1" "$2/$3" 2>&1) && return 0
        _ty_unsure=1
        _ty_listed "$2/$3" && return 0
        if [ ! -d "$2" ]; then
            _ty_make "$2" || return
            _ty_listed "$1" || return 1
        else
            _ty_listed "$1" || return 1
            tries=$((tries + 1))
            [ $tries -lt 3 ] || _ty_trouble "$1 cannot be moved" || return
        fi
    done
}

# The log has one line for each move. This process writes the line to a file in writers/ before the move, and keeps that file
# open until the line is in the log. If it is killed in between, the next sweep finds a note in a file that no process has
# open, and logs it. A shell can hold no lock, but the kernel knows every file that is open for writing.
_ty_event() { # event id fence worker more -> _ty_line; the kind is that of _ty_lane
    _ty_lane_json "$_ty_lane" || return
    _ty_line="\"event\":\"$1\",\"task\":\"$2\",\"fence\":$3,\"kind\":$_ty_kind,\"worker\":$4,\"by\":$_ty_by${5-}}"
}

# Make and log the move of _ty_line. 0, 1 or 8, as _ty_move; an empty _ty_now is replaced by the yard's time.
_ty_shift() { # file folder name [sync, or helped]
    _ty_code=''
    # A note that stands there is of another worker of this name, killed or living, and is not overwritten.
    { read -r _ty_code <"$_ty_notes"; } 2>/dev/null && [ -n "$_ty_code" ] && _ty_notes=${_ty_notes%.sh}-$$.sh
    _ty_code=
    { { _ty_shift_noted "$@" 2>&7; } 8<>"$_ty_notes"; } 7>&2 2>/dev/null
    [ -n "$_ty_code" ] || _ty_shift_noted "$@" 8>/dev/null # no note can be written; the move matters more
    return "$_ty_code"
}

_ty_shift_noted() { # the same, with the file for the note at 8
    { printf '{%s\n' "$_ty_line" >&8; } 2>/dev/null
    _ty_code=0
    _ty_move "$1" "$2" "$3" || _ty_code=$?
    if [ $_ty_code -eq 0 ]; then
        # A sweep may have made this move, and logs what it made. The note stays, so that the next sweep compares it.
        [ "${4-}$_ty_unsure" != helped1 ] || return 0
        [ "${4-}" != sync ] || _ty_sync "$2/$3" "$2" || _ty_code=8 # it is made, but the caller must repeat the verb to be sure
        [ -n "$_ty_now" ] || _ty_moment "$2/$3"
        _ty_log_line
    fi
    { printf '\n' 1<>"$_ty_notes"; } 2>/dev/null
    return 0
}

# One line in one write: on one kernel two writes never mix. A line that may need two (a page of memory holds a thousand
# characters of any script) and all lines on a file server go to a log of this process alone. So do lines where the shared log
# is a pipe, whose writer waits for a reader, or a link, which leads elsewhere.
_ty_log_line() { # _ty_line, at _ty_now; within a process time never goes back
    local log=''
    if [ "$_ty_now" -gt "$_ty_last" ]; then _ty_last=$_ty_now; else _ty_now=$_ty_last; fi
    _ty_date "$_ty_now"
    log=$_ty_root/events/$_ty_hour.$_ty_boot-sh.jsonl
    if [ "$_ty_place" != local ] || [ ${#_ty_line} -ge 960 ] || [ -L "$log" ] || { [ -e "$log" ] && [ ! -f "$log" ]; }; then
        [ -n "$_ty_own_log" ] || { _ty_draw && _ty_own_log=$_ty_boot-$$-$_ty_word; }
        log=$_ty_root/events/$_ty_hour.$_ty_own_log.jsonl
    fi
    { printf '%s{"at":"%s",%s\n' "$_ty_torn" "$_ty_stamp" "$_ty_line" >>"$log"; } 2>/dev/null && _ty_torn= && return
    # The move counts. A full disk may have torn the line, which must not spoil the next one.
    _ty_torn=$_ty_lf
    return 0
}
