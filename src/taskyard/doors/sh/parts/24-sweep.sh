# ---- the sweep, as far as plain tools can judge ------------------------------------------------------------------------

_ty_is_over() { # file lease: opened first, because a file server's client looks up the age of a name at most every 30 s
    case $1 in "$_ty_root"/todo/*) # another program's janitor has judged so; only its holder can be quicker
        [ -f "$1" ]
        return
        ;;
    esac
    # shellcheck disable=SC2094  # nothing is written
    [ -f "$1" ] && { _ty_time "$1" <"$1"; } 2>/dev/null || return 1
    [ $((_ty_asked - _ty_now)) -gt "$2" ]
}

_ty_reap() { # file in processing/, split; _ty_asked is the yard's time
    local crashes=$((_ty_crashes + 1)) reason='' code=0 delay=0 holder='' told='' crumbs=''
    _ty_is_over "$1" "$_ty_lease" || return 0
    _ty_holder_json
    holder=$_ty_json
    _ty_decode "$_ty_holder"
    [ "$_ty_holder" != @ ] || _ty_decode "${_ty_lane#*@}"
    told=$((_ty_lease / 1000))
    if [ $((_ty_lease % 1000)) -ne 0 ]; then
        crumbs=$((1000 + _ty_lease % 1000))
        while [ "${crumbs%0}" != "$crumbs" ]; do crumbs=${crumbs%0}; done
        told=$told.${crumbs#1}
    fi
    _ty_string "the lease of $told s ended without a heartbeat from $_ty_text"
    reason=$_ty_json
    _ty_handle "$_ty_id.$_ty_fence.$_ty_nonce" || return
    _ty_record crash "$reason" || return
    if [ $crashes -gt 1 ]; then
        _ty_backoff $((crashes - 2))
        delay=$((_ty_delay > 0 ? _ty_delay : 1))
    fi
    _ty_is_over "$1" "$_ty_lease" || return 0 # it beat while the record was written
    _ty_now=$_ty_asked
    _ty_lane_json "$_ty_lane"
    if [ $crashes -ge "$_ty_set_crashes" ]; then
        _ty_folder=$_ty_root/failed/$_ty_seg
        _ty_target=$_ty_id.$((_ty_fence + 1)).e$_ty_errors.c$crashes$_ty_own.$_ty_lane.json
        _ty_more=",\"final\":true,\"reason\":$reason"
    else
        _ty_aim "$_ty_errors" $crashes $delay
        _ty_more=",\"final\":false,\"reason\":$reason$_ty_more"
    fi
    _ty_tell reaped "$_ty_id" $((_ty_fence + 1)) "$holder" "$_ty_more"
    _ty_shift "$1" "$_ty_folder" "$_ty_target" sync || code=$?
    [ $code -eq 0 ] || {
        [ $code -eq 1 ]
        return
    }
    _ty_told="${_ty_told}reaped $_ty_id
"
}

_ty_wake() { # file in waiting/, split
    local code=0
    _ty_aim "$_ty_errors" "$_ty_crashes" 0
    _ty_lane_json "$_ty_lane"
    _ty_tell due "$_ty_id" $((_ty_fence + 1)) null
    _ty_shift "$1" "$_ty_folder" "$_ty_target" || code=$?
    [ $code -eq 0 ] || {
        [ $code -eq 1 ]
        return
    }
    _ty_told="${_ty_told}woken $_ty_id
"
}

_ty_sweep() { # -> _ty_told, a line for each task that was moved; never a turn of turns/, which stands for a whole sweep
    local path='' name='' now='' begun=''
    _ty_ask_time || return
    now=$_ty_now _ty_asked=$_ty_now
    _ty_ingest || return
    # With claims that another program's janitor has put into todo/: the same tasks again.
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
        # Names of buckets sort by their beginning; what comes after this minute is not looked into.
        name=${path##*/}
        [ -d "$path" ] || continue
        case $(printf '%s\n' "$name" "$begun" | LC_ALL=C sort) in "$begun
$name") [ "$name" = "$begun" ] || break ;; esac
        for name in "$path"/????/*.json; do
            _ty_split "${name##*/}" && [ -n "$_ty_due" ] || continue
            [ "$_ty_due" -le "$now" ] || continue
            _ty_now=$now
            _ty_wake "$name" || return
        done
    done
}

_ty_say_nothing_is_ready() {
    _ty_say "nothing is ready"
    _ty_say_of_the_box
}

_ty_reap_stale() {
    local path='' line=''
    [ $# -eq 0 ] || {
        _ty_say "usage: reap_stale"
        return 2
    }
    _ty_open || return
    _ty_told=
    _ty_sweep || return
    printf '%s' "$_ty_told"
    # Files of shells that are gone, or will make theirs anew. What one was killed over stands in its file, for Python.
    set --
    for path in "$_ty_root"/writers/*.sh; do
        { read -r line <"$path"; } 2>/dev/null && [ -z "$line" ] && set -- "$@" "$path"
    done
    [ $# -eq 0 ] || rm -f -- "$@" 2>/dev/null
    set -- "$_ty_root"/processing/*.L.*.json
    [ ! -e "$1" ] || _ty_say "$# claims are vouched for by locks: whether their workers live is left to 'taskyard janitor' until their leases end"
    _ty_say_of_the_box
    return 0
}
