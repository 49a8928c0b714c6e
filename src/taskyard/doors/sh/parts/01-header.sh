#!/bin/sh
# shellcheck shell=dash
# shellcheck disable=SC2015  # "A && B || C" is meant as it reads: C where A or B fails
# taskyard.sh: a Taskyard worker in plain shell, for places without Python. Run it, or source it and call its functions.
#
#   taskyard.sh add_task [-p 0..9] KIND [FILE]     FILE (- is standard input) holds the task's data as JSON; prints the id
#   taskyard.sh claim_task [ID | KIND...]          prints the claim's handle, a tab, and the file that holds the task;
#                                                  a script that sources this finds them in TASK_HANDLE and TASK_FILE.
#                                                  An ID may be a short name (0-kf12), as 'taskyard list' shows it
#   taskyard.sh resume                             take this worker's claims again, after a restart; prints the same for each.
#                                                  A process that still holds them under this name loses them
#   taskyard.sh complete_task HANDLE [FILE]        FILE holds the result as JSON
#   taskyard.sh fail_task HANDLE REASON            tried again while attempts are left
#   taskyard.sh release_task HANDLE                hand it back untouched
#   taskyard.sh heartbeat HANDLE                   begin the lease anew
#   taskyard.sh note_task HANDLE TEXT              leave a note for the next worker of this task; begins the lease anew too
#   taskyard.sh verify_ownership HANDLE            exit 0 while this claim holds its task
#   taskyard.sh process_loop [--kind KIND]... [--once|--drain] [--] CMD...
#                                                  run CMD for each task, the task's file on its standard input; under the
#                                                  name of a loop that was killed, first for the tasks that it held
#   taskyard.sh reap_stale                         give back tasks whose leases have ended, wake tasks that are due, take in
#                                                  files from the drop box (todo/*.json); a claim that finds nothing does so too
#
# The yard is $TASKYARD, else the nearest .taskyard upward. A script that changes its folder should give the yard's whole path.
# The worker is $TASKYARD_WORKER, else $AGENT_ID, else a name made for this process. $TASKYARD_LEASE is the lease of claims in
# seconds; it replaces the yard's default and the task's own. A verb without a HANDLE uses $TASKYARD_CLAIM.
# Exit codes: 0 ok, 1 tasks failed for good (process_loop --drain), 2 usage or invalid, 3 nothing ready, 4 claim lost,
# 6 not found, 7 conflict, 8 yard unavailable.
#
# CMD finds TASKYARD, TASKYARD_CLAIM, TASKYARD_TASK, TASKYARD_FENCE, TASKYARD_WORKER and TASKYARD_WORKDIR in its environment.
# It may write its result to result.json in TASKYARD_WORKDIR. Exit 0 is done, 75 later (not counted), 65 failed for good, and
# any other exit code an error.
# A task may ask for a check: a command that yard.json has under that name. The loop runs it before a done, with the task and
# its result on standard input, and the task is done only if the check exits 0. Tasks with an unknown check are never claimed.
#
# The client follows PROTOCOL.md, format 1, beside any number of Python workers. It leaves these to Python: tasks that use
# something (u or w in their names), tasks whose check it does not know, dropped files that it cannot judge (it prints so), and
# what killed processes left half done ('taskyard janitor' mends that at once).
#
# It needs mv, mkdir, rmdir, rm, ln, touch, sleep, sort, sync, tr, tail, cat, sha256sum, awk, and a stat with -c: GNU's or
# busybox's. Without /proc it needs od, df and uname as well. It uses setsid where there is one.
#
# This file is joined from parts. A shell parses a script while it reads it, and to parse all of this costs as much as a mv. So
# what a done needs comes first, then what a claim needs, and each verb runs before the shell reads on. A verb that needs more
# returns 100 (_ty_unread), and runs again once the shell has read all. By then it has changed nothing, or it has left the
# remaining step in _ty_rest.

_ty_early=
_ty_lf='
'

_ty_unread() { [ -n "$_ty_early" ]; } # is the rest of this file still to be read?
