# ---- the yard ----------------------------------------------------------------------------------------------------------

# The settings, if yard.json is laid out as 'taskyard init' does it and holds whole numbers. 1: awk must read it, which would
# cost each claim and each done a process.
_ty_read_plainly() {
    local line='' name='' value=''
    _ty_durability=durable _ty_set_attempts=3 _ty_set_crashes=3 _ty_set_backoff=5000 _ty_set_cap=600000 _ty_set_lease=1800000
    _ty_checks='' _ty_shared='' _ty_settle=
    for value in '{' '"taskyard": 1,' '"features": [],' '"settings": {'; do
        read -r line || return 1
        if [ "$line" = '"features": [' ]; then # lanes of missions are known here
            read -r line && [ "$line" = '"missions"' ] && read -r line && [ "$line" = '],' ] || return 1
            line='"features": [],'
        fi
        [ "$line" = "$value" ] || return 1
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
        case $name$value in '"max_attempts":0' | '"max_attempts":'????* | '"max_crashes":0' | '"lease":0' | '"lease":'???????*) return 1 ;; esac
        case $name in
            '"max_attempts":') _ty_set_attempts=$value ;;
            '"max_crashes":') _ty_set_crashes=$value ;;
            '"backoff":') _ty_set_backoff=$((value * 1000)) ;;
            '"backoff_cap":') _ty_set_cap=$((value * 1000)) ;;
            '"lease":') _ty_set_lease=$((value * 1000)) ;;
            '"settle":') _ty_settle=$((value * 1000)) ;;
            '"sweep_every":' | '"ageing":' | '"retention_age":' | '"retention_count":') ;;
            *) return 1 ;;
        esac
    done
    return 1
}

_ty_share() { # the group may write all that this process makes
    _ty_shared=1
    umask g=rwx
}

_ty_is_folder() { # path: a link may lead to another filesystem, and mv would copy there without an error
    [ ! -L "$1" ] || _ty_refuse 8 "the yard $_ty_root cannot be used: $1 is a link"
}

_ty_enter() { # folder -> _ty_root, without links. A program goes there and back; a sourced client uses a subshell
    local here=${PWD-}
    _ty_root=
    if [ -n "$_ty_is_program" ]; then
        { CDPATH='' cd -P -- "$1" && _ty_root=$PWD; } >/dev/null 2>&1
        CDPATH='' cd -- "$here" >/dev/null 2>&1 || : # it is gone: no relative path can be meant
    else
        _ty_root=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd -P)
    fi
    [ -n "$_ty_root" ] && [ -r "$_ty_root/yard.json" ] || _ty_refuse 8 "there is no yard at $1, or it cannot be read" || return
    [ -f "$_ty_root/yard.json" ] && [ ! -L "$_ty_root/yard.json" ] || _ty_refuse 8 "$_ty_root/yard.json is no ordinary file; put one there" || return
    for here in todo waiting processing 'done' failed tmp results attempts; do
        _ty_is_folder "$_ty_root/$here" || return
    done
}

# Each verb begins here: which yard, its settings, and the worker's name. Done once, and again if the place or the name changes.
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
        *[!0-9]* | 0* | ???????*) _ty_refuse 2 "\$TASKYARD_LEASE must be whole seconds, not $TASKYARD_LEASE" || return ;;
        *) _ty_asked_lease=$((TASKYARD_LEASE * 1000)) ;;
    esac
    _ty_own_log='' _ty_torn='' _ty_last=0
    # A program takes one task, and needs a short list. A script keeps its list for a second.
    if [ -n "$_ty_is_program" ]; then _ty_ahead=4; else _ty_ahead=32; fi
    _ty_name_worker || return
    _ty_queue='' _ty_queue_for='' _ty_lost=0 _ty_last_tick=0 _ty_lane_known='' _ty_known_checks='' _ty_seen_dropped='' _ty_left=0 _ty_reported_left=''
    _ty_key=$key
}

_ty_name_worker() { # -> _ty_worker, _ty_by, and _ty_notes, the file in writers/ for the move that this worker is about to make
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
    [ $code -eq 0 ] || _ty_refuse 2 "no worker can be called $name" || return
    _ty_worker=$_ty_text
    _ty_notes=${_ty_notes:-$_ty_root/writers/$_ty_worker.sh}
    _ty_string "$name" || return
    _ty_by=$_ty_json
}

_ty_lane_json() { # lane -> _ty_kind and _ty_assignee as JSON; the last one is remembered
    [ "$_ty_lane_known" != "$1" ] || return 0
    local plain=${1%%~*} kind='' # ~ and a digest: the lane of a mission
    kind=${plain#?-}
    _ty_decode "${kind%%@*}" || return
    _ty_kind="\"$_ty_text\""
    _ty_assignee=null
    case $plain in
        *@*)
            _ty_decode "${plain#*@}" && _ty_string "$_ty_text" || return
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
