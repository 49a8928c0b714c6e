#!/bin/sh
# shellcheck shell=dash
# shellcheck disable=SC2015  # "A && B || C" is meant as it reads: C where A or B fails
# taskyard.sh: a Taskyard worker in plain shell, for places without Python. Run it, or source it and call its functions.
#
#   taskyard.sh add_task [-p 0..9] KIND [FILE]     FILE (- is standard input) holds the task's data as JSON; prints the id
#   taskyard.sh claim_task [ID | KIND...]          prints the claim's handle, a tab, and the file that holds the task;
#                                                  a script that sources this finds them in TASK_HANDLE and TASK_FILE.
#                                                  An ID may be a short name (0-kf12), as 'taskyard list' shows it
#   taskyard.sh resume                             take this worker's claims again, after a restart; prints the same for each,
#                                                  and whoever held them under its name is shut out
#   taskyard.sh complete_task HANDLE [FILE]        FILE holds the result as JSON
#   taskyard.sh fail_task HANDLE REASON            tried again while attempts are left
#   taskyard.sh release_task HANDLE                hand it back untouched
#   taskyard.sh heartbeat HANDLE                   begin the lease anew
#   taskyard.sh note_task HANDLE TEXT              leave a word for whoever works on it next; begins the lease anew too
#   taskyard.sh verify_ownership HANDLE            is it still mine?
#   taskyard.sh process_loop [--kind KIND]... [--once|--drain] [--] CMD...
#                                                  run CMD for each task, the task's file on its standard input; under the
#                                                  name of a loop that was killed, first for the tasks that it held
#   taskyard.sh reap_stale                         give back what leases have ended of, wake what is due, and take in what
#                                                  lies in the drop box (todo/*.json), as a claim that finds nothing does
#
# The yard is $TASKYARD, else the nearest .taskyard upward; a script that changes its folder should name it by its whole path.
# The worker is $TASKYARD_WORKER, else $AGENT_ID, else a name of this process. $TASKYARD_LEASE is the lease of claims in
# seconds, where neither the default nor the task's own will do. Without a HANDLE $TASKYARD_CLAIM is meant.
# Exit codes: 0 ok, 1 tasks failed for good (process_loop --drain), 2 usage or invalid, 3 nothing ready, 4 claim lost, 6 not found, 7 conflict, 8 yard unavailable.
#
# CMD is told TASKYARD, TASKYARD_CLAIM, TASKYARD_TASK, TASKYARD_FENCE, TASKYARD_WORKER and TASKYARD_WORKDIR. It may leave its
# result as result.json in TASKYARD_WORKDIR. Exit 0 is done, 75 later (not counted), 65 failed for good, all else an error.
# A task that asks for a check is done only if that passes: the command of this name in yard.json, which has the task and its
# result on its standard input. Where yard.json has none of that name, the task is never claimed here.
#
# It keeps to PROTOCOL.md, format 1, beside any number of Python workers. It leaves to them, and never touches: tasks that use
# something (u or w in their names), tasks whose check it does not know, dropped files that it cannot judge (it says so), and
# what killed processes left half done (the sweep's mending; 'taskyard janitor' does it at once).
#
# It needs mv, mkdir, rmdir, rm, ln, touch, sleep, sort, sync, tr, tail, cat, sha256sum, awk, and a stat with -c: GNU's or
# busybox's. Where there is no /proc it needs od, df and uname as well. setsid is used where there is one.
#
# A shell parses a script as it reads it, and to parse all of this takes as long as a mv. So what a done needs stands first,
# then what a claim needs, and where one of them is the verb, it is tried before the rest is read. Whatever then turns out to
# need the rest says so by 100 (_ty_unread), before anything has been changed, and is done from the beginning.

# ---- small things -------------------------------------------------------------------------------------------------------

_ty_early=

_ty_unread() { [ -n "$_ty_early" ]; } # is the second half of this file still to be read?

_ty_say() { # words, which may be anybody's: nothing in them may steer a terminal
    case $* in
        *[[:cntrl:]]*) printf 'taskyard.sh: %s\n' "$*" | tr '\001-\010\013-\037\177' '?' >&2 ;;
        *) printf 'taskyard.sh: %s\n' "$*" >&2 ;;
    esac
}

_ty_trouble() { # what could not be done
    _ty_say "$1${_ty_error:+: $_ty_error}"
    return 8
}

_ty_base32() { # number width -> _ty_text
    local n=$1 width=$2 digit=''
    _ty_text=
    while [ "$width" -gt 0 ]; do
        case $((n & 31)) in
            10) digit=a ;; 11) digit=b ;; 12) digit=c ;; 13) digit=d ;; 14) digit=e ;; 15) digit=f ;;
            16) digit=g ;; 17) digit=h ;; 18) digit=j ;; 19) digit=k ;; 20) digit=m ;; 21) digit=n ;;
            22) digit=p ;; 23) digit=q ;; 24) digit=r ;; 25) digit=s ;; 26) digit=t ;; 27) digit=v ;;
            28) digit=w ;; 29) digit=x ;; 30) digit=y ;; 31) digit=z ;; *) digit=$((n & 31)) ;;
        esac
        _ty_text=$digit$_ty_text
        n=$((n >> 5)) width=$((width - 1))
    done
}

# 40 random bits as eight characters, _ty_word, and 31 more as a number, _ty_chance. Drawn anew for every use: a subshell
# that went on from its parent's would take the parent's claim for its own. The kernel's uuid costs no process.
_ty_draw() {
    local uuid=''
    { read -r uuid </proc/sys/kernel/random/uuid; } 2>/dev/null
    case $uuid in
        ????????-????-????-????-????????????) ;;
        *)
            # shellcheck disable=SC2046  # fourteen bytes, to be joined
            set -- $(od -An -v -N14 -tx1 /dev/urandom)
            uuid=$1$2$3$4-$5$6-$7$8-$9${10}-${11}${12}${13}${14}${1}${2}
            ;;
    esac
    _ty_chance=$((0x${uuid%%-*} & 0x7fffffff))
    uuid=${uuid##*-}
    _ty_base32 $((0x${uuid%??})) 8
    _ty_word=$_ty_text
}

_ty_encode() { # word -> _ty_text, as it stands in names; 2 if no word may be so
    case $1 in
        '') return 2 ;;
        *[!A-Za-z0-9_-]*)
            ! _ty_unread || return 100
            _ty_encode_bytes "$1"
            return
            ;;
    esac
    _ty_text=$1
    [ ${#1} -le 60 ] || return 2
}

_ty_decode() { # a word in a name -> _ty_text
    case $1 in
        *%*)
            ! _ty_unread || return 100
            _ty_decode_bytes "$1"
            ;;
        *) _ty_text=$1 ;;
    esac
}

_ty_string() { # text -> _ty_json, a JSON string
    case $1 in
        *[!\ -~]* | *\"* | *\\*)
            ! _ty_unread || return 100
            _ty_quote "$1"
            ;;
        *) _ty_json="\"$1\"" ;;
    esac
}

# ---- time ---------------------------------------------------------------------------------------------------------------

# The yard's time is the ctime of a file that was just made, moved or touched. -> _ty_now in milliseconds, _ty_micros beside it
_ty_time() { # file
    local out='' fraction=''
    out=$(stat -c '%Z %z' -- "$1" 2>/dev/null) || return 1
    fraction=000000
    case $out in *.??????*) fraction=${out#*.} ;; esac
    fraction=${fraction%"${fraction#??????}"}
    _ty_micros=$((1$fraction - 1000000))
    _ty_now=$((${out%% *} * 1000 + _ty_micros / 1000))
}

_ty_uptime() { # -> _ty_up in hundredths of a second; 1 where the system does not tell
    [ -z "$_ty_early" ] || [ -z "${_ty_up-}" ] || return 0 # a single verb takes no longer than that
    _ty_up=
    { read -r _ty_up _; } 2>/dev/null </proc/uptime || return 1
    _ty_up=${_ty_up%.*}${_ty_up#*.}
    while :; do case $_ty_up in 0?*) _ty_up=${_ty_up#0} ;; *) return ;; esac done
}

_ty_ask_time() { # the same, where there is no such file
    _ty_error=
    touch "$_ty_root/tmp/clock" 2>/dev/null && _ty_time "$_ty_root/tmp/clock" || _ty_trouble "the yard's time cannot be asked for in $_ty_root/tmp"
}

# The stamps of events are a look at the yard's time that was carried on for at most a minute by this machine's ticking: a
# look costs a process. Whatever is decided by time, leases and delays, is decided by a fresh look.
_ty_moment() { # a file that was just moved
    if _ty_uptime && [ -n "$_ty_looked" ] && [ $((_ty_up - _ty_looked)) -ge 0 ] && [ $((_ty_up - _ty_looked)) -lt 6000 ]; then
        _ty_now=$((_ty_seen + (_ty_up - _ty_looked) * 10))
        return
    fi
    _ty_time "$1" || _ty_ask_time || return
    _ty_seen=$_ty_now _ty_looked=$_ty_up
    _ty_remember
}

# What was found out about this place stands in writers/<kernel>-<mounts>.look for a minute, for the next process: when the
# look at the time was, that time, when the mounts were looked at, what kind of place it is, and the yard's path.
_ty_remember() {
    [ -n "$_ty_up" ] && [ -n "$_ty_look" ] && [ -n "$_ty_place_up" ] || return 0
    { printf '%s %s %s %s %s\n' "$_ty_up" "$_ty_now" "$_ty_place_up" "$_ty_place" "$_ty_root" 1<>"$_ty_look"; } 2>/dev/null
    return 0
}

_ty_recall() { # -> _ty_place, _ty_seen, _ty_looked as far as they are known
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

# ---- the yard -----------------------------------------------------------------------------------------------------------

# The settings, where yard.json is laid out as 'taskyard init' does it and they are whole numbers. 1: awk must read it.
_ty_read_plainly() {
    local line='' name='' value=''
    _ty_durability=durable _ty_set_attempts=3 _ty_set_crashes=3 _ty_set_backoff=5000 _ty_set_cap=600000 _ty_set_lease=1800000
    _ty_checks='' _ty_shared='' _ty_settle=
    for value in '{' '"taskyard": 1,' '"features": [],' '"settings": {'; do
        read -r line && [ "$line" = "$value" ] || return 1
    done
    while read -r name value; do
        value=${value%,}
        case $name$value in
            '}') read -r line && [ "$line" = '}' ] && ! read -r line && [ -z "$line" ] && return ;;
            '"durability":"fast"' | '"durability":"durable"' | '"durability":"strict"')
                value=${value#?}
                _ty_durability=${value%?}
                continue
                ;;
            '"shared":"group"')
                _ty_share
                continue
                ;;
        esac
        case $value in '' | *[!0-9]* | 0?* | ?????????*) return 1 ;; esac
        case $name$value in '"max_attempts":0' | '"max_crashes":0' | '"lease":0' | '"lease":'???????*) return 1 ;; esac
        case $name in
            '"max_attempts":') _ty_set_attempts=$value ;;
            '"max_crashes":') _ty_set_crashes=$value ;;
            '"backoff":') _ty_set_backoff=$((value * 1000)) ;;
            '"backoff_cap":') _ty_set_cap=$((value * 1000)) ;;
            '"lease":') _ty_set_lease=$((value * 1000)) ;;
            '"settle":') _ty_settle=$((value * 1000)) ;;
            '"sweep_every":' | '"retention_age":' | '"retention_count":') ;;
            *) return 1 ;;
        esac
    done
    return 1
}

_ty_share() { # whatever is made here is the group's as well
    _ty_shared=1
    umask g=rwx
}

_ty_is_folder() { # path: a link may lead to another filesystem, and mv would copy there without a word
    [ ! -L "$1" ] || {
        _ty_say "the yard $_ty_root cannot be used: $1 is a link"
        return 8
    }
}

_ty_enter() { # folder -> _ty_root, where it really is; a process of our own may go there and back, and needs no other
    local here=${PWD-}
    _ty_root=
    if [ -n "$_ty_is_program" ]; then
        { CDPATH='' cd -P -- "$1" && _ty_root=$PWD; } >/dev/null 2>&1
        CDPATH='' cd -- "$here" >/dev/null 2>&1 || : # it is gone, and so is whatever it could be needed for
    else
        _ty_root=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd -P)
    fi
    [ -n "$_ty_root" ] && [ -r "$_ty_root/yard.json" ] || {
        _ty_say "there is no yard at $1, or it cannot be read"
        return 8
    }
    [ -f "$_ty_root/yard.json" ] && [ ! -L "$_ty_root/yard.json" ] || {
        _ty_say "$_ty_root/yard.json is no ordinary file; put one there"
        return 8
    }
    for here in todo waiting processing 'done' failed tmp results attempts; do
        _ty_is_folder "$_ty_root/$here" || return
    done
}

# Everything begins here: which yard, its settings, who I am. Asked once, and again when the place or the name changes.
_ty_open() {
    local key="${TASKYARD-}|${PWD-}|${TASKYARD_WORKER-}|${AGENT_ID-}|${TASKYARD_LEASE-}"
    [ "${_ty_key-}" != "$key" ] || return 0
    _ty_key='' _ty_error=''
    case ${TASKYARD-} in
        '' | *:*)
            ! _ty_unread || return 100
            _ty_locate || return
            ;;
        *) _ty_text=$TASKYARD ;;
    esac
    _ty_enter "$_ty_text" || return
    { read -r _ty_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || _ty_boot=pid$$
    _ty_boot=${_ty_boot%%-*}
    _ty_recall
    if [ -z "$_ty_place" ] || ! _ty_read_plainly <"$_ty_root/yard.json"; then
        ! _ty_unread || return 100
        _ty_examine || return
    fi
    if [ -z "$_ty_settle" ]; then if [ "$_ty_place" = network ]; then _ty_settle=60000; else _ty_settle=5000; fi; fi
    _ty_asked_lease=
    case ${TASKYARD_LEASE-} in
        '') ;;
        *[!0-9]* | 0* | ???????*)
            _ty_say "\$TASKYARD_LEASE must be whole seconds, not $TASKYARD_LEASE"
            return 2
            ;;
        *) _ty_asked_lease=$((TASKYARD_LEASE * 1000)) ;;
    esac
    _ty_own_log='' _ty_torn='' _ty_last=0
    # One who takes a single task looks at a few; one who goes on keeps the list for a second.
    if [ -n "$_ty_is_program" ]; then _ty_ahead=4; else _ty_ahead=32; fi
    _ty_who || return
    _ty_queue='' _ty_queue_for='' _ty_lost=0 _ty_last_tick=0 _ty_lane_known='' _ty_known_checks='' _ty_seen_dropped='' _ty_left=0 _ty_said_left=''
    _ty_key=$key
}

