# ---- words -------------------------------------------------------------------------------------------------------------

_ty_report() { # text, to standard error; without control characters, because a stranger may have written the text
    case $* in
        *[[:cntrl:]]*) printf 'taskyard.sh: %s\n' "$*" | tr '\001-\010\013-\037\177' '?' >&2 ;;
        *) printf 'taskyard.sh: %s\n' "$*" >&2 ;;
    esac
}

_ty_refuse() { # exit-code text
    _ty_report "$2"
    return "$1"
}

_ty_trouble() { # text: refuses with 8, and adds what the last tool printed
    _ty_refuse 8 "$1${_ty_error:+: $_ty_error}"
}

_ty_base32() { # number width -> _ty_text
    local n=$1 width=$2 digit=''
    _ty_text=
    while [ "$width" -gt 0 ]; do
        case $((n & 31)) in
            10) digit=a ;; 11) digit=b ;; 12) digit=c ;; 13) digit=d ;; 14) digit=e ;; 15) digit=f ;;
            16) digit=g ;; 17) digit=h ;; 18) digit=j ;; 19) digit=k ;; 20) digit=m ;; 21) digit=n ;;
            22) digit=p ;; 23) digit=q ;; 24) digit=r ;; 25) digit=s ;; 26) digit=t ;; 27) digit=v ;;
            28) digit=w ;; 29) digit=x ;; 30) digit=y ;; 31) digit=z ;; *) digit=$((n & 31)) ;;
        esac
        _ty_text=$digit$_ty_text
        n=$((n >> 5)) width=$((width - 1))
    done
}

# -> _ty_word, 40 random bits as eight characters, and _ty_chance, 31 more as a number. Every use draws anew: a subshell that
# went on with its parent's bits would take the parent's claim for its own. The kernel's uuid costs no process.
_ty_draw() {
    local uuid=''
    { read -r uuid </proc/sys/kernel/random/uuid; } 2>/dev/null
    case $uuid in
        ????????-????-????-????-????????????) ;;
        *)
            # shellcheck disable=SC2046  # fourteen bytes, to be joined
            set -- $(od -An -v -N14 -tx1 /dev/urandom)
            uuid=$1$2$3$4-$5$6-$7$8-$9${10}-${11}${12}${13}${14}${1}${2}
            ;;
    esac
    _ty_chance=$((0x${uuid%%-*} & 0x7fffffff))
    uuid=${uuid##*-}
    _ty_base32 $((0x${uuid%??})) 8
    _ty_word=$_ty_text
}

_ty_encode() { # word -> _ty_text, as it stands in names; 2 if the word is not allowed
    case $1 in
        '') return 2 ;;
        *[!A-Za-z0-9_-]*)
            ! _ty_unread || return 100
            _ty_encode_bytes "$1"
            return
            ;;
    esac
    _ty_text=$1
    [ ${#1} -le 60 ] || return 2
}

_ty_decode() { # a word in a name -> _ty_text
    case $1 in
        *%*)
            ! _ty_unread || return 100
            _ty_decode_bytes "$1"
            ;;
        *) _ty_text=$1 ;;
    esac
}

_ty_string() { # text -> _ty_json, a JSON string
    case $1 in
        *[!\ -~]* | *\"* | *\\*)
            ! _ty_unread || return 100
            _ty_quote "$1"
            ;;
        *) _ty_json="\"$1\"" ;;
    esac
}
