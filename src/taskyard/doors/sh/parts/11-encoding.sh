# ---- words that are not plain ------------------------------------------------------------------------------------------

# For awk, which takes bytes for characters here: rest_of() leaves out the well-formed characters of several bytes, and
# is_line() refuses control characters and line separators.
_ty_awk_text='
    function rest_of(text) {
        gsub("[\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277]", "", text)
        return text
    }
    function is_line(text) { return rest_of(text) !~ "[\001-\037\177-\377]" && text !~ "\302[\200-\237]|\342\200[\250\251]" }'

_ty_encode_bytes() { # as _ty_encode
    _ty_text=$(printf '%s\n' "$1" | LC_ALL=C awk "$_ty_awk_text"'
        NR > 1 || !is_line($0) { bad = 1; exit }
        {
            for (i = 1; i < 256; i++) code[sprintf("%c", i)] = sprintf("%%%02X", i)
            for (i = 1; i <= length($0); i++) { c = substr($0, i, 1); text = text (c ~ /[A-Za-z0-9_-]/ ? c : code[c]) }
        }
        END { if (bad || length(text) > 60) exit 1; print text }') || return 2
}

_ty_decode_bytes() { # as _ty_decode
    local rest=$1 out='' hex='' code=''
    while :; do
        case $rest in *%[0-9A-F][0-9A-F]*) ;; *) break ;; esac
        out=$out${rest%%\%*}
        rest=${rest#*\%}
        hex=${rest%"${rest#??}"}
        rest=${rest#??}
        code=$((0x$hex))
        out="$out\\0$((code / 64))$((code / 8 % 8))$((code % 8))"
    done
    _ty_text=$(printf '%b' "$out$rest")
}

_ty_quote() { # as _ty_string
    _ty_json=$(printf '%s\n' "$1" | LC_ALL=C awk "$_ty_awk_text"'
        BEGIN { for (i = 1; i < 32; i++) code[sprintf("%c", i)] = sprintf("\\u%04x", i); code["\177"] = "\\u007f"; code["\t"] = "\\t" }
        {
            if (NR > 1) text = text "\\n"
            rest = $0
            gsub(/\\/, "\\\\&", rest); gsub(/"/, "\\\\&", rest)
            while (match(rest, "[\001-\037\177]")) {
                text = text substr(rest, 1, RSTART - 1) code[substr(rest, RSTART, 1)]
                rest = substr(rest, RSTART + 1)
            }
            text = text rest
        }
        END {
            if (rest_of(text) ~ "[\200-\377]") gsub("[\200-\377]", "?", text)  # not UTF-8
            print "\"" text "\""
        }')
}
