# ---- records -----------------------------------------------------------------------------------------------------------

_ty_event() { # event id fence worker more: what is no move, at _ty_now
    _ty_tell "$@"
    _ty_log_line
}

_ty_draft() { # a new, empty file -> _ty_path; its time is the yard's
    _ty_draw
    _ty_path=$_ty_root/tmp/$$-$_ty_word.1
    _ty_error=
    { printf '' >"$_ty_path"; } 2>/dev/null && _ty_time "$_ty_path" && return
    _ty_trouble "nothing can be written to $_ty_root/tmp"
}

_ty_write() { # text, to the draft
    { printf '%s\n' "$1" >>"$_ty_path"; } 2>/dev/null && return
    rm -f -- "$_ty_path"
    _ty_error=
    _ty_trouble "$_ty_root cannot be written to (is the disk full?)"
}

_ty_sync_draft() { # what cannot be made sure of is not used
    _ty_sync "$_ty_path" && return
    rm -f -- "$_ty_path"
    return 8
}

# A second name for the draft, exclusively and never replaced. 0: it has it. 1: there was one.
_ty_link() { # folder name
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) && return
    [ -d "$1" ] || _ty_make "$1" || return
    ! [ "$_ty_path" -ef "$1/$2" ] || return 0
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) || [ "$_ty_path" -ef "$1/$2" ] || {
        ! _ty_listed "$1/$2" || return 1
        _ty_trouble "$1/$2 cannot be made"
    }
}

_ty_publish() { # folder name: the same, and the draft's own name is gone
    local code=0
    _ty_link "$1" "$2" || code=$?
    rm -f -- "$_ty_path"
    return $code
}

# How the claim of the split name is about to end, before it does; time is asked for here.
_ty_record() { # outcome reason-json [result] -> _ty_second: 1 if it had said something before
    local code=0 record='' holder='' sync=$_ty_durability
    case $1 in released | resumed) sync=fast ;; esac
    _ty_draft || return
    _ty_date "$_ty_now"
    _ty_holder_json
    holder=$_ty_json
    record="{\"claim\": \"$_ty_id.$_ty_fence.$_ty_nonce\", \"fence\": $_ty_fence, \"worker\": $holder, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}"
    _ty_write "$record, \"errors\": $_ty_errors, \"crashes\": $_ty_crashes}" || return
    [ "$sync" = fast ] || _ty_sync_draft || return
    _ty_publish "$_ty_root/results/$_ty_seg" "$_ty_id.$_ty_fence.$_ty_nonce.$1.json" || code=$?
    [ $code -le 1 ] || return $code
    _ty_second=$code
    # The first word of a claim stands; a second one that differs is kept as stale.
    [ $code -eq 0 ] || case $1 in done | error) _ty_stale "$1" "$2" "${3-}" "$holder" ;; esac
    [ "$sync" = fast ] || _ty_sync "$_ty_root/results/$_ty_seg" || return
}

_ty_same() { # outcome reason-json result: did the claim bring this when it ended? A done without a result has no record.
    local written=''
    written=$(cat -- "$_ty_root/results/$_ty_h_seg/$_ty_handle.$1.json" 2>/dev/null)
    case $written in
        '') [ "$1" = 'done' ] && [ -z "$3" ] ;;
        *"\"reason\": $2, "*"\"result\": $3, \"errors\""*) [ -n "$3" ] ;;
        *"\"result\": "*) return 1 ;;
        *"\"reason\": $2, "*) [ -z "$3" ] ;;
        *) return 1 ;;
    esac
}

_ty_stale() { # outcome reason-json result worker: output that does not count, kept for a person to read; 0 always
    local digest='' folder=$_ty_root/results/$_ty_h_seg
    [ ! -e "$folder/$_ty_handle.$1.json" ] || ! _ty_same "$1" "$2" "$3" || return 0
    digest=$(printf '%s\n' "$1" "$3" "$2" | sha256sum) || digest=$_ty_word
    digest=${digest%"${digest#????????????}"}
    _ty_draft || return 0
    _ty_date "$_ty_now"
    _ty_write "{\"claim\": \"$_ty_handle\", \"fence\": $_ty_h_fence, \"worker\": $4, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}}" || return 0
    _ty_sync "$_ty_path"
    _ty_publish "$folder" "$_ty_handle.stale-$digest.json"
    _ty_sync "$folder"
    return 0
}

_ty_backoff() { # turn -> _ty_delay in milliseconds: doubled each time, capped, spread by a quarter either way
    local turn=$1
    _ty_delay=$_ty_set_backoff
    while [ "$turn" -gt 0 ] && [ "$_ty_delay" -lt "$_ty_set_cap" ]; do
        _ty_delay=$((_ty_delay * 2)) turn=$((turn - 1))
    done
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
    _ty_draw
    _ty_delay=$((_ty_delay * (1500 + _ty_chance % 1000) / 2000))
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
}

_ty_bucket() { # due: in milliseconds, from _ty_now -> _ty_text
    local ahead=$(($1 - _ty_now))
    _ty_date "$1"
    if [ $ahead -lt 7200000 ]; then _ty_text=$_ty_minute; elif [ $ahead -lt 172800000 ]; then _ty_text=$_ty_hour; else _ty_text=$_ty_day; fi
}

# Where the split name goes back to: its lane, or to wait -> _ty_folder, _ty_target, and _ty_more, the due time for its event
_ty_aim() { # errors crashes delay
    local due=''
    _ty_target=$_ty_id.$((_ty_fence + 1)).e$1.c$2$_ty_own.json _ty_folder=$_ty_root/todo/$_ty_lane/$_ty_seg _ty_more=
    [ "$3" -gt 0 ] || return 0
    due=$((_ty_now + $3))
    _ty_bucket $due
    _ty_target=${_ty_target%.json}.$_ty_lane.d$due.json _ty_folder=$_ty_root/waiting/$_ty_text/$_ty_seg
    _ty_more=",\"due\":\"$_ty_stamp\""
}