_ty_who() { # -> _ty_worker, _ty_by, and _ty_notes, the file in writers/ for what this worker is about to do
    local name=${TASKYARD_WORKER:-${AGENT_ID-}} host='' code=0
    _ty_notes=
    if [ -z "$name" ]; then
        { read -r host </proc/sys/kernel/hostname; } 2>/dev/null || host=$(uname -n)
        host=${host%%.*}
        case $host in '' | *[!A-Za-z0-9_-]* | ???????????????????????????????*) host='sh' ;; esac
        _ty_draw
        name=$host-$$-${_ty_word%????}
        _ty_notes=$_ty_root/writers/$host-$$.sh
    fi
    _ty_encode "$name" || code=$?
    [ $code -ne 100 ] || return 100
    [ $code -eq 0 ] || {
        _ty_say "no worker can be called $name"
        return 2
    }
    _ty_worker=$_ty_text
    _ty_notes=${_ty_notes:-$_ty_root/writers/$_ty_worker.sh}
    _ty_string "$name" || return
    _ty_by=$_ty_json
}

_ty_lane_json() { # lane -> _ty_kind and _ty_assignee as JSON; the last one is remembered
    [ "$_ty_lane_known" != "$1" ] || return 0
    local kind=${1#?-}
    _ty_decode "${kind%%@*}" || return
    _ty_kind="\"$_ty_text\""
    _ty_assignee=null
    case $1 in
        *@*)
            _ty_decode "${1#*@}" && _ty_string "$_ty_text" || return
            _ty_assignee=$_ty_json
            ;;
    esac
    _ty_lane_known=$1
}

_ty_holder_json() { # the holder of the name that was split last -> _ty_json
    case $_ty_holder in
        @) _ty_lane_json "$_ty_lane" && _ty_json=$_ty_assignee ;;
        "$_ty_worker") _ty_json=$_ty_by ;;
        *) _ty_decode "$_ty_holder" && _ty_string "$_ty_text" ;;
    esac
}

# ---- names --------------------------------------------------------------------------------------------------------------

_ty_is_number() { # text
    case $1 in '' | *[!0-9]* | 0?* | ????????????????*) return 1 ;; esac
}

_ty_is_id() { # text
    case $1 in
        *[!0-9a-hjkmnp-tv-z]*) return 1 ;;
        ?????????????????????) ;;
        *) return 1 ;;
    esac
}

_ty_is_short() { # text -> _ty_h_seg and _ty_h_end: what a short name says, such as 0-kf12 (PROTOCOL.md)
    local word=$1
    case $word in
        *[!0-9A-Za-z-]* | *-*-* | ??????????????????????????*) return 1 ;;
        ?-????* | ??-????* | ???-????* | ????-????*) ;;
        *) return 1 ;;
    esac
    case $word in *[A-Z]*) word=$(printf %s "$word" | tr '[:upper:]' '[:lower:]') ;; esac
    _ty_h_seg=000${word%%-*} _ty_h_end=${word#*-}
    _ty_h_seg=${_ty_h_seg#"${_ty_h_seg%????}"}
    case $_ty_h_seg$_ty_h_end in *[!0-9a-hjkmnp-tv-z]* | ??????????????????????*) return 1 ;; esac
}

# What a name says: _ty_id, _ty_seg, _ty_fence, _ty_errors, _ty_crashes, _ty_own, _ty_limit, _ty_own_lease, _ty_body, _ty_uses, _ty_verified,
# _ty_lane, _ty_due, _ty_lease, _ty_claim (from .l on), _ty_holder, _ty_nonce. 1 if it is no task's name.
_ty_split() { # name [lane]
    local IFS=.
    _ty_lane=${2-} && _ty_lane=${_ty_lane%%+*} # + and a digest: a folder of those that wait for something in use
    _ty_own='' _ty_limit='' _ty_own_lease='' _ty_body='' _ty_uses='' _ty_verified='' _ty_due='' _ty_lease='' _ty_claim='' _ty_holder='' _ty_nonce=''
    case $1 in *.json) ;; *) return 1 ;; esac
    case $1 in *[!A-Za-z0-9_%@.-]*) return 1 ;; esac
    # shellcheck disable=SC2086  # split at dots
    set -- ${1%.json}
    [ $# -ge 4 ] && _ty_is_id "$1" && _ty_is_number "$2" || return 1
    _ty_id=$1 _ty_fence=$2 _ty_errors=${3#e} _ty_crashes=${4#c}
    _ty_seg=${1%?????????????????}
    [ "$3" = "e$_ty_errors" ] && [ "$4" = "c$_ty_crashes" ] && _ty_is_number "$_ty_errors" && _ty_is_number "$_ty_crashes" || return 1
    shift 4
    case ${1-} in x) _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in b????????) _ty_body=${1#b} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in m[0-9]*) _ty_limit=${1#m} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in t[0-9]*) _ty_own_lease=${1#t} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in u | w) _ty_uses=u ;; esac
    case ${1-} in v | w) _ty_verified=v ;; esac
    case ${1-} in [uvw]) _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in [0-9]-?*) _ty_lane=$1 && shift ;; esac
    [ -n "$_ty_lane" ] || return 1
    [ $# -gt 0 ] || return 0
    case $1 in
        d*)
            _ty_due=${1#d}
            _ty_is_number "$_ty_due" && [ $# -eq 1 ]
            return
            ;;
        l*) ;;
        *) return 1 ;;
    esac
    _ty_lease=${1#l} _ty_claim=.$1
    _ty_is_number "$_ty_lease" || return 1
    shift
    case ${1-} in L) _ty_claim=$_ty_claim.L && shift ;; esac
    case ${1-} in ?*-????????[0-9]*) ;; *) return 1 ;; esac
    _ty_claim=$_ty_claim.$1
    _ty_holder=${1%-*} _ty_nonce=${1##*-}
    [ $# -eq 1 ] || { [ $# -eq 2 ] && [ "$2" = r ]; }
}

# Is it there, by a fresh listing? A file server's client may remember what is gone.
_ty_listed() { # path
    local path=''
    for path in "${1%.json}"*; do
        [ "$path" != "$1" ] || return 0
    done
    return 1
}

_ty_handle() { # handle -> _ty_h_id, _ty_h_fence, _ty_h_nonce
    local rest=''
    _ty_handle=$1
    _ty_h_id=${1%%.*} rest=${1#*.}
    _ty_h_fence=${rest%%.*} _ty_h_nonce=${rest#*.}
    if _ty_is_id "$1" || _ty_is_short "$1"; then
        _ty_say "$1 is the id of a task; this needs the handle that claim_task printed, id.fence.nonce; if that is lost, 'resume' gives this worker's claims new ones"
        return 2
    fi
    _ty_is_id "$_ty_h_id" && _ty_is_number "$_ty_h_fence" && [ ${#1} -le 54 ] || {
        _ty_say "not a claim's handle: $1"
        return 2
    }
    case $_ty_h_nonce in
        *[!0-9a-hjkmnp-tv-z]*) ;;
        ????????[0-9]*) _ty_h_seg=${1%"${1#????}"} && return 0 ;;
    esac
    _ty_say "not a claim's handle: $1"
    return 2
}

_ty_find() { # the claim of _ty_handle -> _ty_name, split; 1 if it is not held any more
    local path=''
    for path in "$_ty_root/processing/$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce.json"; do
        _ty_name=${path##*/}
        _ty_split "$_ty_name" && [ "$_ty_nonce" = "$_ty_h_nonce" ] && return 0
    done
    return 1
}

# ---- moves --------------------------------------------------------------------------------------------------------------

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

# ---- done ---------------------------------------------------------------------------------------------------------------

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

# ---- the doors ----------------------------------------------------------------------------------------------------------

# Whoever sources this keeps its own options and IFS; a verb that fails ends no script that did not ask for it.
_ty_call() { # function arguments
    local IFS='
' code=0 flags=$-
    IFS=" 	$IFS"
    set +fuC
    "$@" || code=$?
    case $flags in *f*) set -f ;; esac
    case $flags in *u*) set -u ;; esac
    case $flags in *C*) set -C ;; esac
    return $code
}

_ty_of_claim() { # function most-words words: the handle, or $TASKYARD_CLAIM if there are no words at all
    local verb=$1 most=$2
    shift 2
    # shellcheck disable=SC2031
    [ $# -gt 0 ] || [ -z "${TASKYARD_CLAIM-}" ] || set -- "$TASKYARD_CLAIM"
    [ $# -ge 1 ] && [ $# -le "$most" ] || {
        _ty_say "this needs the handle of a claim"
        return 2
    }
    _ty_open && "$verb" "$@"
}

complete_task() { _ty_call _ty_of_claim _ty_complete 2 "$@"; }

# Run, under whatever name, or sourced by a script? A script that is running has its own file in $0.
_ty_is_run() {
    case ${0##*/} in taskyard.sh | taskyard-sh) return 0 ;; esac
    [ -f "$0" ] && [ -r "$0" ] || return 1
    local line=''
    while IFS= read -r line; do
        case $line in
            '# taskyard.sh: a Taskyard worker in plain shell,'*) return 0 ;;
            '#'*) ;;
            *) return 1 ;;
        esac
    done <"$0"
    return 1
}

_ty_at_once() { # verb words: if this is their verb, it is tried before more is read
    [ "$1" = "${2-}" ] || return 0
    shift
    _ty_early=1
    "$@"
    _ty_early=$?
    [ "$_ty_early" -eq 100 ] || exit "$_ty_early"
    _ty_early=
}

_ty_is_program='' _ty_rest=''
if _ty_is_run; then
    _ty_is_program=1
    _ty_at_once complete_task "$@"
fi

# ---- claim --------------------------------------------------------------------------------------------------------------

_ty_kind_name() { # kind -> _ty_text, encoded
    # Letters of other scripts are taken on trust: the shell has no list of them.
    case $1 in
        [A-Za-z0-9]*) ;;
        [[:space:][:punct:]]*) set -- '' ;;
    esac
    case $1 in *[\ \!\"\#\$%\&\'\(\)\*\+,/\;\<=\>?@\[\\\]^\`\{\|\}~]*) set -- '' ;; esac
    _ty_encode "$1" && return
    [ $? -ne 100 ] || return 100
    _ty_say "such a kind is not allowed: letters, digits, and _ - . : after the first character"
    return 2
}

_ty_kinds() { # kinds -> _ty_wanted, encoded, with spaces around; empty for all
    local kind=''
    _ty_wanted=
    for kind; do
        _ty_kind_name "$kind" || return
        _ty_wanted="${_ty_wanted:- }$_ty_text "
    done
}

_ty_serves() { # lane: may this worker take from it now?
    local kind=${1#?-} assignee=''
    case $1 in
        [0-9]-?*@?*) assignee=${kind#*@} kind=${kind%%@*} ;;
        [0-9]-?*) ;;
        *) return 1 ;;
    esac
    case $1 in *[!A-Za-z0-9_%@-]*) return 1 ;; esac
    case $_ty_wanted in '' | *" $kind "*) ;; *) return 1 ;; esac
    [ -z "$assignee" ] || [ "$assignee" = "$_ty_worker" ] || return 1
    case $_ty_paused in *" $kind "*) return 1 ;; esac
}

_ty_list_paused() { # -> _ty_paused; 1 if all is
    local path=''
    _ty_paused=' '
    for path in "$_ty_root"/paused/*; do _ty_paused="$_ty_paused${path##*/} "; done
    case $_ty_paused in *' @ '*) return 1 ;; esac
}

# The oldest names of one lane -> _ty_text, some lines of age, a space, and the path in todo/. What uses something is
# left to those who can see whether it is free, and what asks for a check that is not known here to those who know it.
_ty_head() { # lane
    local folder='' path='' name='' many=0 empty='' last=''
    _ty_text=
    for folder in "$_ty_root/todo/$1"/????; do
        [ "$many" -eq 0 ] || break
        last=$folder
        [ -z "$_ty_checks" ] || _ty_learn_checks "$folder"/*.v.json
        for path in "$folder"/*.json; do
            name=${path##*/}
            case $name in
                '*.json')
                    [ -e "$path" ] || [ ! -d "$folder" ] || empty="$empty ${folder##*/}"
                    continue
                    ;;
                *.u.json | *.w.json | *[!A-Za-z0-9.]*) continue ;;
                *.v.json) case $_ty_known_checks in *" $name "*) ;; *) continue ;; esac ;;
                "${folder##*/}"*.*.e*.c*.json) ;;
                *) continue ;;
            esac
            _ty_text="$_ty_text${name#????} ${path#"$_ty_root/todo/"}
"
            many=$((many + 1))
            [ $many -lt "$_ty_ahead" ] || break
        done
    done
    # Drained segments are in the way of every listing; the lane's last stays.
    for name in $empty; do
        [ "$_ty_root/todo/$1/$name" = "$last" ] || rmdir -- "$_ty_root/todo/$1/$name" 2>/dev/null
    done
    [ -n "$_ty_text" ]
}

# What to take next -> _ty_queue, paths in todo/, oldest first, of the most urgent lanes that serve; 1 if there is nothing
_ty_fill() { # the least urgent priority that is of interest
    local folder='' lane='' rank='' group='' most=$1
    for folder in "$_ty_root"/todo/[0-9]-* end; do
        lane=${folder##*/}
        # shellcheck disable=SC2086  # lanes
        if [ -n "$group" ] && [ "${lane%%-*}" != "$rank" ]; then
            if _ty_fill_from $group; then
                _ty_rank=$rank
                return
            fi
            group=
        fi
        case $lane in *+*) continue ;; [0-9]-*) ;; *) continue ;; esac
        [ "${lane%%-*}" -le "$most" ] || break
        _ty_serves "$lane" || continue
        rank=${lane%%-*} group="$group $lane"
    done
    return 1
}

