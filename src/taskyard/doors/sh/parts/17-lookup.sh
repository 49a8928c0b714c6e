# ---- where a task is ---------------------------------------------------------------------------------------------------

# The star behind the segment has the folder above listed: a client of a file server remembers for half a minute that a segment's
# folder was missing, and a listing has it forget that.
_ty_is_there() { # id: five passes, because a task that moves may slip past one
    local pass=0 path=''
    while [ $pass -lt 5 ]; do
        for path in "$_ty_root/blocked/$_ty_h_seg"*/"$1".* "$_ty_root"/todo/*/"$_ty_h_seg"*/"$1".* \
            "$_ty_root"/waiting/*/"$_ty_h_seg"*/"$1".* "$_ty_root/processing/$1".* \
            "$_ty_root/cancelled/$_ty_h_seg"*/"$1".* "$_ty_root/failed/$_ty_h_seg"*/"$1".* "$_ty_root/done/$_ty_h_seg"*/"$1".* \
            "$_ty_root/todo/$1".*-* "$_ty_root"/todo/*_"$1".* "$_ty_root"/processing/*_"$1".* "$_ty_root/failed/$1".* "$_ty_root/done/$1".*; do
            [ ! -e "$path" ] || {
                _ty_found=$path
                return 0
            }
        done
        pass=$((pass + 1))
    done
    return 1
}

# The one task whose short name was read by _ty_is_short -> _ty_text, its id. 1: there is none. 6: several end so.
_ty_lengthen() { # word
    local fill='?????????????????' path='' id='' found='' number=0 pass=0
    while [ $((${#fill} + ${#_ty_h_end})) -gt 17 ]; do fill=${fill#?}; done
    fill=$_ty_h_seg$fill$_ty_h_end
    while [ $pass -lt 5 ] && [ -z "$found" ]; do
        # shellcheck disable=SC2231,SC2295  # ? stands for a character
        for path in "$_ty_root/blocked/$_ty_h_seg/"$fill.* "$_ty_root"/todo/*/"$_ty_h_seg/"$fill.* \
            "$_ty_root"/waiting/*/"$_ty_h_seg/"$fill.* "$_ty_root/processing/"$fill.* \
            "$_ty_root/cancelled/$_ty_h_seg/"$fill.* "$_ty_root/failed/$_ty_h_seg/"$fill.* "$_ty_root/done/$_ty_h_seg/"$fill.* \
            "$_ty_root/todo/"$fill.*-* "$_ty_root"/todo/*_$fill.* "$_ty_root"/processing/*_$fill.* "$_ty_root/failed/"$fill.* "$_ty_root/done/"$fill.*; do
            id=${path##*/}
            id=${id#"${id%%$fill.*}"}
            id=${id%%.*}
            [ -e "$path" ] && _ty_is_id "$id" || continue
            case " $found" in *" $id "*) ;; *) found="$found$id " number=$((number + 1)) ;; esac
        done
        pass=$((pass + 1))
    done
    _ty_text=${found% }
    [ $number -gt 1 ] || return $((1 - number))
    _ty_say "$1 is the end of $number tasks by now: $_ty_text; say the whole id of the one that is meant"
    return 6
}

_ty_ended() { # state: has this claim ended its task so?
    local path=''
    for path in "$_ty_root/$1/$_ty_h_seg"*/"$_ty_h_id.$_ty_h_fence."*"-$_ty_h_nonce".*json; do
        [ ! -e "$path" ] || return 0
    done
    return 1
}

_ty_gave_up() { # outcome: was this how the claim ended, and nobody else ended it?
    local record=$_ty_root/results/$_ty_h_seg/$_ty_handle
    [ -e "$record.$1.json" ] && [ ! -e "$record.crash.json" ] && [ ! -e "$record.cancelled.json" ] && [ ! -e "$record.resumed.json" ]
}

_ty_is_slip() { # nonce: has the handle's own one or two characters more, less, or others? Two claims share none but by chance
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

_ty_refuse_mistyped() { # 2 if the task has had a claim of this fence whose nonce differs a little; nobody's late verb
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
        ! _ty_is_slip "$rest" || {
            _ty_say "the handle $_ty_handle is mistyped: the last part of that claim's handle differs from it a little; nothing was changed"
            return 2
        }
    done
}
