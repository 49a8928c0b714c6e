"""Names of a task: its id, the beginning of it, or its short name; and the errors for names of no task, or of several."""

from __future__ import annotations

from taskyard.core import ids, times, words
from taskyard.core.errors import Ambiguous, Invalid, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_SHOWN = 5  # tasks that an error message lists


def task_id(value: object) -> str:
    """Return the pattern that stores look up for this name (`ids.pattern`); raise `NotFound` if it can name no task."""
    value = getattr(value, "id", value)  # a `Task` is accepted in place of its id
    if not isinstance(value, str):
        raise Invalid(f"a task id must be a text, not {type(value).__name__}")
    pattern = ids.pattern(value)
    if pattern is None:
        raise NotFound(
            f"no task has the id {words.shown(value, 80)}",
            hint=f"an id has {ids.LENGTH} characters; a beginning of at least {ids.SEGMENT} will do, "
            "or a short name such as 0-kf12, as 'taskyard list' shows it",
        )
    return pattern


def said(pattern: str) -> str:
    """Return the pattern in the form that people write."""
    begin, end = ids.ends(pattern)
    return f"{begin.lstrip('0') or '0'}-{end}" if end else begin


def unknown(pattern: str) -> NotFound:
    """Make the error for a pattern that fits no task."""
    what = "short name" if ids.ends(pattern)[1] else "id"
    return NotFound(f"no task has the {what} {said(pattern)}", hint="'taskyard list' shows the tasks there are")


def ambiguous(pattern: str, matches: Collection[str]) -> Ambiguous:
    """Make the error for a pattern that fits several tasks. A short name fits only `matches`, so longer ones are unique."""
    ordered = sorted(matches, key=ids.age_key)[:_SHOWN]
    more = ", ..." if len(matches) > _SHOWN else ""
    if not ids.ends(pattern)[1]:
        some = ", ".join(ordered)
        return Ambiguous(
            f"more than one task starts with {pattern}: {some}{more}",
            hint="give more of the id, or a short name, as 'taskyard list' shows it",
        )
    named = zip(ids.shorten(ordered, matches), ordered, strict=True)
    some = ", ".join(f"{short} (added {times.rfc3339(ids.created(id))})" for short, id in named)
    return Ambiguous(
        f"{said(pattern)} is the end of {len(matches)} tasks by now: {some}{more}",
        hint="say the longer name of the one that is meant; 'taskyard show' tells what it is",
    )