_ty_fill_from() { # lanes of equal priority; of more than eight another eight each time, so that none starves
    local lane='' lines='' lanes=0 turn=0
    if [ $# -gt 8 ]; then
        _ty_draw
        turn=$((_ty_chance % $#))
    fi
    while [ $turn -gt 0 ]; do
        lane=$1 turn=$((turn - 1))
        shift
        set -- "$@" "$lane"
    done
    for lane; do
        _ty_head "$lane" || continue
        lines=$lines$_ty_text lanes=$((lanes + 1))
        [ $lanes -lt 8 ] || break
    done
    [ $lanes -gt 0 ] || return 1
    [ $lanes -eq 1 ] || lines=$(LC_ALL=C sort <<END
$lines
END
    )
    # shellcheck disable=SC2086  # lines of two words
    set -- $lines
    _ty_queue='' lanes=0
    while [ $# -gt 1 ] && [ $lanes -lt 32 ]; do
        _ty_queue="$_ty_queue $2" lanes=$((lanes + 1))
        shift 2
    done
}

# The next candidate -> _ty_entry. Lists are kept for a second; whether something more urgent has come is always looked at.
_ty_pick() { # 1: list anew
    local skipped=0 window=1 fresh=''
    if [ "$1" = 1 ] || [ "$_ty_queue_for" != "$_ty_wanted" ] || ! _ty_uptime || [ $((_ty_up - _ty_filled)) -gt 100 ]; then
        _ty_queue=
    fi
    _ty_list_paused || return
    while :; do
        # shellcheck disable=SC2086  # paths of ours, without spaces
        set -- $_ty_queue
        if [ $# -eq 0 ]; then
            _ty_fill 9 || return
            _ty_queue_for=$_ty_wanted
            _ty_uptime || _ty_up=0
            _ty_filled=$_ty_up fresh=1
            continue
        fi
        if [ -z "$fresh" ] && [ "$_ty_rank" -gt 0 ] && _ty_fill $((_ty_rank - 1)); then continue; fi
        # After lost races somewhere near the oldest, so that workers don't walk in step.
        if [ "$_ty_lost" -gt 0 ]; then
            window=$((_ty_lost < 5 ? 1 << _ty_lost : 32))
            [ $window -le $# ] || window=$#
            skipped=$((_ty_chance % window))
            while [ $skipped -gt 0 ]; do
                window=$1
                shift
                set -- "$@" "$window"
                skipped=$((skipped - 1))
            done
        fi
        _ty_entry=$1
        shift
        _ty_queue=$*
        window=${_ty_entry%%/*}
        _ty_serves "$window" && [ -e "$_ty_root/todo/$_ty_entry" ] && return
    done
}

# Takes the entry -> _ty_handle, _ty_file. 1: somebody else was first.
_ty_take() {
    local name=${_ty_entry##*/} lane=${_ty_entry%%/*} lease='' holder=$_ty_worker target='' fence='' nonce='' sync=''
    _ty_split "$name" "$lane" && [ -z "$_ty_uses$_ty_due$_ty_lease" ] || return 1
    ! _ty_unread || [ -z "$_ty_body" ] || return 100
    _ty_lane_json "$lane" || return
    lease=${_ty_asked_lease:-${_ty_own_lease:-${_ty_usual_lease:-$_ty_set_lease}}}
    case $lane in *@*) holder=@ ;; esac
    [ "$_ty_durability" != strict ] || sync=sync
    _ty_draw
    nonce=${_ty_word}1 fence=$((_ty_fence + 1))
    target="$_ty_id.$fence.e$_ty_errors.c$_ty_crashes$_ty_own.$lane.l$lease.$holder-$nonce.json"
    _ty_tell claimed "$_ty_id" "$fence" "$_ty_by"
    _ty_now= # a rename moves ctime: the claim's own moment
    _ty_shift "$_ty_root/todo/$_ty_entry" "$_ty_root/processing" "$target" $sync || return
    _ty_handle=$_ty_id.$fence.$nonce _ty_fence=$fence _ty_lease=$lease _ty_nonce=$nonce
    _ty_file=$_ty_root/processing/$target
    [ -z "$_ty_body" ] || _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
    [ -f "$_ty_file" ] && [ ! -L "$_ty_file" ] && [ -r "$_ty_file" ] && return 0
    _ty_rest=_ty_give_up
    ! _ty_unread || return 100
    _ty_give_up
}

_ty_take_next() { # of the kinds in _ty_wanted
    local fresh=0 swept=0 code=''
    while :; do
        if _ty_pick $fresh; then
            fresh=0 code=0
            _ty_take || code=$?
            case $code in
                0) _ty_lost=$((_ty_lost / 2)) && return ;;
                1) _ty_lost=$((_ty_lost + 1)) ;;
                *) return $code ;;
            esac
        elif [ $fresh -eq 0 ]; then
            fresh=1 # a list is only a hint: once more from the disk
        elif [ $swept -eq 0 ]; then
            ! _ty_unread || return 100
            swept=1 _ty_told=
            _ty_sweep || return
            [ -n "$_ty_told" ] || return 3
        else
            return 3
        fi
    done
}

_ty_claim_next() { # [id | kind...]
    local code=0
    _ty_open || return
    # A kind may look like an id or a short name: then it is one, if no task has it.
    if [ $# -eq 1 ] && _ty_is_id "$1"; then
        ! _ty_unread || return 100
        _ty_h_seg=${1%?????????????????}
        if _ty_is_there "$1"; then
            _ty_take_named "$1" || return
            _ty_hand_over
            return
        fi
    elif [ $# -eq 1 ] && _ty_is_short "$1" && [ -e "$_ty_root/segments/$_ty_h_seg" ]; then
        ! _ty_unread || return 100
        _ty_lengthen "$1" || code=$?
        [ $code -ne 6 ] || return 6
        if [ $code -eq 0 ]; then
            _ty_take_named "$_ty_text" || return
            _ty_hand_over
            return
        fi
        code=0
    fi
    _ty_kinds "$@" || return
    _ty_take_next || code=$?
    [ $code -ne 3 ] || _ty_say_nothing_is_ready
    [ $code -eq 0 ] || return $code
    _ty_hand_over
}

_ty_hand_over() {
    # For scripts that source this; reading the line would take them longer than all else of the claim.
    # shellcheck disable=SC2034
    TASK_HANDLE=$_ty_handle TASK_FILE=$_ty_file
    printf '%s\t%s\n' "$_ty_handle" "$_ty_file"
}

claim_task() { _ty_call _ty_claim_next "$@"; }

[ -z "$_ty_is_program" ] || _ty_at_once claim_task "$@"

# ========================================================================================================================
# All else, in the order in which it is needed: reading what is not plain, records, add, late verbs, endings, the sweep, the
# loop, and the rest of the doors.

# ---- words and values that are not plain --------------------------------------------------------------------------------

_ty_upper() { # a hex digit -> _ty_text
    case $1 in
        a) _ty_text=A ;; b) _ty_text=B ;; c) _ty_text=C ;; d) _ty_text=D ;; e) _ty_text=E ;; f) _ty_text=F ;;
        *) _ty_text=$1 ;;
    esac
}

_ty_encode_bytes() { # as _ty_encode
    local byte='' code='' out='' more=0 head=''
    # shellcheck disable=SC2046  # bytes in hex
    set -- $(printf '%s' "$1" | od -An -v -tx1)
    for byte; do
        if [ "$more" -gt 0 ]; then # within a character of several bytes
            case $head$byte in
                e0[89]? | ed[ab]? | f0[8]? | f4[9ab]? | c2[89]?) return 2 ;; # too long, surrogates, too high, C1 controls
                *[89ab]?) ;;
                *) return 2 ;;
            esac
            case $out$byte in *%E2%80a[89]) return 2 ;; esac # line and paragraph separators
            more=$((more - 1)) head=
        else
            case $byte in
                [01]? | 7f | [89ab]? | c[01] | f[5-9a-f]) return 2 ;;
                c? | d?) more=1 ;;
                e?) more=2 ;;
                f?) more=3 ;;
            esac
            head=$byte
        fi
        case $byte in
            2d | 3[0-9] | 4[1-9a-f] | 5[0-9af] | 6[1-9a-f] | 7[0-9a])
                code=$((0x$byte))
                out="$out\\0$((code / 64))$((code / 8 % 8))$((code % 8))"
                ;;
            *)
                _ty_upper "${byte%?}"
                out="$out%$_ty_text"
                _ty_upper "${byte#?}"
                out="$out$_ty_text"
                ;;
        esac
    done
    [ "$more" -eq 0 ] || return 2
    _ty_text=$(printf '%b' "$out")
    [ ${#_ty_text} -le 60 ] || return 2
}

_ty_decode_bytes() { # as _ty_decode
    local rest=$1 out='' hex='' code=''
    while :; do
        case $rest in *%[0-9A-F][0-9A-F]*) ;; *) break ;; esac
        out=$out${rest%%\%*}
        rest=${rest#*\%}
        hex=${rest%"${rest#??}"}
        rest=${rest#??}
        code=$((0x$hex))
        out="$out\\0$((code / 64))$((code / 8 % 8))$((code % 8))"
    done
    _ty_text=$(printf '%b' "$out$rest")
}

_ty_quote() { # as _ty_string
    _ty_json=$(printf '%s\n' "$1" | LC_ALL=C awk '
        BEGIN { for (i = 1; i < 32; i++) code[sprintf("%c", i)] = sprintf("\\u%04x", i); code["\177"] = "\\u007f"; code["\t"] = "\\t" }
        {
            if (NR > 1) text = text "\\n"
            rest = $0
            gsub(/\\/, "\\\\&", rest); gsub(/"/, "\\\\&", rest)
            while (match(rest, "[\001-\037\177]")) {
                text = text substr(rest, 1, RSTART - 1) code[substr(rest, RSTART, 1)]
                rest = substr(rest, RSTART + 1)
            }
            text = text rest
        }
        END {
            bare = text
            gsub("[\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277]", "", bare)
            if (bare ~ "[\200-\377]") gsub("[\200-\377]", "?", text)  # not UTF-8
            print "\"" text "\""
        }')
}

# A reader of JSON, for awk. scan() takes the next line of a text: no token goes on in the next. Then is_whole() reads all into
# val, by path: s before a string (as it is written), n before other values, o for an object, a for an empty list, A for
# another. bad is set where it is none; odd where Python cannot keep it: half of a character, numbers without end, depth.
# Nothing is cut off a long text bit by bit, which would take its square. \001 stands for two backslashes, \002 for \".
_ty_awk='
    function scan(line,   bare, piece, word, n, m, i, j) {
        nul = sprintf("%c", 0); size += length(line) + 1; bare = line
        gsub("[\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277]", "", bare)
        if (bare ~ "[\001-\010\013\014\016-\037\200-\377]" || (length(nul) && index(line, nul))) bad = 1
        gsub(/\\\\/, "\001", line); gsub(/\\"/, "\002", line)
        bare = line; gsub("\\\\([/bfnrt]|u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F])", "", bare)
        if (index(bare, "\\")) bad = 1
        bare = line; gsub(/\\u[dD][89abAB]..\\u[dD][c-fC-F]../, "", bare)
        if (bare ~ /\\u[dD][89a-fA-F]/) odd = 1
        n = split(line, piece, "\"")
        if (n > 0 && n % 2 == 0) bad = 1
        for (i = 1; i <= n; i++) {
            if (i % 2) {
                gsub(/[][{},:]/, " & ", piece[i])
                m = split(piece[i], word, /[ \t\r]+/)
                for (j = 1; j <= m; j++) if (word[j] != "") token[++last] = word[j]
            } else {
                token[++last] = "\"" piece[i]
                if (piece[i] ~ /[\t\r]/) bad = 1
            }
        }
    }
    function digits(text,   i, n) { for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", tolower(substr(text, i, 1))) - 1; return n }
    function letter(n) {
        if (n < 128) return sprintf("%c", n)
        if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
        if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
        return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
    }
    function plain(text,   out, c, n) {
        while (match(text, "[\\\\\001\002]")) {
            out = out substr(text, 1, RSTART - 1); c = substr(text, RSTART, 1); n = RSTART + 2
            if (c == "\001") { c = "\\"; n-- } else if (c == "\002") { c = "\""; n-- }
            else if ((c = substr(text, n - 1, 1)) == "u") {
                c = digits(substr(text, n, 4)); n += 4
                if (c >= 55296 && c < 56320) { c = 65536 + (c - 55296) * 1024 + digits(substr(text, n + 2, 4)) - 56320; n += 6 }
                if (c == 0) bad = 1
                c = letter(c)
            } else if (c == "n") c = "\n"; else if (c == "t") c = "\t"; else if (c == "r") c = "\r"
            else if (c == "b") c = "\b"; else if (c == "f") c = "\f"
            out = out c; text = substr(text, n)
        }
        return out text
    }
    function text(path) { return val[path] ~ /^s/ ? plain(substr(val[path], 2)) : "" }
    function is_whole(   i, t, want, depth, where, path, closing, n, key) { # without recursion, for which some awks have little room
        want = "value"
        for (i = 1; i <= last && !bad; i++) {
            t = token[i]
            if (want == "first" && t != closing[depth]) want = closing[depth] == "}" ? "key" : "value"
            if (want == "first" || want == "end" && t == closing[depth]) { where = path[depth--]; want = "end" }
            else if (want == "end") {
                if (t != "," || !depth) bad = 1
                want = closing[depth] == "}" ? "key" : "value"
                if (want == "value") where = path[depth] "/" ++n[depth]
                continue
            } else if (want == "key") {
                if (t !~ /^"/ || token[++i] != ":") bad = 1
                t = plain(substr(t, 2)); where = path[depth] "/" t; want = "value"
                if (depth == 1) { key = t; from[key] = i + 1 }
                if (path[depth] == "/settings/checks") checks = checks t "\n"
                continue
            } else if (t == "{" || t == "[") {
                val[where] = t == "{" ? "o" : "a"
                path[++depth] = where; closing[depth] = t == "{" ? "}" : "]"; n[depth] = 0; want = "first"
                if (depth > 200) bad = odd = 1
                if (t == "[") where = where "/0"
                continue
            } else {
                want = "end"
                if (t ~ /^"/) val[where] = "s" substr(t, 2)
                else if (t ~ /^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)$/) {
                    val[where] = "n" t
                    if (t ~ /[0-9][.eE]/) { floats = 1; if (t + 0 > 1.797e308 || t + 0 < -1.797e308) odd = 1 }
                    if (length(t) > 4000) odd = 1
                } else bad = 1
            }
            if (depth == 1) to[key] = i
            if (closing[depth] == "]") val[path[depth]] = "A"
        }
        return !bad && want == "end" && depth == 0
    }
    function show(first, final,   i, j, k, m, n, part, bit) { # these tokens, compact
        for (i = first; i <= final; i++) {
            n = split(token[i], part, "\001")
            for (j = 1; j <= n; j++) {
                if (j > 1) printf "%s", "\\\\"
                m = split(part[j], bit, "\002")
                for (k = 1; k <= m; k++) printf "%s%s", (k > 1 ? "\\\"" : ""), bit[k]
            }
            if (token[i] ~ /^"/) printf "\""
        }
    }'

# The JSON value in a file, on one line and compact; 2 if it is none.
_ty_value() { # file -> _ty_json
    [ -r "$1" ] && [ ! -d "$1" ] || [ "$1" = - ] || {
        _ty_say "$1 cannot be read"
        return 2
    }
    if [ "$1" = - ]; then _ty_json=$(_ty_compact); else _ty_json=$(_ty_compact <"$1"); fi || {
        _ty_say "$1 holds no JSON value, or one of more than 1 MiB or 200 levels"
        return 2
    }
}

_ty_compact() {
    LC_ALL=C awk "$_ty_awk"'
        { scan($0) }
        END { if (!is_whole() || odd || size > 1048577) exit 1; show(1, last); print "" }'
}

# ---- where the yard is, and what is in its yard.json ---------------------------------------------------------------------

_ty_nearest() { # folder -> _ty_text
    local folder=$1 start=$1 line='' common=''
    while :; do
        if [ -e "${folder%/}/.taskyard/yard.json" ]; then
            _ty_text=${folder%/}/.taskyard
            return
        fi
        if [ -f "${folder%/}/.git" ]; then # a linked worktree: the same place in the main checkout
            read -r line <"${folder%/}/.git"
            line=${line#gitdir: }
            case $line in /*) ;; *) line=${folder%/}/$line ;; esac
            if [ -f "$line/commondir" ]; then
                read -r common <"$line/commondir"
                case $common in /*) ;; *) common=$(CDPATH='' cd -- "$line/$common" 2>/dev/null && pwd -P) ;; esac
                case $common in
                    */.git) [ "${common%/.git}" != "$folder" ] && _ty_nearest "${common%/.git}${start#"$folder"}" && return ;;
                esac
            fi
        fi
        [ -n "${folder%/}" ] || return 1
        folder=${folder%/*}
        folder=${folder:-/}
    done
}

_ty_locate() { # -> _ty_text
    _ty_text=${TASKYARD-}
    case $_ty_text in
        '')
            _ty_nearest "${PWD:-$(pwd)}" || {
                _ty_say "there is no yard here or above; name one in \$TASKYARD"
                return 2
            }
            ;;
        file:*)
            _ty_text=${_ty_text#file:}
            case $_ty_text in
                //localhost/* | ///*) _ty_text=/${_ty_text#//*/} ;;
                //*) _ty_say "a file: URL names a path on this machine: $TASKYARD" && return 2 ;;
            esac
            _ty_decode "$_ty_text"
            ;;
        memory:* | [A-Za-z]*://*)
            _ty_say "the shell client knows yards in directories only, not $_ty_text"
            return 2
            ;;
    esac
}

# The settings, and whether this place can be used: one mount, because mv copies from one to another without a word. Says
# ok or what is wrong, then durability, attempts, crashes, backoff, cap and lease, then local or not, settle, and group, then names of checks.
_ty_read_yard() {
    _TY_ROOT=$_ty_root LC_ALL=C awk "$_ty_awk"'
        function number(name, fallback, factor, least, most,   v, whole) {
            v = val["/settings/" name]
            if (v == "" || v == "nnull") return fallback
            if (v !~ /^n[0-9][0-9.eE+-]*$/ || (v = substr(v, 2) * factor) < least || v > most) { wrong = name; return fallback }
            whole = int(v)
            return sprintf("%.0f", whole < v ? whole + 1 : whole)
        }
        FILENAME == "/proc/self/mountinfo" {
            root = ENVIRON["_TY_ROOT"]; point = $5
            gsub(/\\040/, " ", point); gsub(/\\011/, "\t", point); gsub(/\\012/, "\n", point); gsub(/\\134/, "\\", point)
            if (index(point, root "/") == 1) inner = point
            if (point == "/" || point == root || index(root, point "/") == 1) {
                if (length(point) >= length(best)) { best = point; device = $3; for (i = 6; $i != "-"; i++); type = $(i + 1) }
            }
            next
        }
        { scan($0) }
        END {
            whole = is_whole()
            durability = val["/settings/durability"] == "" ? "durable" : text("/settings/durability")
            attempts = number("max_attempts", 3, 1, 1, 999999999); crashes = number("max_crashes", 3, 1, 1, 999999999)
            backoff = number("backoff", 5000, 1000, 0, 1e12); cap = number("backoff_cap", 600000, 1000, 0, 1e12)
            lease = number("lease", 1800000, 1000, 1, 2592000000)
            if (!whole) said = "its yard.json is no JSON"
            else if (val["/taskyard"] != "n1" || val["/features"] !~ /^(a|nnull|nfalse)?$/) said = "its format or features are unknown to this version of taskyard.sh"
            else if (val["/settings"] != "" && val["/settings"] != "o") said = "the settings in its yard.json are no object"
            else if (durability !~ /^(fast|durable|strict)$/) said = "the durability in its yard.json is unknown"
            else if (wrong != "") said = wrong " in its yard.json is no number that can be used"
            else if (inner != "") said = inner " in it is a mount of its own"
            else if (type ~ /^fuse\.(s3fs|goofys|gcsfuse|rclone|osxfs|grpcfuse)$|^fakeowner$/) said = type " has no atomic rename"
            if (said != "") { print "no", said; exit }
            place = best == "" ? "unknown" : device !~ /^0:/ || type ~ /^(ext[234]|xfs|btrfs|tmpfs|overlay|zfs|f2fs|bcachefs|ramfs|ufs|apfs)$/ ? "local" : "network"
            print "ok", durability, attempts, crashes, backoff, cap, lease, place, number("settle", place == "network" ? 60000 : 5000, 1000, 0, 1e12), text("/settings/shared") == "group" ? "group" : ""
            printf "%s", checks
        }' "$@"
}

_ty_one_mount() { # where the system does not list its mounts
    # shellcheck disable=SC2046  # mount points
    set -- $(df -P "$_ty_root" "$_ty_root"/*/ 2>/dev/null | awk 'NR > 1 && !seen[$NF]++ { print NR }')
    [ $# -eq 1 ]
}

_ty_examine() { # -> what _ty_read_plainly and _ty_recall would have found
    local said=''
    set -- "$_ty_root/yard.json"
    [ ! -r /proc/self/mountinfo ] || set -- "$@" /proc/self/mountinfo
    said=$(_ty_read_yard "$@") || said="no its yard.json cannot be read"
    case $said in
        ok*) ;;
        *) _ty_say "the yard $_ty_root cannot be used: ${said#no }" && return 8 ;;
    esac
    _ty_checks=
    case $said in
        *'
'*)
            _ty_checks="
${said#*
}
"
            said=${said%%
*}
            ;;
    esac
    # shellcheck disable=SC2086  # ten words, or nine
    set -- $said
    _ty_durability=$2 _ty_set_attempts=$3 _ty_set_crashes=$4 _ty_set_backoff=$5 _ty_set_cap=$6 _ty_set_lease=$7 _ty_place=$8
    _ty_settle=$9 _ty_shared=
    [ $# -eq 9 ] || _ty_share
    # shellcheck disable=SC2094  # nothing is written
    [ -z "$_ty_checks" ] || _ty_is_trusted <"$_ty_root/yard.json" || _ty_checks=
    [ "$_ty_place" != unknown ] || _ty_one_mount || {
        _ty_say "the yard $_ty_root cannot be used: it is more than one mount"
        return 8
    }
    if [ "$_ty_place" != unknown ] && _ty_uptime; then _ty_place_up=$_ty_up; else _ty_place_up=; fi
}

# ---- checks -------------------------------------------------------------------------------------------------------------

# May whoever wrote the yard.json at standard input have commands run by this user? This user itself and root may. All who can
# write a yard can put another file there, and that must be no way into everybody's shell.
_ty_is_trusted() {
    local status='' file=/dev/stdin
    [ -e "$file" ] || file=$_ty_root/yard.json # no /proc here
    [ ! -L "$_ty_root/yard.json" ] && status=$(stat -L -c '%u %a' -- "$file" 2>/dev/null) || return 1
    [ -O "$file" ] || [ "${status% *}" = 0 ] || return 1
    [ -z "$_ty_shared" ] || case $status in *[2367] | *[2367]?) return 1 ;; esac
}

# The names of the checks that tasks ask for, a line for each file; an empty one where it asks for none. What Python writes
# has the name before the data, however long those are; in a file that was dropped it may stand anywhere.
_ty_checks_of() { # files
    LC_ALL=C awk "$_ty_awk"'
        BEGIN {
            for (i = 1; i < ARGC; i++) {
                t = ""
                while ((getline line < ARGV[i]) > 0) if (length(t) < 65536) t = t line "\n"
                close(ARGV[i])
                head = substr(t, 1, 65536)
                if (match(head, /^\{"taskyard":1,"id":"[^"]*","kind":"[^"]*","priority":[0-9](,"(title|assignee|mission|key)":"([^"\\]|\\.)*"|,"(max_attempts|lease)":[0-9.e+-]+)*,"verify":"([^"\\]|\\.)*"/)) {
                    head = substr(head, 1, RLENGTH - 1); sub(/.*,"verify":"/, "", head)
                    print plain(head)
                } else if (length(t) > 65536 || t ~ /^\{"taskyard":/) print ""
                else {
                    split("", val); last = bad = 0
                    n = split(t, lines, "\n")
                    for (j = 1; j <= n; j++) scan(lines[j])
                    print is_whole() ? text("/verify") : ""
                }
            }
        }' "$@"
}

_ty_body_of() { # path of a name that was split -> _ty_file, the file that counts
    _ty_file=$1
    [ -z "$_ty_body" ] || _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
}

_ty_learn_checks() { # files in todo/ that ask for checks -> _ty_known_checks, names of those whose check the yard has
    local path='' names='' name='' asked=''
    case ${1##*/} in '*.v.json') return 0 ;; esac
    for path; do
        shift
        case $asked$_ty_known_checks in *" ${path##*/} "* | *" !${path##*/} "*) continue ;; esac
        _ty_split "${path##*/}" 0-any || continue
        _ty_body_of "$path"
        asked="$asked ${path##*/}"
        set -- "$@" "$_ty_file"
    done
    [ $# -gt 0 ] || return 0
    names=$(_ty_checks_of "$@"; printf .)
    # shellcheck disable=SC2086  # names of ours
    set -- $asked
    while [ $# -gt 0 ]; do
        name=${names%%
*}
        names=${names#*
}
        case $_ty_checks in
            *"
$name
"*) _ty_known_checks="$_ty_known_checks $1 " ;;
            *) _ty_known_checks="$_ty_known_checks !$1 " ;;
        esac
        shift
    done
}

# The command of the check that the split task asks for -> _ty_check, its name, and _ty_text, its words as a shell reads
# them. 7 if there is none. A command that a worker runs is told its worker's own in TASKYARD_CHECK.
_ty_find_check() { # file that is held
    local given=''
    _ty_body_of "$1"
    _ty_check=$(_ty_checks_of "$_ty_file")
    # shellcheck disable=SC2031
    [ "${TASKYARD_CLAIM-}" != "$_ty_handle" ] || given=${TASKYARD_CHECK-}
    # shellcheck disable=SC2094  # nothing is written
    { [ -n "$given" ] || _ty_is_trusted; } <"$_ty_root/yard.json" && _ty_text=$(_TY_CHECK=$_ty_check _TY_GIVEN=$given LC_ALL=C awk "$_ty_awk"'
        ENVIRON["_TY_GIVEN"] == "" { scan($0) }
        END {
            path = "/settings/checks/" ENVIRON["_TY_CHECK"]
            if (ENVIRON["_TY_GIVEN"] != "") { scan(ENVIRON["_TY_GIVEN"]); path = "" }
            if (!is_whole() || val[path] != "A") exit 1
            for (i = 0; (path "/" i) in val; i++) {
                if (val[path "/" i] !~ /^s/) exit 1
                word = text(path "/" i)
                if (bad) exit 1
                gsub(/\047/, "\047\"\047\"\047", word) # no backslash: awks differ in what one means there
                printf "\047%s\047 ", word
            }
        }' "$_ty_root/yard.json") && [ -n "$_ty_text" ] && return
    _ty_say "the task asks for the check '$_ty_check', which this yard does not know; have its command put into yard.json, or let a worker that knows it do the task"
    return 7
}

_ty_checked_input() { # file result -> _ty_json, the task with its result, on one line
    _ty_value "$1" || return
    local inner=${_ty_json#?}
    inner=${inner%?}
    case $inner in
        *[!\ ]*) _ty_json="{$inner, \"result\": ${2:-null}}" ;;
        *) _ty_json="{\"result\": ${2:-null}}" ;;
    esac
}

_ty_verify_by_hand() { # result: of the claim that was just found; 7 if the check does not pass
    local told='' code=0
    _ty_find_check "$_ty_root/processing/$_ty_name" && _ty_checked_input "$_ty_file" "$1" || return
    eval "set -- $_ty_text" # words that awk has quoted
    told=$(
        exec 3>&1 >/dev/null 2>&3 3>&- <<END
$_ty_json
END
        exec "$@"
    ) || code=$?
    [ $code -ne 0 ] || return 0
    _ty_say "the check '$_ty_check' did not pass: exit $code${told:+: $told}"
    _ty_say "the task is still yours: put it right and say complete_task again, or say fail_task"
    return 7
}

# ---- records ------------------------------------------------------------------------------------------------------------

_ty_event() { # event id fence worker more: what is no move, at _ty_now
    _ty_tell "$@"
    _ty_log_line
}

_ty_draft() { # a new, empty file -> _ty_path; its time is the yard's
    _ty_draw
    _ty_path=$_ty_root/tmp/$$-$_ty_word.1
    _ty_error=
    { printf '' >"$_ty_path"; } 2>/dev/null && _ty_time "$_ty_path" && return
    _ty_trouble "nothing can be written to $_ty_root/tmp"
}

_ty_write() { # text, to the draft
    { printf '%s\n' "$1" >>"$_ty_path"; } 2>/dev/null && return
    rm -f -- "$_ty_path"
    _ty_error=
    _ty_trouble "$_ty_root cannot be written to (is the disk full?)"
}

_ty_sync_draft() { # what cannot be made sure of is not used
    _ty_sync "$_ty_path" && return
    rm -f -- "$_ty_path"
    return 8
}

# A second name for the draft, exclusively and never replaced. 0: it has it. 1: there was one.
_ty_link() { # folder name
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) && return
    [ -d "$1" ] || _ty_make "$1" || return
    ! [ "$_ty_path" -ef "$1/$2" ] || return 0
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) || [ "$_ty_path" -ef "$1/$2" ] || {
        ! _ty_listed "$1/$2" || return 1
        _ty_trouble "$1/$2 cannot be made"
    }
}

_ty_publish() { # folder name: the same, and the draft's own name is gone
    local code=0
    _ty_link "$1" "$2" || code=$?
    rm -f -- "$_ty_path"
    return $code
}

# How the claim of the split name is about to end, before it does; time is asked for here.
_ty_record() { # outcome reason-json [result] -> _ty_second: 1 if it had said something before
    local code=0 record='' holder='' sync=$_ty_durability
    case $1 in released | resumed) sync=fast ;; esac
    _ty_draft || return
    _ty_date "$_ty_now"
    _ty_holder_json
    holder=$_ty_json
    record="{\"claim\": \"$_ty_id.$_ty_fence.$_ty_nonce\", \"fence\": $_ty_fence, \"worker\": $holder, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}"
    _ty_write "$record, \"errors\": $_ty_errors, \"crashes\": $_ty_crashes}" || return
    [ "$sync" = fast ] || _ty_sync_draft || return
    _ty_publish "$_ty_root/results/$_ty_seg" "$_ty_id.$_ty_fence.$_ty_nonce.$1.json" || code=$?
    [ $code -le 1 ] || return $code
    _ty_second=$code
    # The first word of a claim stands; a second one that differs is kept as stale.
    [ $code -eq 0 ] || case $1 in done | error) _ty_stale "$1" "$2" "${3-}" "$holder" ;; esac
    [ "$sync" = fast ] || _ty_sync "$_ty_root/results/$_ty_seg" || return
}

_ty_same() { # outcome reason-json result: did the claim bring this when it ended? A done without a result has no record.
    local written=''
    written=$(cat -- "$_ty_root/results/$_ty_h_seg/$_ty_handle.$1.json" 2>/dev/null)
    case $written in
        '') [ "$1" = 'done' ] && [ -z "$3" ] ;;
        *"\"reason\": $2, "*"\"result\": $3, \"errors\""*) [ -n "$3" ] ;;
        *"\"result\": "*) return 1 ;;
        *"\"reason\": $2, "*) [ -z "$3" ] ;;
        *) return 1 ;;
    esac
}

