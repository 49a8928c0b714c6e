# ---- moves -------------------------------------------------------------------------------------------------------------

_ty_sync() { # files and folders, after a move that must survive a power cut
    [ "$_ty_durability" != fast ] || return 0
    _ty_error=$(sync "$@" 2>&1) || _ty_error=$(sync 2>&1) || _ty_trouble "what was written cannot be made sure of"
}

_ty_make() { # folder: with its parents, each synced in its own
    [ -d "$_ty_root/processing" ] || {
        _ty_error=
        _ty_trouble "the yard $_ty_root is gone"
        return
    }
    _ty_error=$(mkdir -p -- "$1" 2>&1) || [ -d "$1" ] || {
        _ty_trouble "a folder cannot be made"
        return
    }
    _ty_sync "${1%/*/*}" "${1%/*}"
}

# The one way in which a task changes its state. 0: moved by us. 1: it was not there any more. 8: it cannot be moved.
# mv may fail although the rename took place (a lost reply of a file server; a signal): nobody else uses the new name.
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

# Moves are told of in the log, each by one line. The line is made before the move and noted in a file in writers/, which is
# open from then until it is in the log: if this process is killed in between, the next sweep finds a note in a file that
# nobody has open, and logs it. A shell can hold no lock, but the kernel knows of every file that is open for writing.
_ty_tell() { # event id fence worker more -> _ty_line; its kind is that of the lane looked at last
    _ty_line="\"event\":\"$1\",\"task\":\"$2\",\"fence\":$3,\"kind\":$_ty_kind,\"worker\":$4,\"by\":$_ty_by${5-}}"
}

# The move that _ty_line tells of. 0, 1 or 8 as of any move; _ty_now is asked for where it is empty.
_ty_shift() { # file folder name [sync, or helped]
    _ty_code=''
    # What stands there is of one of the same name, killed or living, and is not overwritten.
    { read -r _ty_code <"$_ty_notes"; } 2>/dev/null && [ -n "$_ty_code" ] && _ty_notes=${_ty_notes%.sh}-$$.sh
    _ty_code=
    { { _ty_shift_noted "$@" 2>&7; } 8<>"$_ty_notes"; } 7>&2 2>/dev/null
    [ -n "$_ty_code" ] || _ty_shift_noted "$@" 8>/dev/null # it cannot be noted; the move is worth more
    return "$_ty_code"
}

_ty_shift_noted() { # the same, with the file for the note at 8
    { printf '{%s\n' "$_ty_line" >&8; } 2>/dev/null
    _ty_code=0
    _ty_move "$1" "$2" "$3" || _ty_code=$?
    if [ $_ty_code -eq 0 ]; then
        # A sweep may have been quicker, to help, and logs what it did. The note stays, for the next one to look it up.
        [ "${4-}$_ty_unsure" != helped1 ] || return 0
        [ "${4-}" != sync ] || _ty_sync "$2/$3" "$2" || _ty_code=8 # it is made, but must be said again to be sure
        [ -n "$_ty_now" ] || _ty_moment "$2/$3"
        _ty_log_line
    fi
    { printf '\n' 1<>"$_ty_notes"; } 2>/dev/null
    return 0
}

# One line in one write, which never mixes with another's on one kernel. What may need two (a page of memory holds a thousand
# characters of any script), and what is written to a file server, goes to a log of this process alone.
_ty_log_line() { # _ty_line, at _ty_now; within a process time never goes back
    local log=$_ty_boot-sh
    if [ "$_ty_now" -gt "$_ty_last" ]; then _ty_last=$_ty_now; else _ty_now=$_ty_last; fi
    _ty_date "$_ty_now"
    if [ "$_ty_place" != local ] || [ ${#_ty_line} -ge 960 ]; then
        [ -n "$_ty_own_log" ] || { _ty_draw && _ty_own_log=$_ty_boot-$$-$_ty_word; }
        log=$_ty_own_log
    fi
    # Whoever writes to a pipe waits for its reader, and a link leads elsewhere: beside those the process has a log of its own.
    if [ -e "$_ty_root/events/$_ty_hour.$log.jsonl" ] && [ ! -f "$_ty_root/events/$_ty_hour.$log.jsonl" ] || [ -L "$_ty_root/events/$_ty_hour.$log.jsonl" ]; then
        [ -n "$_ty_own_log" ] || { _ty_draw && _ty_own_log=$_ty_boot-$$-$_ty_word; }
        log=$_ty_own_log
    fi
    { printf '%s{"at":"%s",%s\n' "$_ty_torn" "$_ty_stamp" "$_ty_line" >>"$_ty_root/events/$_ty_hour.$log.jsonl"; } 2>/dev/null && _ty_torn= && return
    # The move counts; a line that was torn by a full disk must not spoil the next one.
    _ty_torn='
'
    return 0
}
