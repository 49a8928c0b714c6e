"""`spool`: what was said while the yard's server was away, and what became of it."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_SHOWN = 3  # tasks of one add that a line shows


def spool(call: Call) -> Reply:
    """Show the spool, or replay it."""
    word = call.given.word(0)
    if word not in (None, "replay", "show"):
        raise Invalid(f"spool takes no {ascii(word)[:40]}", hint="say 'taskyard spool', or 'taskyard spool replay'")
    again = call.given.flag("failed")
    if word != "replay" and not call.given.flag("replay"):
        if again:
            raise Invalid("--failed is for a replay", hint="say 'taskyard spool replay --failed'")
        found = call.open_spool().spool()
        return Reply(found, lambda: _shown(found))
    report = call.open_spool().replay_spool(failed=again)
    return Reply(report, lambda: _replayed(report))


def _shown(found: dict[str, Any]) -> str:
    if found["path"] is None:
        return "this yard has no spool: it has no server that could be away, or the spool is off"
    if not found["entries"]:
        return f"the spool is empty ({found['path']})"
    return "\n".join((*map(_line, found["entries"]), f"in {found['path']}"))


def _line(entry: dict[str, Any]) -> str:
    tasks = entry.get("tasks") or []
    more = f", and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    what = entry.get("claim") or ", ".join(map(_task, tasks[:_SHOWN])) + more or "cannot be read"
    why = f": {entry['error']['message']}" if entry.get("error") else ""
    return f"{entry['state']}  {entry.get('at') or entry['name']}  {entry.get('verb') or 'entry'}  {what}{why}"


def _task(task: dict[str, Any]) -> str:
    return f"{task['id']} ({task['kind']})"


def _replayed(report: dict[str, Any]) -> str:
    stale = f", {report['stale']} too late and kept as stale results" if report["stale"] else ""
    failed = f", {report['failed']} refused" if report["failed"] else ""
    left = f", {report['left']} left for later" if report["left"] else ""
    rest = "" if not report["entries"] else "\n" + _shown(report)
    return f"{report['replayed']} replayed{stale}{failed}{left}{rest}"


COMMANDS = {
    "spool": Command(
        spool,
        "Show what add, done and fail have kept on this machine while the database was away, oldest first: pending, or failed with the "
        "reason. Every command on the yard replays a share by itself; 'spool replay' replays all of it now, and runs the checks that tasks name. "
        "The spool lies in $TASKYARD_SPOOL (off: no spool), else in the user's state folder.",
        (
            ("taskyard spool", "what is kept, and what was refused"),
            ("taskyard spool replay", "the database is back: say it all now"),
            ("taskyard spool replay --failed", "also what was refused before, once the cause is put right"),
        ),
        words="[replay]",
        most=1,
        options=(
            Option("--replay", None, "the same as the word replay"),
            Option("--failed", None, "replay also what the yard has refused before"),
        ),
    ),
}