_ty_stale() { # outcome reason-json result worker: output that does not count, kept for a person to read; 0 always
    local digest='' folder=$_ty_root/results/$_ty_h_seg
    [ ! -e "$folder/$_ty_handle.$1.json" ] || ! _ty_same "$1" "$2" "$3" || return 0
    digest=$(printf '%s\n' "$1" "$3" "$2" | sha256sum) || digest=$_ty_word
    digest=${digest%"${digest#????????????}"}
    _ty_draft || return 0
    _ty_date "$_ty_now"
    _ty_write "{\"claim\": \"$_ty_handle\", \"fence\": $_ty_h_fence, \"worker\": $4, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}}" || return 0
    _ty_sync "$_ty_path"
    _ty_publish "$folder" "$_ty_handle.stale-$digest.json"
    _ty_sync "$folder"
    return 0
}

_ty_backoff() { # turn -> _ty_delay in milliseconds: doubled each time, capped, spread by a quarter either way
    local turn=$1
    _ty_delay=$_ty_set_backoff
    while [ "$turn" -gt 0 ] && [ "$_ty_delay" -lt "$_ty_set_cap" ]; do
        _ty_delay=$((_ty_delay * 2)) turn=$((turn - 1))
    done
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
    _ty_draw
    _ty_delay=$((_ty_delay * (1500 + _ty_chance % 1000) / 2000))
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
}

