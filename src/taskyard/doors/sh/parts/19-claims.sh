# ---- claims of a given task, and claims taken again --------------------------------------------------------------------

# Claim the task of this id -> _ty_handle, _ty_file. 7: it cannot be claimed.
_ty_take_named() { # id
    local swept='' path='' lane='' why='' code=0 tries=0
    _ty_wanted=''
    while [ $tries -lt 20 ]; do
        tries=$((tries + 1))
        _ty_is_there "$1" || break
        path=${_ty_found#"$_ty_root/"}
        case $path in
            todo/*/*/*)
                _ty_entry=${path#todo/} code=0
                lane=${_ty_entry%%/*}
                _ty_split_path "$_ty_found" || break
                why=
                [ -z "$_ty_uses" ] || why="it uses something, and only Python workers can see whether that is free"
                [ -z "$_ty_deadline" ] || why="it has a deadline, which only Python workers keep"
                if [ -n "$_ty_verified" ]; then
                    [ -z "$_ty_checks" ] || _ty_learn_checks "$_ty_found"
                    case $_ty_known_checks in *" ${path##*/} "*) ;; *) why="it asks for a check that is not in yard.json" ;; esac
                fi
                case ${lane%%~*} in *@"$_ty_worker") ;; *@*) why="it is assigned to another worker" ;; esac
                if ! _ty_list_paused; then
                    why="the yard is paused"
                else
                    _ty_serves "$lane" || why=${why:-"its kind is paused"}
                fi
                [ -z "$why" ] || break
                _ty_take || code=$?
                [ $code -eq 1 ] || return $code
                ;;
            *)
                if [ -z "$swept" ]; then # it may be due, or its worker may be gone
                    swept=1 _ty_moved=
                    _ty_sweep || return
                    continue
                fi
                why="it is in ${path%%/*}, and only a task in todo can be claimed"
                case $path in processing/*) _ty_split "${path##*/}" && _ty_is_held_by_me && why="this worker holds it; 'resume' takes it again, if its handle is lost" ;; esac
                break
                ;;
        esac
    done
    _ty_refuse 7 "task $1 cannot be claimed: ${why:-it keeps moving under other hands}"
}

_ty_is_held_by_me() { # the name that was split last
    case $_ty_holder in
        @) case ${_ty_lane%%~*} in *@"$_ty_worker") ;; *) return 1 ;; esac ;;
        *) [ "$_ty_holder" = "$_ty_worker" ] ;;
    esac
}

# Take a claim of this worker again, under a new fence and nonce -> _ty_handle, _ty_file. 1: the claim is over.
_ty_resume_one() { # file in processing/, split
    local old=$_ty_id.$_ty_fence.$_ty_nonce
    _ty_handle "$old" && _ty_listed "$1" || return 1
    _ty_record resumed null || return
    _ty_hold "$1" "$_ty_lane" "$_ty_lease" "$_ty_holder" ',"resumed":true' || return
    rm -f -- "$_ty_root/attempts/$_ty_seg/$_ty_id/$old/.loop"
    _ty_remove_workdir "$old"
}

_ty_resume() {
    local path='' code=0
    [ $# -eq 0 ] && [ -n "${TASKYARD_WORKER:-${AGENT_ID-}}" ] || _ty_refuse 2 "usage: resume, with the worker's name in TASKYARD_WORKER" || return
    _ty_open || return
    for path in "$_ty_root"/processing/*.json; do
        _ty_split "${path##*/}" && [ -n "$_ty_nonce" ] && _ty_is_held_by_me || continue
        code=0
        _ty_resume_one "$path" || code=$?
        case $code in 0) _ty_hand_over ;; 1) ;; *) return $code ;; esac
    done
}

_ty_give_up() { # the claim that was just made, because its file cannot be read; 1
    if [ -n "$_ty_body" ]; then
        _ty_end_failed "$_ty_handle" "the edit that replaced its file is gone" final
    elif _ty_listed "$_ty_file"; then
        _ty_end_failed "$_ty_handle" "its file cannot be read" final
    fi
    return 1
}
