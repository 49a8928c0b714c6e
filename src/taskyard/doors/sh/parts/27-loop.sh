# ---- the loop ----------------------------------------------------------------------------------------------------------

# A claim's folder keeps the pid of its loop and when that started. So a loop of the same name knows whether the one before
# it is gone.
_ty_started() { # pid -> _ty_text: when this kernel started it; empty if it is gone, - where there is no /proc
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

_ty_is_mine() { # file in processing/, split: did a loop of this name hold it that is gone?
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

_ty_next_of_mine() { # takes a claim again that a loop of this name held; 1: there is none
    local path=''
    # shellcheck disable=SC2031
    [ -n "${TASKYARD_WORKER:-${AGENT_ID-}}" ] || return 1
    for path in "$_ty_root"/processing/*.json; do
        _ty_split "${path##*/}" && [ -n "$_ty_nonce" ] && _ty_is_mine || continue
        _ty_text=${_ty_lane%%~*} && _ty_text=${_ty_text#?-}
        case $_ty_wanted in '' | *" ${_ty_text%%@*} "*) ;; *) continue ;; esac
        _ty_resume_one "$path" && return
    done
    return 1
}

# Is any task left for this loop? Tasks that are not for shells do not count, but are reported.
_ty_is_left() {
    local path='' others=0
    for path in "$_ty_root"/todo/*/*/*.json "$_ty_root"/processing/*.json "$_ty_root"/waiting/*/*/*.json; do
        _ty_split_path "$path" && _ty_serves "$_ty_lane" && [ -e "$path" ] || continue
        [ -z "$_ty_nonce" ] || return 0
        [ -z "$_ty_verified" ] || [ -z "$_ty_checks" ] || _ty_learn_checks "$path" # a task in waiting/ was not read yet
        case "$_ty_uses$_ty_deadline $_ty_verified $_ty_known_checks" in
            ' v '*" ${path##*/} "* | '  '*) return 0 ;;
        esac
        others=$((others + 1))
    done
    [ $others -eq 0 ] || _ty_report "$others tasks that use something, have a deadline, or ask for a check that is not in yard.json, are left to Python workers"
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
            -*) _ty_refuse 2 "process_loop has no option $1" || return ;;
            *) break ;;
        esac
    done
    [ $# -gt 0 ] || _ty_refuse 2 "usage: process_loop [--kind KIND]... [--once|--drain] [--] CMD..." || return
    _ty_open || return
    _ty_wanted=$kinds _ty_ahead=32
    [ -n "${_ty_usual_lease-}" ] || _ty_usual_lease=60000
    command -v -- "$1" >/dev/null || _ty_refuse 2 "there is no command $1" || return
    # A busybox that prefers its applets shows no path for them, so a program may have none.
    case $(LC_ALL=C && type "$1") in
        "$1 is a function"* | "$1 is a "*"shell function"* | "$1 is a "*"shell builtin"*) _ty_runs=here ;;
        *) if command -v setsid >/dev/null; then _ty_runs=alone; else _ty_runs="command"; fi ;;
    esac
    _ty_afresh=
    ! env --default-signal=INT,QUIT true 2>/dev/null || _ty_afresh='env --default-signal=INT,QUIT --'
    _ty_self=
    { read -r _ty_self _; } 2>/dev/null </proc/self/stat || _ty_self=$(exec sh -c 'echo $PPID')
    _ty_stop=
    trap _ty_stop=1 TERM INT HUP
    while [ -z "$_ty_stop" ]; do
        kill -s 0 $$ 2>/dev/null || return 1 # the script that called process_loop is gone
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
                _ty_report_left
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
    _ty_refuse 1 "failed for good: $failed"
}
