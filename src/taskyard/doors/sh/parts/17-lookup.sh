# ---- where a task is ---------------------------------------------------------------------------------------------------

# Call the function with each path at which tasks of this id stand, until it succeeds. The star behind the segment has the
# shell list the folder above: else the client of a file server may believe for half a minute that a segment is missing.
_ty_look_for() { # function id, in which ? stands for any character
    local path=''
    # shellcheck disable=SC2231  # a pattern
    for path in "$_ty_root/blocked/$_ty_h_seg"*/$2.* "$_ty_root"/todo/*/"$_ty_h_seg"*/$2.* \
        "$_ty_root"/waiting/*/"$_ty_h_seg"*/$2.* "$_ty_root/processing/"$2.* \
        "$_ty_root/cancelled/$_ty_h_seg"*/$2.* "$_ty_root/failed/$_ty_h_seg"*/$2.* "$_ty_root/done/$_ty_h_seg"*/$2.* \
        "$_ty_root/todo/"$2.*-* "$_ty_root"/todo/*_$2.* "$_ty_root"/processing/*_$2.* "$_ty_root/failed/"$2.* "$_ty_root/done/"$2.*; do
        [ -e "$path" ] && "$1" "$path" "$2" && return
    done
    return 1
}

_ty_keep_path() { _ty_found=$1; }

_ty_is_there() { # id, in _ty_h_seg -> _ty_found; five passes, because a task that moves may slip past one
    local pass=0
    while [ $pass -lt 5 ]; do
        _ty_look_for _ty_keep_path "$1" && return
        pass=$((pass + 1))
    done
    return 1
}

_ty_keep_id() { # path pattern -> _ty_text, ids with a space behind each; 1, so that the search goes on
    local id=${1##*/}
    # shellcheck disable=SC2295  # a pattern
    id=${id#"${id%%$2.*}"}
    id=${id%%.*}
    case " $_ty_text" in *" $id "*) ;; *) ! _ty_is_id "$id" || _ty_text="$_ty_text$id " ;; esac
    return 1
}

# The one task whose short name _ty_is_short has read -> _ty_text, its id. 1: there is none. 6: there are several.
_ty_lengthen() { # word
    local fill='?????????????????' pass=0
    while [ $((${#fill} + ${#_ty_h_end})) -gt 17 ]; do fill=${fill#?}; done
    _ty_text=
    while [ $pass -lt 5 ] && [ -z "$_ty_text" ]; do
        _ty_look_for _ty_keep_id "$_ty_h_seg$fill$_ty_h_end"
        pass=$((pass + 1))
    done
    # shellcheck disable=SC2086  # ids
    set -- "$1" $_ty_text
    _ty_text=${_ty_text% }
    [ $# -gt 2 ] || return $((2 - $#))
    _ty_refuse 6 "$1 is the end of $(($# - 1)) tasks by now: $_ty_text; say the whole id of the one that is meant"
}

_ty_ended() { # state: has this claim ended its task so?
    local path=''
    for path in "$_ty_root/$1/$_ty_h_seg"*/"$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce".*json; do
        [ ! -e "$path" ] || return 0
    done
    return 1
}

_ty_gave_up() { # outcome: did the claim's own worker end it so?
    local record=$_ty_root/results/$_ty_h_seg/$_ty_handle
    [ -e "$record.$1.json" ] && [ ! -e "$record.crash.json" ] && [ ! -e "$record.cancelled.json" ] && [ ! -e "$record.resumed.json" ]
}

_ty_is_slip() { # nonce: does it differ from the handle's in one or two characters? Nonces are random, so two claims do not
    [ "$1" != "$_ty_h_nonce" ] && awk -v one="$1" -v other="$_ty_h_nonce" 'BEGIN {
        wide = length(other)
        for (j = 0; j <= wide; j++) row[j] = j
        for (i = 1; i <= length(one); i++) {
            before = row[0]
            row[0] = i
            for (j = 1; j <= wide; j++) {
                least = before + (substr(one, i, 1) != substr(other, j, 1))
                before = row[j]
                if (row[j] + 1 < least) least = row[j] + 1
                if (row[j - 1] + 1 < least) least = row[j - 1] + 1
                row[j] = least
            }
        }
        exit row[wide] > 2
    }'
}

_ty_refuse_mistyped() { # 2 if the task has had a claim of this fence whose nonce differs a little
    local path='' rest='' start=$_ty_h_id.$_ty_h_fence.
    for path in "$_ty_root/processing/$start"*.json "$_ty_root/done/$_ty_h_seg/$start"*.json \
        "$_ty_root/failed/$_ty_h_seg/$start"*.json "$_ty_root/results/$_ty_h_seg/$start"*.json; do
        case $path in
            */results/*.stale-*) continue ;;
            */results/*) rest=${path##*/"$start"} rest=${rest%%.*} ;;
            *) _ty_split "${path##*/}" && rest=$_ty_nonce || continue ;;
        esac
        [ "$rest" != "$_ty_h_nonce" ] || return 0
        case $rest in *[!0-9a-hjkmnp-tv-z]* | '') continue ;; esac
        ! _ty_is_slip "$rest" || _ty_refuse 2 "the handle $_ty_handle is mistyped: the last part of that claim's handle differs from it a little; nothing was changed" || return
    done
}
