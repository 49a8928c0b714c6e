# ---- verbs that come late ----------------------------------------------------------------------------------------------

_ty_holding() { # -> _ty_text: the handles of this worker's claims
    local path='' held=''
    for path in "$_ty_root/processing/"*".$_ty_worker-"*.json; do
        ! _ty_split "${path##*/}" || [ "$_ty_holder" != "$_ty_worker" ] || held="$held $_ty_id.$_ty_fence.$_ty_nonce"
    done
    _ty_text=$held
}

# A verb on a claim that is over: the same ending gets the same answer, any other verb is refused.
_ty_late() { # verb [outcome reason-json result]
    local holder='' path='' code=4
    _ty_refuse_mistyped || return
    case $1 in
        done)
            if _ty_ended 'done'; then
                ! _ty_same 'done' null "${4-}" || return 0
                code=7
            fi
            ! _ty_ended failed || code=7
            ;;
        fail)
            if _ty_ended failed || _ty_ended 'done'; then code=7; fi
            if _ty_ended failed || _ty_gave_up error; then ! _ty_same error "$3" '' || return 0; fi
            ;;
        release) ! _ty_gave_up released || return 0 ;;
    esac
    _ty_is_there "$_ty_h_id" || _ty_refuse 6 "no task has the id $_ty_h_id" || return
    _ty_split_path "$_ty_found"
    holder=$_ty_by
    for path in "$_ty_root/results/$_ty_h_seg/$_ty_handle".*.json; do
        [ ! -f "$path" ] || path=$(awk 'match($0, /"worker": "([^"\\]|\\.)*", "outcome"/) { print substr($0, RSTART + 10, RLENGTH - 21) }' "$path") && holder=${path:-$_ty_by}
        break
    done
    case $holder in \"*) ;; *) holder=$_ty_by ;; esac
    [ -z "${2-}" ] || _ty_stale "$2" "$3" "${4-}" "$holder"
    _ty_ask_time || return
    _ty_event refused "$_ty_h_id" "$_ty_h_fence" "$holder" ",\"verb\":\"$1\""
    _ty_log_line
    path=${_ty_found#"$_ty_root/"}
    if [ $code -eq 7 ]; then
        _ty_holding
        _ty_report "this claim has ended task $_ty_h_id already: it is in ${path%%/*}; what came now is kept as a stale result${_ty_text:+; you hold$_ty_text now}"
    else
        _ty_report "the claim $_ty_handle is over: its task is in ${path%%/*} now${2:+; what this claim brought is kept as a stale result}"
    fi
    return $code
}
