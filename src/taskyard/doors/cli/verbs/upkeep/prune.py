"""`prune`: move ended tasks to the archive; without --apply, only count them."""

from __future__ import annotations

from taskyard.doors.cli import filters
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def prune(call: Call) -> Reply:
    """Count the tasks that can be pruned, and with --apply prune them."""
    age, count = call.given.text("older-than"), call.given.integer("keep")
    states, kinds, mission = filters.states(call.given), call.given.texts("kind"), call.given.text("mission")
    named = None if states is None else sorted(states)
    by_name = call.given.words or None
    worker = None if by_name else call.given.text("worker")
    pruned = call.yard.prune(
        age,
        count,
        state=named,
        kind=kinds,
        mission=mission,
        worker=worker,
        ids=by_name,
        apply=call.given.flag("apply") or call.given.flag("yes"),
    )
    return Reply(pruned, lambda: _page(pruned))


def _page(pruned: dict[str, Any]) -> str:
    tasks, events = pruned["tasks"], pruned["events"]
    what = f"{tasks} ended task{'s'[: tasks != 1]}"
    if events:
        what += f" and {events} file{'s'[: events != 1]} of the log"
    if not pruned["applied"]:
        since = f", the oldest from {pruned['oldest']}" if pruned["oldest"] else ""
        return f"{what} would go to the archive{since}; nothing was done (--apply lets them go)"
    where = f": archive/{', archive/'.join(pruned['archives'][:3])}" if pruned["archives"] else ""
    kept = pruned.get("kept", 0)
    stayed = f"; {kept} stayed: moved on, or not to be read by this user ('taskyard fsck' names what)" if kept else ""
    return f"{what} went to the archive{where}{stayed}"


COMMANDS = {
    "prune": Command(
        prune,
        "Let ended tasks go, with their results, notes and keys, to compressed JSON Lines in the yard's archive/. Without --apply "
        "nothing is done: it tells what would go. What has not ended never goes. 'retention_age' and 'retention_count' in yard.json "
        "have the sweep do the same by itself. With IDs or a filter only those tasks go, all of them without an age or a count, and all of the log stays.",
        (
            ("taskyard prune --older-than 30d", "what would go"),
            ("taskyard prune --older-than 30d --apply", "let it go"),
            ("taskyard prune --keep 1000 --apply", "keep the thousand that ended last"),
            ("taskyard prune --state cancelled --kind build --apply", "all builds that were cancelled"),
        ),
        words="[ID...]",
        options=(
            Option("--older-than", "S", "what ended longer ago than this (12h, 30d), and files of the log as old"),
            Option("--keep", "N", "all but so many that ended last"),
            *filters.OPTIONS,
            Option("--worker", "NAME", "only tasks that this worker ended"),
            Option("--apply", None, "do it"),
            Option("--yes", None, "the same, as other verbs for many tasks have it"),
        ),
    ),
}
