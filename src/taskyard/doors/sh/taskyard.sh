#!/bin/sh
# shellcheck shell=dash
# shellcheck disable=SC2015  # "A && B || C" is meant as it reads: C where A or B fails
# taskyard.sh: a Taskyard worker in plain shell, for places without Python. Run it, or source it and call its functions.
#
#   taskyard.sh add_task [-p 0..9] KIND [FILE]     FILE (- is standard input) holds the task's data as JSON; prints the id
#   taskyard.sh claim_task [KIND...]               prints the claim's handle, a tab, and the file that holds the task;
#                                                  a script that sources this finds them in TASK_HANDLE and TASK_FILE
#   taskyard.sh complete_task HANDLE [FILE]        FILE holds the result as JSON
#   taskyard.sh fail_task HANDLE REASON            tried again while attempts are left
#   taskyard.sh release_task HANDLE                hand it back untouched
#   taskyard.sh heartbeat HANDLE                   begin the lease anew
#   taskyard.sh verify_ownership HANDLE            is it still mine?
#   taskyard.sh process_loop [--kind KIND]... [--once|--drain] [--] CMD...
#                                                  run CMD for each task, the task's file on its standard input
#   taskyard.sh reap_stale                         give back what leases have ended of, wake what is due
#
# The yard is $TASKYARD, else the nearest .taskyard upward. The worker is $TASKYARD_WORKER, else $AGENT_ID, else a name of
# this process. $TASKYARD_LEASE is the lease of claims in seconds, where neither the default nor the task's own will do.
# Exit codes: 0 ok, 2 usage or invalid, 3 nothing ready, 4 claim lost, 6 not found, 7 conflict, 8 yard unavailable.
#
# CMD is told TASKYARD, TASKYARD_CLAIM, TASKYARD_TASK, TASKYARD_FENCE, TASKYARD_WORKER and TASKYARD_WORKDIR. It may leave its
# result as result.json in TASKYARD_WORKDIR. Exit 0 is done, 75 later (not counted), 65 failed for good, all else an error.
#
# It keeps to PROTOCOL.md, format 1, beside any number of Python workers. It leaves to them, and never touches: tasks that use
# something (u in their names), files in the drop box, idempotency keys, and what killed processes left half done (the
# sweep's mending; 'taskyard janitor' does it at once). An event that it was killed before it could log stays unlogged. A
# claim of a task that asks for a check (verify) is failed by process_loop: only Python workers have checks.
#
# It needs mv, mkdir, rmdir, rm, ln, touch, sort, sync, awk, and a stat with -c: GNU's or busybox's.

# ---- small things -------------------------------------------------------------------------------------------------------

_ty_say() { printf 'taskyard.sh: %s\n' "$*" >&2; }

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

_ty_upper() { # a hex digit -> _ty_text
    case $1 in
        a) _ty_text=A ;; b) _ty_text=B ;; c) _ty_text=C ;; d) _ty_text=D ;; e) _ty_text=E ;; f) _ty_text=F ;;
        *) _ty_text=$1 ;;
    esac
}

_ty_encode() { # word -> _ty_text, as it stands in names; 2 if no word may be so
    local byte='' code='' out='' more=0 head=''
    case $1 in
        '') return 2 ;;
        *[!A-Za-z0-9_-]*) ;;
        *)
            _ty_text=$1
            [ ${#1} -le 60 ] || return 2
            return 0
            ;;
    esac
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

_ty_decode() { # a word in a name -> _ty_text
    local rest=$1 out='' hex='' code=''
    case $1 in
        *%*) ;;
        *) _ty_text=$1 && return ;;
    esac
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

_ty_string() { # text -> _ty_json, a JSON string
    case $1 in
        *[!\ -~]* | *\"* | *\\*)
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
            ;;
        *) _ty_json="\"$1\"" ;;
    esac
}

