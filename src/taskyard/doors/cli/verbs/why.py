"""`why`: why nothing is ready, or why one task is where it is, and what would move it."""

from __future__ import annotations

from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def why(call: Call) -> Reply:
    """Say why nothing is ready here, or why the named task is where it is."""
    given = call.given
    facts = call.yard.why(given.word(0), kinds=given.texts("kind"), mission=given.text("mission"))
    return Reply(facts, lambda: _page(facts))


def _page(facts: dict[str, Any]) -> str:
    from taskyard.core import reasons
    from taskyard.doors.cli import output

    if "reasons" not in facts:
        lines = reasons.clauses(facts) or [facts["message"]]
        return output.plain("\n".join((*lines, f"-> {facts['next']}")))
    task, messages = facts["task"], [f"  {reason['message']}" for reason in facts["reasons"]]
    state = output.paint(facts["state"], facts["state"])
    head = state if task is None else f"{task['short']}  {state}  {output.plain(task['title'] or task['kind'])}"
    return "\n".join((head, output.plain("\n".join((*messages, f"-> {facts['next']}")))))


COMMANDS = {
    "why": Command(
        why,
        "Say why nothing is ready for this worker: what is paused, blocked behind a task that failed or was cancelled, in use, assigned, not due, or of a "
        "kind that no worker has asked for. With ID: why that task is where it is, and what would move it; the name of a file that was set aside serves too. "
        "It changes nothing, and reads a bounded part of the yard: 'at least' stands before a number that may be higher. An unknown ID: exit 6.",
        (
            ("taskyard why", "why does nothing move?"),
            ("taskyard why --kind build --worker ada --json", "the facts about what ada could build, for a program"),
            ("taskyard why 0-kf12", "why is this task where it is?"),
        ),
        words="[ID]",
        most=1,
        options=(
            Option("--kind", "KIND", "only tasks of this kind", many=True),
            Option("--mission", "TEXT", "only tasks of this mission"),
        ),
    ),
}
