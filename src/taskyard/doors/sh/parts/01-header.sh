#!/bin/sh
# shellcheck shell=dash
# shellcheck disable=SC2015  # "A && B || C" is meant as it reads: C where A or B fails
# taskyard.sh: a Taskyard worker in plain shell, for places without Python. Run it, or source it and call its functions.
#
#   taskyard.sh add_task [-p 0..9] KIND [FILE]     FILE (- is standard input) holds the task's data as JSON; prints the id
#   taskyard.sh claim_task [ID | KIND...]          prints the claim's handle, a tab, and the file that holds the task;
#                                                  a script that sources this finds them in TASK_HANDLE and TASK_FILE.
#                                                  An ID may be a short name (0-kf12), as 'taskyard list' shows it
#   taskyard.sh resume                             take this worker's claims again, after a restart; prints the same for each,
#                                                  and whoever held them under its name is shut out
#   taskyard.sh complete_task HANDLE [FILE]        FILE holds the result as JSON
#   taskyard.sh fail_task HANDLE REASON            tried again while attempts are left
#   taskyard.sh release_task HANDLE                hand it back untouched
#   taskyard.sh heartbeat HANDLE                   begin the lease anew
#   taskyard.sh note_task HANDLE TEXT              leave a word for whoever works on it next; begins the lease anew too
#   taskyard.sh verify_ownership HANDLE            is it still mine?
#   taskyard.sh process_loop [--kind KIND]... [--once|--drain] [--] CMD...
#                                                  run CMD for each task, the task's file on its standard input; under the
#                                                  name of a loop that was killed, first for the tasks that it held
#   taskyard.sh reap_stale                         give back what leases have ended of, wake what is due, and take in what
#                                                  lies in the drop box (todo/*.json), as a claim that finds nothing does
#
# The yard is $TASKYARD, else the nearest .taskyard upward; a script that changes its folder should name it by its whole path.
# The worker is $TASKYARD_WORKER, else $AGENT_ID, else a name of this process. $TASKYARD_LEASE is the lease of claims in
# seconds, where neither the default nor the task's own will do. Without a HANDLE $TASKYARD_CLAIM is meant.
# Exit codes: 0 ok, 1 tasks failed for good (process_loop --drain), 2 usage or invalid, 3 nothing ready, 4 claim lost, 6 not found, 7 conflict, 8 yard unavailable.
#
# CMD is told TASKYARD, TASKYARD_CLAIM, TASKYARD_TASK, TASKYARD_FENCE, TASKYARD_WORKER and TASKYARD_WORKDIR. It may leave its
# result as result.json in TASKYARD_WORKDIR. Exit 0 is done, 75 later (not counted), 65 failed for good, all else an error.
# A task that asks for a check is done only if that passes: the command of this name in yard.json, which has the task and its
# result on its standard input. Where yard.json has none of that name, the task is never claimed here.
#
# It keeps to PROTOCOL.md, format 1, beside any number of Python workers. It leaves to them, and never touches: tasks that use
# something (u or w in their names), tasks whose check it does not know, dropped files that it cannot judge (it says so), and
# what killed processes left half done (the sweep's mending; 'taskyard janitor' does it at once).
#
# It needs mv, mkdir, rmdir, rm, ln, touch, sleep, sort, sync, tr, tail, cat, sha256sum, awk, and a stat with -c: GNU's or
# busybox's. Where there is no /proc it needs od, df and uname as well. setsid is used where there is one.
#
# A shell parses a script as it reads it, and to parse all of this takes as long as a mv. So what a done needs stands first,
# then what a claim needs, and where one of them is the verb, it is tried before the rest is read. Whatever then turns out to
# need the rest says so by 100 (_ty_unread), before anything has been changed, and is done from the beginning.

_ty_early=

_ty_unread() { [ -n "$_ty_early" ]; } # is the second half of this file still to be read?
