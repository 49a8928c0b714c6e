# ---- what a dropped file says ------------------------------------------------------------------------------------------

# Read a dropped file, and print lines: take, wait (it is no object yet) or leave; then the reason why it is left, or its kind,
# priority, assignee, mission, the parts of its name, its key, and with a key the rest of the task's file. A file that Python might
# read in another way is left to Python, which knows all letters and may set files aside.
_ty_read_dropped() { # size, the file at standard input
    _TY_SIZE=$1 LC_ALL=C awk "$_ty_awk"'
        function leave(reason) { if (why == "") why = reason }
        function given(name) { return val["/" name] != "" && val["/" name] != "nnull" }
        function either(one, other) { if (given(one) && given(other)) leave("it has " one " and " other); return given(other) ? other : one }
        function line(name, most,   said, letters) { # a text of one line
            if (!given(name)) return ""
            said = length(val["/" name]) <= 6 * most ? text("/" name) : ""
            letters = said; gsub("[\200-\277]", "", letters)
            if (said == "" || bad || length(letters) > most || !is_line(said)) leave("its " name " may not be allowed")
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
        BEGIN { RS = "\001" } # as a whole: some awks read no further than to a NUL, and the length shows it
        { bytes += length($0); n = split($0, lines, "\n"); for (i = 1; i <= n; i++) scan(lines[i]) }
        END {
            whole = is_whole()
            if (!odd && (!whole || val[""] != "o" || bytes != ENVIRON["_TY_SIZE"])) { print "wait"; exit }
            if (odd || size > (floats ? 131072 : 1048576)) leave("its data may be more than a task can hold")
            if ("/taskyard" in val) leave("it is a file of a yard")
            n = split("after uses notBefore not_before expires timeout review", names, " ")
            for (i = 1; i <= n; i++) if (given(names[i]) && val["/" names[i]] != (i < 3 ? "a" : "")) leave("it has " names[i])
            if (!("/kind" in val || "/operation" in val || "/taskId" in val || "/task_id" in val || "/data" in val)) {
                for (i in val) if (i ~ "^(/[^/]*)?/tasks$" && val[i] == "A") leave("it may be many tasks")
            }
            kind = text(given("kind") ? "/kind" : "/operation")
            if (!given("kind") && (kind == "" || kind !~ "[\200-\377]" && (!is_kind(kind) || length(kind) > 60))) kind = "default"
            if (!is_kind(kind)) leave("its kind may not be allowed")
            priority = given("priority") ? number("priority", 0, 9) : 5
            attempts = number(either("maxAttempts", "max_attempts"), 1, 999)
            key = either("taskId", "task_id")
            if (val["/" key] !~ /^n-?[0-9]/) key_text = line(key, 256)
            else if ((key_text = substr(val["/" key], 2)) !~ /^(0|-?[1-9][0-9]*)$/ || length(key_text) > 256) leave("its " key " may not be allowed")
            lease = milliseconds(); assignee = line("assignee", 60); line("title", 500); mission = line("mission", 256); line("verify", 256)
            if (why != "") { print "leave\n" why; exit }
            printf "take\n%s\n%s\n%s\n%s\n%s%s%s\n%s\n", kind, priority, assignee, mission, (attempts == "" ? "" : ".m" attempts), (lease == "" ? "" : ".t" lease), (given("verify") ? ".v" : ""), key_text
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

# -> _ty_d_kind, _ty_d_priority, _ty_d_own, _ty_d_key, _ty_d_rest, and _ty_lane. 1: it is left, for the reason in _ty_why. 3: it may
# still be arriving.
_ty_judge_dropped() { # file size
    local said='' verdict='' assignee='' mission=''
    said=$( { _ty_read_dropped "$2" <"$1"; } 2>/dev/null) || said="wait"
    {
        read -r verdict
        IFS= read -r _ty_d_kind
        read -r _ty_d_priority
        IFS= read -r assignee
        IFS= read -r mission
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
    if [ -n "$assignee" ]; then
        _ty_why="its assignee may not be allowed"
        _ty_encode "$assignee" || return 1
        _ty_lane=$_ty_lane@$_ty_text
    fi
    [ -n "$mission" ] || return 0
    _ty_why="its kind or assignee is too long for a task with a mission"
    said=${_ty_lane#?-} && said=${said%%@*}
    [ ${#said} -le 49 ] && [ $((${#_ty_lane} - ${#said})) -le 61 ] || return 1
    _ty_why="its mission needs sha256sum, which is not here"
    mission=$(printf '%s' "$mission" | sha256sum) || return 1
    _ty_lane=$_ty_lane~${mission%"${mission#????????????}"}
}