# The JSON value in a file, on one line; 2 if it is none. Strings become \001, all other values \002, members \003, until one
# value is left: regular expressions can't count brackets, but they can take them off from the inside.
_ty_value() { # file -> _ty_json
    [ -r "$1" ] && [ ! -d "$1" ] || [ "$1" = - ] || {
        _ty_say "$1 cannot be read"
        return 2
    }
    _ty_json=$(LC_ALL=C awk '
        { text = text (NR > 1 ? "\n" : "") $0 }
        END {
            if (text ~ "[\001-\010\013\014\016-\037]") exit 1
            bare = text
            gsub("\"([][ !#-Z^-~\177]|\\\\(\\\\|[\"/bfnrt]|u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F])|[\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277])*\"", "\001", bare)
            gsub(/-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null/, "\002", bare)
            gsub("[ \n\r\t]+", "", bare)
            for (depth = 0; depth <= 200; depth++) {
                before = bare
                gsub("\001:[\001\002]", "\003", bare)
                gsub("[{](\003(,\003)*)?[}]", "\002", bare)
                gsub("[[]([\001\002](,[\001\002])*)?[]]", "\002", bare)
                if (bare == before) break
            }
            if (bare != "\001" && bare != "\002") exit 1
            gsub("[\n\r\t]", " ", text); sub(/^ +/, "", text); sub(/ +$/, "", text)
            if (length(text) > 1048576) exit 1
            print text
        }' "$1") || {
        _ty_say "$1 holds no JSON value, or one of more than 1 MiB or 200 levels"
        return 2
    }
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
    _ty_up=
    { read -r _ty_up _; } 2>/dev/null </proc/uptime || return 1
    _ty_up=${_ty_up%.*}${_ty_up#*.}
}

# For events a look at the yard's time is carried on for a second by this machine's ticking: a look costs a process.
_ty_moment() { # a file that was just moved
    if _ty_uptime && [ -n "$_ty_looked" ] && [ $((_ty_up - _ty_looked)) -lt 100 ]; then
        _ty_now=$((_ty_seen + (_ty_up - _ty_looked) * 10))
        return
    fi
    _ty_time "$1" || _ty_ask_time || return
    _ty_seen=$_ty_now _ty_looked=$_ty_up
}

_ty_ask_time() { # the same, where there is no such file
    _ty_error=
    touch "$_ty_root/tmp/clock" 2>/dev/null && _ty_time "$_ty_root/tmp/clock" || _ty_trouble "the yard's time cannot be asked for in $_ty_root/tmp"
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

# ---- the yard -----------------------------------------------------------------------------------------------------------

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
            _ty_nearest "$PWD" || {
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
# ok or what is wrong, then durability, attempts, crashes, backoff, cap and lease, then local or not.
_ty_read_yard() {
    _TY_ROOT=$_ty_root LC_ALL=C awk '
        function skip() { sub(/^[ \t\r\n]+/, "", t) }
        function next_is(c) { skip(); if (substr(t, 1, 1) != c) return 0; t = substr(t, 2); return 1 }
        function value(path,   key, n) {
            skip()
            if (match(t, /^"([^"\\]|\\.)*"/)) { val[path] = "s" substr(t, 2, RLENGTH - 2); t = substr(t, RLENGTH + 1); return }
            if (match(t, /^(-?[0-9][0-9.eE+-]*|true|false|null)/)) { val[path] = "n" substr(t, 1, RLENGTH); t = substr(t, RLENGTH + 1); return }
            if (next_is("{")) {
                val[path] = "o"
                if (next_is("}")) return
                do {
                    skip()
                    if (!match(t, /^"([^"\\]|\\.)*"/)) { bad = 1; return }
                    key = substr(t, 2, RLENGTH - 2); t = substr(t, RLENGTH + 1)
                    if (!next_is(":")) { bad = 1; return }
                    value(path "/" key)
                    if (bad) return
                } while (next_is(","))
                if (!next_is("}")) bad = 1
                return
            }
            if (next_is("[")) {
                val[path] = "a"
                if (next_is("]")) return
                do { val[path] = "A"; value(path "/" n++); if (bad) return } while (next_is(","))
                if (!next_is("]")) bad = 1
                return
            }
            bad = 1
        }
        function number(name, fallback, factor,   v, whole) {
            v = val["/settings/" name]
            if (v == "") return fallback
            if (v !~ /^n[0-9][0-9.eE+-]*$/ || (v = substr(v, 2) * factor) >= 1e12) { wrong = name; return fallback }
            whole = int(v)
            return sprintf("%.0f", whole < v ? whole + 1 : whole)
        }
        FILENAME == "/proc/self/mountinfo" {
            root = ENVIRON["_TY_ROOT"]; point = $5
            gsub(/\\040/, " ", point); gsub(/\\011/, "\t", point); gsub(/\\134/, "\\", point)
            if (index(point, root "/") == 1) inner = point
            if (point == "/" || point == root || index(root, point "/") == 1) {
                if (length(point) >= length(best)) { best = point; device = $3; for (i = 6; $i != "-"; i++); type = $(i + 1) }
            }
            next
        }
        { t = t $0 "\n" }
        END {
            value(""); skip()
            durability = val["/settings/durability"]; if (durability == "") durability = "sdurable"
            attempts = number("max_attempts", 3, 1); crashes = number("max_crashes", 3, 1)
            backoff = number("backoff", 5000, 1000); cap = number("backoff_cap", 600000, 1000); lease = number("lease", 1800000, 1000)
            if (bad || t != "") said = "its yard.json is no JSON"
            else if (val["/taskyard"] != "n1" || val["/features"] !~ /^(a|nnull|nfalse)?$/) said = "its format or features are unknown to this version of taskyard.sh"
            else if (val["/settings"] != "" && val["/settings"] != "o") said = "the settings in its yard.json are no object"
            else if (durability !~ /^s(fast|durable|strict)$/) said = "the durability in its yard.json is unknown"
            else if (wrong != "") said = wrong " in its yard.json is no number that can be used"
            else if (inner != "") said = inner " in it is a mount of its own"
            else if (type ~ /^fuse\.(s3fs|goofys|gcsfuse|rclone|osxfs|grpcfuse)$|^fakeowner$/) said = type " has no atomic rename"
            if (said != "") { print "no", said; exit }
            place = best == "" ? "unknown" : device !~ /^0:/ || type ~ /^(ext[234]|xfs|btrfs|tmpfs|overlay|zfs|f2fs|bcachefs|ramfs|ufs|apfs)$/ ? "local" : "network"
            print "ok", substr(durability, 2), attempts, crashes, backoff, cap, lease, place, val["/settings/shared"] == "sgroup" ? "group" : "own"
        }' "$@"
}

_ty_one_mount() { # where the system does not list its mounts
    # shellcheck disable=SC2046  # mount points
    set -- $(df -P "$_ty_root" "$_ty_root"/*/ 2>/dev/null | awk 'NR > 1 && !seen[$NF]++ { print NR }')
    [ $# -eq 1 ]
}

# Everything begins here: which yard, its settings, who I am. Asked once, and again when the place or the name changes.
_ty_open() {
    local key="${TASKYARD-}|$PWD|${TASKYARD_WORKER-}|${AGENT_ID-}|${TASKYARD_LEASE-}" said='' place='' boot=''
    [ "${_ty_key-}" != "$key" ] || return 0
    _ty_key=
    _ty_locate || return
    _ty_error=
    _ty_root=$(CDPATH='' cd -- "$_ty_text" 2>/dev/null && pwd -P) && [ -r "$_ty_root/yard.json" ] || {
        _ty_say "there is no yard at $_ty_text, or it cannot be read"
        return 8
    }
    set -- "$_ty_root/yard.json"
    [ ! -r /proc/self/mountinfo ] || set -- "$@" /proc/self/mountinfo
    said=$(_ty_read_yard "$@") || said="no its yard.json cannot be read"
    case $said in
        ok*) ;;
        *) _ty_say "the yard $_ty_root cannot be used: ${said#no }" && return 8 ;;
    esac
    # shellcheck disable=SC2086  # nine words
    set -- $said
    _ty_durability=$2 _ty_set_attempts=$3 _ty_set_crashes=$4 _ty_set_backoff=$5 _ty_set_cap=$6 _ty_set_lease=$7 place=$8
    [ "$9" != group ] || umask g=rwx # a yard that a group shares: whatever is made here is the group's as well
    [ "$place" != unknown ] || _ty_one_mount || {
        _ty_say "the yard $_ty_root cannot be used: it is more than one mount"
        return 8
    }
    _ty_asked_lease=
    case ${TASKYARD_LEASE-} in
        '') ;;
        *[!0-9]* | 0* | ???????*)
            _ty_say "\$TASKYARD_LEASE must be whole seconds, not $TASKYARD_LEASE"
            return 2
            ;;
        *) _ty_asked_lease=$((TASKYARD_LEASE * 1000)) ;;
    esac
    _ty_draw
    _ty_writer=$$-$_ty_word
    { read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || boot=pid$$
    boot=${boot%%-*}
    # One write of one line never mixes with another's on one kernel. Between machines, each process has a log of its own.
    _ty_own_log=$boot-$_ty_writer
    _ty_log=$boot-sh
    [ "$place" = local ] || _ty_log=$_ty_own_log
    _ty_torn=
    _ty_who || return
    _ty_queue='' _ty_queue_for='' _ty_lost=0 _ty_looked='' _ty_last_tick=0 _ty_lane_known=''
    _ty_key=$key
}

_ty_who() {
    local name=${TASKYARD_WORKER:-${AGENT_ID-}} host=''
    if [ -z "$name" ]; then
        { read -r host </proc/sys/kernel/hostname; } 2>/dev/null || host=$(uname -n)
        host=${host%%.*}
        case $host in '' | *[!A-Za-z0-9_-]* | ???????????????????????????????*) host='sh' ;; esac
        name=$host-$$-${_ty_word%????}
    fi
    _ty_encode "$name" || {
        _ty_say "no worker can be called $name"
        return 2
    }
    _ty_worker=$_ty_text
    _ty_string "$name"
    _ty_by=$_ty_json
}

_ty_lane_json() { # lane -> _ty_kind and _ty_assignee as JSON; the last one is remembered
    [ "$_ty_lane_known" != "$1" ] || return 0
    local kind=${1#?-}
    _ty_decode "${kind%%@*}"
    _ty_kind="\"$_ty_text\""
    _ty_assignee=null
    case $1 in
        *@*)
            _ty_decode "${1#*@}"
            _ty_string "$_ty_text"
            _ty_assignee=$_ty_json
            ;;
    esac
    _ty_lane_known=$1
}

_ty_holder_json() { # the holder of the name that was split last -> _ty_json
    case $_ty_holder in
        @) _ty_lane_json "$_ty_lane" && _ty_json=$_ty_assignee ;;
        "$_ty_worker") _ty_json=$_ty_by ;;
        *)
            _ty_decode "$_ty_holder"
            _ty_string "$_ty_text"
            ;;
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

# What a name says: _ty_id, _ty_seg, _ty_fence, _ty_errors, _ty_crashes, _ty_own, _ty_limit, _ty_own_lease, _ty_body, _ty_uses,
# _ty_lane, _ty_due, _ty_lease, _ty_claim (from .l on), _ty_holder, _ty_nonce. 1 if it is no task's name.
_ty_split() { # name [lane]
    local IFS=.
    _ty_lane=${2-} _ty_own='' _ty_limit='' _ty_own_lease='' _ty_body='' _ty_uses='' _ty_due='' _ty_lease='' _ty_claim='' _ty_holder='' _ty_nonce=''
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
    case ${1-} in u) _ty_uses=u _ty_own=$_ty_own.u && shift ;; esac
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

_ty_listed() { # path: is it there, by a fresh listing? (a file server's client may remember what is gone)
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
    sync "$@" 2>/dev/null || sync
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
    while :; do
        _ty_error=$(mv -fT -- "$1" "$2/$3" 2>&1) && return 0
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

# One line in one write. What may need two (a page of memory holds a thousand characters of any script) goes to a log of
# this process alone, where nobody else's line can come between.
_ty_event() { # event id fence kind worker more; at _ty_now
    local line='' log=$_ty_log
    _ty_date "$_ty_now"
    line="{\"at\":\"$_ty_stamp\",\"event\":\"$1\",\"task\":\"$2\",\"fence\":$3,\"kind\":$4,\"worker\":$5,\"by\":$_ty_by${6-}}"
    [ ${#line} -lt 1000 ] || log=$_ty_own_log
    { printf '%s%s\n' "$_ty_torn" "$line" >>"$_ty_root/events/$_ty_hour.$log.jsonl"; } 2>/dev/null && _ty_torn= && return
    # The move counts; a line that was torn by a full disk must not spoil the next one.
    _ty_torn='
'
    return 0
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

# Exclusively, and never replaced. 0: published. 1: there was one.
_ty_publish() { # folder name
    local code=0
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) || {
        [ -d "$1" ] || _ty_make "$1" || code=8
        if [ $code -eq 0 ] && ! [ "$_ty_path" -ef "$1/$2" ]; then
            _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) || [ "$_ty_path" -ef "$1/$2" ] || {
                if _ty_listed "$1/$2"; then code=1; else _ty_trouble "$1/$2 cannot be made" || code=8; fi
            }
        fi
    }
    rm -f -- "$_ty_path"
    return $code
}

# How the claim of the split name is about to end, before it does; time is asked for here.
_ty_record() { # outcome reason-json [result]
    local code=0 record='' holder='' sync=$_ty_durability
    [ "$1" != released ] || sync=fast
    _ty_draft || return
    _ty_date "$_ty_now"
    _ty_holder_json
    holder=$_ty_json
    record="{\"claim\": \"$_ty_id.$_ty_fence.$_ty_nonce\", \"fence\": $_ty_fence, \"worker\": $holder, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}"
    _ty_write "$record, \"errors\": $_ty_errors, \"crashes\": $_ty_crashes}" || return
    [ "$sync" = fast ] || _ty_sync "$_ty_path"
    _ty_publish "$_ty_root/results/$_ty_seg" "$_ty_id.$_ty_fence.$_ty_nonce.$1.json" || code=$?
    [ $code -le 1 ] || return $code
    # The first word of a claim stands; a second one that differs is kept as stale.
    [ $code -eq 0 ] || case $1 in done | error) _ty_stale "$1" "$2" "${3-}" "$holder" ;; esac
    [ "$sync" = fast ] || _ty_sync "$_ty_root/results/$_ty_seg"
}

_ty_stale() { # outcome reason-json result worker: output that does not count, kept for a person to read; 0 always
    local digest='' written='' folder=$_ty_root/results/$_ty_h_seg
    written=$(cat -- "$folder/$_ty_handle.$1.json" 2>/dev/null)
    case $written in
        '') ;;
        *"\"reason\": $2, "*"\"result\": $3, \"errors\""*) [ -z "$3" ] || return 0 ;;
        *"\"result\": "*) ;;
        *"\"reason\": $2, "*) [ -n "$3" ] || return 0 ;;
    esac
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

_ty_bucket() { # due: in milliseconds, from _ty_now -> _ty_text
    local ahead=$(($1 - _ty_now))
    _ty_date "$1"
    if [ $ahead -lt 7200000 ]; then _ty_text=$_ty_minute; elif [ $ahead -lt 172800000 ]; then _ty_text=$_ty_hour; else _ty_text=$_ty_day; fi
}

# The split name goes back: to its lane, or to wait. -> _ty_more, the due time for the event; 0, 1 or 8 as of a move
_ty_back() { # file errors crashes delay
    local stem="$_ty_id.$((_ty_fence + 1)).e$2.c$3$_ty_own" due='' folder=''
    _ty_more=
    if [ "$4" -eq 0 ]; then
        folder=$_ty_root/todo/$_ty_lane/$_ty_seg
    else
        due=$((_ty_now + $4))
        _ty_bucket $due
        folder=$_ty_root/waiting/$_ty_text/$_ty_seg
        _ty_more=",\"due\":\"$_ty_stamp\""
        stem=$stem.$_ty_lane.d$due
    fi
    _ty_move "$1" "$folder" "$stem.json" || return
    _ty_target=$folder/$stem.json
}

# ---- add ----------------------------------------------------------------------------------------------------------------

_ty_marker() { # segment -> _ty_marked, its lane, and _ty_count
    local dots=''
    _ty_marked='' _ty_count=0
    [ -f "$_ty_root/segments/$1" ] || return 1
    {
        read -r _ _ty_marked
        IFS= read -r dots
    } 2>/dev/null <"$_ty_root/segments/$1"
    _ty_count=${#dots}
}

_ty_room() { # segment lane: has it room for one more of this lane? Then it is taken.
    _ty_marker "$1" && [ "$_ty_marked" = "$2" ] && [ "$_ty_count" -lt 1024 ] || return 1
    _ty_seg=$1
    { printf . >>"$_ty_root/segments/$1"; } 2>/dev/null
    return 0
}

_ty_highest() { # how many, then folders -> _ty_text, that many segments, the highest first
    local many=$1 path=''
    shift
    _ty_text=
    for path; do
        case ${path##*/} in ????) _ty_text="${path##*/} $_ty_text" ;; esac
    done
    # shellcheck disable=SC2086  # segments
    set -- $_ty_text
    _ty_text=
    while [ $# -gt 0 ] && [ "$many" -gt 0 ]; do
        case $1 in *[!0-9a-hjkmnp-tv-z]*) ;; *) _ty_text="$_ty_text $1" many=$((many - 1)) ;; esac
        shift
    done
}

_ty_successor() { # segment -> _ty_text
    local head=${1%?} last=${1#"${1%?}"} all=0123456789abcdefghjkmnpqrstvwxyz
    if [ "$last" = z ]; then
        [ -n "$head" ] || return 1
        _ty_successor "$head" || return
        _ty_text=${_ty_text}0
    else
        all=${all#*"$last"}
        _ty_text=$head${all%"${all#?}"}
    fi
}

_ty_segment() { # lane -> _ty_seg, with a byte of ours in its marker
    local segment='' newest='' code=''
    _ty_highest 8 "$_ty_root/todo/$1"/????
    for segment in $_ty_text; do
        _ty_room "$segment" "$1" && return
        [ "$_ty_marked" != "$1" ] || break
    done
    _ty_highest 16 "$_ty_root"/segments/????
    for segment in $_ty_text; do
        newest=${newest:-$segment}
        _ty_room "$segment" "$1" && return
    done
    _ty_text=0000
    [ -z "$newest" ] || _ty_successor "$newest" || return 7
    segment=$_ty_text
    while :; do
        _ty_draft && _ty_write "$_ty_now $1" || return
        _ty_sync "$_ty_path"
        code=0
        _ty_publish "$_ty_root/segments" "$segment" || code=$?
        [ $code -le 1 ] || return $code
        [ $code -ne 0 ] || _ty_sync "$_ty_root/segments"
        _ty_room "$segment" "$1" && return # ours, or a twin's of the same lane
        _ty_successor "$segment" || return 7
        segment=$_ty_text
    done
}

_ty_kind_name() { # kind -> _ty_text, encoded
    # Letters of other scripts are taken on trust: the shell has no list of them.
    case $1 in
        [A-Za-z0-9]*) ;;
        [[:space:][:punct:]]*) set -- '' ;;
    esac
    case $1 in *[\ \!\"\#\$%\&\'\(\)\*\+,/\;\<=\>?@\[\\\]^\`\{\|\}~]*) set -- '' ;; esac
    _ty_encode "$1" && return
    _ty_say "such a kind is not allowed: letters, digits, and _ - . : after the first character"
    return 2
}

_ty_add() { # [-p priority] kind [file]
    local priority=5 lane='' data=null id='' tick='' kind=''
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
    _ty_segment "$lane" || return
    _ty_draft || return
    tick=$(((_ty_now - 1577836800000) * 32 + _ty_micros % 1000 * 32 / 1000))
    [ $tick -gt "$_ty_last_tick" ] || tick=$((_ty_last_tick + 1)) # ids of one process rise
    _ty_last_tick=$tick
    _ty_base32 $tick 9
    id=$_ty_seg$_ty_text
    _ty_draw
    id=$id$_ty_word
    _ty_lane_json "$lane"
    kind=$_ty_kind
    _ty_write "{\"taskyard\":1,\"id\":\"$id\",\"kind\":$kind,\"priority\":$priority,\"data\":$data}" || return
    _ty_sync "$_ty_path"
    _ty_move "$_ty_path" "$_ty_root/todo/$lane/$_ty_seg" "$id.0.e0.c0.json"
    case $? in
        0) ;;
        1) _ty_error='' && _ty_trouble "the new task's file was removed before it was in place" || return ;;
        *)
            rm -f -- "$_ty_path"
            return 8
            ;;
    esac
    _ty_event added "$id" 0 "$kind" null
    _ty_sync "$_ty_root/todo/$lane/$_ty_seg"
    printf '%s\n' "$id"
}

