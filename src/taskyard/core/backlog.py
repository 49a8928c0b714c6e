"""How full a yard is: which tasks `max_todo` counts, and when an add is refused. Pure functions.

The backlog is every task that has not ended and that no worker holds: todo, waiting and blocked. Only adds are refused; a
task that comes back always has its place.
"""

from __future__ import annotations

from taskyard.core.errors import Full
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.core.draft import Draft
    from taskyard.core.settings import KindLimits

    Bounds = Mapping[str | None, int]
    """The most tasks of the backlog of each bounded kind, and under None of the whole yard."""

STATES = (State.TODO, State.WAITING, State.BLOCKED)
TRUSTED = 60_000  # milliseconds for which a count is carried on by what was added: clients of other versions add without a word
COSTLY = 50  # milliseconds: a count that took longer is not repeated within `REST` times as long
REST = 30
TEAM_LOOK = 1.0  # seconds between two looks for room in a team: a claim in another of its projects wakes no add here


def bounds(max_todo: int | None, kinds: Mapping[str, KindLimits]) -> dict[str | None, int]:
    """Return the bounds of these settings; none for most yards."""
    found: dict[str | None, int] = {} if max_todo is None else {None: max_todo}
    found.update((kind, limits.max_todo) for kind, limits in kinds.items() if limits.max_todo is not None)
    return found


def wanted(bounds: Bounds, drafts: Iterable[Draft]) -> dict[str | None, int]:
    """Return how many places these new tasks take, for each bound that concerns them."""
    found: dict[str | None, int] = {}
    for draft in drafts:
        for bound in (None, draft.kind):
            if bound in bounds:
                found[bound] = found.get(bound, 0) + 1
    return found


def refused(bounds: Bounds, counts: Mapping[str | None, int], wanted: Mapping[str | None, int]) -> Full | None:
    """Return the error for an add that takes more places than are left; None if it fits."""
    for kind, number in wanted.items():
        if counts[kind] + number > bounds[kind]:
            return full(kind, counts[kind], bounds[kind], number)
    return None


def full(kind: str | None, count: int, most: int, number: int) -> Full:
    """Make the error for an add of `number` tasks beside `count` of `most`."""
    what = "the yard" if kind is None else f"kind {kind}"
    setting = "max_todo" if kind is None else f"kinds.{kind}.max_todo"
    if number > most:
        message = f"{number} tasks at once can never fit: {what} takes {most} (max_todo)"
        return Full(message, hint="add them in smaller batches", kind=kind, count=count, most=most, wanted=number)
    more = f", and {number} more do not fit" if number > 1 else ""
    return Full(
        f"{what} is full: {count} of {most} tasks wait for a worker{more}",
        hint=f"wait for room with --wait S (wait= in Python), start more workers, or raise it: taskyard settings {setting}=N",
        kind=kind,
        count=count,
        most=most,
        wanted=number,
    )


def is_current(at: int, now: int) -> bool:
    """Whether a count made at `at` may still be used, with the tasks added since then on top."""
    return 0 <= now - at < TRUSTED


def may_count(at: int, cost: int, now: int) -> bool:
    """Whether the backlog may be counted again: a costly count only now and then, however many adders ask for it."""
    return cost < COSTLY or not 0 <= now - at < REST * cost
