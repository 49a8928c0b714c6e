# ---- endings -----------------------------------------------------------------------------------------------------------

# Each follower of this task has one need less; a follower without needs is unblocked. The next sweep mends what fails here.
_ty_follow() { # id
    local id=$1 seg=${1%?????????????????} edge='' follower='' needs=''
    shift
    for edge in "$_ty_root/followers/$seg"*/"$id"*/*; do
        follower=${edge##*/}
        [ "$edge" = "$_ty_root/followers/$seg/$id/$follower" ] && _ty_is_id "$follower" || continue
        set -- "$@" "$edge"
        needs=$_ty_root/needs/${follower%?????????????????}/$follower
        rm -f -- "$needs/$id" 2>/dev/null
        rmdir -- "$needs" 2>/dev/null || [ ! -d "$needs" ] || continue
        _ty_let_go "$follower" "$id"
    done
    _ty_follow_sheets "$id"
    [ $# -gt 0 ] || return 0
    rm -f -- "$@" 2>/dev/null # those that were listed: a task that is added after the done looks for itself
    rmdir -- "$_ty_root/followers/$seg/$id" 2>/dev/null
    return 0
}

# The sheets of graphs: note that this task is done, and then read what others have noted. Where appends of two machines may
# overwrite one another nothing is noted: the next sweep does it.
_ty_follow_sheets() { # id
    local id=$1 sheet='' follower=''
    [ "$_ty_place" = local ] || return 0
    for sheet in "$_ty_root/sheets/${1%?????????????????}"/*; do
        [ -f "$sheet" ] && _ty_in_sheet "$sheet" "$id" any >/dev/null || continue
        printf '\n%s\n' "$id" >>"$sheet" || continue
        for follower in $(_ty_in_sheet "$sheet" "$id" free); do
            [ -d "$_ty_root/needs/${follower%?????????????????}/$follower" ] || _ty_let_go "$follower" "$id"
        done
    done 2>/dev/null
    return 0
}

# The tasks of a sheet that come after this one: any, or those for which all is noted as done. 1: there are none.
_ty_in_sheet() { # sheet id any|free
    LC_ALL=C awk -v id="$2" -v want="$3" '
        /^-/ { left[substr($1, 2)] = 1; next }
        NF == 0 { next }
        NF == 1 { met[$1] = 1; next }
        $NF == "." { row[$1] = $0 }
        END {
            for (task in row) {
                n = split(row[task], word, " "); follows = 0; open = 0
                for (i = 2; i < n; i++) { if (word[i] == id) follows = 1; if (!(word[i] in met)) open++ }
                if (follows && !(task in left) && (want == "any" || !open)) { print task; found = 1 }
            }
            exit !found
        }
    ' "$1"
}

_ty_let_go() { # task freed-by
    local path=''
    for path in "$_ty_root/blocked/${1%?????????????????}/$1".*; do
        _ty_split "${path##*/}" || continue
        _ty_unblock "$path" "$2"
    done
}

_ty_unblock() { # file freed-by
    local delay=0
    [ -z "$_ty_due" ] || [ "$_ty_due" -le "$_ty_now" ] || delay=$((_ty_due - _ty_now))
    _ty_aim "$_ty_errors" "$_ty_crashes" $delay
    _ty_event unblocked "$_ty_id" $((_ty_fence + 1)) null ",\"freed_by\":\"$2\"$_ty_more"
    _ty_shift "$1" "$_ty_folder" "$_ty_target"
    return 0
}

_ty_end_failed() { # handle reason [final]
    local reason='' logged='' errors=''
    _ty_handle "$1" || return
    _ty_string "$2"
    reason=$_ty_json logged=$_ty_json
    if [ ${#2} -gt 1000 ]; then
        _ty_string "$(printf '%.1000s' "$2")"
        logged=$_ty_json
    fi
    _ty_find || {
        _ty_late fail error "$reason"
        return
    }
    _ty_record error "$reason" || return
    errors=$((_ty_errors + 1))
    if [ -n "${3-}" ] || [ $errors -ge "${_ty_limit:-$_ty_set_attempts}" ]; then
        _ty_folder=$_ty_root/failed/$_ty_seg
        _ty_target=$_ty_id.$_ty_fence.e$errors.c$_ty_crashes$_ty_own.$_ty_lane$_ty_claim.json
        _ty_event failed "$_ty_id" "$_ty_fence" "$_ty_json" ",\"final\":true,\"reason\":$logged"
    else
        _ty_backoff $((errors - 1))
        _ty_aim $errors "$_ty_crashes" "$_ty_delay"
        _ty_event failed "$_ty_id" $((_ty_fence + 1)) "$_ty_json" ",\"final\":false,\"reason\":$logged$_ty_more"
    fi
    _ty_end fail error "$reason"
}

_ty_end_released() { # handle [delay]
    _ty_handle "$1" || return
    _ty_find || {
        _ty_late release
        return
    }
    _ty_record released null || return
    _ty_aim "$_ty_errors" "$_ty_crashes" "${2:-0}"
    _ty_event released "$_ty_id" $((_ty_fence + 1)) "$_ty_json" "$_ty_more"
    _ty_second=0 # a release that was recorded before is the same release
    _ty_end release
}
