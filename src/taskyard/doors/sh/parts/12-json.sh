# ---- JSON --------------------------------------------------------------------------------------------------------------

# A reader of JSON, for awk. scan() takes the next line of a text: no token goes over the end of a line. Then is_whole() puts
# the values into val, by path: s before a string (as it is written), n before a number or word, o for an object, a for an
# empty list, A for another. It sets bad if the text is no JSON, and odd if Python cannot keep it: half of a character, a
# number that is too large, more than 200 levels. No long text is shortened step by step, which would take quadratic time.
# \001 stands for two backslashes, \002 for \".
_ty_awk=$_ty_awk_text'
    function scan(line,   bare, piece, word, n, m, i, j) {
        nul = sprintf("%c", 0); size += length(line) + 1; bare = rest_of(line)
        if (bare ~ "[\001-\010\013\014\016-\037\200-\377]" || (length(nul) && index(line, nul))) bad = 1
        gsub(/\\\\/, "\001", line); gsub(/\\"/, "\002", line)
        bare = line; gsub("\\\\([/bfnrt]|u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F])", "", bare)
        if (index(bare, "\\")) bad = 1
        bare = line; gsub(/\\u[dD][89abAB]..\\u[dD][c-fC-F]../, "", bare)
        if (bare ~ /\\u[dD][89a-fA-F]/) odd = 1
        n = split(line, piece, "\"")
        if (n > 0 && n % 2 == 0) bad = 1
        for (i = 1; i <= n; i++) {
            if (i % 2) {
                gsub(/[][{},:]/, " & ", piece[i])
                m = split(piece[i], word, /[ \t\r]+/)
                for (j = 1; j <= m; j++) if (word[j] != "") token[++last] = word[j]
            } else {
                token[++last] = "\"" piece[i]
                if (piece[i] ~ /[\t\r]/) bad = 1
            }
        }
    }
    function digits(text,   i, n) { for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", tolower(substr(text, i, 1))) - 1; return n }
    function letter(n) {
        if (n < 128) return sprintf("%c", n)
        if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
        if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
        return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
    }
    function plain(text,   out, c, n) {
        while (match(text, "[\\\\\001\002]")) {
            out = out substr(text, 1, RSTART - 1); c = substr(text, RSTART, 1); n = RSTART + 2
            if (c == "\001") { c = "\\"; n-- } else if (c == "\002") { c = "\""; n-- }
            else if ((c = substr(text, n - 1, 1)) == "u") {
                c = digits(substr(text, n, 4)); n += 4
                if (c >= 55296 && c < 56320) { c = 65536 + (c - 55296) * 1024 + digits(substr(text, n + 2, 4)) - 56320; n += 6 }
                if (c == 0) bad = 1
                c = letter(c)
            } else if (c == "n") c = "\n"; else if (c == "t") c = "\t"; else if (c == "r") c = "\r"
            else if (c == "b") c = "\b"; else if (c == "f") c = "\f"
            out = out c; text = substr(text, n)
        }
        return out text
    }
    function text(path) { return val[path] ~ /^s/ ? plain(substr(val[path], 2)) : "" }
    function is_whole(   i, t, want, depth, where, path, closing, n, key) { # without recursion, for which some awks have little room
        want = "value"
        for (i = 1; i <= last && !bad; i++) {
            t = token[i]
            if (want == "first" && t != closing[depth]) want = closing[depth] == "}" ? "key" : "value"
            if (want == "first" || want == "end" && t == closing[depth]) { where = path[depth--]; want = "end" }
            else if (want == "end") {
                if (t != "," || !depth) bad = 1
                want = closing[depth] == "}" ? "key" : "value"
                if (want == "value") where = path[depth] "/" ++n[depth]
                continue
            } else if (want == "key") {
                if (t !~ /^"/ || token[++i] != ":") bad = 1
                t = plain(substr(t, 2)); where = path[depth] "/" t; want = "value"
                if (depth == 1) { key = t; from[key] = i + 1 }
                if (path[depth] == "/settings/checks") checks = checks t "\n"
                continue
            } else if (t == "{" || t == "[") {
                val[where] = t == "{" ? "o" : "a"
                path[++depth] = where; closing[depth] = t == "{" ? "}" : "]"; n[depth] = 0; want = "first"
                if (depth > 200) bad = odd = 1
                if (t == "[") where = where "/0"
                continue
            } else {
                want = "end"
                if (t ~ /^"/) val[where] = "s" substr(t, 2)
                else if (t ~ /^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)$/) {
                    val[where] = "n" t
                    if (t ~ /[0-9][.eE]/) { floats = 1; if (t + 0 > 1.797e308 || t + 0 < -1.797e308) odd = 1 }
                    if (length(t) > 4000) odd = 1
                } else bad = 1
            }
            if (depth == 1) to[key] = i
            if (closing[depth] == "]") val[path[depth]] = "A"
        }
        return !bad && want == "end" && depth == 0
    }
    function show(first, final,   i, j, k, m, n, part, bit) { # these tokens, compact
        for (i = first; i <= final; i++) {
            n = split(token[i], part, "\001")
            for (j = 1; j <= n; j++) {
                if (j > 1) printf "%s", "\\\\"
                m = split(part[j], bit, "\002")
                for (k = 1; k <= m; k++) printf "%s%s", (k > 1 ? "\\\"" : ""), bit[k]
            }
            if (token[i] ~ /^"/) printf "\""
        }
    }'

_ty_value() { # file -> _ty_json, its JSON value on one line, compact; 2 if it holds none
    [ -r "$1" ] && [ ! -d "$1" ] || [ "$1" = - ] || _ty_refuse 2 "$1 cannot be read" || return
    if [ "$1" = - ]; then _ty_json=$(_ty_compact); else _ty_json=$(_ty_compact <"$1"); fi || _ty_refuse 2 "$1 holds no JSON value, or one of more than 1 MiB or 200 levels"
}

_ty_compact() {
    LC_ALL=C awk "$_ty_awk"'
        { scan($0) }
        END { if (!is_whole() || odd || size > 1048577) exit 1; show(1, last); print "" }'
}
