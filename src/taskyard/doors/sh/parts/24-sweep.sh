# ---- the sweep, as far as plain tools can judge ------------------------------------------------------------------------

# Move a task to _ty_folder -> _ty_moved. 0 also if another process was first.
_ty_sweep_move() { # word file target [sync]
    local code=0
    _ty_shift "$2" "$_ty_folder" "$3" "${4-}" || code=$?
    case $code in
        0) _ty_moved="$_ty_moved$1 $_ty_id$_ty_lf" ;;
        1) ;;
        *) return $code ;;
    esac
}

# Has the lease ended? The file is opened first: the client of a file server may keep the age of a name for 30 s.
_ty_is_over() { # file lease
    case $1 in "$_ty_root"/todo/*) # another program's janitor has judged so; only its holder can be quicker
        [ -f "$1" ]
        return
        ;;
    esac
    # shellcheck disable=SC2094  # nothing is written
    [ -f "$1" ] && { _ty_time "$1" <"$1"; } 2>/dev/null || return 1
    [ $((_ty_asked - _ty_now)) -gt "$2" ]
}

# Has another program put the claim into todo/ less than a lease after its last heartbeat? A rename does not change that moment.
_ty_was_early() { # file lease
    local seconds=''
    case $1 in "$_ty_root"/todo/*) ;; *) return 1 ;; esac
    seconds=$(stat -c %Y -- "$1" 2>/dev/null) && [ $((_ty_asked - seconds * 1000)) -lt "$2" ]
}

_ty_give_back() { # file in todo/, split: a release, which counts as no attempt
    local reason='"another program gave it back before its lease was over"'
    _ty_handle "$_ty_id.$_ty_fence.$_ty_nonce" && _ty_record released "$reason" || return
    _ty_now=$_ty_asked
    _ty_aim "$_ty_errors" "$_ty_crashes" 0
    _ty_event released "$_ty_id" $((_ty_fence + 1)) "$_ty_json" ",\"reason\":$reason"
    _ty_sweep_move released "$1" "$_ty_target"
}

_ty_reap() { # file in processing/, split; _ty_asked is the yard's time
    local crashes=$((_ty_crashes + 1)) reason='' delay=0 holder='' seconds='' rest=''
    _ty_is_over "$1" "$_ty_lease" || return 0
    if _ty_was_early "$1" "$_ty_lease"; then
        _ty_give_back "$1"
        return
    fi
    _ty_holder_json
    holder=$_ty_json
    _ty_decode "$_ty_holder"
    rest=${_ty_lane%%~*}
    [ "$_ty_holder" != @ ] || _ty_decode "${rest#*@}"
    seconds=$((_ty_lease / 1000))
    if [ $((_ty_lease % 1000)) -ne 0 ]; then
        rest=$((1000 + _ty_lease % 1000))
        while [ "${rest%0}" != "$rest" ]; do rest=${rest%0}; done
        seconds=$seconds.${rest#1}
    fi
    _ty_string "the lease of $seconds s ended without a heartbeat from $_ty_text"
    reason=$_ty_json
    _ty_handle "$_ty_id.$_ty_fence.$_ty_nonce" || return
    _ty_record crash "$reason" || return
    if [ $crashes -gt 1 ]; then
        _ty_backoff $((crashes - 2))
        delay=$_ty_delay
    fi
    _ty_is_over "$1" "$_ty_lease" || return 0 # its holder sent a heartbeat meanwhile
    _ty_now=$_ty_asked
    if [ $crashes -ge "$_ty_set_crashes" ]; then
        _ty_folder=$_ty_root/failed/$_ty_seg
        _ty_target=$_ty_id.$((_ty_fence + 1)).e$_ty_errors.c$crashes$_ty_own.$_ty_lane.json
        _ty_more=",\"final\":true,\"reason\":$reason"
    else
        _ty_aim "$_ty_errors" $crashes "$delay"
        _ty_more=",\"final\":false,\"reason\":$reason$_ty_more"
    fi
    _ty_event reaped "$_ty_id" $((_ty_fence + 1)) "$holder" "$_ty_more"
    _ty_sweep_move reaped "$1" "$_ty_target" sync
}

_ty_wake() { # file in waiting/, split
    _ty_aim "$_ty_errors" "$_ty_crashes" 0
    _ty_event due "$_ty_id" $((_ty_fence + 1)) null
    _ty_sweep_move woken "$1" "$_ty_target"
}

# Note which kinds are asked for, so that 'taskyard why' knows. A claim that finds a task does not: it would cost a process.
_ty_note_asked() {
    local name=''
    for name in ${_ty_wanted:-@}; do
        name=$_ty_root/asked/$name
        [ -e "$name" ] || (set -C && : >"$name") 2>/dev/null
        touch -c -h -- "$name" 2>/dev/null
    done
    return 0
}

_ty_sweep() { # -> _ty_moved, a line for each task that was moved. It takes no turn of turns/, which stands for a whole sweep
    local path='' name='' now='' begun=''
    _ty_ask_time || return
    now=$_ty_now _ty_asked=$_ty_now
    _ty_ingest || return
    # Another program's janitor may have put claims into todo/.
    for path in "$_ty_root"/todo/*.json "$_ty_root"/processing/*.json; do
        _ty_split "${path##*/}" && [ -n "$_ty_nonce" ] || continue
        _ty_asked=$now
        _ty_is_over "$path" "$_ty_lease" || continue
        _ty_ask_time || return
        _ty_asked=$_ty_now
        _ty_reap "$path" || return
    done
    _ty_now=$now
    _ty_date "$now"
    begun=$_ty_minute
    for path in "$_ty_root"/waiting/*; do
        [ -d "$path" ] || continue
        # Names of buckets sort by their beginning. Those after this minute are not due.
        [ ! "${path##*/}" \> "$begun" ] || break
        for name in "$path"/????/*.json; do
            _ty_split "${name##*/}" && [ -n "$_ty_due" ] || continue
            [ "$_ty_due" -le "$now" ] || continue
            _ty_now=$now
            _ty_wake "$name" || return
        done
    done
}

_ty_reap_stale() {
    local path='' line=''
    [ $# -eq 0 ] || _ty_refuse 2 "usage: reap_stale" || return
    _ty_open || return
    _ty_moved=
    _ty_sweep || return
    printf '%s' "$_ty_moved"
    # Empty notes of shells, which make them anew when they need one. A note of a killed shell stays, for Python to log.
    set --
    for path in "$_ty_root"/writers/*.sh; do
        { read -r line <"$path"; } 2>/dev/null && [ -z "$line" ] && set -- "$@" "$path"
    done
    [ $# -eq 0 ] || rm -f -- "$@" 2>/dev/null
    set -- "$_ty_root"/processing/*.L.*.json
    [ ! -e "$1" ] || _ty_report "$# claims are vouched for by locks: whether their workers live is left to 'taskyard janitor' until their leases end"
    _ty_report_left
    return 0
}
