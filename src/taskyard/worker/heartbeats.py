"""Heartbeats beside the work: which claims are held, when the next beat of each is due, and which of them are lost.

Commands run in processes of their own, so a thread of the worker beats for them. A handler in Python may hold the
interpreter for any time, and no other thread would run meanwhile. For those a companion process beats, which asks the
system whether the worker still runs. A worker that is stopped must lose its claims.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from taskyard.core.errors import ClaimLost, NotFound, TaskyardError
from taskyard.core.times import ticks
from taskyard.yard.claim import BEATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.worker.job import Job
    from taskyard.yard.claim import Claim

LOOK_EVERY = 1.0  # seconds: how soon a cancelled task is noticed
STOP_GRACE = 1e9  # seconds for work to stop after its claim was lost: the command's own grace is the limit


class Beats(Protocol):
    """Keeps claims alive, and stops the work on those that are lost."""

    def hold(self, jobs: Sequence[Job]) -> None:
        """Beat for these jobs from now on."""

    def drop(self, jobs: Sequence[Job]) -> None:
        """Stop beating for these jobs, which have ended."""

    def overdue(self) -> float:
        """Return by how many seconds the next look at a claim is overdue; 0 if none is."""

    def close(self) -> None:
        """Stop all beats."""


class Held:
    """One claim that is kept alive."""

    __slots__ = ("beat_at", "every", "look_at")

    def __init__(self, lease: float) -> None:
        self.every = lease / BEATS
        self.beat_at = ticks() + self.every
        self.look_at = 0.0
        self.look_again()

    def look_again(self) -> None:
        """Set the time of the next look: soon enough to notice a cancel, and to beat in time."""
        self.look_at = ticks() + min(LOOK_EVERY, self.every)


class Heartbeats:
    """The claims that are held, and their beats."""

    def __init__(
        self,
        claim: Callable[[str], Claim | None],
        lost: Callable[[str], None],
        may_beat: Callable[[], bool] = lambda: True,
    ) -> None:
        self._claim = claim
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._lost = lost
        self._may_beat = may_beat
        self._change = threading.Event()
        self._until: float | None = 0.0
        self._over = False

    def add(self, handle: str, lease: float) -> None:
        """Beat for this claim; it is looked up by its handle when it is first due."""
        held = Held(lease)
        with self._lock:
            self._held[handle] = held
        if self._until is None or held.look_at < self._until:
            self._change.set()

    def remove(self, handle: str) -> None:
        """Stop beating for this claim."""
        with self._lock:
            self._held.pop(handle, None)

    def run(self) -> None:
        """Beat for held claims until `stop`."""
        idle = False
        while not self._over:
            pause = self.due_in()
            if pause is None and not idle:
                pause = LOOK_EVERY  # short tasks come one after the other: waking up for each of them costs too much
            idle = pause is None
            self._until = None if pause is None else ticks() + pause
            if self._change.wait(pause):
                self._change.clear()
            self.turn()

    def stop(self) -> None:
        """Make `run` return."""
        self._over = True
        self._change.set()

    def due_in(self) -> float | None:
        """Return seconds until the next look is due, or None if no claim is held."""
        with self._lock:
            soonest = min((one.look_at for one in self._held.values()), default=None)
        return None if soonest is None else max(0.0, soonest - ticks())

    def overdue(self) -> float:
        """Return by how many seconds the next look is overdue; 0 if none is."""
        with self._lock:
            soonest = min((one.look_at for one in self._held.values()), default=None)
        return 0.0 if soonest is None else max(0.0, ticks() - soonest)

    def turn(self) -> None:
        """Check, and beat for, every claim that is due."""
        now = ticks()
        with self._lock:
            due = [(handle, one) for handle, one in self._held.items() if one.look_at <= now]
        for handle, one, claim, held in self._looked_up(due):
            if held and self._has_beaten(one, claim):
                one.look_again()
            else:
                self.remove(handle)
                self._lost(handle)

    def _looked_up(self, due: list[tuple[str, Held]]) -> list[tuple[str, Held, Claim, bool]]:
        """Return each with its claim, and whether that holds; return none if the store is unreachable, and look again later."""
        try:
            asked = [(handle, one, self._claim(handle)) for handle, one in due]
            known = [(handle, one, claim) for handle, one, claim in asked if claim is not None]  # else just dropped
            # Checked before the beat: a beat on a claim that its own command has ended would be logged as a late verb.
            alive = known[0][2].yard.holding([claim.ref for _, _, claim in known]) if known else []
        except TaskyardError:
            for _, one in due:
                one.look_again()
            return []
        return [(*each, held) for each, held in zip(known, alive, strict=True)]

    def _has_beaten(self, one: Held, claim: Claim) -> bool:
        """Beat if that is due; return whether the claim is alive."""
        try:
            if ticks() + min(LOOK_EVERY, one.every) / 2 >= one.beat_at and self._may_beat():
                claim.heartbeat()
                one.beat_at = ticks() + one.every
        except (ClaimLost, NotFound):
            return False
        except TaskyardError:
            pass  # unreachable; the next look tries again
        return True


class ThreadBeats:
    """Beats from a thread of this process."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._pulse = Heartbeats(self._claim, lambda handle: lose(self._jobs.get(handle)))
        self._thread = threading.Thread(target=self._pulse.run, name="heartbeats", daemon=True)
        self._thread.start()

    def hold(self, jobs: Sequence[Job]) -> None:
        """Beat for these jobs from now on."""
        for job in jobs:
            self._jobs[job.handle] = job
            self._pulse.add(job.handle, job.claim.lease)

    def drop(self, jobs: Sequence[Job]) -> None:
        """Stop beating for these jobs, which have ended."""
        for job in jobs:
            self._jobs.pop(job.handle, None)
            self._pulse.remove(job.handle)

    def overdue(self) -> float:
        """Return by how many seconds the next look is overdue; 0 if none is."""
        return self._pulse.overdue()

    def _claim(self, handle: str) -> Claim | None:
        job = self._jobs.get(handle)
        return None if job is None else job.claim

    def close(self) -> None:
        """Stop all beats."""
        self._pulse.stop()
        self._thread.join()


def has_ended(claim: Claim) -> bool:
    """Whether this claim has ended its task, or submitted it for review. One that was given up is another's to begin."""
    state = claim.settled()
    return state is not None and (state.ended or claim.yard.get(claim.id).review == "pending")


def lose(job: Job | None) -> None:
    """Stop the work on a lost claim, unless its task has ended by it, and the work is only finishing."""
    if job is None:
        return
    try:
        if has_ended(job.claim):
            return
    except TaskyardError:
        pass  # a claim that cannot be looked up is not ours any more
    job.stop(STOP_GRACE, lost=True)
