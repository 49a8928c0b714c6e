# ---- the loop ----------------------------------------------------------------------------------------------------------

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
