# ---- where the yard is, and what is in its yard.json -------------------------------------------------------------------

_ty_nearest() { # folder -> _ty_text
    local folder=$1 start=$1 line='' common=''
    while :; do
        _ty_text=${folder%/}/.taskyard
        [ -e "$_ty_text/yard.json" ] && return
        [ -d "$_ty_text" ] && [ ! -x "$_ty_text" ] && return # shut to this user, and one further up is another
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
            _ty_nearest "${PWD:-$(pwd)}" || _ty_refuse 2 "there is no yard here or above; name one in \$TASKYARD" || return
            ;;
        file:*)
            _ty_text=${_ty_text#file:}
            case $_ty_text in
                //localhost/* | ///*) _ty_text=/${_ty_text#//*/} ;;
                //*) _ty_refuse 2 "a file: URL names a path on this machine: $TASKYARD" || return ;;
            esac
            _ty_decode "$_ty_text"
            ;;
        memory:* | [A-Za-z]*://*) _ty_refuse 2 "the shell client knows yards in directories only, not $_ty_text" || return ;;
    esac
}

# Print "no" and what is wrong, or "ok", durability, attempts, crashes, backoff, cap, lease, the kind of place, settle and perhaps
# group; then the names of checks, one a line. A yard on two mounts is wrong: mv copies from one to the other without an error.
_ty_read_yard() {
    _TY_ROOT=$_ty_root LC_ALL=C awk "$_ty_awk"'
        function number(name, fallback, factor, least, most,   v, whole) {
            v = val["/settings/" name]
            if (v == "" || v == "nnull") return fallback
            if (v !~ /^n[0-9][0-9.eE+-]*$/ || (v = substr(v, 2) * factor) < least || v > most) { wrong = name; return fallback }
            whole = int(v)
            return sprintf("%.0f", whole < v ? whole + 1 : whole)
        }
        function has_unknown_features(   i) {
            if (val["/features"] != "A") return val["/features"] !~ /^(a|nnull|nfalse)?$/
            for (i = 0; ("/features/" i) in val; i++) if (val["/features/" i] != "smissions") return 1
            return 0
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
            else if (val["/taskyard"] != "n1" || has_unknown_features()) said = "its format or features are unknown to this version of taskyard.sh"
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

_ty_one_mount() { # for systems that do not list their mounts
    # shellcheck disable=SC2046  # mount points
    set -- $(df -P "$_ty_root" "$_ty_root"/*/ 2>/dev/null | awk 'NR > 1 && !seen[$NF]++ { print NR }')
    [ $# -eq 1 ]
}

_ty_examine() { # -> all that _ty_read_plainly and _ty_recall would have set
    local said=''
    set -- "$_ty_root/yard.json"
    [ ! -r /proc/self/mountinfo ] || set -- "$@" /proc/self/mountinfo
    said=$(_ty_read_yard "$@") || said="no its yard.json cannot be read"
    case $said in
        ok*) ;;
        *) _ty_refuse 8 "the yard $_ty_root cannot be used: ${said#no }" || return ;;
    esac
    _ty_checks=${said#"${said%%"$_ty_lf"*}"} said=${said%%"$_ty_lf"*} # the first line, and the line feed and all behind it
    [ -z "$_ty_checks" ] || _ty_checks=$_ty_checks$_ty_lf
    # shellcheck disable=SC2086  # ten words, or nine
    set -- $said
    _ty_durability=$2 _ty_set_attempts=$3 _ty_set_crashes=$4 _ty_set_backoff=$5 _ty_set_cap=$6 _ty_set_lease=$7 _ty_place=$8
    _ty_settle=$9 _ty_shared=
    [ $# -eq 9 ] || _ty_share
    # shellcheck disable=SC2094  # nothing is written
    [ -z "$_ty_checks" ] || _ty_is_trusted <"$_ty_root/yard.json" || _ty_checks=
    [ "$_ty_place" != unknown ] || _ty_one_mount || _ty_refuse 8 "the yard $_ty_root cannot be used: it is more than one mount" || return
    if [ "$_ty_place" != unknown ] && _ty_uptime; then _ty_place_up=$_ty_up; else _ty_place_up=; fi
}
