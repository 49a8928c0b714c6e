#!/bin/sh
# Prints where `make` has the tests put their files: in memory, where a sync costs nothing, if there is room and programs
# may be run there (containers often have 64 MB, and forbid that); else where temporary files go. The largest database of a
# test has a million tasks.
memory=/dev/shm
room=$(df -Pk "$memory" 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${room:-0}" -ge 6000000 ] && probe=$(mktemp "$memory/taskyard-XXXXXX" 2>/dev/null); then
    printf '#!/bin/sh\n' >"$probe"
    chmod +x "$probe"
    "$probe" 2>/dev/null
    may_run=$?
    rm -f "$probe"
    [ "$may_run" -eq 0 ] && echo "$memory" && exit
fi
echo "${TMPDIR:-/tmp}"
