"""The janitor's work in bounded shares: take in dropped files, give back what the dead left, wake what is due, cancel what is late.

Every command and every worker does a share of it, so no daemon is needed; a separate janitor only makes it prompter.
"""

from __future__ import annotations

from taskyard.core import moves
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.task import Standing
    from taskyard.store import Store

SHARE = 200  # moves in one unrequested sweep, so that no command stalls on work that others left
INTAKE = 500  # dropped files that one listing, or one unrequested sweep, takes in, for the same reason


class Swept:
    """What a sweep did."""

    __slots__ = ("expired", "mended", "reaped", "taken", "ticked", "ticks_left", "woken")

    def __init__(self) -> None:
        self.mended = 0
        self.taken = 0
        self.reaped = 0
        self.woken = 0
        self.expired = 0
        self.ticked = 0
        """Tasks that were added for schedules."""
        self.ticks_left = 0
        """Schedules with a tick due that this process cannot add: it lacks the library that reads cron expressions."""

    def __bool__(self) -> bool:
        return bool(self.taken or self.reaped or self.woken or self.expired or self.mended or self.ticked)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        names = ("taken", "reaped", "woken", "expired", "mended", "ticked")
        return {name: getattr(self, name) for name in names}


def sweep(store: Store, by: str, limit: int = SHARE, *, mend: bool = False, intake: int | None = None) -> Swept:
    """Make at most `limit` overdue moves, and take in at most `intake` files; safe beside any number of other sweeps.

    Without `intake` all dropped files are taken in: no claim returns "nothing ready" beside a full drop box.
    """
    swept = Swept()
    if mend:
        swept.mended = store.upkeep.mend(by)
    if store.dropbox is not None:
        swept.taken = store.dropbox.intake(by, intake)
    swept.expired = store.upkeep.expire(by, limit)
    overdue = store.upkeep.overdue(limit)
    for standing in overdue:
        if standing.state is State.PROCESSING:
            swept.reaped += reap(store, standing, by)
    due = [standing for standing in overdue if standing.state is not State.PROCESSING]
    swept.woken = sum(store.shift([(standing, moves.woken(standing)) for standing in due], by))
    return swept


def reap(store: Store, standing: Standing, by: str) -> bool:
    """End the claim if its lease is over or its worker dead; return whether it was ended."""
    return store.shift([(standing, moves.reaped(standing, store.policy))], by)[0]