_ty_bucket() { # due: in milliseconds, from _ty_now -> _ty_text
    local ahead=$(($1 - _ty_now))
    _ty_date "$1"
    if [ $ahead -lt 7200000 ]; then _ty_text=$_ty_minute; elif [ $ahead -lt 172800000 ]; then _ty_text=$_ty_hour; else _ty_text=$_ty_day; fi
}

# Where the split name goes back to: its lane, or to wait -> _ty_folder, _ty_target, and _ty_more, the due time for its event
_ty_aim() { # errors crashes delay
    local due=''
    _ty_target=$_ty_id.$((_ty_fence + 1)).e$1.c$2$_ty_own.json _ty_folder=$_ty_root/todo/$_ty_lane/$_ty_seg _ty_more=
    [ "$3" -gt 0 ] || return 0
    due=$((_ty_now + $3))
    _ty_bucket $due
    _ty_target=${_ty_target%.json}.$_ty_lane.d$due.json _ty_folder=$_ty_root/waiting/$_ty_text/$_ty_seg
    _ty_more=",\"due\":\"$_ty_stamp\""
}

# ---- add ----------------------------------------------------------------------------------------------------------------

_ty_marker() { # segment -> _ty_marked, its lane, and _ty_count
    local path=$_ty_root/segments/$1 size='' opened=''
    _ty_marked='' _ty_count=0
    [ -f "$path" ] && [ ! -L "$path" ] || return 1
    size=$(stat -c %s -- "$path" 2>/dev/null) && [ "$size" -le 65536 ] || return 1 # a shell would read for minutes
    { read -r opened _ty_marked; } 2>/dev/null <"$path"
    _ty_count=$((size - ${#opened} - ${#_ty_marked} - 2))
}

_ty_room() { # segment lane: has it room for one more of this lane? Then it is taken.
    _ty_marker "$1" && [ "$_ty_marked" = "$2" ] && [ "$_ty_count" -lt 1024 ] || return 1
    _ty_seg=$1
    { printf . >>"$_ty_root/segments/$1"; } 2>/dev/null
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

# The number after the highest, unless somebody took one near the end: then the highest with 1024 free ones in a row, because
# numbers do not come to an end while most of them are free. -> _ty_text, nothing where all are taken, and _ty_newest,
# the segments below it
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

_ty_segment() { # lane -> _ty_seg, with a byte of ours in its marker
    local segment='' many=8 next='' code=''
    _ty_segments "$_ty_root/todo/$1"/????
    for segment in $_ty_text; do
        _ty_room "$segment" "$1" && return
        [ "$_ty_marked" != "$1" ] && [ $((many -= 1)) -gt 0 ] || break
    done
    _ty_segments "$_ty_root"/segments/????
    # shellcheck disable=SC2086  # segments
    _ty_next $_ty_text
    next=$_ty_text many=16
    for segment in $_ty_newest; do
        _ty_room "$segment" "$1" && return
        [ $((many -= 1)) -gt 0 ] || break
    done
    while :; do
        [ -n "$next" ] || {
            _ty_say "this yard has used up all its segments, a thousand million tasks; begin a new yard"
            return 7
        }
        _ty_draft && _ty_write "$_ty_now $1" || return
        _ty_sync_draft || return
        code=0
        _ty_publish "$_ty_root/segments" "$next" || code=$?
        [ $code -le 1 ] || return $code
        [ $code -ne 0 ] || _ty_sync "$_ty_root/segments"
        _ty_room "$next" "$1" && return # ours, or a twin's of the same lane
        [ $code -ne 0 ] || {
            _ty_trouble "the new segment $next cannot be used"
            return
        }
        _ty_segments "$_ty_root"/segments/????
        # shellcheck disable=SC2086  # segments
        _ty_next $_ty_text
        next=$_ty_text
    done
}

_ty_new_id() { # in _ty_seg, at the time of the draft -> _ty_id
    local tick=$(((_ty_now - 1577836800000) * 32 + _ty_micros % 1000 * 32 / 1000))
    [ $tick -gt "$_ty_last_tick" ] || tick=$((_ty_last_tick + 1)) # ids of one process rise
    _ty_last_tick=$tick
    _ty_base32 $tick 9
    _ty_id=$_ty_seg$_ty_text
    _ty_draw
    _ty_id=$_ty_id$_ty_word
}

_ty_add() { # [-p priority] kind [file]
    local priority=5 lane='' data=null code=0
    if [ "${1-}" = -p ]; then
        case ${2-} in [0-9]) priority=$2 ;; *) _ty_say "a priority is 0 (first) to 9, not ${2-}" && return 2 ;; esac
        shift 2
    fi
    [ $# -ge 1 ] && [ $# -le 2 ] || {
        _ty_say "usage: add_task [-p 0..9] KIND [FILE]"
        return 2
    }
    _ty_open && _ty_kind_name "$1" || return
    lane=$priority-$_ty_text
    if [ $# -eq 2 ]; then
        _ty_value "$2" || return
        data=$_ty_json
    fi
    _ty_segment "$lane" && _ty_draft || return
    _ty_new_id
    _ty_lane_json "$lane"
    _ty_write "{\"taskyard\":1,\"id\":\"$_ty_id\",\"kind\":$_ty_kind,\"priority\":$priority,\"data\":$data}" || return
    _ty_sync_draft || return
    _ty_tell added "$_ty_id" 0 null
    _ty_shift "$_ty_path" "$_ty_root/todo/$lane/$_ty_seg" "$_ty_id.0.e0.c0.json" || code=$?
    case $code in
        0) ;;
        1) _ty_error='' && _ty_trouble "the new task's file was removed before it was in place" || return ;;
        *)
            rm -f -- "$_ty_path"
            return 8
            ;;
    esac
    _ty_sync "$_ty_root/todo/$lane/$_ty_seg" || return
    printf '%s\n' "$_ty_id"
}

# ---- what a claim's verbs do --------------------------------------------------------------------------------------------

# The star behind the segment has the folder above listed: a client of a file server remembers for half a minute that a segment's
# folder was missing, and a listing has it forget that.
_ty_is_there() { # id: five passes, because a task that moves may slip past one
    local pass=0 path=''
    while [ $pass -lt 5 ]; do
        for path in "$_ty_root/blocked/$_ty_h_seg"*/"$1".* "$_ty_root"/todo/*/"$_ty_h_seg"*/"$1".* \
            "$_ty_root"/waiting/*/"$_ty_h_seg"*/"$1".* "$_ty_root/processing/$1".* \
            "$_ty_root/cancelled/$_ty_h_seg"*/"$1".* "$_ty_root/failed/$_ty_h_seg"*/"$1".* "$_ty_root/done/$_ty_h_seg"*/"$1".* \
            "$_ty_root/todo/$1".*-* "$_ty_root"/todo/*_"$1".* "$_ty_root"/processing/*_"$1".* "$_ty_root/failed/$1".* "$_ty_root/done/$1".*; do
            [ ! -e "$path" ] || {
                _ty_found=$path
                return 0
            }
        done
        pass=$((pass + 1))
    done
    return 1
}

# The one task whose short name was read by _ty_is_short -> _ty_text, its id. 1: there is none. 6: several end so.
_ty_lengthen() { # word
    local fill='?????????????????' path='' id='' found='' number=0 pass=0
    while [ $((${#fill} + ${#_ty_h_end})) -gt 17 ]; do fill=${fill#?}; done
    fill=$_ty_h_seg$fill$_ty_h_end
    while [ $pass -lt 5 ] && [ -z "$found" ]; do
        # shellcheck disable=SC2231,SC2295  # ? stands for a character
        for path in "$_ty_root/blocked/$_ty_h_seg/"$fill.* "$_ty_root"/todo/*/"$_ty_h_seg/"$fill.* \
            "$_ty_root"/waiting/*/"$_ty_h_seg/"$fill.* "$_ty_root/processing/"$fill.* \
            "$_ty_root/cancelled/$_ty_h_seg/"$fill.* "$_ty_root/failed/$_ty_h_seg/"$fill.* "$_ty_root/done/$_ty_h_seg/"$fill.* \
            "$_ty_root/todo/"$fill.*-* "$_ty_root"/todo/*_$fill.* "$_ty_root"/processing/*_$fill.* "$_ty_root/failed/"$fill.* "$_ty_root/done/"$fill.*; do
            id=${path##*/}
            id=${id#"${id%%$fill.*}"}
            id=${id%%.*}
            [ -e "$path" ] && _ty_is_id "$id" || continue
            case " $found" in *" $id "*) ;; *) found="$found$id " number=$((number + 1)) ;; esac
        done
        pass=$((pass + 1))
    done
    _ty_text=${found% }
    [ $number -gt 1 ] || return $((1 - number))
    _ty_say "$1 is the end of $number tasks by now: $_ty_text; say the whole id of the one that is meant"
    return 6
}

