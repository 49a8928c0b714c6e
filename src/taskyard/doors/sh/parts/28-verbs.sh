# ---- the other verbs ---------------------------------------------------------------------------------------------------

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