# ---- claim --------------------------------------------------------------------------------------------------------------

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

# The oldest names of one lane -> _ty_text, up to 32 lines of age, a space, and the path in todo/
_ty_head() { # lane
    local folder='' path='' name='' many=0 empty='' last=''
    _ty_text=
    for folder in "$_ty_root/todo/$1"/????; do
        [ "$many" -eq 0 ] || break
        last=$folder
        for path in "$folder"/*.json; do
            name=${path##*/}
            case $name in
                '*.json') [ -e "$path" ] || [ ! -d "$folder" ] || empty="$empty ${folder##*/}" ;;
                *.u.json | *[!A-Za-z0-9.]*) ;; # what uses something is left to those who can see whether it is free
                "${folder##*/}"*.*.e*.c*.json)
                    _ty_text="$_ty_text${name#????} ${path#"$_ty_root/todo/"}
"
                    many=$((many + 1))
                    [ $many -lt 32 ] || break
                    ;;
            esac
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
        case $lane in [0-9]-*) ;; *) continue ;; esac
        [ "${lane%%-*}" -le "$most" ] || break
        _ty_serves "$lane" || continue
        rank=${lane%%-*} group="$group $lane"
    done
    return 1
}

_ty_fill_from() { # lanes of equal priority; of more than eight another eight each time, so that none starves
    local lane='' lines='' lanes=0 turn=$(($# > 8 ? _ty_chance % $# : 0))
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
    local skipped=0 window=1
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
            _ty_filled=$_ty_up
            continue
        fi
        if [ "$_ty_rank" -gt 0 ] && _ty_fill $((_ty_rank - 1)); then continue; fi
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
    local name=${_ty_entry##*/} lane=${_ty_entry%%/*} lease='' holder=$_ty_worker target='' fence='' nonce=''
    _ty_split "$name" "$lane" && [ -z "$_ty_uses$_ty_due$_ty_lease" ] || return 1
    lease=${_ty_asked_lease:-${_ty_own_lease:-${_ty_usual_lease:-$_ty_set_lease}}}
    case $lane in *@*) holder=@ ;; esac
    _ty_draw
    nonce=${_ty_word}1 fence=$((_ty_fence + 1))
    target="$_ty_id.$fence.e$_ty_errors.c$_ty_crashes$_ty_own.$lane.l$lease.$holder-$nonce.json"
    _ty_move "$_ty_root/todo/$_ty_entry" "$_ty_root/processing" "$target" || return
    _ty_handle=$_ty_id.$fence.$nonce
    _ty_file=$_ty_root/processing/$target
    [ "$_ty_durability" != strict ] || _ty_sync "$_ty_file" "$_ty_root/processing"
    _ty_moment "$_ty_file" || return # a rename moves ctime: the claim's own moment
    _ty_lane_json "$lane"
    _ty_event claimed "$_ty_id" "$fence" "$_ty_kind" "$_ty_by"
    _ty_fence=$fence _ty_lease=$lease _ty_nonce=$nonce
    if [ -n "$_ty_body" ]; then
        [ ! -f "$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json" ] || {
            _ty_file=$_ty_root/edits/$_ty_seg/$_ty_id.$_ty_body.json
            return 0
        }
        _ty_end_failed "$_ty_handle" "the edit that replaced its file is gone" final
        return 1
    fi
    [ -f "$_ty_file" ] && [ -r "$_ty_file" ] && return 0
    ! _ty_listed "$_ty_file" || _ty_end_failed "$_ty_handle" "its file cannot be read" final
    return 1
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
            swept=1 _ty_told=
            _ty_sweep || return
            [ -n "$_ty_told" ] || return 3
        else
            return 3
        fi
    done
}

_ty_claim_next() { # [kind...]
    _ty_open && _ty_kinds "$@" || return
    _ty_take_next || {
        local code=$?
        [ $code -ne 3 ] || _ty_say "nothing is ready"
        return $code
    }
    # For scripts that source this; reading the line would take them longer than all else of the claim.
    # shellcheck disable=SC2034
    TASK_HANDLE=$_ty_handle TASK_FILE=$_ty_file
    printf '%s\t%s\n' "$_ty_handle" "$_ty_file"
}

# ---- what a claim's verbs do --------------------------------------------------------------------------------------------

_ty_is_there() { # id: five passes, because a task that moves may slip past one
    local pass=0 path=''
    while [ $pass -lt 5 ]; do
        for path in "$_ty_root/blocked/$_ty_h_seg/$1".* "$_ty_root"/todo/*/"$_ty_h_seg/$1".* \
            "$_ty_root"/waiting/*/"$_ty_h_seg/$1".* "$_ty_root/processing/$1".* \
            "$_ty_root/cancelled/$_ty_h_seg/$1".* "$_ty_root/failed/$_ty_h_seg/$1".* "$_ty_root/done/$_ty_h_seg/$1".*; do
            [ ! -e "$path" ] || {
                _ty_found=$path
                return 0
            }
        done
        pass=$((pass + 1))
    done
    return 1
}

_ty_ended() { # state: has this claim ended its task so?
    local path=''
    for path in "$_ty_root/$1/$_ty_h_seg/$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce".*json; do
        [ ! -e "$path" ] || return 0
    done
    return 1
}

_ty_gave_up() { # outcome: was this how the claim ended, and nobody else ended it?
    local record=$_ty_root/results/$_ty_h_seg/$_ty_handle
    [ -e "$record.$1.json" ] && [ ! -e "$record.crash.json" ] && [ ! -e "$record.cancelled.json" ] && [ ! -e "$record.resumed.json" ]
}

# A verb on a claim that is over: the same answer to the same ending, a refusal to all else.
_ty_late() { # verb [outcome reason-json result]
    local holder='' path='' lane='' code=4
    case $1 in
        done)
            if _ty_ended 'done'; then
                [ -z "${4-}" ] || _ty_stale 'done' null "$4" "$_ty_by"
                return 0
            fi
            ! _ty_ended failed || code=7
            ;;
        fail)
            ! _ty_ended failed || return 0
            if _ty_ended 'done'; then code=7; elif _ty_gave_up error; then return 0; fi
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
        [ ! -f "$path" ] || path=$(sed -En 's/.*"worker": ("([^"\\]|\\.)*"), "outcome".*/\1/p' "$path") && holder=${path:-$_ty_by}
        break
    done
    case $holder in \"*) ;; *) holder=$_ty_by ;; esac
    [ -z "${2-}" ] || _ty_stale "$2" "$3" "${4-}" "$holder"
    _ty_ask_time || return
    _ty_event refused "$_ty_h_id" "$_ty_h_fence" "$_ty_kind" "$holder" ",\"verb\":\"$1\""
    path=${_ty_found#"$_ty_root/"}
    if [ $code -eq 7 ]; then
        _ty_say "this claim has ended task $_ty_h_id already: it is in ${path%%/*}; what came now is kept as a stale result"
    else
        _ty_say "the claim $_ty_handle is over: its task is in ${path%%/*} now${2:+; what this claim brought is kept as a stale result}"
    fi
    return $code
}

_ty_tidy() { # the claim's folder goes if it is empty
    local folder=$_ty_root/attempts/$_ty_h_seg/$_ty_h_id/$_ty_handle
    [ ! -d "$folder" ] || rmdir -- "$folder" 2>/dev/null
    return 0
}

_ty_end_done() { # handle [result]
    local code=0 target='' folder=''
    _ty_handle "$1" || return
    _ty_find || {
        _ty_late 'done' 'done' null "${2-}"
        return
    }
    target=$_ty_name
    if [ -n "${2-}" ]; then
        _ty_record 'done' null "$2" || return
        target=${_ty_name%.json}.r.json
    fi
    folder=$_ty_root/done/$_ty_seg
    _ty_move "$_ty_root/processing/$_ty_name" "$folder" "$target" || code=$?
    if [ $code -eq 1 ]; then
        _ty_late 'done' 'done' null "${2-}"
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_sync "$folder/$target" "$folder"
    _ty_moment "$folder/$target" || return
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    _ty_event 'done' "$_ty_id" "$_ty_fence" "$_ty_kind" "$_ty_json"
    _ty_follow "$_ty_id"
    _ty_tidy
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
    _ty_back "$1" "$_ty_errors" "$_ty_crashes" $delay || return 0
    _ty_lane_json "$_ty_lane"
    _ty_event unblocked "$_ty_id" $((_ty_fence + 1)) "$_ty_kind" null ",\"freed_by\":\"$2\"$_ty_more"
}

_ty_end_failed() { # handle reason [final]
    local code=0 reason='' logged='' folder='' target='' errors=''
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
    if [ -n "${3-}" ] || [ $errors -ge "${_ty_limit:-$_ty_set_attempts}" ]; then
        folder=$_ty_root/failed/$_ty_seg
        target=$_ty_id.$_ty_fence.e$errors.c$_ty_crashes$_ty_own.$_ty_lane$_ty_claim.json
        _ty_move "$_ty_root/processing/$_ty_name" "$folder" "$target" || code=$?
        _ty_target=$folder/$target _ty_more=",\"final\":true,\"reason\":$logged"
    else
        _ty_backoff $((errors - 1))
        _ty_back "$_ty_root/processing/$_ty_name" $errors "$_ty_crashes" "$((_ty_delay > 0 ? _ty_delay : 1))" || code=$?
        _ty_more=",\"final\":false,\"reason\":$logged$_ty_more" _ty_fence=$((_ty_fence + 1))
    fi
    if [ $code -eq 1 ]; then
        _ty_late fail error "$reason"
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_sync "$_ty_target" "${_ty_target%/*}"
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    _ty_event failed "$_ty_id" "$_ty_fence" "$_ty_kind" "$_ty_json" "$_ty_more"
    _ty_tidy
}

_ty_end_released() { # handle [delay]
    local code=0
    _ty_handle "$1" || return
    _ty_find || {
        _ty_late release
        return
    }
    _ty_record released null || return
    _ty_back "$_ty_root/processing/$_ty_name" "$_ty_errors" "$_ty_crashes" "${2:-0}" || code=$?
    if [ $code -eq 1 ]; then
        _ty_late release
        return
    fi
    [ $code -eq 0 ] || return $code
    _ty_lane_json "$_ty_lane"
    _ty_holder_json
    _ty_event released "$_ty_id" $((_ty_fence + 1)) "$_ty_kind" "$_ty_json" "$_ty_more"
    _ty_tidy
}

_ty_beat() { # handle
    _ty_handle "$1" || return
    # The listing comes first: on a file server a touch of a name that another has moved away still succeeds.
    if _ty_find; then
        _ty_error=$(touch -c -- "$_ty_root/processing/$_ty_name" 2>&1) || {
            ! _ty_find || _ty_trouble "the lease cannot be renewed" || return
        }
        _ty_find && return
    fi
    _ty_late heartbeat
}

# ---- the sweep, as far as plain tools can judge -------------------------------------------------------------------------

_ty_is_over() { # file lease: opened first, because a file server's client looks up the age of a name at most every 30 s
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
    if [ $crashes -ge "$_ty_set_crashes" ]; then
        _ty_target=$_ty_root/failed/$_ty_seg/$_ty_id.$((_ty_fence + 1)).e$_ty_errors.c$crashes$_ty_own.$_ty_lane.json
        _ty_move "$1" "${_ty_target%/*}" "${_ty_target##*/}" || code=$?
        _ty_more=",\"final\":true,\"reason\":$reason"
    else
        _ty_back "$1" "$_ty_errors" $crashes $delay || code=$?
        _ty_more=",\"final\":false,\"reason\":$reason$_ty_more"
    fi
    [ $code -le 1 ] || return $code
    [ $code -eq 0 ] || return 0
    _ty_sync "$_ty_target" "${_ty_target%/*}"
    _ty_lane_json "$_ty_lane"
    _ty_event reaped "$_ty_id" $((_ty_fence + 1)) "$_ty_kind" "$holder" "$_ty_more"
    _ty_told="${_ty_told}reaped $_ty_id
"
}

_ty_wake() { # file in waiting/, split
    _ty_back "$1" "$_ty_errors" "$_ty_crashes" 0 || {
        [ $? -eq 1 ]
        return
    }
    _ty_lane_json "$_ty_lane"
    _ty_event due "$_ty_id" $((_ty_fence + 1)) "$_ty_kind" null
    _ty_told="${_ty_told}woken $_ty_id
"
}

_ty_sweep() { # -> _ty_told, a line for each task that was moved; never a turn of turns/, which stands for a whole sweep
    local path='' name='' now='' begun=''
    _ty_ask_time || return
    now=$_ty_now _ty_asked=$_ty_now
    for path in "$_ty_root"/processing/*.json; do
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

_ty_reap_stale() {
    local path='' dropped=0
    [ $# -eq 0 ] || {
        _ty_say "usage: reap_stale"
        return 2
    }
    _ty_open || return
    _ty_told=
    _ty_sweep || return
    printf '%s' "$_ty_told"
    for path in "$_ty_root"/todo/*.json; do [ ! -f "$path" ] || dropped=$((dropped + 1)); done
    [ $dropped -eq 0 ] || _ty_say "$dropped files in the drop box are left to 'taskyard janitor', or the next claim by Python"
    return 0
}

# ---- the loop -----------------------------------------------------------------------------------------------------------

_ty_parent() { # -> _ty_text: who started this very process; empty where the system does not tell
    _ty_text=
    { IFS= read -r _ty_text; } 2>/dev/null </proc/self/stat
    _ty_text=${_ty_text##*) ? }
    _ty_text=${_ty_text%% *}
}

_ty_signal() { # signal pid: the command with all that it started, where it has a group of its own
    kill -s "$1" -- "-$2" 2>/dev/null || kill -s "$1" "$2" 2>/dev/null
}

_ty_halt() { # pid: stop it, kindly and then not
    local left=50
    _ty_signal TERM "$1"
    while [ $left -gt 0 ] && kill -s 0 "$1" 2>/dev/null; do
        sleep 0.2 2>/dev/null || sleep 1
        left=$((left - 1))
    done
    _ty_signal KILL "$1"
}

# Beats beside the command. Where the claim is lost, or the loop that it belongs to was killed, it stops the command.
_ty_pulse() { # handle lease command loop
    local every=$(($2 / 3)) nap='' pause='' slept=0
    trap '' INT HUP TERM # a signal to the whole group is the loop's to answer
    [ $every -le 20000 ] || every=20000
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

# A task that asks for a check can be done only by a worker that has checks.
_ty_asks_for_check() {
    case $_ty_own in
        .x*) LC_ALL=C grep -q '"verify"[[:space:]]*:' "$_ty_file" ;; # a dropped file, which may have it anywhere
        *) LC_ALL=C grep -Eq '^\{"taskyard":1,"id":"[^"]*","kind":"[^"]*","priority":[0-9](,"(title|assignee|mission|key)":"([^"\\]|\\.)*"|,"(max_attempts|lease)":[0-9.e+]+)*,"verify":"' "$_ty_file" ;;
    esac
}

_ty_wait_for() { # pid -> its exit code; a signal to us ends the wait early
    local code=0
    wait "$1" || code=$?
    return $code
}

_ty_reason() { # exit code, file of standard error -> _ty_text
    local words=''
    [ ! -s "$2" ] || words=$(tail -c 4096 -- "$2")
    if [ "$1" -gt 128 ]; then _ty_text="killed by signal $(($1 - 128))"; else _ty_text="exit $1"; fi
    [ -z "$words" ] || _ty_text="$_ty_text: $words"
}

_ty_publish_ending() { # exit code, workdir, handle: said until the yard takes it
    local code=0 result='' before=0 record=''
    case $1 in
        0)
            if [ -e "$2/result.json" ]; then
                if _ty_value "$2/result.json" 2>/dev/null; then
                    result=$_ty_json
                else
                    _ty_end_failed "$3" "its result cannot be kept: result.json holds no JSON value, or too much of it"
                    return
                fi
            fi
            _ty_end_done "$3" "$result"
            ;;
        75)
            for record in "$_ty_root/results/$_ty_h_seg/$_ty_h_id".*.released.json; do [ ! -e "$record" ] || before=$((before + 1)); done
            _ty_backoff $before
            _ty_end_released "$3" "$((_ty_delay > 0 ? _ty_delay : 1))"
            ;;
        65) _ty_reason 65 "$2/stderr.log" && _ty_end_failed "$3" "$_ty_text" final ;;
        *) _ty_reason "$1" "$2/stderr.log" && _ty_end_failed "$3" "$_ty_text" ;;
    esac
}

_ty_perform() { # the command, for the claim that was just made
    local handle=$_ty_handle file=$_ty_file id=$_ty_id lease=$_ty_lease fence=$_ty_fence code=0 pid='' beat='' workdir='' tries=0
    workdir=$_ty_root/attempts/$_ty_seg/$id/$handle
    _ty_handle "$handle"
    if _ty_asks_for_check; then
        _ty_end_failed "$handle" "the task asks for a check, and a shell worker has none"
        return 0
    fi
    mkdir -p -- "$workdir" 2>/dev/null || {
        _ty_end_released "$handle" "$_ty_set_backoff"
        return 0
    }
    (
        trap - TERM INT HUP EXIT
        _ty_decode "$_ty_worker"
        # shellcheck disable=SC2030  # for the command alone
        export TASKYARD="$_ty_root" TASKYARD_CLAIM="$handle" TASKYARD_TASK="$id" TASKYARD_FENCE="$fence" TASKYARD_WORKDIR="$workdir" TASKYARD_WORKER="$_ty_text"
        exec <"$file" >"$workdir/stdout.log" 2>"$workdir/stderr.log"
        case $_ty_runs in
            alone) exec setsid "$@" ;;
            command) exec "$@" ;;
        esac
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
    # Not TERM: a shell that has only just forked may lose that, and would be waited for for ever.
    kill -s KILL $beat 2>/dev/null
    wait $beat 2>/dev/null
    [ -s "$workdir/stdout.log" ] || [ -s "$workdir/stderr.log" ] || rm -f -- "$workdir/stdout.log" "$workdir/stderr.log"
    if ! _ty_find; then
        _ty_ended 'done' || _ty_ended failed || _ty_gave_up released || _ty_gave_up error || _ty_say "the claim $handle was lost; its command was stopped"
        return 0
    fi
    if [ "$code" = stopped ]; then
        _ty_end_released "$handle"
        return 0
    fi
    while :; do
        _ty_publish_ending "$code" "$workdir" "$handle"
        [ $? -eq 8 ] || return 0
        tries=$((tries + 1))
        [ -z "$_ty_stop" ] && [ $tries -lt 600 ] || return 0
        sleep 1
        _ty_find && touch -c -- "$_ty_root/processing/$_ty_name" 2>/dev/null
    done
}

_ty_is_left() { # is anything of what this loop serves still to be done by anybody?
    local path='' lane='' name=''
    for path in "$_ty_root"/todo/*/*/*.json "$_ty_root"/processing/*.json "$_ty_root"/waiting/*/*/*.json; do
        name=${path#"$_ty_root/"}
        lane=
        case $name in todo/*) lane=${name#todo/} lane=${lane%%/*} ;; esac
        _ty_split "${path##*/}" "$lane" && _ty_serves "$_ty_lane" && [ -e "$path" ] && return
    done
    return 1
}

