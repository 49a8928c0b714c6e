# ---- time --------------------------------------------------------------------------------------------------------------

# The yard's time is the ctime of a file that was just made, moved or touched. -> _ty_now in milliseconds, and _ty_micros
_ty_time() { # file
    local out='' fraction=''
    out=$(stat -c '%Z %z' -- "$1" 2>/dev/null) || return 1
    fraction=000000
    case $out in *.??????*) fraction=${out#*.} ;; esac
    fraction=${fraction%"${fraction#??????}"}
    _ty_micros=$((1$fraction - 1000000))
    _ty_now=$((${out%% *} * 1000 + _ty_micros / 1000))
}

_ty_uptime() { # -> _ty_up in hundredths of a second; 1 where the system has no such file
    [ -z "$_ty_early" ] || [ -z "${_ty_up-}" ] || return 0 # one answer serves a single verb
    _ty_up=
    { read -r _ty_up _; } 2>/dev/null </proc/uptime || return 1
    _ty_up=${_ty_up%.*}${_ty_up#*.}
    while :; do case $_ty_up in 0?*) _ty_up=${_ty_up#0} ;; *) return ;; esac done
}

_ty_ask_time() { # as _ty_time, without a file of our own
    touch "$_ty_root/tmp/clock" 2>/dev/null && _ty_time "$_ty_root/tmp/clock" || _ty_refuse 8 "the yard's time cannot be asked for in $_ty_root/tmp"
}

# Asking for the yard's time costs a process. So the stamps of events go on from the last answer by this machine's uptime, for
# at most a minute. Leases and delays are always judged by a fresh answer.
_ty_moment() { # a file that was just moved
    if _ty_uptime && [ -n "$_ty_looked" ] && [ $((_ty_up - _ty_looked)) -ge 0 ] && [ $((_ty_up - _ty_looked)) -lt 6000 ]; then
        _ty_now=$((_ty_seen + (_ty_up - _ty_looked) * 10))
        return
    fi
    _ty_time "$1" || _ty_ask_time || return
    _ty_seen=$_ty_now _ty_looked=$_ty_up
    _ty_remember
}

# For the next process, writers/<kernel>-<mounts>.look keeps for a minute: the uptime of the last answer, that answer, the
# uptime at which the mounts were read, the kind of place, and the yard's path.
_ty_remember() {
    [ -n "$_ty_up" ] && [ -n "$_ty_look" ] && [ -n "$_ty_place_up" ] || return 0
    { printf '%s %s %s %s %s\n' "$_ty_up" "$_ty_now" "$_ty_place_up" "$_ty_place" "$_ty_root" 1<>"$_ty_look"; } 2>/dev/null
    return 0
}

_ty_recall() { # -> _ty_place, _ty_seen and _ty_looked, as far as they are known
    local up='' now='' placed='' place='' root='' mounts=''
    _ty_look='' _ty_looked='' _ty_seen='' _ty_place='' _ty_place_up=''
    { read -r mounts _ </proc/self/mountinfo; } 2>/dev/null && _ty_uptime || return 0
    _ty_look=$_ty_root/writers/$_ty_boot-$mounts.look
    { read -r up now placed place root <"$_ty_look"; } 2>/dev/null || return 0
    [ "$root" = "$_ty_root" ] && _ty_is_number "$up" && _ty_is_number "$now" && _ty_is_number "$placed" || return 0
    if [ "$up" -le "$_ty_up" ]; then _ty_seen=$now _ty_looked=$up; fi
    case $place in local | network) [ "$placed" -gt "$_ty_up" ] || [ $((_ty_up - placed)) -ge 6000 ] || _ty_place=$place _ty_place_up=$placed ;; esac
}

_ty_date() { # milliseconds since 1970 -> _ty_stamp, _ty_minute, _ty_hour, _ty_day
    local s=$(($1 / 1000)) ms=$((1000 + $1 % 1000)) z='' era='' doe='' yoe='' doy='' mp='' d='' m='' y='' H='' M='' S=''
    z=$((s / 86400 + 719468)) era=$((z / 146097)) doe=$((z - era * 146097))
    yoe=$(((doe - doe / 1460 + doe / 36524 - doe / 146096) / 365))
    doy=$((doe - (365 * yoe + yoe / 4 - yoe / 100))) mp=$(((5 * doy + 2) / 153))
    d=$((100 + doy - (153 * mp + 2) / 5 + 1)) m=$((100 + (mp < 10 ? mp + 3 : mp - 9)))
    y=$((yoe + era * 400 + (m <= 102)))
    H=$((100 + s % 86400 / 3600)) M=$((100 + s % 3600 / 60)) S=$((100 + s % 60))
    _ty_day=$y-${m#1}-${d#1}
    _ty_hour=${_ty_day}T${H#1}
    _ty_minute=$_ty_hour-${M#1}
    _ty_stamp=$_ty_hour:${M#1}:${S#1}.${ms#1}Z
}