_ty_ended() { # state: has this claim ended its task so?
    local path=''
    for path in "$_ty_root/$1/$_ty_h_seg"*/"$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce".*json; do
        [ ! -e "$path" ] || return 0
    done
    return 1
}

_ty_gave_up() { # outcome: was this how the claim ended, and nobody else ended it?
    local record=$_ty_root/results/$_ty_h_seg/$_ty_handle
    [ -e "$record.$1.json" ] && [ ! -e "$record.crash.json" ] && [ ! -e "$record.cancelled.json" ] && [ ! -e "$record.resumed.json" ]
}

_ty_is_slip() { # nonce: has the handle's own one or two characters more, less, or others? Two claims share none but by chance
    [ "$1" != "$_ty_h_nonce" ] && awk -v one="$1" -v other="$_ty_h_nonce" 'BEGIN {
        wide = length(other)
        for (j = 0; j <= wide; j++) row[j] = j
        for (i = 1; i <= length(one); i++) {
            before = row[0]
            row[0] = i
            for (j = 1; j <= wide; j++) {
                least = before + (substr(one, i, 1) != substr(other, j, 1))
                before = row[j]
                if (row[j] + 1 < least) least = row[j] + 1
                if (row[j - 1] + 1 < least) least = row[j - 1] + 1
                row[j] = least
            }
        }
        exit row[wide] > 2
    }'
}

_ty_refuse_mistyped() { # 2 if the task has had a claim of this fence whose nonce differs a little; nobody's late verb
    local path='' rest='' start=$_ty_h_id.$_ty_h_fence.
    for path in "$_ty_root/processing/$start"*.json "$_ty_root/done/$_ty_h_seg/$start"*.json \
        "$_ty_root/failed/$_ty_h_seg/$start"*.json "$_ty_root/results/$_ty_h_seg/$start"*.json; do
        case $path in
            */results/*.stale-*) continue ;;
            */results/*) rest=${path##*/"$start"} rest=${rest%%.*} ;;
            *) _ty_split "${path##*/}" && rest=$_ty_nonce || continue ;;
        esac
        [ "$rest" != "$_ty_h_nonce" ] || return 0
        case $rest in *[!0-9a-hjkmnp-tv-z]* | '') continue ;; esac
        ! _ty_is_slip "$rest" || {
            _ty_say "the handle $_ty_handle is mistyped: the last part of that claim's handle differs from it a little; nothing was changed"
            return 2
        }
    done
}

_ty_holding() { # -> _ty_text: the handles of what this worker holds now
    local path='' held=''
    for path in "$_ty_root/processing/"*".$_ty_worker-"*.json; do
        ! _ty_split "${path##*/}" || [ "$_ty_holder" != "$_ty_worker" ] || held="$held $_ty_id.$_ty_fence.$_ty_nonce"
    done
    _ty_text=$held
}

# A verb on a claim that is over: the same answer to the same ending, a refusal to all else.
_ty_late() { # verb [outcome reason-json result]
    local holder='' path='' lane='' code=4
    _ty_refuse_mistyped || return
    case $1 in
        done)
            if _ty_ended 'done'; then
                ! _ty_same 'done' null "${4-}" || return 0
                code=7
            fi
            ! _ty_ended failed || code=7
            ;;
        fail)
            if _ty_ended failed || _ty_ended 'done'; then code=7; fi
            if _ty_ended failed || _ty_gave_up error; then ! _ty_same error "$3" '' || return 0; fi
            ;;
        release) ! _ty_gave_up released || return 0 ;;
    esac
    _ty_is_there "$_ty_h_id" || {
        _ty_say "no task has the id $_ty_h_id"
        return 6
    }
    path=${_ty_found#"$_ty_root/"}
    case $path in todo/*) lane=${path#todo/} lane=${lane%%/*} ;; esac
    _ty_split "${path##*/}" "$lane"
    _ty_lane_json "$_ty_lane"
    holder=$_ty_by
    for path in "$_ty_root/results/$_ty_h_seg/$_ty_handle".*.json; do
        [ ! -f "$path" ] || path=$(awk 'match($0, /"worker": "([^"\\]|\\.)*", "outcome"/) { print substr($0, RSTART + 10, RLENGTH - 21) }' "$path") && holder=${path:-$_ty_by}
        break
    done
    case $holder in \"*) ;; *) holder=$_ty_by ;; esac
    [ -z "${2-}" ] || _ty_stale "$2" "$3" "${4-}" "$holder"
    _ty_ask_time || return
    _ty_event refused "$_ty_h_id" "$_ty_h_fence" "$holder" ",\"verb\":\"$1\""
    path=${_ty_found#"$_ty_root/"}
    if [ $code -eq 7 ]; then
        _ty_holding
        _ty_say "this claim has ended task $_ty_h_id already: it is in ${path%%/*}; what came now is kept as a stale result${_ty_text:+; you hold$_ty_text now}"
    else
        _ty_say "the claim $_ty_handle is over: its task is in ${path%%/*} now${2:+; what this claim brought is kept as a stale result}"
    fi
    return $code
}

# That very task -> _ty_handle, _ty_file. 7: it cannot be had.
_ty_take_named() { # id
    local swept='' path='' lane='' why='' code=0 tries=0
    _ty_wanted=''
    while [ $tries -lt 20 ]; do
        tries=$((tries + 1))
        _ty_is_there "$1" || break
        path=${_ty_found#"$_ty_root/"}
        case $path in
            todo/*/*/*)
                _ty_entry=${path#todo/} lane=${path#todo/} code=0
                lane=${lane%%/*}
                _ty_split "${path##*/}" "$lane" || break
                why=
                [ -z "$_ty_uses" ] || why="it uses something, and only Python workers can see whether that is free"
                if [ -n "$_ty_verified" ]; then
                    [ -z "$_ty_checks" ] || _ty_learn_checks "$_ty_found"
                    case $_ty_known_checks in *" ${path##*/} "*) ;; *) why="it asks for a check that is not in yard.json" ;; esac
                fi
                case $lane in *@*) [ "${lane#*@}" = "$_ty_worker" ] || why="it is assigned to another worker" ;; esac
                if ! _ty_list_paused; then
                    why="the yard is paused"
                else
                    _ty_serves "$lane" || why=${why:-"its kind is paused"}
                fi
                [ -z "$why" ] || break
                _ty_take || code=$?
                [ $code -eq 1 ] || return $code
                ;;
            *)
                if [ -z "$swept" ]; then # it may be due, or its worker may be gone
                    swept=1 _ty_told=
                    _ty_sweep || return
                    continue
                fi
                why="it is in ${path%%/*}, and only a task in todo can be claimed"
                case $path in processing/*) _ty_split "${path##*/}" && _ty_is_held_by_me && why="this worker holds it; 'resume' takes it again, if its handle is lost" ;; esac
                break
                ;;
        esac
    done
    _ty_say "task $1 cannot be claimed: ${why:-it keeps moving under other hands}"
    return 7
}

_ty_is_held_by_me() { # the name that was split last
    case $_ty_holder in
        @) [ "${_ty_lane#*@}" = "$_ty_worker" ] ;;
        *) [ "$_ty_holder" = "$_ty_worker" ] ;;
    esac
}

# A claim of this worker's is taken again, under a new fence and nonce -> _ty_handle, _ty_file. 1: it is over.
_ty_resume_one() { # file in processing/, split
    local old=$_ty_id.$_ty_fence.$_ty_nonce fence=$((_ty_fence + 1)) nonce='' target='' sync='' lease=$_ty_lease holder=$_ty_holder
    _ty_handle "$old" && _ty_listed "$1" || return 1
    _ty_record resumed null || return
    [ "$_ty_durability" != strict ] || sync=sync
    _ty_draw
    nonce=${_ty_word}1
    target="$_ty_id.$fence.e$_ty_errors.c$_ty_crashes$_ty_own.$_ty_lane.l$lease.$holder-$nonce.json"
    _ty_lane_json "$_ty_lane"
    _ty_tell claimed "$_ty_id" "$fence" "$_ty_by" ',"resumed":true'
    _ty_now=
    _ty_shift "$1" "$_ty_root/processing" "$target" $sync || return
    rm -f -- "$_ty_root/attempts/$_ty_seg/$_ty_id/$old/.loop"
    _ty_tidy
    _ty_handle=$_ty_id.$fence.$nonce _ty_fence=$fence _ty_nonce=$nonce
    _ty_file=$_ty_root/processing/$target
    [ -z "$_ty_body" ] || _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
}

_ty_resume() {
    local path='' code=0
    [ $# -eq 0 ] && [ -n "${TASKYARD_WORKER:-${AGENT_ID-}}" ] || {
        _ty_say "usage: resume, with the worker's name in TASKYARD_WORKER"
        return 2
    }
    _ty_open || return
    for path in "$_ty_root"/processing/*.json; do
        _ty_split "${path##*/}" && [ -n "$_ty_nonce" ] && _ty_is_held_by_me || continue
        code=0
        _ty_resume_one "$path" || code=$?
        case $code in 0) _ty_hand_over ;; 1) ;; *) return $code ;; esac
    done
}

_ty_give_up() { # what was claimed cannot be handed over; 1
    if [ -n "$_ty_body" ]; then
        _ty_end_failed "$_ty_handle" "the edit that replaced its file is gone" final
    elif _ty_listed "$_ty_file"; then
        _ty_end_failed "$_ty_handle" "its file cannot be read" final
    fi
    return 1
}

# Everybody who waits for this task has one need less; who has none left goes on. What is left undone is the next sweep's.
_ty_follow() { # id
    local id=$1 seg=${1%?????????????????} edge='' follower='' needs='' path=''
    shift
    for edge in "$_ty_root/followers/$seg"*/"$id"*/*; do
        follower=${edge##*/}
        [ "$edge" = "$_ty_root/followers/$seg/$id/$follower" ] && _ty_is_id "$follower" || continue
        set -- "$@" "$edge"
        needs=$_ty_root/needs/${follower%?????????????????}/$follower
        rm -f -- "$needs/$id" 2>/dev/null
        rmdir -- "$needs" 2>/dev/null || [ ! -d "$needs" ] || continue
        for path in "$_ty_root/blocked/${follower%?????????????????}/$follower".*; do
            _ty_split "${path##*/}" || continue
            _ty_unblock "$path" "$id"
        done
    done
    [ $# -gt 0 ] || return 0
    rm -f -- "$@" 2>/dev/null # those that were seen: whoever comes after a done looks for itself
    rmdir -- "$_ty_root/followers/$seg/$id" 2>/dev/null
    return 0
}

_ty_unblock() { # file freed-by
    local delay=0
    [ -z "$_ty_due" ] || [ "$_ty_due" -le "$_ty_now" ] || delay=$((_ty_due - _ty_now))
    _ty_aim "$_ty_errors" "$_ty_crashes" $delay
    _ty_lane_json "$_ty_lane"
    _ty_tell unblocked "$_ty_id" $((_ty_fence + 1)) null ",\"freed_by\":\"$2\"$_ty_more"
    _ty_shift "$1" "$_ty_folder" "$_ty_target"
    return 0
}