_ty_loop() {
    local once='' kinds='' pause=1 code=''
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
    _ty_wanted=$kinds
    [ -n "${_ty_usual_lease-}" ] || _ty_usual_lease=60000
    case $(command -v -- "$1") in
        /*) if command -v setsid >/dev/null; then _ty_runs=alone; else _ty_runs="command"; fi ;;
        '') _ty_say "there is no command $1" && return 2 ;;
        *) _ty_runs=here ;;
    esac
    case $1 in */*) case $_ty_runs in here) _ty_runs="command" ;; esac ;; esac
    _ty_self=
    { read -r _ty_self _; } 2>/dev/null </proc/self/stat || _ty_self=$(exec sh -c 'echo $PPID')
    _ty_stop=
    trap _ty_stopped TERM INT HUP
    while [ -z "$_ty_stop" ]; do
        kill -s 0 $$ 2>/dev/null || return 1 # the script that called it is gone
        code=0
        _ty_take_next || code=$?
        case $code in
            0)
                _ty_perform "$@"
                pause=1
                [ "$once" != once ] || return 0
                continue
                ;;
            3)
                [ "$once" != once ] || return 3
                [ "$once" != drain ] || _ty_is_left || return 0
                ;;
            *) [ "$once" != once ] || return $code ;;
        esac
        sleep $pause >/dev/null 2>&1 &
        wait $! || kill $! 2>/dev/null
        [ $pause -ge 2 ] || pause=2
    done
    return 0
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

