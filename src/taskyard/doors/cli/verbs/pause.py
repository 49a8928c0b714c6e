"""`pause` and `unpause`: stop claims of one kind or of all tasks, and allow them again."""

from __future__ import annotations

from taskyard.core import reasons
from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pause(call: Call) -> Reply:
    """Stop claims, of one kind or of all tasks."""
    call.yard.pause(call.given.word(0))
    return _reply(call)


def unpause(call: Call) -> Reply:
    """Allow claims again."""
    call.yard.unpause(call.given.word(0))
    return _reply(call)


def _reply(call: Call) -> Reply:
    now = call.yard.paused()
    return Reply({"paused": now}, lambda: reasons.paused(now) or "nothing is paused")


def concerning(paused: dict[str, Any], kinds: list[str] | None) -> dict[str, Any] | None:
    """Return the part of the pause that stops claims of these kinds, or of any if `kinds` is None; None if no part does."""
    some = [kind for kind in paused["kinds"] if kinds is None or kind in kinds]
    return {"yard": paused["yard"], "kinds": some} if paused["yard"] or some else None


COMMANDS = {
    "pause": Command(
        pause,
        "Hand out no more tasks of this kind, or without KIND none at all, until 'unpause' of the same words. What is being worked on goes on, "
        "and tasks can be added; 'ready' and 'claim' do not see what is paused.",
        (
            ("taskyard pause deploy", "no worker is handed a deploy from now on"),
            ("taskyard pause", "no worker is handed anything"),
        ),
        words="[KIND]",
        most=1,
    ),
    "unpause": Command(
        unpause,
        "Hand out again what 'pause' of the same words held back. A kind that was paused by its name stays paused when the yard is not any more.",
        (
            ("taskyard unpause deploy", "deploys are handed out again"),
            ("taskyard unpause", "the yard is open again, but for kinds that are paused by name"),
        ),
        words="[KIND]",
        most=1,
    ),
}