_ty_end_failed() { # handle reason [final]
    local code=0 reason='' logged='' errors=''
    _ty_handle "$1" || return
    _ty_string "$2"
    reason=$_ty_json logged=$_ty_json
    if [ ${#2} -gt 1000 ]; then
        _ty_string "$(printf '%.1000s' "$2")"
        logged=$_ty_json
    fi
    _ty_find || {
        _ty_late fail error "$reason"
        return
    }
    _ty_record error "$reason" || return
    errors=$((_ty_errors + 1))
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    if [ -n "${3-}" ] || [ $errors -ge "${_ty_limit:-$_ty_set_attempts}" ]; then
        _ty_folder=$_ty_root/failed/$_ty_seg
        _ty_target=$_ty_id.$_ty_fence.e$errors.c$_ty_crashes$_ty_own.$_ty_lane$_ty_claim.json
        _ty_tell failed "$_ty_id" "$_ty_fence" "$_ty_json" ",\"final\":true,\"reason\":$logged"
    else
        _ty_backoff $((errors - 1))
        _ty_aim $errors "$_ty_crashes" "$((_ty_delay > 0 ? _ty_delay : 1))"
        _ty_tell failed "$_ty_id" $((_ty_fence + 1)) "$_ty_json" ",\"final\":false,\"reason\":$logged$_ty_more"
    fi
    _ty_shift "$_ty_root/processing/$_ty_name" "$_ty_folder" "$_ty_target" sync || code=$?
    if [ $code -eq 1 ]; then
        _ty_late fail error "$reason"
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_tidy
    [ "$_ty_second" -eq 0 ] || _ty_late fail error "$reason"
}

_ty_end_released() { # handle [delay]
    local code=0
    _ty_handle "$1" || return
    _ty_find || {
        _ty_late release
        return
    }
    _ty_record released null || return
    _ty_aim "$_ty_errors" "$_ty_crashes" "${2:-0}"
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    _ty_tell released "$_ty_id" $((_ty_fence + 1)) "$_ty_json" "$_ty_more"
    _ty_shift "$_ty_root/processing/$_ty_name" "$_ty_folder" "$_ty_target" || code=$?
    if [ $code -eq 1 ]; then
        _ty_late release
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_tidy
}

_ty_renew() { # verb: the lease of the claim that _ty_handle names begins anew
    # The listing comes first: on a file server a touch of a name that another has moved away still succeeds.
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
    [ $# -eq 2 ] && [ -n "$1" ] || {
        _ty_say "usage: note_task HANDLE TEXT"
        return 2
    }
    [ ${#2} -le 65536 ] || set -- "$1" "$(printf '%.65536s' "$2")"
    _ty_string "$2"
    text=$_ty_json
    _ty_open && _ty_handle "$1" && _ty_renew note || return
    _ty_find || return 4
    folder=$_ty_root/attempts/$_ty_seg/$_ty_id/$_ty_handle
    [ -d "$folder" ] || _ty_make "$folder" || return
    _ty_moment "$_ty_root/processing/$_ty_name" || return
    _ty_date "$_ty_now"
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    { printf '%s\n' "{\"claim\": \"$_ty_handle\", \"fence\": $_ty_fence, \"worker\": $_ty_json, \"text\": $text, \"at\": \"$_ty_stamp\"}" >>"$folder/notes.jsonl"; } 2>/dev/null || {
        _ty_error=
        _ty_trouble "the note cannot be written (is the disk full?)"
        return
    }
    _ty_event noted "$_ty_id" "$_ty_fence" "$_ty_json" ",\"text\":$text"
}

# ---- the drop box -------------------------------------------------------------------------------------------------------

# What a dropped file means. Lines: take, wait (it is no object, yet) or leave; then why it is left, or kind, priority,
# assignee, the parts of its name, key, and where there is a key, the rest of the task's file. What is not certain to be read
# by Python in just this way is left to Python: it knows all letters, and may set files aside.
_ty_read_dropped() { # size, the file at standard input
    _TY_SIZE=$1 LC_ALL=C awk "$_ty_awk"'
        function leave(reason) { if (why == "") why = reason }
        function given(name) { return val["/" name] != "" && val["/" name] != "nnull" }
        function either(one, other) { if (given(one) && given(other)) leave("it has " one " and " other); return given(other) ? other : one }
        function line(name, most,   said, letters) { # a text of one line
            if (!given(name)) return ""
            said = length(val["/" name]) <= 6 * most ? text("/" name) : ""
            letters = said; gsub("[\200-\277]", "", letters)
            if (said == "" || bad || length(letters) > most || said ~ "[\001-\037\177]|\302[\200-\237]|\342\200[\250\251]") leave("its " name " may not be allowed")
            return said
        }
        function is_kind(word) { # of the letters beyond ASCII those that are certain
            gsub("\303[\200-\226\230-\266\270-\277]|[\304\305\320\321][\200-\277]|\344[\270-\277][\200-\277]|[\345-\350][\200-\277][\200-\277]|\351[\200-\276][\200-\277]", "a", word)
            return word ~ /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/
        }
        function number(name, least, most,   said) {
            if (!given(name)) return ""
            said = val["/" name]
            if (said !~ /^n(0|[1-9][0-9]?[0-9]?)$/ || (said = substr(said, 2) + 0) < least || said > most) leave("its " name " may not be allowed")
            return said
        }
        function milliseconds(   said, unit) {
            if (!given("lease")) return ""
            said = val["/lease"] ~ /^s/ ? text("/lease") : substr(val["/lease"], 2)
            unit = 1
            if (val["/lease"] ~ /^s.*[smhd]$/) {
                unit = substr(said, length(said)); unit = unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 1
                said = substr(said, 1, length(said) - 1)
            }
            if (said !~ /^[0-9]+([.][0-9][0-9]?[0-9]?)?$/ || length(said) > 12 || (said *= unit * 1000) < 1 || said > 2592000000) leave("its lease may not be allowed")
            return sprintf("%.0f", said)
        }
        BEGIN { RS = "\001" } # as a whole: some awks read no further than to a NUL, and the length tells
        { bytes += length($0); n = split($0, lines, "\n"); for (i = 1; i <= n; i++) scan(lines[i]) }
        END {
            whole = is_whole()
            if (!odd && (!whole || val[""] != "o" || bytes != ENVIRON["_TY_SIZE"])) { print "wait"; exit }
            if (odd || size > (floats ? 131072 : 1048576)) leave("its data may be more than a task can hold")
            if ("/taskyard" in val) leave("it is a file of a yard")
            n = split("after uses notBefore not_before", names, " ")
            for (i = 1; i <= n; i++) if (given(names[i]) && val["/" names[i]] != (i < 3 ? "a" : "")) leave("it has " names[i])
            kind = text(given("kind") ? "/kind" : "/operation")
            if (!given("kind") && (kind == "" || kind !~ "[\200-\377]" && (!is_kind(kind) || length(kind) > 60))) kind = "default"
            if (!is_kind(kind)) leave("its kind may not be allowed")
            priority = given("priority") ? number("priority", 0, 9) : 5
            attempts = number(either("maxAttempts", "max_attempts"), 1, 999)
            key = either("taskId", "task_id")
            if (val["/" key] !~ /^n-?[0-9]/) key_text = line(key, 256)
            else if ((key_text = substr(val["/" key], 2)) !~ /^(0|-?[1-9][0-9]*)$/ || length(key_text) > 256) leave("its " key " may not be allowed")
            lease = milliseconds(); assignee = line("assignee", 60); line("title", 500); line("mission", 256); line("verify", 256)
            if (why != "") { print "leave\n" why; exit }
            printf "take\n%s\n%s\n%s\n%s%s%s\n%s\n", kind, priority, assignee, (attempts == "" ? "" : ".m" attempts), (lease == "" ? "" : ".t" lease), (given("verify") ? ".v" : ""), key_text
            if (key_text == "") exit
            n = split("title assignee mission key max_attempts lease verify", names, " ")
            for (i = 1; i <= n; i++) {
                name = names[i]
                if (name == "key") { printf ",\"key\":"; if (val["/" key] ~ /^s/) show(from[key], to[key]); else printf "\"%s\"", key_text }
                else if (name == "max_attempts") { if (attempts != "") printf ",\"max_attempts\":%s", attempts }
                else if (name == "lease") { if (lease != "") printf ",\"lease\":%.3f", lease / 1000 }
                else if (given(name)) { printf ",\"%s\":", name; show(from[name], to[name]) }
            }
            printf ",\"data\":"
            if ("data" in from) show(from["data"], to["data"]); else show(1, last)
            print "}"
        }'
}

# -> _ty_d_kind, _ty_d_priority, _ty_d_own, _ty_d_key, _ty_d_rest, and _ty_lane. 1: it is left, _ty_why says why. 3: it may be on its way in.
_ty_judge_dropped() { # file size
    local said='' verdict='' assignee=''
    said=$( { _ty_read_dropped "$2" <"$1"; } 2>/dev/null) || said="wait"
    {
        read -r verdict
        IFS= read -r _ty_d_kind
        read -r _ty_d_priority
        IFS= read -r assignee
        read -r _ty_d_own
        IFS= read -r _ty_d_key
        IFS= read -r _ty_d_rest
    } <<END
$said
END
    _ty_why=$_ty_d_kind
    case $verdict in
        leave) return 1 ;;
        take) ;;
        *) return 3 ;;
    esac
    _ty_why="its kind is too long"
    _ty_encode "$_ty_d_kind" || return 1
    _ty_lane=$_ty_d_priority-$_ty_text
    [ -n "$assignee" ] || return 0
    _ty_why="its assignee may not be allowed"
    _ty_encode "$assignee" || return 1
    _ty_lane=$_ty_lane@$_ty_text
}

_ty_new_place() { # for one more task of _ty_lane -> _ty_seg, _ty_id, _ty_folder
    local lane=$_ty_lane
    if ! _ty_uptime || [ -z "$_ty_asked_up" ] || [ $((_ty_up - _ty_asked_up)) -gt 100 ]; then # for ids time is carried on for a second
        _ty_ask_time || return
        _ty_asked=$_ty_now _ty_asked_up=$_ty_up
    fi
    _ty_now=$((_ty_asked + (_ty_asked_up ? (_ty_up - _ty_asked_up) * 10 : 0)))
    _ty_segment "$lane" || return
    _ty_new_id
    _ty_folder=$_ty_root/todo/$lane/$_ty_seg
    _ty_lane_json "$lane"
    _ty_tell added "$_ty_id" 0 null
}

# The name under which a task was dropped is kept beside it, as names/<segment>/<id>.<stem>; without it nothing is lost but that.
_ty_name_dropped() { # file's name
    local stem=${1%.json} folder=$_ty_root/names/$_ty_seg
    [ ${#stem} -le 190 ] || return 0
    [ -d "$folder" ] || _ty_make "$folder" || return 0
    { : >>"$folder/$_ty_id.$stem"; } 2>/dev/null
    return 0
}

# A file without a key becomes the task's own, as it is. 0: taken in, or somebody else was first. 1: left. 3: on its way. 8: trouble.
_ty_take_in() { # file size mode-and-group
    local code=0
    _ty_judge_dropped "$1" "$2" || return
    if [ -n "$_ty_d_key" ]; then
        _ty_take_in_keyed "$1" "$2"
        return
    fi
    # Where a group shares the yard all of it must be able to beat on the file. A mode is not changed by name: it may be a link by then.
    _ty_why="the yard's group cannot write it"
    [ -z "$_ty_shared" ] || case $3 in *[67]?" $(stat -c %g -- "$_ty_root")") ;; *) return 1 ;; esac
    _ty_new_place && _ty_sync "$1" || return 8
    _ty_name_dropped "${1##*/}"
    _ty_shift "$1" "$_ty_folder" "$_ty_id.0.e0.c0.x$_ty_d_own.json" || code=$?
    [ $code -ne 1 ] || return 0
    [ $code -eq 0 ] && _ty_sync "$_ty_folder" || return 8
    _ty_told="${_ty_told}taken in $_ty_id
"
}

# One with a key is taken out of the box first, and a new file linked to its key: of two files with one key one is the task.
_ty_take_in_keyed() { # file size
    local stem=${1##*/} box='' keys='' name='' key=$_ty_d_key code=0
    stem=${stem%.json} _ty_why="its name is too long"
    [ ${#stem} -le 100 ] || return 1
    name=$(printf '%s' "$key" | sha256sum) || return 8
    name=${name%"${name#????????????????????????????????????????}"}.json
    keys=$_ty_root/keys/${name%"${name#??}"} _ty_why="its taskId belongs to a task already"
    if _ty_listed "$keys/$name"; then
        _ty_listed "$1" && return 1 # else it is this very file's task
        return 0
    fi
    _ty_draw
    box=$$-$_ty_word.1.$stem.drop
    _ty_move "$1" "$_ty_root/tmp" "$box" || {
        [ $? -eq 1 ]
        return
    }
    box=$_ty_root/tmp/$box
    # Read once more, now that it is ours: somebody may have written to it since.
    _ty_judge_dropped "$box" "$2" && [ "$_ty_d_key" = "$key" ] || {
        _ty_put_back "$box" "$stem"
        return 3
    }
    _ty_add_keyed "$keys" "$name" || code=$?
    if [ $code -eq 0 ]; then
        _ty_name_dropped "$stem.json"
        rm -f -- "$box"
    else
        _ty_put_back "$box" "$stem"
        _ty_why="its taskId belongs to a task already"
    fi
    return $code
}

_ty_add_keyed() { # folder and name of the key: the task that was just judged. 1: the key is another's
    local code=0
    _ty_new_place || return
    _ty_path=$_ty_root/tmp/$_ty_id.json # by that name anybody can finish it, once it has its key
    _ty_write "{\"taskyard\":1,\"id\":\"$_ty_id\",\"kind\":$_ty_kind,\"priority\":$_ty_d_priority$_ty_d_rest" && _ty_sync_draft || return
    _ty_link "$1" "$2" || {
        code=$?
        rm -f -- "$_ty_path"
        return $code
    }
    _ty_sync "$1"
    _ty_shift "$_ty_path" "$_ty_folder" "$_ty_id.0.e0.c0$_ty_d_own.json" helped || code=$?
    if [ $code -eq 8 ] && [ "$_ty_path" -ef "$1/$2" ]; then # nothing was added, and the key is free again
        rm -f -- "$1/$2" "$_ty_path"
        return 8
    fi
    _ty_sync "$_ty_folder"
    _ty_told="${_ty_told}taken in $_ty_id
"
}

_ty_put_back() { # file in tmp/, stem: it must not replace another
    local stem=$2
    while ! ln -- "$1" "$_ty_root/todo/$stem.json" 2>/dev/null; do
        if [ ! -e "$_ty_root/todo/$stem.json" ]; then # no links here
            mv -fT -- "$1" "$_ty_root/todo/$stem.json" 2>/dev/null
            return 0
        fi
        stem=$stem~
    done
    rm -f -- "$1"
}

_ty_list_dropped() { # lines of time, size, mode, group and path, the oldest first
    local path=''
    set --
    for path in "$_ty_root"/todo/*.json; do
        set -- "$@" "$path"
        [ $# -lt 500 ] || {
            stat -c '%Z %z %s %a %g %n' -- "$@"
            set --
        }
    done
    [ $# -eq 0 ] || stat -c '%Z %z %s %a %g %n' -- "$@"
}

# Another program's janitor may put a claim of ours into todo/, and its loop take it from there: the same task, and no dropped file.
_ty_is_claimed() { # name
    local name=$1
    case $name in *_?????????????????????.*.e*.c*-*.json) name=${name##*_} && name=${1#"${1%"$name"}"} ;; esac
    _ty_split "$name" && [ -n "$_ty_nonce" ]
}

# All that lies in the drop box and has arrived whole becomes tasks -> _ty_told. What is left stays where it is, and _ty_left and
# _ty_left_why tell of it; it is not read again until something is done to it.
_ty_ingest() {
    local path='' seconds='' clock='' size='' mode='' group='' code='' seen=$_ty_seen_dropped
    _ty_left=0 _ty_left_why='' _ty_seen_dropped='' _ty_asked_up=''
    for path in "$_ty_root"/todo/*.json; do
        case $path in *'
'*) _ty_left=$((_ty_left + 1)) _ty_left_why="a name has a line feed" ;; esac
    done
    [ -e "$path" ] || [ -L "$path" ] || return 0
    while read -r seconds _ clock _ size mode group path; do
        [ -z "${_ty_stop-}" ] || return 0
        [ ! -d "$path" ] || [ -L "$path" ] || continue
        [ -e "$path" ] || [ -L "$path" ] || continue
        ! _ty_is_claimed "${path##*/}" || continue
        code=1 _ty_why="it is no ordinary file"
        case $seen in
            *" $clock $path
"*) _ty_why="as before" ;;
            *)
                [ -L "$path" ] || [ ! -f "$path" ] || {
                    code=0
                    _ty_take_in "$path" "$size" "$mode $group" || code=$?
                }
                ;;
        esac
        if [ $code -eq 3 ] && [ $((_ty_asked - seconds * 1000)) -gt $((_ty_settle + 1000)) ]; then
            code=1 _ty_why="it is no JSON object"
        fi
        case $code in
            0 | 3) ;;
            1)
                _ty_left=$((_ty_left + 1)) _ty_left_why="${_ty_left_why:-${path##*/}: $_ty_why}"
                _ty_seen_dropped="$_ty_seen_dropped $clock $path
"
                ;;
            *) return 8 ;;
        esac
    done <<END
