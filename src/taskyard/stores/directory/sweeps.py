"""What is overdue, and whose turn it is to look."""

from __future__ import annotations

import time

from taskyard.stores.directory.names import Token
from taskyard.stores.directory.waiting import Waiting
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.ground import Ground
    from taskyard.task import Standing

_AFTER_SLEEP = 20.0  # seconds without reaping after this machine was suspended: its workers need a beat to wake up too


class Sweeps:
    """Finds lapsed claims and due tasks."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._waiting = Waiting(ground.lookup, ground.mover, ground.root)
        self._swept: tuple[int, float] | None = None
        self._no_reaping_before = 0.0

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        ground = self._ground
        now = ground.clock.exact()
        late: list[Standing] = []
        dead = ground.liveness.census()
        may_reap = self._may_reap(now)
        for name in self._disk.listdir(ground.processing):
            token = Token.parse(name)
            if token is None or token.lease is None or len(late) >= limit:
                continue
            standing = token.standing(State.PROCESSING, (ground.processing, name), ground.policy)
            standing.dead = token.vouched and dead(token.worker, token.nonce)
            try:
                lapsed = may_reap and now - self._disk.stamp(f"{ground.processing}/{name}") > token.lease
            except FileNotFoundError:
                continue
            if standing.dead or lapsed:
                late.append(standing)
        for found in self._waiting.due(now):
            if len(late) >= limit:
                break
            late.append(found.token.standing(found.state, found.place, ground.policy))
        return late

    def _may_reap(self, now: int) -> bool:
        """Not right after this machine slept: its claims look dead, but their workers are only just waking up.

        Only a process that was there before can notice; one that has just begun judges by the leases alone.
        """
        ticks = time.monotonic()
        if self._swept is not None:
            slept = (now - self._swept[0]) / 1000 - (ticks - self._swept[1])
            if slept > _AFTER_SLEEP / 2:
                self._no_reaping_before = ticks + _AFTER_SLEEP
        self._swept = (now, ticks)
        return ticks >= self._no_reaping_before

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep; the turn is taken by a rename, so one caller gets it."""
        folder = f"{self._ground.root}/turns"
        last = max(
            (int(name) for name in self._ground.lookup.names(folder) if name.isascii() and name.isdigit()), default=None
        )
        if last is None:
            self._disk.append(f"{folder}/0", b"")  # somebody tidied too well: begin anew
            return False
        try:
            if self._ground.clock.exact() - self._disk.stamp(f"{folder}/{last}") < every * 1000:
                return False
        except FileNotFoundError:
            return False
        return self._ground.mover.move(f"{folder}/{last}", folder, str(last + 1))
