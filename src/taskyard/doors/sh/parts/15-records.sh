# ---- records -----------------------------------------------------------------------------------------------------------

_ty_draft() { # a new, empty file -> _ty_path; its time is the yard's
    _ty_draw
    _ty_path=$_ty_root/tmp/$$-$_ty_word.1
    { printf '' >"$_ty_path"; } 2>/dev/null && _ty_time "$_ty_path" && return
    _ty_refuse 8 "nothing can be written to $_ty_root/tmp"
}

_ty_write() { # text, to the draft
    { printf '%s\n' "$1" >>"$_ty_path"; } 2>/dev/null && return
    rm -f -- "$_ty_path"
    _ty_refuse 8 "$_ty_root cannot be written to (is the disk full?)"
}

_ty_sync_draft() { # a draft that cannot be synced is not used
    _ty_sync "$_ty_path" && return
    rm -f -- "$_ty_path"
    return 8
}

# Give the draft a second name, which never replaces a file. 0: the name is the draft's. 1: it is another file's.
_ty_link() { # folder name
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) && return
    [ -d "$1" ] || _ty_make "$1" || return
    ! [ "$_ty_path" -ef "$1/$2" ] || return 0
    _ty_error=$(ln -- "$_ty_path" "$1/$2" 2>&1) || [ "$_ty_path" -ef "$1/$2" ] || {
        ! _ty_listed "$1/$2" || return 1
        _ty_trouble "$1/$2 cannot be made"
    }
}

_ty_publish() { # folder name: links the draft, and removes its own name
    local code=0
    _ty_link "$1" "$2" || code=$?
    rm -f -- "$_ty_path"
    return $code
}

# Draft how the claim of _ty_handle ends, at the yard's time.
_ty_draft_record() { # outcome reason-json result worker [more]
    _ty_draft || return
    _ty_date "$_ty_now"
    _ty_write "{\"claim\": \"$_ty_handle\", \"fence\": $_ty_h_fence, \"worker\": $4, \"outcome\": \"$1\", \"reason\": $2, \"at\": \"$_ty_stamp\", \"by\": $_ty_by${3:+, \"result\": $3}${5-}}"
}

# Record how the claim of _ty_handle, whose name was split, is about to end -> _ty_json, its worker, and _ty_second: 1 if the
# claim has recorded this outcome before. That record stands; a different one is kept as stale.
_ty_record() { # outcome reason-json [result]
    local sync=$_ty_durability folder=$_ty_root/results/$_ty_seg
    case $1 in released | resumed) sync=fast ;; esac
    _ty_holder_json
    _ty_draft_record "$1" "$2" "${3-}" "$_ty_json" ", \"errors\": $_ty_errors, \"crashes\": $_ty_crashes" || return
    [ "$sync" = fast ] || _ty_sync_draft || return
    _ty_second=0
    _ty_publish "$folder" "$_ty_handle.$1.json" || _ty_second=$?
    [ $_ty_second -le 1 ] || return $_ty_second
    [ $_ty_second -eq 0 ] || case $1 in done | error) _ty_stale "$1" "$2" "${3-}" "$_ty_json" ;; esac
    [ "$sync" = fast ] || _ty_sync "$folder"
}

_ty_same() { # outcome reason-json result: did the claim end just so? A done without a result has no record.
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
    _ty_draft_record "$@" || return 0
    _ty_sync "$_ty_path"
    _ty_publish "$folder" "$_ty_handle.stale-$digest.json"
    _ty_sync "$folder"
    return 0
}

_ty_backoff() { # turn -> _ty_delay in milliseconds, at least 1: doubled each turn, capped, spread by a quarter either way
    local turn=$1
    _ty_delay=$_ty_set_backoff
    while [ "$turn" -gt 0 ] && [ "$_ty_delay" -lt "$_ty_set_cap" ]; do
        _ty_delay=$((_ty_delay * 2)) turn=$((turn - 1))
    done
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
    _ty_draw
    _ty_delay=$((_ty_delay * (1500 + _ty_chance % 1000) / 2000))
    [ "$_ty_delay" -le "$_ty_set_cap" ] || _ty_delay=$_ty_set_cap
    [ "$_ty_delay" -gt 0 ] || _ty_delay=1
}

_ty_lift() { # the deadline applies no more -> _ty_own
    case $_ty_deadline in
        Y) _ty_own=${_ty_own%.Y} ;;
        U) _ty_own=${_ty_own%.U}.u ;;
        V) _ty_own=${_ty_own%.V}.v ;;
        W) _ty_own=${_ty_own%.W}.w ;;
    esac
    _ty_deadline=
}

# Where the task of the split name goes: its lane, or waiting/ -> _ty_folder, _ty_target, and _ty_more, its event's due time
_ty_aim() { # errors crashes delay
    local due='' bucket=''
    [ "$1$2" = 00 ] || _ty_lift # it was started in time
    _ty_target=$_ty_id.$((_ty_fence + 1)).e$1.c$2$_ty_own.json _ty_folder=$_ty_root/todo/$_ty_lane/$_ty_seg _ty_more=
    [ "$3" -gt 0 ] || return 0
    due=$((_ty_now + $3))
    _ty_date $due
    if [ "$3" -lt 7200000 ]; then bucket=$_ty_minute; elif [ "$3" -lt 172800000 ]; then bucket=$_ty_hour; else bucket=$_ty_day; fi
    _ty_target=${_ty_target%.json}.$_ty_lane.d$due.json _ty_folder=$_ty_root/waiting/$bucket/$_ty_seg
    _ty_more=",\"due\":\"$_ty_stamp\""
}
