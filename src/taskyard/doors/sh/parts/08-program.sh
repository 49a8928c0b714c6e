# ---- how it is run -----------------------------------------------------------------------------------------------------

# A script that sources this keeps its options and IFS. A verb that fails does not end a script without set -e.
_ty_call() { # function arguments
    local IFS=" 	$_ty_lf" code=0 flags=$-
    set +fuC
    "$@" || code=$?
    case $flags in *f*) set -f ;; esac
    case $flags in *u*) set -u ;; esac
    case $flags in *C*) set -C ;; esac
    return $code
}

_ty_of_claim() { # function most-words words: the first word is the handle; without words it is $TASKYARD_CLAIM
    local verb=$1 most=$2
    shift 2
    # shellcheck disable=SC2031
    [ $# -gt 0 ] || [ -z "${TASKYARD_CLAIM-}" ] || set -- "$TASKYARD_CLAIM"
    [ $# -ge 1 ] && [ $# -le "$most" ] || _ty_refuse 2 "this needs the handle of a claim" || return
    _ty_open && "$verb" "$@"
}

complete_task() { _ty_call _ty_of_claim _ty_complete 2 "$@"; }

# Is this file run, under any name, or does a script source it? Then $0 is the script's own file.
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

_ty_at_once() { # verb words: runs the verb, if the words begin with it, before the shell reads on
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
