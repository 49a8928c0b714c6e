# ---- the drop box ------------------------------------------------------------------------------------------------------

_ty_new_place() { # for one more task of _ty_lane -> _ty_seg, _ty_id, _ty_folder, _ty_line
    # An answer about the time serves ids for a second, by this machine's uptime.
    if ! _ty_uptime || [ -z "$_ty_asked_up" ] || [ $((_ty_up - _ty_asked_up)) -gt 100 ]; then
        _ty_ask_time || return
        _ty_asked=$_ty_now _ty_asked_up=$_ty_up
    fi
    _ty_now=$((_ty_asked + (_ty_asked_up ? (_ty_up - _ty_asked_up) * 10 : 0)))
    _ty_segment "$_ty_lane" && _ty_name_task
}

# Keep the name under which a task was dropped, as names/<segment>/<id>.<stem>. The task is valid without it.
_ty_name_dropped() { # file's name
    local stem=${1%.json} folder=$_ty_root/names/$_ty_seg tries=''
    [ ${#stem} -le 190 ] || return 0
    for tries in 1 2 3; do # a sweep removes the folder while it is empty
        [ -d "$folder" ] || _ty_make "$folder" || return 0
        # Not ':', a special built-in: its failed redirection would end this shell.
        { printf '' >>"$folder/$_ty_id.$stem"; } 2>/dev/null && return
    done
    return 0
}

# A file without a key becomes the task's file, unchanged. 0: taken in, or another process was first. 1: left, and _ty_why
# gives the reason. 3: it may still be arriving. 8: the yard cannot be written.
_ty_take_in() { # file size mode-and-group
    _ty_why="the yard has a max_todo, which the shell client cannot count"
    ! _ty_is_bounded || return 1
    _ty_judge_dropped "$1" "$2" || return
    if [ -n "$_ty_d_key" ]; then
        _ty_take_in_keyed "$1" "$2"
        return
    fi
    # In a shared yard each member must be able to touch the file. Its mode is not changed by name, which may be a link by then.
    _ty_why="the yard's group cannot write it"
    [ -z "$_ty_shared" ] || case $3 in *[67]?" $(stat -c %g -- "$_ty_root")") ;; *) return 1 ;; esac
    _ty_new_place && _ty_sync "$1" || return 8
    _ty_name_dropped "${1##*/}"
    _ty_sweep_move 'taken in' "$1" "$_ty_id.0.e0.c0.x$_ty_d_own.json" && _ty_sync "$_ty_folder" || return 8
}

