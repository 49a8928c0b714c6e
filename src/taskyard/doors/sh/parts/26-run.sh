# ---- one run of a command ----------------------------------------------------------------------------------------------

_ty_wait_for() { # pid -> its exit code; a signal to this process ends the wait early
    local code=0
    wait "$1" 2>/dev/null || code=$? # the shell would print the signal's name
    return $code
}

_ty_reason() { # exit code, file of standard error -> _ty_text
    local words=''
    [ ! -s "$2" ] || words=$(tail -c 4096 -- "$2")
    if [ "$1" -gt 128 ]; then _ty_text="killed by signal $(($1 - 128))"; else _ty_text="exit $1"; fi
    [ -z "$words" ] || _ty_text="$_ty_text: $words"
}

# Run a command with heartbeats -> _ty_ending, its exit code or "stopped". Its input is _ty_input, else the task's file.
_ty_run() { # handle lease workdir name-of-logs words
    local handle=$1 lease=$2 workdir=$3 logs=$3/$4 pid='' beat='' code=0
    shift 4
    (
        trap - TERM INT HUP EXIT
        _ty_decode "$_ty_worker"
        # shellcheck disable=SC2030  # for the command alone
        export TASKYARD="$_ty_root" TASKYARD_CLAIM="$handle" TASKYARD_TASK="${handle%%.*}" TASKYARD_FENCE="$_ty_h_fence" TASKYARD_WORKDIR="$workdir" TASKYARD_WORKER="$_ty_text"
        exec >"${logs}stdout.log" 2>"${logs}stderr.log"
        if [ -n "$_ty_input" ]; then
            exec <<END
$_ty_input
END
        else
            exec <"$_ty_file"
        fi
        # A shell has its background processes ignore SIGINT and SIGQUIT; env resets them where it can.
        # shellcheck disable=SC2086  # two words, or none
        case $_ty_runs in
            alone) exec setsid $_ty_afresh "$@" ;;
            command) exec $_ty_afresh "$@" ;;
        esac
        case $_ty_flags in *e*) set -e ;; esac
        "$@" # a function of the script that sources this
    ) &
    pid=$!
    (_ty_pulse "$handle" "$lease" "$pid" "$_ty_self") </dev/null >/dev/null 2>&1 &
    beat=$!
    # A signal that came before the wait does not end it.
    [ -n "$_ty_stop" ] || _ty_wait_for $pid || code=$?
    if [ -n "$_ty_stop" ]; then
        _ty_halt $pid
        wait $pid 2>/dev/null
        code=stopped
    fi
    [ "$_ty_runs" != alone ] || _ty_clear $pid
    # Not TERM: a shell that has just forked may lose that signal, and the wait would never end.
    kill -s KILL $beat 2>/dev/null
    wait $beat 2>/dev/null
    [ -s "${logs}stdout.log" ] || [ -s "${logs}stderr.log" ] || rm -f -- "${logs}stdout.log" "${logs}stderr.log"
    _ty_ending=$code
}

# The command's result and its check -> _ty_result, _ty_ending, and _ty_failure, the reason of an error
_ty_judge() { # handle lease workdir
    _ty_result='' _ty_failure=''
    [ "$_ty_ending" = 0 ] || return 0
    if [ -e "$3/result.json" ]; then
        _ty_value "$3/result.json" 2>/dev/null || {
            _ty_ending=error _ty_failure="its result cannot be kept: result.json holds no JSON value, or too much of it"
            return
        }
        _ty_result=$_ty_json
    fi
    _ty_find && [ -n "$_ty_verified" ] || return 0
    _ty_find_check "$_ty_root/processing/$_ty_name" && _ty_checked_input "$_ty_file" "$_ty_result" || {
        _ty_ending=error _ty_failure="the task asks for the check '$_ty_check', which this worker cannot run"
        return 0
    }
    _ty_verify_beside "$@"
}

_ty_verify_beside() { # handle lease workdir: runs the check that was just found, as a command of the loop
    local handle=$1 lease=$2 workdir=$3 how=$_ty_runs
    eval "set -- $_ty_text" # words that awk has quoted
    _ty_encode "$_ty_check" || _ty_text=check
    _ty_input=$_ty_json
    if command -v setsid >/dev/null; then _ty_runs=alone; else _ty_runs="command"; fi
    set -- "$handle" "$lease" "$workdir" "$_ty_text." "$@"
    _ty_run "$@"
    _ty_runs=$how
    case $_ty_ending in
        0 | stopped) return 0 ;;
    esac
    _ty_reason "$_ty_ending" "$workdir/${4}stderr.log"
    _ty_ending=error _ty_failure="the check '$_ty_check' did not pass: $_ty_text"
}

_ty_publish_ending() { # workdir handle: ends the claim by _ty_ending
    local before=0 record=''
    case $_ty_ending in
        0) _ty_end_done "$2" "$_ty_result" ;;
        stopped) _ty_end_released "$2" ;;
        error) _ty_end_failed "$2" "$_ty_failure" ;;
        75)
            for record in "$_ty_root/results/$_ty_h_seg/$_ty_h_id".*.released.json; do [ ! -e "$record" ] || before=$((before + 1)); done
            _ty_backoff $before
            _ty_end_released "$2" "$_ty_delay"
            ;;
        65) _ty_reason 65 "$1/stderr.log" && _ty_end_failed "$2" "$_ty_text" final ;;
        *) _ty_reason "$_ty_ending" "$1/stderr.log" && _ty_end_failed "$2" "$_ty_text" ;;
    esac
}

_ty_perform() { # the command, for the claim that was just made
    local handle=$_ty_handle lease=$_ty_lease workdir='' tries=0
    workdir=$_ty_root/attempts/$_ty_seg/$_ty_id/$handle
    _ty_handle "$handle"
    mkdir -p -- "$workdir" 2>/dev/null || {
        _ty_end_released "$handle" "$_ty_set_backoff"
        return 0
    }
    _ty_started "$_ty_self"
    { printf '%s %s %s\n' "$_ty_boot" "$_ty_self" "$_ty_text" >"$workdir/.loop"; } 2>/dev/null
    _ty_input=
    _ty_run "$handle" "$lease" "$workdir" '' "$@"
    _ty_judge "$handle" "$lease" "$workdir"
    rm -f -- "$workdir/.loop"
    if ! _ty_find; then
        _ty_ended 'done' || _ty_ended failed || _ty_gave_up released || _ty_gave_up error || _ty_report "the claim $handle was lost; its command was stopped"
        return 0
    fi
    while :; do
        _ty_publish_ending "$workdir" "$handle"
        [ $? -eq 8 ] || return 0
        tries=$((tries + 1))
        [ -z "$_ty_stop" ] && [ $tries -lt 600 ] || return 0
        sleep 1
        _ty_find && touch -c -- "$_ty_root/processing/$_ty_name" 2>/dev/null
    done
}