_ty_complete() { # handle [file]
    _ty_json=
    if [ $# -eq 2 ]; then
        _ty_value "$2" || return
        [ "$_ty_json" != null ] || _ty_json=
    fi
    _ty_end_done "$1" "$_ty_json"
}

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

add_task() { _ty_call _ty_add "$@"; }
claim_task() { _ty_call _ty_claim_next "$@"; }
heartbeat() { _ty_call _ty_of_claim _ty_beat 1 "$@"; }
verify_ownership() { _ty_call _ty_of_claim _ty_verify 1 "$@"; }
complete_task() { _ty_call _ty_of_claim _ty_complete 2 "$@"; }
fail_task() { _ty_call _ty_of_claim _ty_fail 2 "$@"; }
release_task() { _ty_call _ty_of_claim _ty_release 1 "$@"; }
reap_stale() { _ty_call _ty_reap_stale "$@"; }
process_loop() (_ty_call _ty_loop "$@") # in a process of its own: its traps are nobody else's

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

if _ty_is_run; then
    case ${1-} in
        add_task | claim_task | heartbeat | verify_ownership | complete_task | fail_task | release_task | reap_stale)
            "$@"
            exit
            ;;
        process_loop) # in this very process: whoever kills it means the loop
            shift
            _ty_call _ty_loop "$@"
            exit
            ;;
        -h | --help | help)
            sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
            exit
            ;;
    esac
    _ty_say "there is no verb '${1-}'; see taskyard.sh --help"
    exit 2
fi
