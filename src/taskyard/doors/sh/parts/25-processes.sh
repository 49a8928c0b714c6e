# ---- processes ---------------------------------------------------------------------------------------------------------

_ty_parent() { # -> _ty_text: the pid of this process's parent; empty where there is no /proc
    _ty_text=
    { IFS= read -r _ty_text; } 2>/dev/null </proc/self/stat
    _ty_text=${_ty_text##*) ? }
    _ty_text=${_ty_text%% *}
}

_ty_descendants() { # pid -> _ty_text: the pids of its living descendants; empty where there is no /proc
    local stat='' line='' pid='' before='' all=" $1 "
    while [ "$all" != "$before" ]; do
        before=$all
        for stat in /proc/[0-9]*/stat; do
            { IFS= read -r line <"$stat"; } 2>/dev/null || continue
            pid=${line%% *}
            line=${line##*) ? }
            case $all in *" $pid "*) continue ;; *" ${line%% *} "*) all="$all$pid " ;; esac
        done
    done
    _ty_text=${all#" $1 "}
}

_ty_is_any_alive() { # pids
    local pid='' line=''
    for pid; do
        kill -s 0 "$pid" 2>/dev/null || continue
        { IFS= read -r line <"/proc/$pid/stat"; } 2>/dev/null
        case ${line##*) } in [ZX]*) ;; *) return 0 ;; esac
    done
    return 1
}

_ty_outlast() { # looks command: while it succeeds, so many looks, 0.2 s apart
    local left=$1
    shift
    while [ "$left" -gt 0 ] && "$@" 2>/dev/null; do
        sleep 0.2 2>/dev/null || sleep 1
        left=$((left - 1))
    done
}

# Stop a command with all that it started, by TERM and ten seconds later by KILL. A command has a group of its own, which gets
# the signals as a whole. A function of a script has none: it is suspended while its descendants are stopped, because its
# orphans could not be found any more.
_ty_halt() { # pid
    local pid=$1
    if kill -s TERM -- "-$pid" 2>/dev/null; then
        _ty_outlast 50 _ty_is_any_alive "$pid"
        kill -s KILL -- "-$pid" 2>/dev/null
        return 0
    fi
    kill -s STOP "$pid" 2>/dev/null
    _ty_descendants "$pid"
    # shellcheck disable=SC2086  # pids
    set -- $_ty_text
    [ $# -eq 0 ] || kill -s TERM "$@" 2>/dev/null
    _ty_outlast 50 _ty_is_any_alive "$@"
    [ $# -eq 0 ] || kill -s KILL "$@" 2>/dev/null
    kill -s TERM "$pid" 2>/dev/null
    kill -s CONT "$pid" 2>/dev/null
    _ty_outlast 50 _ty_is_any_alive "$pid"
    kill -s KILL "$pid" 2>/dev/null
    return 0
}

_ty_clear() { # pid of a command that has ended: stops the processes that it left in its group
    kill -s TERM -- "-$1" 2>/dev/null || return 0
    _ty_outlast 10 kill -s 0 -- "-$1"
    kill -s KILL -- "-$1" 2>/dev/null
    return 0
}

# Send heartbeats while the command runs. Stop the command if its claim is lost, or if the loop was killed.
_ty_pulse() { # handle lease command loop
    local every=$(($2 / 3)) nap='' pause='' slept=0
    trap '' INT HUP TERM # the loop answers signals to the whole group
    [ $every -le 10000 ] || every=10000 # naps stand still while the machine is suspended; sweepers give 20 s after it
    nap=$((every < 2000 ? every : 2000))
    pause=$((1000 + nap % 1000)) pause=${pause#1}
    while :; do
        sleep "$((nap / 1000)).$pause" || sleep 1 # no fractions here
        _ty_parent
        if [ -n "$_ty_text" ]; then [ "$_ty_text" = "$4" ] || break; else kill -s 0 "$4" 2>/dev/null || break; fi
        kill -s 0 $$ 2>/dev/null || { # the script that called process_loop was killed: its loop goes the same way
            kill -s KILL "$4"
            break
        }
        slept=$((slept + nap))
        [ $slept -ge $every ] || continue
        slept=0
        _ty_handle "$1"
        _ty_find || break
        touch -c -- "$_ty_root/processing/$_ty_name" 2>/dev/null
    done
    _ty_halt "$3"
    exit 0
}
