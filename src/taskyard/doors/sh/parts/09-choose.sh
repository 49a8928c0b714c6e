# ---- which task to claim -----------------------------------------------------------------------------------------------

_ty_kind_name() { # kind -> _ty_text, encoded
    # All letters beyond ASCII are allowed here: the shell has no list of them.
    case $1 in
        [A-Za-z0-9]*) ;;
        [[:space:][:punct:]]*) set -- '' ;;
    esac
    case $1 in *[\ \!\"\#\$%\&\'\(\)\*\+,/\;\<=\>?@\[\\\]^\`\{\|\}~]*) set -- '' ;; esac
    _ty_encode "$1" && return
    [ $? -ne 100 ] || return 100
    _ty_refuse 2 "such a kind is not allowed: letters, digits, and _ - . : after the first character"
}

_ty_kinds() { # kinds -> _ty_wanted, encoded, with spaces around; empty for all
    local kind=''
    _ty_wanted=
    for kind; do
        _ty_kind_name "$kind" || return
        _ty_wanted="${_ty_wanted:- }$_ty_text "
    done
}

_ty_serves() { # lane: may this worker take from it now?
    local kind=${1%%~*} assignee=''
    kind=${kind#?-}
    case $1 in
        [0-9]-?*@?*) assignee=${kind#*@} kind=${kind%%@*} ;;
        [0-9]-?*) ;;
        *) return 1 ;;
    esac
    case $1 in *[!A-Za-z0-9_%@~-]*) return 1 ;; esac
    case $_ty_wanted in '' | *" $kind "*) ;; *) return 1 ;; esac
    [ -z "$assignee" ] || [ "$assignee" = "$_ty_worker" ] || return 1
    case $_ty_paused in *" $kind "*) return 1 ;; esac
}

_ty_list_paused() { # -> _ty_paused; 1 if the whole yard is paused
    local path=''
    _ty_paused=' '
    for path in "$_ty_root"/paused/*; do _ty_paused="$_ty_paused${path##*/} "; done
    case $_ty_paused in *' @ '*) return 1 ;; esac
}

# The oldest names of one lane -> _ty_text, lines of age, a space, and the path in todo/. Tasks that use something are left to
# workers that can see whether it is free; tasks with an unknown check to workers that know it.
_ty_head() { # lane
    local folder='' path='' name='' many=0 empty='' last=''
    _ty_text=
    for folder in "$_ty_root/todo/$1"/????; do
        [ "$many" -eq 0 ] || break
        last=$folder
        [ -z "$_ty_checks" ] || _ty_learn_checks "$folder"/*.v.json
        for path in "$folder"/*.json; do
            name=${path##*/}
            case $name in
                '*.json')
                    [ -e "$path" ] || [ ! -d "$folder" ] || empty="$empty ${folder##*/}"
                    continue
                    ;;
                *.[uwUVWY].json | *[!A-Za-z0-9.]*) continue ;;
                *.v.json) case $_ty_known_checks in *" $name "*) ;; *) continue ;; esac ;;
                "${folder##*/}"*.*.e*.c*.json) ;;
                *) continue ;;
            esac
            _ty_text="$_ty_text${name#????} ${path#"$_ty_root/todo/"}$_ty_lf"
            many=$((many + 1))
            [ $many -lt "$_ty_ahead" ] || break
        done
    done
    # Empty segments slow every listing down. The lane's last segment stays.
    for name in $empty; do
        [ "$_ty_root/todo/$1/$name" = "$last" ] || rmdir -- "$_ty_root/todo/$1/$name" 2>/dev/null
    done
    [ -n "$_ty_text" ]
}

# Fill _ty_queue with paths in todo/, oldest first, of the most urgent lanes that this worker serves. 1: there are none.
_ty_fill() { # the least urgent priority to look at
    local folder='' lane='' rank='' group='' most=$1
    for folder in "$_ty_root"/todo/[0-9]-* end; do
        lane=${folder##*/}
        # shellcheck disable=SC2086  # lanes
        if [ -n "$group" ] && [ "${lane%%-*}" != "$rank" ]; then
            if _ty_fill_from $group; then
                _ty_rank=$rank
                return
            fi
            group=
        fi
        case $lane in *+*) continue ;; [0-9]-*) ;; *) continue ;; esac
        [ "${lane%%-*}" -le "$most" ] || break
        _ty_serves "$lane" || continue
        rank=${lane%%-*} group="$group $lane"
    done
    return 1
}

_ty_fill_from() { # lanes of equal priority; of more than eight it lists another eight each time, so that none starves
    local lane='' lines='' lanes=0 turn=0
    if [ $# -gt 8 ]; then
        _ty_draw
        turn=$((_ty_chance % $#))
    fi
    while [ $turn -gt 0 ]; do
        lane=$1 turn=$((turn - 1))
        shift
        set -- "$@" "$lane"
    done
    for lane; do
        _ty_head "$lane" || continue
        lines=$lines$_ty_text lanes=$((lanes + 1))
        [ $lanes -lt 8 ] || break
    done
    [ $lanes -gt 0 ] || return 1
    [ $lanes -eq 1 ] || lines=$(LC_ALL=C sort <<END
$lines
END
    )
    # shellcheck disable=SC2086  # lines of two words
    set -- $lines
    _ty_queue='' lanes=0
    while [ $# -gt 1 ] && [ $lanes -lt 32 ]; do
        _ty_queue="$_ty_queue $2" lanes=$((lanes + 1))
        shift 2
    done
}

# The next candidate -> _ty_entry. A list is kept for a second, but more urgent lanes are listed each time.
_ty_pick() { # 1: list anew
    local skipped=0 window=1 fresh=''
    if [ "$1" = 1 ] || [ "$_ty_queue_for" != "$_ty_wanted" ] || ! _ty_uptime || [ $((_ty_up - _ty_filled)) -gt 100 ]; then
        _ty_queue=
    fi
    _ty_list_paused || return
    while :; do
        # shellcheck disable=SC2086  # paths of ours, without spaces
        set -- $_ty_queue
        if [ $# -eq 0 ]; then
            _ty_fill 9 || return
            _ty_queue_for=$_ty_wanted
            _ty_uptime || _ty_up=0
            _ty_filled=$_ty_up fresh=1
            continue
        fi
        if [ -z "$fresh" ] && [ "$_ty_rank" -gt 0 ] && _ty_fill $((_ty_rank - 1)); then continue; fi
        # After lost races take one near the oldest at random, so that workers do not race for each task.
        if [ "$_ty_lost" -gt 0 ]; then
            window=$((_ty_lost < 5 ? 1 << _ty_lost : 32))
            [ $window -le $# ] || window=$#
            skipped=$((_ty_chance % window))
            while [ $skipped -gt 0 ]; do
                window=$1
                shift
                set -- "$@" "$window"
                skipped=$((skipped - 1))
            done
        fi
        _ty_entry=$1
        shift
        _ty_queue=$*
        window=${_ty_entry%%/*}
        _ty_serves "$window" && [ -e "$_ty_root/todo/$_ty_entry" ] && return
    done
}
