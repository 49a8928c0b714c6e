"""`claim`: take one task."""

from __future__ import annotations

from taskyard.doors.cli.grammar import Command, Option
from taskyard.doors.cli.replies import Call, NothingReady, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.claim import Claim


def claim(call: Call) -> Reply:
    """Take the most urgent and oldest task that serves, or the one that is named."""
    given = call.given
    wait = given.seconds("wait") or 0.0
    lease = given.seconds("lease")
    taken = call.yard.claim(given.word(0), kinds=given.texts("kind"), wait=wait, lease=lease)
    if taken is None:
        raise NothingReady(
            f"nothing was ready within {wait:g} s" if wait else None,
            hint="'taskyard stats' shows what there is; 'claim --wait 60' waits for a task to be ready",
        )
    history = taken.history if taken.fence > 1 else []  # before the first claim there is none, and looking costs 1 ms
    data = {
        "claim": taken.handle,
        "fence": taken.fence,
        "task": taken.task.as_dict(),
        "workdir": taken.workdir,
        "history": history,
        "lease_until": taken.lease_until,
    }
    return Reply(data, lambda: _page(taken, history))


def _page(taken: Claim, history: list[dict[str, Any]]) -> str:
    from taskyard.doors.cli import ages, paper

    task = taken.task
    before = [
        f"{entry['outcome']} by {entry['worker']}, {ages.ago(entry['at'])}"
        + (f": {entry['reason']}" if entry["reason"] else "")
        for entry in history
    ]
    page = paper.fields(
        (
            ("claim", taken.handle),
            ("task", f"{task.id} ({task.kind}, priority {task.priority})"),
            ("title", task.title),
            ("mission", task.mission),
            ("data", paper.json_text(task.data)),
            ("lease", f"until {ages.moment(taken.lease_until)}" if taken.lease_until else None),
            ("workdir", taken.workdir),
            ("before", "\n".join(before) or None),
        )
    )
    return f"{page}\n\nWhen it is finished:  taskyard done {taken.handle}\nIf it cannot be:      taskyard fail {taken.handle} --reason TEXT"


COMMANDS = {
    "claim": Command(
        claim,
        "Take one task: the most urgent, then the oldest that serves, or the one that is named. The handle that it prints names this claim in "
        "note, heartbeat, done, fail and release. The task is yours until the lease ends; heartbeat and note renew it. Nothing ready: exit 3.",
        (
            ("taskyard claim", "take the next task, whatever its kind"),
            (
                "taskyard claim --kind build --kind test --wait 60 --json",
                "wait up to a minute for a task of these kinds, and answer as JSON",
            ),
            ("taskyard claim 0001a2b3 --lease 2h", "take this very task, for two hours"),
        ),
        words="[ID]",
        most=1,
        options=(
            Option("--kind", "KIND", "only tasks of this kind", many=True),
            Option("--wait", "S", "wait so long for a task to be ready (30, 10m, 2h)"),
            Option("--lease", "S", "how long the task is mine without a heartbeat (default: the task's own, else 30m)"),
        ),
    ),
}
