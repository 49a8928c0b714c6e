# ---- names -------------------------------------------------------------------------------------------------------------

_ty_is_number() { # text
    case $1 in '' | *[!0-9]* | 0?* | ????????????????*) return 1 ;; esac
}

_ty_is_id() { # text
    case $1 in
        *[!0-9a-hjkmnp-tv-z]*) return 1 ;;
        ?????????????????????) ;;
        *) return 1 ;;
    esac
}

_ty_is_short() { # text, such as 0-kf12 -> _ty_h_seg and _ty_h_end (short names, in PROTOCOL.md)
    local word=$1
    case $word in
        *[!0-9A-Za-z-]* | *-*-* | ??????????????????????????*) return 1 ;;
        ?-????* | ??-????* | ???-????* | ????-????*) ;;
        *) return 1 ;;
    esac
    case $word in *[A-Z]*) word=$(printf %s "$word" | tr '[:upper:]' '[:lower:]') ;; esac
    _ty_h_seg=000${word%%-*} _ty_h_end=${word#*-}
    _ty_h_seg=${_ty_h_seg#"${_ty_h_seg%????}"}
    case $_ty_h_seg$_ty_h_end in *[!0-9a-hjkmnp-tv-z]* | ??????????????????????*) return 1 ;; esac
}

# Split a task's name into _ty_id, _ty_seg, _ty_fence, _ty_errors, _ty_crashes, _ty_own, _ty_limit, _ty_own_lease, _ty_body, _ty_uses,
# _ty_verified, _ty_deadline, _ty_lane, _ty_due, _ty_lease, _ty_claim (from .l on), _ty_holder and _ty_nonce. 1 if it is no task's name.
_ty_split() { # name [lane]
    local IFS=.
    _ty_lane=${2-} && _ty_lane=${_ty_lane%%+*} # + and a digest: a folder of those that wait for something in use
    _ty_own='' _ty_limit='' _ty_own_lease='' _ty_body='' _ty_uses='' _ty_verified='' _ty_deadline='' _ty_due='' _ty_lease='' _ty_claim='' _ty_holder='' _ty_nonce=''
    case $1 in *.json) ;; *) return 1 ;; esac
    case $1 in *[!A-Za-z0-9_%@~.-]*) return 1 ;; esac
    # shellcheck disable=SC2086  # split at dots
    set -- ${1%.json}
    [ $# -ge 4 ] && _ty_is_id "$1" && _ty_is_number "$2" || return 1
    _ty_id=$1 _ty_fence=$2 _ty_errors=${3#e} _ty_crashes=${4#c}
    _ty_seg=${1%?????????????????}
    [ "$3" = "e$_ty_errors" ] && [ "$4" = "c$_ty_crashes" ] && _ty_is_number "$_ty_errors" && _ty_is_number "$_ty_crashes" || return 1
    shift 4
    case ${1-} in x) _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in b????????) _ty_body=${1#b} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in m[0-9]*) _ty_limit=${1#m} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in t[0-9]*) _ty_own_lease=${1#t} _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in [uwUW]) _ty_uses=u ;; esac
    case ${1-} in [vwVW]) _ty_verified=v ;; esac
    case ${1-} in [UVWY]) _ty_deadline=$1 ;; esac
    case ${1-} in [uvwUVWY]) _ty_own=$_ty_own.$1 && shift ;; esac
    case ${1-} in [0-9]-?*) _ty_lane=$1 && shift ;; esac
    [ -n "$_ty_lane" ] || return 1
    [ $# -gt 0 ] || return 0
    case $1 in
        d*)
            _ty_due=${1#d}
            _ty_is_number "$_ty_due" && [ $# -eq 1 ]
            return
            ;;
        l*) ;;
        *) return 1 ;;
    esac
    _ty_lease=${1#l} _ty_claim=.$1
    _ty_is_number "$_ty_lease" || return 1
    shift
    case ${1-} in L) _ty_claim=$_ty_claim.L && shift ;; esac
    case ${1-} in ?*-????????[0-9]*) ;; *) return 1 ;; esac
    _ty_claim=$_ty_claim.$1
    _ty_holder=${1%-*} _ty_nonce=${1##*-}
    [ $# -eq 1 ] || { [ $# -eq 2 ] && [ "$2" = r ]; }
}

_ty_split_path() { # path of a task, as _ty_split
    local lane=${1#"$_ty_root/todo/"}
    [ "$lane" != "$1" ] || lane=
    _ty_split "${1##*/}" "${lane%%/*}"
}

# Is it there, by a fresh listing? The client of a file server may still show what is gone.
_ty_listed() { # path
    local path=''
    for path in "${1%.json}"*; do
        [ "$path" != "$1" ] || return 0
    done
    return 1
}

_ty_handle() { # handle -> _ty_handle, _ty_h_id, _ty_h_seg, _ty_h_fence, _ty_h_nonce
    local rest=''
    _ty_handle=$1
    _ty_h_id=${1%%.*} rest=${1#*.}
    _ty_h_fence=${rest%%.*} _ty_h_nonce=${rest#*.}
    ! _ty_is_id "$_ty_h_id" || ! _ty_is_number "$_ty_h_fence" || [ ${#1} -gt 54 ] || case $_ty_h_nonce in
        *[!0-9a-hjkmnp-tv-z]*) ;;
        ????????[0-9]*) _ty_h_seg=${1%"${1#????}"} && return 0 ;;
    esac
    ! _ty_is_id "$1" && ! _ty_is_short "$1" || _ty_refuse 2 "$1 is the id of a task; this needs the handle that claim_task printed, id.fence.nonce; if that is lost, 'resume' gives this worker's claims new ones" || return
    _ty_refuse 2 "not a claim's handle: $1"
}

_ty_find() { # the claim of _ty_handle -> _ty_name, split; 1 if it is not held any more
    local path=''
    for path in "$_ty_root/processing/$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce.json"; do
        _ty_name=${path##*/}
        _ty_split "$_ty_name" && [ "$_ty_nonce" = "$_ty_h_nonce" ] && return 0
    done
    return 1
}
