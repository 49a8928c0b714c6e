"""One held task, as its worker sees it: on any yard, here or behind a gateway."""

from __future__ import annotations

from taskyard.core import times
from taskyard.core.errors import ClaimLost, Conflict, NotFound
from taskyard.yard.claim_verbs import handle_of, legal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event, Thread
    from types import TracebackType
    from typing import Any, Protocol, Self

    from taskyard.core.task import Handle, State, Task
    from taskyard.port import ClaimRef, YardPort

    class Granted(Protocol):
        """What a yard knows of a claim that it has just granted."""

        @property
        def task(self) -> Task:
            """The task, as it was when it was claimed."""

        @property
        def lease_until(self) -> int:
            """When the lease ends, in milliseconds since 1970."""


HISTORY_MOST = 16_384  # characters of earlier attempts' reasons and notes that a claimer is handed
BEATS = 3  # heartbeats in one lease: two may be lost
_LOOK_EVERY = 2.0  # seconds: how soon after a suspend a holder beats, and how soon again after a beat that failed


class Claim:
    """A task in this worker's hands. Every verb checks with the store that it still is; `ClaimLost` says that it is not.

    As a context manager it heartbeats beside the block, and ends the task with it: done if the block ends, failed if it
    raises, released on an interrupt, unless the block has ended the claim itself.
    """

    lost = False
    """Set by the heartbeat beside a block when the claim is gone: stop the work."""
    is_over = False
    """Whether this object has ended the claim, or given it up."""

    _handle: Handle | None = None
    _has_workdir = False
    _beat: Thread | None = None
    _stop: Event | None = None

    def __init__(self, yard: YardPort, ref: ClaimRef, granted: Granted | None = None) -> None:
        self._yard = yard
        self._granted = granted
        self.ref = ref
        """What names the claim to its yard: the standing that it was granted with, or its handle."""

    def _parsed(self) -> Handle:
        if self._handle is None:
            self._handle = handle_of(self.ref)
        return self._handle

    @property
    def yard(self) -> YardPort:
        """The yard that the task is in."""
        return self._yard

    @property
    def id(self) -> str:
        """The task's id."""
        return self._parsed().id

    @property
    def handle(self) -> str:
        """The word that names this claim, for other processes and for later."""
        return str(self._parsed())

    @property
    def fence(self) -> int:
        """The number that only rises from claim to claim of this task; hand it to whatever the work writes to."""
        return self._parsed().fence

    @property
    def task(self) -> Task:
        """The task, as it was when it was claimed."""
        return self._granted.task if self._granted is not None else self._yard.get(self._parsed().id)

    @property
    def workdir(self) -> str | None:
        """A folder for what this attempt alone leaves behind, kept with it; None where the yard has no files.

        It is made when it is first asked for, and removed at the end if nothing was put there.
        """
        self._has_workdir = True
        return self._yard.workdir(self.ref, make=True)

    @property
    def workdir_path(self) -> str | None:
        """Where that folder is, or would be: nothing is made."""
        return self._yard.workdir(self.ref)

    @property
    def lease_until(self) -> str | None:
        """When the lease that the claim began with ends."""
        return None if self._granted is None else times.rfc3339(self._granted.lease_until)

    @property
    def lease(self) -> float:
        """How long the claim lasts without a heartbeat, in seconds."""
        return self._yard.lease(self.ref)

    @property
    def history(self) -> list[dict[str, Any]]:
        """How earlier attempts at this task ended, oldest first, with the notes and the folder that each left.

        Notes and reasons come within a budget: where there is more, the newest are whole and older ones are cut.
        """
        report = self._yard.report(self._parsed().id)
        history = []
        for entry in report.history:
            if entry["fence"] < self.fence:
                notes = [note["text"] for note in report.notes if note["claim"] == entry["claim"]]
                history.append({**entry, "notes": notes})
        return _within(history, HISTORY_MOST)

    def holds(self) -> bool:
        """Whether this claim still holds its task; a look only, which renews nothing and is not logged."""
        return self._yard.holding([self.ref])[0]

    def settled(self) -> State | None:
        """The state that this claim's own holder has put the task into (`YardPort.settled`), or None; a look only."""
        return self._yard.settled(self.ref)

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """Begin the lease anew, and return its end."""
        return self._yard.heartbeat(self.ref, progress, note)

    def note(self, text: str) -> None:
        """Leave a word for the next worker on this task; renews the lease too."""
        self._yard.heartbeat(self.ref, None, legal_text(text, "note"))

    def done(self, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result; once, however often it is called.

        A task that names a check is done only if that passes; with `verified` the caller has run it. With a psycopg
        connection, of a yard in PostgreSQL, it is part of the caller's transaction: done when that commits.
        """
        self._yard.done(self.ref, result, conn=conn, verified=verified)
        self.ended()

    def fail(self, reason: str = "no reason was given", retry: bool = True) -> State:
        """Give up with an error; tried again later while attempts are left and `retry` holds. Returns the task's state."""
        state = self._yard.fail(self.ref, reason, retry)
        self.ended()
        return state

    def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """Hand the task back, to be tried again after that many seconds; it counts as no attempt."""
        self._yard.release(self.ref, after, reason)
        self.ended()

    def crash(self, reason: str) -> State:
        """Give the task back as if this worker had died with it, which has not. Returns the task's state."""
        state = self._yard.crash(self.ref, reason)
        self.ended()
        return state

    def ended(self) -> None:
        """The claim was ended, here or with many others: remove its folder if nothing was put there."""
        self.is_over = True
        if self._has_workdir:
            self._yard.tidy(self.ref)

    def __enter__(self) -> Self:
        from threading import Event, Thread

        self._stop = Event()
        self._beat = Thread(
            target=self._heartbeats, args=(self._stop, self.lease / BEATS), name=f"heartbeat {self.handle}", daemon=True
        )
        self._beat.start()
        return self

    def _heartbeats(self, stop: Event, every: float) -> None:
        beat_at = times.ticks() + every
        while not stop.wait(max(0.0, min(_LOOK_EVERY, every, beat_at - times.ticks()))):
            if times.ticks() < beat_at:
                continue
            beat_at = times.ticks() + min(_LOOK_EVERY, every)  # a store that is away may be back before the lease ends
            try:
                self.heartbeat()
            except (ClaimLost, NotFound):  # not found: it was cancelled, and pruned since
                self.lost = not self.is_over
                return
            except Exception:  # noqa: S112  the next beat tries again
                continue
            beat_at = times.ticks() + every

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self.is_over and self.task.verify is not None:
            self._check_at_the_end()  # which may take longer than the lease: heartbeats go on
        self._stop_beating()
        if self.is_over:
            return
        if error is None:
            self.done()
            return
        try:
            if isinstance(error, Exception):
                self.fail(f"{type(error).__name__}: {error}")
            else:
                self.release()
        except (ClaimLost, Conflict, NotFound):
            pass  # the block's own error says more, and nothing was published

    def _check_at_the_end(self) -> None:
        """End a task that names a check as its block ends: done if the check passes, else failed, and raise `Conflict`."""
        try:
            self.done()
        except Conflict as refused:
            try:
                self.fail(refused.message)
            except (ClaimLost, Conflict):
                pass
            raise
        finally:
            self._stop_beating()

    def _stop_beating(self) -> None:
        assert self._stop is not None  # both are set by __enter__
        assert self._beat is not None
        self._stop.set()
        self._beat.join()

    def __repr__(self) -> str:
        return f"<Claim {self.handle}>"


class ClaimBlock:
    """A `with` block on a claim, or on none where nothing was ready."""

    def __init__(self, claim: Claim | None) -> None:
        self._claim = claim

    def __enter__(self) -> Claim | None:
        return None if self._claim is None else self._claim.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._claim is not None:
            self._claim.__exit__(kind, error, trace)


def _within(history: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """The history with its texts cut to the budget, the newest attempts first served."""
    for entry in reversed(history):
        for name in ("reason", "notes"):
            texts = entry[name] if name == "notes" else [entry[name] or ""]
            kept = []
            for text in reversed(texts):
                kept.append(text if len(text) <= budget else f"{text[:budget]} [cut]" if budget else "[cut]")
                budget = max(0, budget - len(text))
            entry[name] = kept[::-1] if name == "notes" else entry[name] and kept[0]
    return history
