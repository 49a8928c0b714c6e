# ---- the other verbs ---------------------------------------------------------------------------------------------------

_ty_fail() { # handle reason
    [ $# -eq 2 ] && [ -n "$2" ] || _ty_refuse 2 "usage: fail_task HANDLE REASON" || return
    [ ${#2} -le 65536 ] || set -- "$1" "$(printf '%.65536s' "$2")"
    _ty_end_failed "$1" "$2"
}

_ty_verify() { # handle
    _ty_handle "$1" || return
    _ty_find && return
    _ty_is_there "$_ty_h_id" || _ty_refuse 6 "no task has the id $_ty_h_id" || return
    _ty_refuse 4 "the claim $1 is over"
}

_ty_help() { # the head of this file, from its name on
    awk '!/^#/ { exit } /^# taskyard.sh: / { begun = 1 } begun { sub(/^# ?/, ""); print }' <"$0"
}

add_task() { _ty_call _ty_add "$@"; }
heartbeat() { _ty_call _ty_of_claim _ty_beat 1 "$@"; }
note_task() { _ty_call _ty_note "$@"; }
verify_ownership() { _ty_call _ty_of_claim _ty_verify 1 "$@"; }
fail_task() { _ty_call _ty_of_claim _ty_fail 2 "$@"; }
release_task() { _ty_call _ty_of_claim _ty_end_released 1 "$@"; }
resume() { _ty_call _ty_resume "$@"; }
reap_stale() { _ty_call _ty_reap_stale "$@"; }

# In a process of its own, so that its traps and options are not the script's. Not as part of "A || B": there set -e would have
# no effect, nor in a function that the script gives as CMD.
process_loop() (
    _ty_flags=$-
    IFS=" 	$_ty_lf"
    set +efuC
    _ty_loop "$@"
)

if [ -n "$_ty_is_program" ]; then
    # Finish what a verb began before the shell had read all. The verb, repeated below, then finds it done.
    # shellcheck disable=SC2086  # a function and its words
    [ -z "$_ty_rest" ] || _ty_call $_ty_rest
    case ${1-} in
        add_task | claim_task | heartbeat | note_task | verify_ownership | complete_task | fail_task | release_task | resume | reap_stale)
            "$@"
            exit
            ;;
        process_loop) # in this process, so that signals to it reach the loop
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
    _ty_report "there is no verb '${1-}'; see taskyard.sh --help"
    exit 2
fi
