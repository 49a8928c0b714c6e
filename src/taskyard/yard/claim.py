"""One held task, as its worker sees it."""

from __future__ import annotations

from taskyard.core import draft, moves, times, words
from taskyard.core.errors import ClaimLost, Invalid
from taskyard.core.task import Handle, State
from taskyard.yard import settling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event, Thread
    from types import TracebackType
    from typing import Any, Self

    from taskyard.core.task import Standing, Task
    from taskyard.store import Grant
    from taskyard.yard import Yard

TEXT_MOST = 65_536  # characters of a reason or a note
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

    _handle: Handle | None = None
    _over = False
    _has_workdir = False
    _beat: Thread | None = None
    _stop: Event | None = None

    def __init__(self, yard: Yard, grant: Grant | None = None, handle: Handle | None = None) -> None:
        self._yard = yard
        self._grant = grant
        self._standing: Standing | None = None if grant is None else grant.standing
        if handle is not None:
            self._handle = handle

    def _parsed(self) -> Handle:
        if self._handle is None:
            assert self._grant is not None  # a claim is made from a grant or from a handle
            standing = self._grant.standing
            self._handle = Handle(standing.id, standing.fence, standing.nonce or "")
        return self._handle

    @property
    def yard(self) -> Yard:
        """The yard that the task is in."""
        return self._yard

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
        return self._grant.task if self._grant is not None else self._yard.get(self._parsed().id)

    @property
    def workdir(self) -> str | None:
        """A folder for what this attempt alone leaves behind, kept with it; None where the yard has no files."""
        self._has_workdir = True
        return self._yard._store.workdir(self._parsed())

    @property
    def lease_until(self) -> str | None:
        """When the lease that the claim began with ends."""
        return None if self._grant is None else times.rfc3339(self._grant.lease_until)

    @property
    def lease(self) -> float:
        """How long the claim lasts without a heartbeat, in seconds."""
        return (
            self._grant.standing.lease if self._grant is not None else self._yard._store.stand(self._parsed().id).lease
        )

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
        return self._yard._store.holding([self._parsed()])[0]

    def was_settled(self) -> bool:
        """Whether this claim is over because its own holder ended it or gave it up; a look only."""
        handle = self._parsed()
        standing = self._yard._store.stand(handle.id)
        if standing.is_under(handle):
            return standing.state is not State.PROCESSING
        history = self._yard._store.get(handle.id).history
        return any(
            entry["claim"] == str(handle) and entry["outcome"] in settling.GIVEN_UP.values() for entry in history
        )

    def has_failed_for_good(self) -> bool:
        """Whether this claim has ended its task as failed; a look only."""
        standing = self._yard._store.stand(self._parsed().id)
        return standing.is_under(self._parsed()) and standing.state is State.FAILED

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """Begin the lease anew and give its end."""
        share = None if progress is None else _share(progress)
        text = None if note is None else legal_text(note, "note")
        return settling.renew(self._yard, self, share, text)

    def note(self, text: str) -> None:
        """Leave a word for whoever works on this task next; renews the lease too."""
        self.heartbeat(note=legal_text(text, "note"))

    def done(self, result: Any = None, *, conn: Any = None) -> None:
        """End the task with a result; once, however often it is said.

        With a psycopg connection, of a yard in PostgreSQL, it is part of the caller's transaction: done when that commits.
        """
        if result is None:
            settling.settle(self._yard, self, "done", moves.done, conn)
        else:
            draft.payload(result, "result")
            settling.settle(self._yard, self, "done", lambda standing: moves.done(standing, result), conn)
        self._over = True

    def fail(self, reason: str = "no reason was given", retry: bool = True) -> State:
        """Give up with an error; tried again later while attempts are left and `retry` holds. Gives the task's state."""
        text = legal_text(reason, "reason")
        policy = self._yard.policy
        state = settling.settle(self._yard, self, "fail", lambda standing: moves.failed(standing, policy, text, retry))
        self._over = True
        return state

    def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """Hand the task back, to be tried again after so many seconds; it counts as no attempt."""
        delay = times.seconds(after, "after") if after else 0.0
        text = None if reason is None else legal_text(reason, "reason")
        settling.settle(self._yard, self, "release", lambda standing: moves.released(standing, delay, text))
        self._over = True

    def crash(self, reason: str) -> State:
        """Give the task back as if this worker had died with it, which has not. Gives the task's state."""
        text = legal_text(reason, "reason")
        policy = self._yard.policy
        state = settling.settle(self._yard, self, "crash", lambda standing: moves.crashed(standing, policy, text))
        self._over = True
        return state

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
            except ClaimLost:
                self.lost = not self._over
                return
            except Exception:  # noqa: S112  the next beat tells
                continue
            beat_at = times.ticks() + every

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stop is not None  # both are set by __enter__
        assert self._beat is not None
        self._stop.set()
        self._beat.join()
        if self._over:
            return
        if error is None:
            self.done()
            return
        try:
            if isinstance(error, Exception):
                self.fail(f"{type(error).__name__}: {error}")
            else:
                self.release()
        except ClaimLost:
            pass  # the block's own error says more, and nothing was published

    def __repr__(self) -> str:
        return f"<Claim {self.handle}>"


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


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Invalid(f"progress must be a number between 0 and 1, not {words.shown(value)}")
    return float(value)


def legal_text(value: object, name: str) -> str:
    """A reason or note that any store can keep; over-long ones lose their middle, because causes stand at the ends."""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise Invalid(f"{name} is empty")
    text = value.encode("utf-8", "replace").decode()
    if len(text) <= TEXT_MOST:
        return text
    half = TEXT_MOST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
