"""The directory store: tasks as files, states as folders, one rename for each move. PROTOCOL.md tells it to the byte.

This module only puts the parts together: `claims` hands out, `shifts` moves, `adding` and `ingest` take in, `sweeps` and
`mending` keep the yard going, `looking` and `listing` read.
"""

from __future__ import annotations

import functools
import os

from taskyard.core.settings import refuse_unfinished
from taskyard.core.task import State
from taskyard.store import OneByOne, Outside
from taskyard.stores.directory import names
from taskyard.stores.directory.context import Context
from taskyard.stores.directory.filesystem.errors import told, unavailable
from taskyard.stores.directory.recovery.overdue import Overdue
from taskyard.stores.directory.tasks.claims import Claims
from taskyard.stores.directory.tasks.shifts import Shifts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.store import Grant, Heard, Query, Report, Store, Trail, Want
    from taskyard.stores.directory.dropbox.guests import Guests
    from taskyard.stores.directory.dropbox.intake import Intake
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.recovery.crashes import CrashRecovery
    from taskyard.stores.directory.retention.prune import Pruner
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.listing import Listing
    from taskyard.stores.directory.tasks.show import Reader
    from taskyard.stores.wakeup import Wakeup


class DirectoryStore(OneByOne):
    """One yard in one directory, shared by any number of processes."""

    def __init__(
        self, root: str, durability: str | None = None, disk: Disk | None = None, *, links: bool = False
    ) -> None:
        self._context = context = Context(root, durability, disk, links)
        refuse_unfinished(context.copy_of, root)
        self.url = self.label = root
        self.policy = context.policy
        self.durability = context.durability
        self.checks = context.checks
        self._shifts = Shifts(context)
        self._claims = Claims(context, self._shifts)
        self._overdue = Overdue(context)

    # Parts that a claim does without are loaded when they are first asked for.

    @functools.cached_property
    def _adder(self) -> Adder:
        from taskyard.stores.directory.tasks.add import Adder

        return Adder(self._context, self._shifts)

    @functools.cached_property
    def _rejected(self) -> Rejected:
        from taskyard.stores.directory.dropbox.rejected import Rejected

        return Rejected(self._context)

    @functools.cached_property
    def _intake(self) -> Intake:
        from taskyard.stores.directory.dropbox.intake import Intake

        return Intake(self._context, self._adder, self._rejected)

    @functools.cached_property
    def _guests(self) -> Guests:
        from taskyard.stores.directory.dropbox.guests import Guests

        return Guests(self._context, self._shifts, self._rejected)

    @functools.cached_property
    def _listing(self) -> Listing:
        from taskyard.stores.directory.tasks.listing import Listing

        return Listing(self._context)

    @functools.cached_property
    def _reader(self) -> Reader:
        from taskyard.stores.directory.tasks.show import Reader

        return Reader(self._context, self._listing)

    @functools.cached_property
    def _crash_recovery(self) -> CrashRecovery:
        from taskyard.stores.directory.recovery.crashes import CrashRecovery

        return CrashRecovery(self._context, self._adder, self._intake, self._rejected, self._pruner, self._shifts.edges)

    @functools.cached_property
    def _pruner(self) -> Pruner:
        from taskyard.stores.directory.retention.prune import Pruner

        return Pruner(self._context, self._reader, self._adder, self._shifts.edges)

    def within(self, connection: Any) -> Store:  # noqa: ARG002  the seam's words
        """There is no such thing here."""
        from taskyard.store import foreign

        raise foreign(self.label)

    # Putting work in

    @told
    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""
        with self._context.adding:
            added = self._adder.add(drafts, by)
        return [self._reader.known(new) if isinstance(new, str) else new.task(self.policy) for new in added]

    @told
    def intake(self, by: str, limit: int | None = None) -> int:
        """Take in what lies in the drop box, or so many files of it."""
        if self._has_guests():
            with self._context.adding:
                self._guests.tidy(self._context.clock.exact(), by, deep=False)
        if not any(map(names.is_dropped, self._context.disk.listdir(f"{self.url}/todo"))):
            return 0
        with self._context.adding:
            return self._intake.take(by, limit)

    def _has_guests(self) -> bool:
        """Whether the folders that other programs move files in hold what only they put there."""
        listdir, context = self._context.disk.listdir, self._context
        return (
            any(not names.is_known_in_todo(name) for name in listdir(f"{self.url}/todo"))
            or not all(map(names.begins_with_id, listdir(context.processing)))
            or any(not names.is_known_in_failed(name) for name in listdir(f"{self.url}/failed"))
        )

    @told
    def outside(self) -> Outside:
        """What other programs hold or have done here, and what lies in the drop box and is no task."""
        from taskyard.stores.directory.dropbox import not_tasks

        return Outside(self._guests.list(), not_tasks.others(self._context))

    @told
    def dropped_under(self, name: str) -> list[str]:
        """The ids of the tasks that were dropped under this name."""
        from taskyard.stores.directory.dropbox import dropped_names

        return dropped_names.find(self._context, name)

    @told
    def set_aside(self) -> list[dict[str, str | None]]:
        """The files that were refused, each with its name and the reason."""
        return self._rejected.list()

    @told
    def give_back(self, name: str) -> None:
        """Put a file that was set aside back into the drop box."""
        self._rejected.give_back(name)

    # Claims; `claim` and `shift` are the hot path, and do without the wrapper

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or None."""
        try:
            return self._claims.next(want, nonce) if want.id is None else self._claims.named(want, want.id, nonce)
        except OSError as error:
            raise unavailable(error, self.url) from error

    @told
    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""
        return self._claims.renew(standing, progress, note)

    @told
    def vouch(self, worker: str, incarnation: str) -> int | None:
        """Have others see at once when this process is dead; None where nobody could tell."""
        return self._context.liveness.vouch(worker, incarnation)

    @told
    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds."""
        return self._claims.held(worker)

    @told
    def take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> Grant | None:
        """The same claim under a new fence and nonce, or None if it is over."""
        return self._claims.take_over(standing, move, nonce, by)

    @told
    def workdir(self, handle: Handle) -> str:
        """The claim's own folder, made if need be."""
        return self._context.records.folder(handle)

    @told
    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if nothing was put there."""
        folder = self._context.records.path(handle)
        self._context.mover.drop(folder)
        self._context.mover.drop(os.path.dirname(folder))

    @told
    def pause(self, kind: str | None, on: bool) -> None:
        """Hand out no more tasks of this kind, or of any; or do so again."""
        self._claims.pause(kind, on)

    @told
    def paused(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole yard is paused, and which kinds are."""
        return self._claims.paused()

    # Moves

    @told
    def stand(self, id: str) -> Standing:
        """Where the one task that fits this pattern stands now."""
        found = self._context.locator.find(id)
        standing = found.token.standing(found.state, found.place, self.policy)
        if found.state in (State.BLOCKED, State.CANCELLED, State.FAILED):
            standing.unmet = tuple(self._shifts.edges.needs(standing.id))
        return standing

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:
        """Whether the move was made: only if the task still stands exactly there."""
        try:
            return self._shifts.shift(standing, move, by, lapsed)
        except OSError as error:
            raise unavailable(error, self.url) from error

    @told
    def confirm(self, standing: Standing) -> None:
        """Have the move that led to this standing survive a power cut, whoever made it."""
        self._context.sync_again(*standing.place)

    @told
    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Write down that a verb came too late, and keep its output for a person to read."""
        self._shifts.refuse(handle, verb, move, by)

    @told
    def drafted(self, standing: Standing) -> Draft | None:
        """What was asked for when the task was added or last edited; None if it has moved on."""
        return self._shifts.drafted(standing)

    @told
    def rewrite(self, standing: Standing, draft: Draft, move: Move, by: str, *, due_anew: bool) -> bool:
        """Whether the task, if it still stands exactly there, is now what the draft says."""
        return self._shifts.rewrite(standing, draft, move, by, due_anew)

    # Upkeep

    @told
    def tallies(self) -> dict[str, int]:
        """Races for a task that were lost, and files in the drop box."""
        dropped = sum(map(names.is_dropped, self._context.disk.listdir(f"{self.url}/todo")))
        return {"lost_races": self._claims.lost_races(), "dropped": dropped}

    def unusable(self) -> list[str]:
        """Lanes and segments that the last claims passed over because the system refuses them, each with the reason."""
        return [f"{folder}: {reason}" for folder, reason in sorted(self._context.ready_cache.closed.items())]

    @told
    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        return self._overdue.overdue(limit)

    @told
    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep."""
        return self._overdue.turn(every)

    @told
    def mend(self, by: str) -> int:
        """Put right what processes that died in mid-move have left."""
        with self._context.adding:
            # Before anything is judged by whether its task is there.
            return self._guests.tidy(self._context.clock.exact(), by, deep=True) + self._crash_recovery.mend(by)

    @told
    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:
        """Let ended tasks that are too old or too many go to the archive, or tell what would."""
        return self._pruner.plan(age, count, apply, by)

    @told
    def audit(
        self,
        by: str,
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state; with a sweep, after healing what can be healed without loss."""
        from taskyard.stores.directory.fsck.verdict import Proof
        from taskyard.stores.directory.recovery.missing import Missing
        from taskyard.stores.directory.recovery.segments import SegmentRecovery

        patrol = SegmentRecovery(self._context, Missing(self._context))
        proof = Proof(self._context, self._shifts, self._adder, self._rejected, patrol, by)
        return proof.prove(sweep, progress)

    # Reader

    @told
    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern."""
        return self._reader.report(id)

    @told
    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks and the cursor of the next; what is paused is not there for a taker."""
        everything, some = self.paused() if query.taker is not None else (False, frozenset())
        if everything:
            return [], None
        return self._reader.page(query, some, self._claims.in_use if query.taker is not None else None)

    @told
    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""
        return self._listing.shorten(ids)

    @told
    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        return self._listing.counts()

    @told
    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, merged from all files of the log."""
        from taskyard.stores.directory.log.reader import LogReader

        return LogReader(self._context.disk, f"{self.url}/events").read(trail)

    @told
    def latest(self) -> str:
        """The cursor of the log's end."""
        from taskyard.stores.directory.log.reader import LogReader

        return LogReader(self._context.disk, f"{self.url}/events").latest()

    # Waiting

    @functools.cached_property
    def _wakeup(self) -> Wakeup:
        from taskyard.stores.directory.log.watch import Watch
        from taskyard.stores.wakeup import Wakeup

        # Two threads may come here at once, and must share one.
        wakeup: Wakeup = self.__dict__.setdefault(
            "_wakeup", Wakeup(Watch(self._context.disk, self.url, self._context.local))
        )
        return wakeup

    @told
    def listen(self) -> Heard:
        """What the wakeup has rung so far."""
        return self._wakeup.listen()

    @told
    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Return when something may have changed since then, or after so many seconds."""
        return self._wakeup.wait(seconds, heard)

    def wake(self) -> None:
        """End every wait in this process."""
        wakeup: Wakeup | None = self.__dict__.get("_wakeup")
        if wakeup is not None:
            wakeup.wake()

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as the last look could see."""
        return self._overdue.alarm()

    def close(self) -> None:
        """Let go of the log, and take down the note of what was intended."""
        wakeup: Wakeup | None = self.__dict__.get("_wakeup")
        if wakeup is not None:
            wakeup.close()
        context = self._context
        for let_go in (self._claims.flush, context.liveness.close, context.log.close, context.writer.close):
            try:
                let_go()
            except OSError:
                # A file server that was started anew has lost our locks (EIO), or somebody took our file for a dead one's
                # (ESTALE). What was acknowledged is kept already, and nobody can do anything about the rest.
                continue