$(_ty_list_dropped 2>/dev/null | LC_ALL=C sort -k1,3 -k8)
END
}

_ty_say_of_the_box() { # once for each process, until there are others
    [ "$_ty_left" -gt 0 ] && [ "$_ty_said_left" != "$_ty_left" ] || return 0
    _ty_said_left=$_ty_left
    _ty_say "$_ty_left files in the drop box are left to 'taskyard janitor', or the next claim by Python ($_ty_left_why)"
}

# ---- the sweep, as far as plain tools can judge -------------------------------------------------------------------------

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

# ---- the loop -----------------------------------------------------------------------------------------------------------

_ty_parent() { # -> _ty_text: who started this very process; empty where the system does not tell
    _ty_text=
    { IFS= read -r _ty_text; } 2>/dev/null </proc/self/stat
    _ty_text=${_ty_text##*) ? }
    _ty_text=${_ty_text%% *}
}

_ty_descendants() { # pid -> _ty_text, all that it has started and that is still there; nothing where there is no /proc
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

_ty_outlast() { # pids: for up to ten seconds
    local left=50
    while [ $left -gt 0 ] && _ty_is_any_alive "$@"; do
        sleep 0.2 2>/dev/null || sleep 1
        left=$((left - 1))
    done
}

# Stops a command with all that it started, kindly and then not. What has a group of its own is told as a whole. A function of
# a script has none: it is held still while what it has started is stopped, for its orphans would be nobody's.
_ty_halt() { # pid
    local pid=$1
    if kill -s TERM -- "-$pid" 2>/dev/null; then
        _ty_outlast "$pid"
        kill -s KILL -- "-$pid" 2>/dev/null
        return 0
    fi
    kill -s STOP "$pid" 2>/dev/null
    _ty_descendants "$pid"
    # shellcheck disable=SC2086  # pids
    set -- $_ty_text
    [ $# -eq 0 ] || kill -s TERM "$@" 2>/dev/null
    _ty_outlast "$@"
    [ $# -eq 0 ] || kill -s KILL "$@" 2>/dev/null
    kill -s TERM "$pid" 2>/dev/null
    kill -s CONT "$pid" 2>/dev/null
    _ty_outlast "$pid"
    kill -s KILL "$pid" 2>/dev/null
    return 0
}

_ty_clear() { # pid of a command that has ended: what it left running in its group is stopped
    local left=10
    kill -s TERM -- "-$1" 2>/dev/null || return 0
    while [ $left -gt 0 ] && kill -s 0 -- "-$1" 2>/dev/null; do
        sleep 0.2 2>/dev/null || sleep 1
        left=$((left - 1))
    done
    kill -s KILL -- "-$1" 2>/dev/null
    return 0
}

# Beats beside the command. Where the claim is lost, or the loop that it belongs to was killed, it stops the command.
_ty_pulse() { # handle lease command loop
    local every=$(($2 / 3)) nap='' pause='' slept=0
    trap '' INT HUP TERM # a signal to the whole group is the loop's to answer
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

_ty_stopped() { _ty_stop=1; }

_ty_wait_for() { # pid -> its exit code; a signal to us ends the wait early
    local code=0
    wait "$1" 2>/dev/null || code=$? # without a word of which signal it was
    return $code
}

_ty_reason() { # exit code, file of standard error -> _ty_text
    local words=''
    [ ! -s "$2" ] || words=$(tail -c 4096 -- "$2")
    if [ "$1" -gt 128 ]; then _ty_text="killed by signal $(($1 - 128))"; else _ty_text="exit $1"; fi
    [ -z "$words" ] || _ty_text="$_ty_text: $words"
}

# Runs a command beside a heartbeat -> _ty_ending, its exit code, or "stopped". Its input is _ty_input, else the task's file.
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
        # What a shell starts in the background ignores SIGINT and SIGQUIT; env gives them back where it can.
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
    _ty_wait_for $pid || code=$?
    if [ -n "$_ty_stop" ]; then
        _ty_halt $pid
        wait $pid 2>/dev/null
        code=stopped
    fi
    [ "$_ty_runs" != alone ] || _ty_clear $pid
    # Not TERM: a shell that has only just forked may lose that, and would be waited for for ever.
    kill -s KILL $beat 2>/dev/null
    wait $beat 2>/dev/null
    [ -s "${logs}stdout.log" ] || [ -s "${logs}stderr.log" ] || rm -f -- "${logs}stdout.log" "${logs}stderr.log"
    _ty_ending=$code
}

# What the command has come to -> _ty_result and _ty_ending; _ty_failure is what to say of an error
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

_ty_verify_beside() { # handle lease workdir: the check that was just found, as a command of the loop
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

_ty_publish_ending() { # workdir, handle: said until the yard takes it
    local before=0 record=''
    case $_ty_ending in
        0) _ty_end_done "$2" "$_ty_result" ;;
        stopped) _ty_end_released "$2" ;;
        error) _ty_end_failed "$2" "$_ty_failure" ;;
        75)
            for record in "$_ty_root/results/$_ty_h_seg/$_ty_h_id".*.released.json; do [ ! -e "$record" ] || before=$((before + 1)); done
            _ty_backoff $before
            _ty_end_released "$2" "$((_ty_delay > 0 ? _ty_delay : 1))"
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
        _ty_ended 'done' || _ty_ended failed || _ty_gave_up released || _ty_gave_up error || _ty_say "the claim $handle was lost; its command was stopped"
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

# Who runs a claim's command, in its folder: so that a loop of the same name can tell whether the one before it is gone.
_ty_started() { # pid -> _ty_text: when that process was started, by this kernel; empty if it is not there, - where none can tell
    local line=''
    _ty_text=-
    [ -r /proc/self/stat ] || return 0
    _ty_text=
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
    # shellcheck disable=SC2086  # words
    set -- ${line##*) }
    shift 19
    _ty_text=$1
}

_ty_is_mine() { # file in processing/, split: was it held by a loop of this name that is gone?
    local mark=$_ty_root/attempts/$_ty_seg/$_ty_id/$_ty_id.$_ty_fence.$_ty_nonce/.loop boot='' pid='' started=''
    _ty_is_held_by_me && { read -r boot pid started <"$mark"; } 2>/dev/null || return 1
    _ty_is_number "$pid" || return 1
    [ "$boot" = "$_ty_boot" ] || return 0
    _ty_started "$pid"
    case $_ty_text in
        -) ! kill -s 0 "$pid" 2>/dev/null ;;
        *) [ "$_ty_text" != "$started" ] ;;
    esac
}

_ty_next_of_mine() { # what a loop of this name held -> the claim, taken again; 1: there is none
    local path=''
    # shellcheck disable=SC2031
    [ -n "${TASKYARD_WORKER:-${AGENT_ID-}}" ] || return 1
    for path in "$_ty_root"/processing/*.json; do
        _ty_split "${path##*/}" && [ -n "$_ty_nonce" ] && _ty_is_mine || continue
        _ty_text=${_ty_lane#?-}
        case $_ty_wanted in '' | *" ${_ty_text%%@*} "*) ;; *) continue ;; esac
        _ty_resume_one "$path" && return
    done
    return 1
}

# Is anything of what this loop serves still to be done? What is not for shells is not counted, but told of once.
_ty_is_left() {
    local path='' lane='' name='' others=0
    for path in "$_ty_root"/todo/*/*/*.json "$_ty_root"/processing/*.json "$_ty_root"/waiting/*/*/*.json; do
        name=${path#"$_ty_root/"}
        lane=
        case $name in todo/*) lane=${name#todo/} lane=${lane%%/*} ;; esac
        _ty_split "${path##*/}" "$lane" && _ty_serves "$_ty_lane" && [ -e "$path" ] || continue
        [ -z "$_ty_nonce" ] || return 0
        [ -z "$_ty_verified" ] || [ -z "$_ty_checks" ] || _ty_learn_checks "$path" # one that waits was not looked at yet
        case "$_ty_uses $_ty_verified $_ty_known_checks" in
            ' v '*" ${path##*/} "* | '  '*) return 0 ;;
        esac
        others=$((others + 1))
    done
    [ $others -eq 0 ] || _ty_say "$others tasks that use something, or ask for a check that is not in yard.json, are left to Python workers"
    return 1
}

_ty_loop() {
    local once='' kinds='' pause=1 code='' failed=0
    while :; do
        case ${1-} in
            --kind)
                [ $# -gt 1 ] && _ty_kind_name "$2" || return 2
                kinds="${kinds:- }$_ty_text "
                shift 2
                ;;
            --once | --drain) once=${1#--} && shift ;;
            --) shift && break ;;
            -*) _ty_say "process_loop has no option $1" && return 2 ;;
            *) break ;;
        esac
    done
    [ $# -gt 0 ] || {
        _ty_say "usage: process_loop [--kind KIND]... [--once|--drain] [--] CMD..."
        return 2
    }
    _ty_open || return
    _ty_wanted=$kinds _ty_ahead=32
    [ -n "${_ty_usual_lease-}" ] || _ty_usual_lease=60000
    command -v -- "$1" >/dev/null || {
        _ty_say "there is no command $1"
        return 2
    }
    # A busybox that prefers its applets has no path to tell for them, so a path alone does not make a program.
    case $(LC_ALL=C && type "$1") in
        "$1 is a function"* | "$1 is a "*"shell function"* | "$1 is a "*"shell builtin"*) _ty_runs=here ;;
        *) if command -v setsid >/dev/null; then _ty_runs=alone; else _ty_runs="command"; fi ;;
    esac
    _ty_afresh=
    ! env --default-signal=INT,QUIT true 2>/dev/null || _ty_afresh='env --default-signal=INT,QUIT --'
    _ty_self=
    { read -r _ty_self _; } 2>/dev/null </proc/self/stat || _ty_self=$(exec sh -c 'echo $PPID')
    _ty_stop=
    trap _ty_stopped TERM INT HUP
    while [ -z "$_ty_stop" ]; do
        kill -s 0 $$ 2>/dev/null || return 1 # the script that called it is gone
        code=0
        _ty_next_of_mine || _ty_take_next || code=$?
        case $code in
            0)
                _ty_perform "$@"
                pause=1
                [ "$once" != once ] || return 0
                [ "$once" != drain ] || ! _ty_ended failed || failed=$((failed + 1))
                continue
                ;;
            3)
                _ty_say_of_the_box
                [ "$once" != once ] || return 3
                [ "$once" != drain ] || _ty_is_left || break
                ;;
            *) [ "$once" != once ] || return $code ;;
        esac
        sleep $pause >/dev/null 2>&1 &
        wait $! || kill $! 2>/dev/null
        [ $pause -ge 2 ] || pause=2
    done
    [ $failed -gt 0 ] || return 0
    _ty_say "failed for good: $failed"
    return 1
}

# ---- the rest of the doors ----------------------------------------------------------------------------------------------

_ty_fail() { # handle reason
    [ $# -eq 2 ] && [ -n "$2" ] || {
        _ty_say "usage: fail_task HANDLE REASON"
        return 2
    }
    [ ${#2} -le 65536 ] || set -- "$1" "$(printf '%.65536s' "$2")"
    _ty_end_failed "$1" "$2"
}

_ty_release() { _ty_end_released "$1"; }

_ty_verify() { # handle
    _ty_handle "$1" || return
    _ty_find && return
    _ty_is_there "$_ty_h_id" || {
        _ty_say "no task has the id $_ty_h_id"
        return 6
    }
    _ty_say "the claim $1 is over"
    return 4
}

_ty_help() { # the head of this file, from its name on
    local line='' begun=''
    while IFS= read -r line; do
        case $line in
            '# taskyard.sh: '*) begun=1 ;;
            '#'*) ;;
            *) return 0 ;;
        esac
        line=${line#\#}
        [ -z "$begun" ] || printf '%s\n' "${line# }"
    done <"$0"
}

add_task() { _ty_call _ty_add "$@"; }
heartbeat() { _ty_call _ty_of_claim _ty_beat 1 "$@"; }
note_task() { _ty_call _ty_note "$@"; }
verify_ownership() { _ty_call _ty_of_claim _ty_verify 1 "$@"; }
fail_task() { _ty_call _ty_of_claim _ty_fail 2 "$@"; }
release_task() { _ty_call _ty_of_claim _ty_release 1 "$@"; }
resume() { _ty_call _ty_resume "$@"; }
reap_stale() { _ty_call _ty_reap_stale "$@"; }

# In a process of its own: its traps and options are nobody else's. Called plainly, because whatever is part of "A || B" is
# never ended by set -e, and neither would be a function that it is given.
process_loop() (
    _ty_flags=$-
    IFS=' 	
'
    set +efuC
    _ty_loop "$@"
)

if [ -n "$_ty_is_program" ]; then
    # What was begun above and needed more than was read there. The verb itself, said again, finds that done.
    # shellcheck disable=SC2086  # a function and its words
    [ -z "$_ty_rest" ] || _ty_call $_ty_rest
    case ${1-} in
        add_task | claim_task | heartbeat | note_task | verify_ownership | complete_task | fail_task | release_task | resume | reap_stale)
            "$@"
            exit
            ;;
        process_loop) # in this very process: whoever kills it means the loop
            shift
            _ty_flags=
            _ty_loop "$@"
            exit
            ;;
        -h | --help | help)
            _ty_help
            exit
            ;;
    esac
    _ty_say "there is no verb '${1-}'; see taskyard.sh --help"
    exit 2
fi
