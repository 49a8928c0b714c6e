"""What each code means, what `--repair` does about it, and what a person must do: the table of docs/fsck.md."""

from __future__ import annotations

DAMAGE, PENDING, NOTICE = "damage", "pending", "notice"
ASIDE = "set aside in failed/, with the reason"
BY_HAND = "nothing"
ALONE = "left alone"


class Code:
    """One row of the table in docs/fsck.md."""

    __slots__ = ("by_hand", "means", "repair", "severity")

    def __init__(self, severity: str, means: str, repair: str = ALONE, by_hand: str = BY_HAND) -> None:
        self.severity = severity
        self.means = means
        self.repair = repair
        self.by_hand = by_hand


CODES: dict[str, Code] = {
    # Folders
    "settings_broken": Code(
        DAMAGE,
        "yard.json is gone, cannot be read, or has a setting that cannot be: no worker can open the yard until it is put right, and all else is judged by the default settings",
        "left alone; nothing else is healed either",
        "put a copy of it back; or move it out of the yard, and 'taskyard init' for this path writes one with the default settings and leaves all tasks as they are",
    ),
    "folder_missing": Code(DAMAGE, "one of the yard's own folders is not there", "made, empty"),
    "folder_odd": Code(
        DAMAGE,
        "a folder is a symbolic link, a file, or a mount of its own: renames cannot cross it, and links lead out of the yard",
        ALONE,
        "while no worker runs, put a real folder in its place and move what belongs into it back",
    ),
    "unreadable": Code(
        DAMAGE,
        "a file or folder cannot be read, so nothing is proven of what is in it",
        ALONE,
        "give the users of the yard permission, or look at the system's log for errors of the disk; then run fsck again",
    ),
    "folder_closed": Code(
        DAMAGE,
        "a lane or segment of todo/ that its mode or owner closes to those who use the yard: claims pass it over, or adds are refused",
        ALONE,
        "give it back to the yard's owner (chown, chmod u+rwx), or in a shared yard to the group (chmod g+rwx)",
    ),
    "stray": Code(
        DAMAGE, "a name that PROTOCOL.md does not know, where only known ones may be", ASIDE, "look at it in failed/"
    ),
    "root_stray": Code(
        NOTICE, "something beside the yard's own folders; it does no harm", ALONE, "move it out of the yard"
    ),
    "symlink": Code(DAMAGE, "a symbolic link; the yard follows none", ASIDE, "put the file itself into the drop box"),
    "not_a_file": Code(DAMAGE, "a folder, pipe or device under the name of a file", ASIDE, "look at it in failed/"),
    "not_a_task": Code(
        NOTICE,
        "something in todo/ that is no task: a folder, a name that does not end in .json, or a file that is not a JSON object",
        "left alone; a .json file is set aside by a sweep when no program has written to it for a while",
        "move it out of todo/, or put one JSON object into a file whose name ends in .json",
    ),
    "lane_astray": Code(PENDING, "another program has taken a lane of todo/ for a task, and moved it", "a sweep"),
    "task_astray": Code(
        PENDING,
        "another program has moved a claimed task's file back to todo/, or has ended the task",
        "a sweep: back to todo with a raised fence, or ended as it was",
    ),
    # Tasks
    "name_illegal": Code(
        DAMAGE,
        "the name tells which task it is, but is none that a task in this state can have",
        "held: back to todo; open: renamed in its place with a raised fence; ended: left alone",
        "rename it as PROTOCOL.md says, with a fence that is one higher",
    ),
    "misplaced": Code(
        DAMAGE,
        "the task lies in the folder of another segment, where a search by its id does not look",
        "moved to its own segment",
    ),
    "lane_differs": Code(
        DAMAGE,
        "the task lies in a lane (priority, kind, assignee, mission) that is not the one its content names",
        "open: moved to the lane of its content, with a raised fence; held: left alone",
        "run fsck again when it was given back, if it is",
    ),
    "two_files": Code(
        DAMAGE,
        "two different files are one task: one of them is a copy",
        "the one with the higher fence stays, as for everybody who looks; the other is " + ASIDE,
        "compare the two, and throw the copy away",
    ),
    "two_names": Code(
        PENDING, "one file has two names, as after a power cut", "the name that a move led away from goes"
    ),
    "broken": Code(
        DAMAGE,
        "the task's file is empty, cut off or no task's file",
        "not done yet: failed, with the reason; from the drop box: back there to be judged; done: left alone",
        "restore the file from a backup if there is one; of a done task the ending and the result still stand",
    ),
    "id_differs": Code(
        DAMAGE,
        "the file says that it is another task than its name does",
        ASIDE,
        "look which task it is, and add it anew",
    ),
    "body_missing": Code(
        DAMAGE,
        "the name selects an edit that is not there",
        "not done yet: failed as it was before the edit, with the reason; done: left alone",
        "'taskyard retry' tries it as it was before the edit; then edit it again",
    ),
    "body_broken": Code(
        DAMAGE,
        "the edit that the name selects cannot be read as a task",
        "the same, and the edit is " + ASIDE,
        "'taskyard retry' tries it as it was before the edit; then edit it again",
    ),
    # Records
    "record_missing": Code(
        DAMAGE,
        "the task is done with a result, and the record that has it is not there",
        "left alone: the result cannot be known",
        "restore the record from a backup, or do the work again as a new task",
    ),
    "record_broken": Code(
        DAMAGE,
        "a record is empty, cut off, or tells of another claim than its name does",
        ASIDE + "; of the result of a done task: left alone",
        "restore it from a backup",
    ),
    "reason_missing": Code(
        DAMAGE,
        "the task has failed, and no record says why",
        "failed anew, with a record that says so",
        "'taskyard retry' tries it again",
    ),
    "record_ahead": Code(
        DAMAGE,
        "a record tells of a claim with a higher fence than the task has ever had",
        "open: the fence is raised above it; held: left alone until it is given back; ended: left alone",
        "the record is shown as a stale result or in the history; it changes nothing",
    ),
    "record_unknown": Code(
        NOTICE,
        "a record tells of a claim that the log does not know",
        ALONE,
        "nothing: events can be lost, records count",
    ),
    "fence_twice": Code(
        NOTICE, "two claims of one task have the same fence, as after a power cut; their nonces tell them apart"
    ),
    # Log and states
    "state_behind": Code(
        DAMAGE,
        "the log tells of a later move than the task's name shows: an old copy was put back, or a move was undone",
        "open: the fence is raised above the log's; if the log says that it was done: failed, with the reason; else left alone",
        "decide whether it is to run again ('taskyard retry') or not",
    ),
    "log_differs": Code(
        DAMAGE,
        "the log says that the task's last move led to another state",
        "not ended: failed, with the reason; ended: left alone",
        "decide whether it is to run again ('taskyard retry') or not",
    ),
    "unlogged_ending": Code(
        DAMAGE, "the task has ended by a claim of which the log knows nothing", "the ending is logged"
    ),
    "unlogged": Code(
        NOTICE,
        "one move of the task is not in the log, as where a disk was full",
        ALONE,
        "nothing: no decision is made from the log",
    ),
    "task_lost": Code(
        DAMAGE,
        "the log tells of a task that has not ended and is nowhere",
        "brought back from its key if it had one; else left alone",
        "look into archives that were moved away, restore it from a backup, or add it anew",
    ),
    "ending_lost": Code(
        DAMAGE,
        "the log tells of an ended task that is neither in the yard nor in its archive",
        ALONE,
        "if archives were moved away, it is in one of them; else restore it from a backup",
    ),
    "event_garbage": Code(
        DAMAGE,
        "a line of the log is no event",
        "left alone; readers pass it over",
        "an hour after its hour is over the page may be moved away",
    ),
    "event_torn": Code(
        NOTICE, "a line of the log was cut off, as by a kill or a full disk", "left alone; readers pass it over"
    ),
    "page_missing": Code(NOTICE, "between two pages of the log one is missing that is not in the archive either"),
    # Keys
    "key_missing": Code(
        DAMAGE,
        "the task has a key, and nothing stands for it in keys/: an add under it would make a second task",
        "linked",
    ),
    "key_copied": Code(
        DAMAGE, "the key's file is a copy of its task's and not the same file", "the copy is " + ASIDE + "; linked anew"
    ),
    "key_taken": Code(
        DAMAGE,
        "two tasks have the same key",
        ALONE,
        "cancel the one that is not meant; the key stands for the task that 'where' does not name",
    ),
    "key_without_task": Code(
        DAMAGE,
        "a key's task is nowhere",
        "the task is brought back to todo from the key's file, if the log does not say that it has ended; else the key is "
        + ASIDE,
        "look at it in failed/",
    ),
    "key_broken": Code(
        DAMAGE, "a key's file is no task's file, or that of another key", ASIDE, "an add under the key makes a new task"
    ),
    # Edges and waiting tasks
    "need_open": Code(
        DAMAGE,
        "the task is not blocked, although something that it comes after is noted as not done",
        "todo or waiting: back to blocked, and let go if all is done; else left alone",
        "nothing, if what it comes after was done",
    ),
    "need_missing": Code(
        DAMAGE,
        "the task is blocked, and would be let go before something that it comes after is done",
        "the need is noted again",
    ),
    "edge_half": Code(
        DAMAGE, "a task waits for another one whose end would not tell it", "the other half of the edge is made"
    ),
    "cycle": Code(
        DAMAGE,
        "blocked tasks come after one another, so that none of them can ever start",
        ALONE,
        "take one of these steps out with 'taskyard edit ID --after ...' or '--no-after', or cancel a task",
    ),
    "need_met": Code(PENDING, "the task is blocked, and nothing that it comes after is open", "let go"),
    "need_failed": Code(
        PENDING,
        "the task is blocked, and is to be cancelled with a task that it comes after",
        "cancelled, with all that is to be cancelled with it",
    ),
    "bucket_late": Code(
        DAMAGE, "the task waits in a bucket that begins after it is due", "moved to its bucket, with a raised fence"
    ),
    "bucket_early": Code(PENDING, "the task waits in a bucket that begins before the one it belongs to", "a sweep"),
    # Segments and archive
    "marker_missing": Code(
        DAMAGE, "a segment has tasks and no marker: its number could be opened again", "made, as a full segment"
    ),
    "marker_broken": Code(
        DAMAGE,
        "a segment's marker tells no time and lane",
        ASIDE + "; made anew, as a full segment",
        "look at it in failed/",
    ),
    "marker_lane": Code(
        DAMAGE,
        "a segment's marker names a lane that none of its tasks came in by",
        ASIDE + "; made anew, as a full segment",
    ),
    "archive_broken": Code(
        DAMAGE, "an archive cannot be unpacked", ALONE, "restore it from a backup; nothing in the yard needs it"
    ),
    "mission_broken": Code(
        DAMAGE,
        "what was said about a mission cannot be read; its tasks are not touched by that",
        "left alone",
        "put the file right by hand, or throw it away and say 'taskyard mission new' again",
    ),
    "schedule_broken": Code(
        DAMAGE,
        "what was said about a schedule, or where it stands, cannot be read: no task of it is added any more",
        "left alone",
        "put said.json right by hand, or move the folder out of the yard and say 'taskyard schedule add' again",
    ),
    # What the next sweep does, and what is legal but worth knowing
    "lapsed": Code(PENDING, "a claim's lease has been over for long, and no sweep has taken it back", "a sweep"),
    "overdue": Code(PENDING, "a task has been due for long, and no sweep has woken it", "a sweep"),
    "orphan": Code(
        PENDING,
        "a record, edit, folder, edge or entry of a task that is gone or has moved on",
        "left to the sweeps that come by",
    ),
    "leftover": Code(PENDING, "something in tmp/ or dead/ that a dead process has left", "a sweep"),
    "dead_writer": Code(PENDING, "the note of a dead process, with what it may not have logged", "a sweep"),
    "unlocked_claim": Code(
        NOTICE, "a claim is marked as vouched for, and its worker's file is gone: its lease alone counts"
    ),
    "worker_broken": Code(NOTICE, "a worker's file does not tell whose it is: the leases of its claims alone count"),
}
