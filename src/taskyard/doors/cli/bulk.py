"""`cancel`, `retry` and `release` for many tasks: by several ids, or by a filter that is counted and confirmed first."""

from __future__ import annotations

import os
import sys
import time

from taskyard.core import words
from taskyard.core.errors import Invalid
from taskyard.doors.cli import confirm, filters
from taskyard.doors.cli.parser import Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.doors.cli.parser import Given

_EVERY = 0.2  # seconds between two lines of progress
_SHOWN = 10  # refused tasks that the text names
_FILTERS = ("state", "kind", "mission", "worker")
OPTIONS = (
    *filters.OPTIONS,
    Option("--worker", "NAME", "with a filter: only tasks that this worker holds; else: who I am"),
    Option("--yes", None, "do not ask whether it is meant"),
)


def by_filter(given: Given) -> bool:
    """Return whether tasks are chosen by a filter; beside words, `--worker` is who I am and no filter."""
    if not given.words:
        return any(map(given.flag, _FILTERS))
    named = next((name for name in _FILTERS[:3] if given.flag(name)), None)
    if named is not None:
        raise Invalid(f"tasks are named, or chosen by --{named}, not both", hint="leave out the names, or the filter")
    return False


def as_myself(call: Call) -> Call:
    """Give `--worker` its global meaning, who I am, for a verb that takes it as a filter too."""
    name = call.given.text("worker")
    if name is not None:
        call.worker = words.worker(name)
    return call


def several(call: Call, verb: str, ids: list[str], reason: str | None = None) -> Reply:
    """Do it with these tasks; exit 1 if one of them was refused."""
    outcome = call.yard.bulk(verb, ids, reason=reason, apply=True, progress=_progress(verb))
    return _reply(verb, outcome, 1 if outcome["refused"] else 0)


def chosen(call: Call, verb: str, reason: str | None = None) -> Reply:
    """Count the tasks that match, ask whether they are meant, and do it with no more than these."""
    given = call.given
    states = filters.states(given)
    choice: dict[str, Any] = {
        "state": None if states is None else sorted(states),
        "kind": given.texts("kind"),
        "mission": given.text("mission"),
        "worker": given.text("worker"),
    }
    most = None
    if not given.flag("yes"):
        most = call.yard.bulk(verb, **choice)["count"]
        confirm.confirmed(call, most, f"{verb} {most} task{'s'[: most != 1]}")
    outcome = call.yard.bulk(verb, **choice, reason=reason, apply=True, most=most, progress=_progress(verb))
    return _reply(verb, outcome, 0)


def _reply(verb: str, outcome: dict[str, Any], code: int) -> Reply:
    data = {name: outcome[name] for name in ("count", "changed", "refused")}
    return Reply(data, lambda: _text(verb, outcome), code, stands=_done(verb, outcome))


def _text(verb: str, outcome: dict[str, Any]) -> str:
    from taskyard.core import ids
    from taskyard.doors.cli import output

    if not outcome["count"]:
        remark("no such tasks")
    for refused in outcome["refused"][:_SHOWN]:
        remark(f"{ids.short(refused['id'])} was left as it is: {output.plain(refused['reason'])}")
    if len(outcome["refused"]) > _SHOWN:
        remark(f"and {len(outcome['refused']) - _SHOWN} more")
    return _done(verb, outcome) if outcome["count"] else ""


def _done(verb: str, outcome: dict[str, Any]) -> str:
    past = {"cancel": "cancelled", "retry": "retried", "release": "released"}[verb]
    left = f", {len(outcome['refused'])} left as they are" if outcome["refused"] else ""
    return f"{outcome['changed']} task{'s'[: outcome['changed'] != 1]} {past}{left}"


def _progress(verb: str) -> Callable[[int, int], None] | None:
    """Return a function that shows how far it is, on a terminal and not too often."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    began = last = time.monotonic()

    def show(done: int, all_of_them: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == all_of_them:
            text = "\r\x1b[K" if last != began else ""
        elif now - last >= _EVERY:
            last, text = now, f"\r{verb}: {done} of {all_of_them}\x1b[K"
        else:
            return
        sys.stderr.write(text)
        sys.stderr.flush()

    return show