# A file with a key leaves the box first. Then a new file is linked to its key: of two files with one key, one is the task.
_ty_take_in_keyed() { # file size
    local stem=${1##*/} box='' keys='' name='' key=$_ty_d_key code=0
    stem=${stem%.json} _ty_why="its name is too long"
    [ ${#stem} -le 100 ] || return 1
    name=$(printf '%s' "$key" | sha256sum) || return 8
    name=${name%"${name#????????????????????????????????????????}"}.json
    keys=$_ty_root/keys/${name%"${name#??}"} _ty_why="its taskId belongs to a task already"
    if _ty_listed "$keys/$name"; then
        _ty_listed "$1" && return 1
        return 0 # another process has made its task
    fi
    _ty_draw
    box=$$-$_ty_word.1.$stem.drop
    _ty_move "$1" "$_ty_root/tmp" "$box" || {
        code=$?
        [ $code -ne 1 ] || return 0 # another process has taken it
        return $code
    }
    box=$_ty_root/tmp/$box
    # Read it once more, now that it is ours: another program may have written to it since.
    _ty_judge_dropped "$box" "$2" && [ "$_ty_d_key" = "$key" ] || {
        _ty_put_back "$box" "$stem"
        return 3
    }
    _ty_add_keyed "$keys" "$name" || code=$?
    if [ $code -eq 0 ]; then
        _ty_name_dropped "$stem.json"
        rm -f -- "$box"
    else
        _ty_put_back "$box" "$stem"
        _ty_why="its taskId belongs to a task already"
    fi
    return $code
}

_ty_add_keyed() { # folder and name of the key: adds the task that was just judged. 1: the key is another task's
    local code=0
    _ty_new_place || return
    _ty_path=$_ty_root/tmp/$_ty_id.json # by that name any sweep can finish it, once it has its key
    _ty_write "{\"taskyard\":1,\"id\":\"$_ty_id\",\"kind\":$_ty_kind,\"priority\":$_ty_d_priority$_ty_d_rest" && _ty_sync_draft || return
    _ty_link "$1" "$2" || {
        code=$?
        rm -f -- "$_ty_path"
        return $code
    }
    _ty_sync "$1"
    _ty_shift "$_ty_path" "$_ty_folder" "$_ty_id.0.e0.c0$_ty_d_own.json" helped || code=$?
    if [ $code -eq 8 ] && [ "$_ty_path" -ef "$1/$2" ]; then # nothing was added; the key becomes free
        rm -f -- "$1/$2" "$_ty_path"
        return 8
    fi
    _ty_sync "$_ty_folder"
    _ty_moved="${_ty_moved}taken in $_ty_id$_ty_lf"
}

_ty_put_back() { # file in tmp/, stem: without replacing another file
    local stem=$2
    while ! ln -- "$1" "$_ty_root/todo/$stem.json" 2>/dev/null; do
        if [ ! -e "$_ty_root/todo/$stem.json" ]; then # no links here
            mv -fT -- "$1" "$_ty_root/todo/$stem.json" 2>/dev/null
            return 0
        fi
        stem=$stem~
    done
    rm -f -- "$1"
}

_ty_list_dropped() { # lines of time, size, mode, group and path, the oldest first
    local path=''
    set --
    for path in "$_ty_root"/todo/*.json; do
        set -- "$@" "$path"
        [ $# -lt 500 ] || {
            stat -c '%Z %z %s %a %g %n' -- "$@"
            set --
        }
    done
    [ $# -eq 0 ] || stat -c '%Z %z %s %a %g %n' -- "$@"
}

# Another program's janitor may put a claim of ours into todo/, and its loop may take it from there. It is no dropped file.
_ty_is_claimed() { # name
    local name=$1
    case $name in *_?????????????????????.*.e*.c*-*.json) name=${name##*_} && name=${1#"${1%"$name"}"} ;; esac
    _ty_split "$name" && [ -n "$_ty_nonce" ]
}

# Make tasks of the files in the drop box that have arrived whole -> _ty_moved. The other files stay, and are not read again
# until they change -> _ty_left, their number, and _ty_left_why.
_ty_ingest() {
    local path='' seconds='' clock='' size='' mode='' group='' code='' seen=$_ty_seen_dropped
    _ty_left=0 _ty_left_why='' _ty_seen_dropped='' _ty_asked_up=''
    for path in "$_ty_root"/todo/*.json; do
        case $path in *"$_ty_lf"*) _ty_left=$((_ty_left + 1)) _ty_left_why="a name has a line feed" ;; esac
    done
    [ -e "$path" ] || [ -L "$path" ] || return 0
    while read -r seconds _ clock _ size mode group path; do
        [ -z "${_ty_stop-}" ] || return 0
        [ ! -d "$path" ] || [ -L "$path" ] || continue
        [ -e "$path" ] || [ -L "$path" ] || continue
        ! _ty_is_claimed "${path##*/}" || continue
        code=1 _ty_why="it is no ordinary file"
        case $seen in
            *" $clock $path$_ty_lf"*) _ty_why="as before" ;;
            *)
                [ -L "$path" ] || [ ! -f "$path" ] || {
                    code=0
                    _ty_take_in "$path" "$size" "$mode $group" || code=$?
                }
                ;;
        esac
        if [ $code -eq 3 ] && [ $((_ty_asked - seconds * 1000)) -gt $((_ty_settle + 1000)) ]; then
            code=1 _ty_why="it is no JSON object"
        fi
        case $code in
            0 | 3) ;;
            1)
                _ty_left=$((_ty_left + 1)) _ty_left_why="${_ty_left_why:-${path##*/}: $_ty_why}"
                _ty_seen_dropped="$_ty_seen_dropped $clock $path$_ty_lf"
                ;;
            *) return 8 ;;
        esac
    done <<END
$(_ty_list_dropped 2>/dev/null | LC_ALL=C sort -k1,3 -k8)
END
}

_ty_report_left() { # once for each number of files
    [ "$_ty_left" -gt 0 ] && [ "$_ty_reported_left" != "$_ty_left" ] || return 0
    _ty_reported_left=$_ty_left
    _ty_report "$_ty_left files in the drop box are left to 'taskyard janitor', or the next claim by Python ($_ty_left_why)"
}
