# ---- checks ------------------------------------------------------------------------------------------------------------

# May the owner of the yard.json at standard input have this user run commands? Only this user and root may. Everyone who can
# write a yard can put another yard.json there, and must not run commands as its other users.
_ty_is_trusted() {
    local status='' file=/dev/stdin
    [ -e "$file" ] || file=$_ty_root/yard.json # no /proc here
    [ ! -L "$_ty_root/yard.json" ] && status=$(stat -L -c '%u %a' -- "$file" 2>/dev/null) || return 1
    [ -O "$file" ] || [ "${status% *}" = 0 ] || return 1
    [ -z "$_ty_shared" ] || case $status in *[2367] | *[2367]?) return 1 ;; esac
}

# Print the check that each file asks for, or an empty line. Python writes the name before the data, which may be long. In a
# file that was dropped the name may stand anywhere.
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

_ty_learn_checks() { # files in todo/ that ask for checks -> _ty_known_checks: the names of those whose check the yard has; ! before the others
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
        name=${names%%"$_ty_lf"*} names=${names#*"$_ty_lf"}
        case $_ty_checks in
            *"$_ty_lf$name$_ty_lf"*) _ty_known_checks="$_ty_known_checks $1 " ;;
            *) _ty_known_checks="$_ty_known_checks !$1 " ;;
        esac
        shift
    done
}

# The check that the split task asks for -> _ty_check, its name, and _ty_text, the words of its command, quoted for a shell. 7 if
# there is none. A Python worker gives its command the check in TASKYARD_CHECK.
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
    _ty_refuse 7 "the task asks for the check '$_ty_check', which this yard does not know; have its command put into yard.json, or let a worker that knows it do the task"
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

_ty_verify_by_hand() { # result: runs the check of the claim that was just found; 7 if it does not pass
    local output='' code=0
    _ty_find_check "$_ty_root/processing/$_ty_name" && _ty_checked_input "$_ty_file" "$1" || return
    eval "set -- $_ty_text" # words that awk has quoted
    output=$(
        exec 3>&1 >/dev/null 2>&3 3>&- <<END
$_ty_json
END
        exec "$@"
    ) || code=$?
    [ $code -ne 0 ] || return 0
    _ty_report "the check '$_ty_check' did not pass: exit $code${output:+: $output}"
    _ty_refuse 7 "the task is still yours: put it right and say complete_task again, or say fail_task"
}
