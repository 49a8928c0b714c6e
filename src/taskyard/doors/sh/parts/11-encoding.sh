# ---- words that are not plain ------------------------------------------------------------------------------------------

_ty_upper() { # a hex digit -> _ty_text
    case $1 in
        a) _ty_text=A ;; b) _ty_text=B ;; c) _ty_text=C ;; d) _ty_text=D ;; e) _ty_text=E ;; f) _ty_text=F ;;
        *) _ty_text=$1 ;;
    esac
}

_ty_encode_bytes() { # as _ty_encode
    local byte='' code='' out='' more=0 head=''
    # shellcheck disable=SC2046  # bytes in hex
    set -- $(printf '%s' "$1" | od -An -v -tx1)
    for byte; do
        if [ "$more" -gt 0 ]; then # within a character of several bytes
            case $head$byte in
                e0[89]? | ed[ab]? | f0[8]? | f4[9ab]? | c2[89]?) return 2 ;; # too long, surrogates, too high, C1 controls
                *[89ab]?) ;;
                *) return 2 ;;
            esac
            case $out$byte in *%E2%80a[89]) return 2 ;; esac # line and paragraph separators
            more=$((more - 1)) head=
        else
            case $byte in
                [01]? | 7f | [89ab]? | c[01] | f[5-9a-f]) return 2 ;;
                c? | d?) more=1 ;;
                e?) more=2 ;;
                f?) more=3 ;;
            esac
            head=$byte
        fi
        case $byte in
            2d | 3[0-9] | 4[1-9a-f] | 5[0-9af] | 6[1-9a-f] | 7[0-9a])
                code=$((0x$byte))
                out="$out\\0$((code / 64))$((code / 8 % 8))$((code % 8))"
                ;;
            *)
                _ty_upper "${byte%?}"
                out="$out%$_ty_text"
                _ty_upper "${byte#?}"
                out="$out$_ty_text"
                ;;
        esac
    done
    [ "$more" -eq 0 ] || return 2
    _ty_text=$(printf '%b' "$out")
    [ ${#_ty_text} -le 60 ] || return 2
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
    _ty_json=$(printf '%s\n' "$1" | LC_ALL=C awk '
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
            bare = text
            gsub("[\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277]", "", bare)
            if (bare ~ "[\200-\377]") gsub("[\200-\377]", "?", text)  # not UTF-8
            print "\"" text "\""
        }')
}
