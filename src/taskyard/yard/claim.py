"""One held task, as its worker sees it: in a local yard, or in one behind a gateway."""

from __future__ import annotations

import os

from taskyard.core import times
from taskyard.core.draft import compact
from taskyard.core.errors import ClaimLost, Conflict, NotFound
from taskyard.yard.claim_verbs import handle_of, legal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from threading import Event, Thread
    from types import TracebackType
    from typing import Any, Protocol, Self, Unpack

    from taskyard.core.options import TaskOptions
    from taskyard.core.task import Handle, State, Task
    from taskyard.port import ClaimRef, YardPort
    from taskyard.yard.arguments import Inputs

    class Granted(Protocol):
        """The data that a yard has of a claim that it has just granted."""

        @property
        def task(self) -> Task:
            """The task, as it was when it was claimed."""

        @property
        def lease_until(self) -> int:
            """When the lease ends, in milliseconds since 1970."""


HISTORY_MOST = 16_384  # characters of earlier attempts' reasons and notes that `history` returns
RESULT_MOST = 2_000  # characters of a rejected result that `history` returns
BEATS = 3  # heartbeats in one lease: two may be lost
_BRANCH = os.environ.get("TASKYARD_BRANCH")  # a worker sets it for its command: it is there from the start, or never
_LOOK_EVERY = 2.0  # seconds: how soon after a suspend a holder beats, and how soon it repeats a beat that failed


class Claim:
    """A task that this worker holds. Every verb checks with the store that it still does, and raises `ClaimLost` if not.

    As a context manager it heartbeats while the block runs, and ends the claim with it. The task is done if the block ends,
    failed if it raises, released on an interrupt. A claim that the block has ended itself stays as it is.
    """

    lost = False
    """Set by the heartbeat of a `with` block when the claim is lost: the block should stop its work."""
    is_over = False
    """Whether this object has ended the claim, or given it up."""

    _handle: Handle | None = None
    _has_workdir = False
    _inputs: Inputs | None = None
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
        """The name of this claim, for other processes and for later."""
        return str(self._parsed())

    @property
    def fence(self) -> int:
        """A number that only rises from claim to claim of this task; pass it to the systems that the work writes to."""
        return self._parsed().fence

    @property
    def task(self) -> Task:
        """The task, as it was when it was claimed."""
        return self._granted.task if self._granted is not None else self._yard.get(self._parsed().id)

    @property
    def workdir(self) -> str | None:
        """A folder for the files of this attempt, kept with it; None if the yard has no files.

        The first access makes it; the end of the claim removes it if it is empty.
        """
        self._has_workdir = True
        return self._yard.workdir(self.ref, make=True)

    @property
    def workdir_path(self) -> str | None:
        """The path of that folder, whether it exists or not; nothing is made."""
        return self._yard.workdir(self.ref)

    @property
    def lease_until(self) -> str | None:
        """When the first lease of the claim ends."""
        return None if self._granted is None else times.rfc3339(self._granted.lease_until)

    @property
    def lease(self) -> float:
        """How long the claim lasts without a heartbeat, in seconds."""
        return self._yard.lease(self.ref)

    @property
    def history(self) -> list[dict[str, Any]]:
        """How earlier attempts at this task ended, oldest first, with the notes and the folder of each.

        Notes and reasons are cut to a budget: the newest are whole, and older ones are cut.
        """
        report = self._yard.report(self._parsed().id)
        history = []
        for entry in report.history:
            if entry["fence"] < self.fence:
                notes = [note["text"] for note in report.notes if note["claim"] == entry["claim"]]
                history.append({**entry, "notes": notes})
                if "result" in entry and len(compact(entry["result"])) > RESULT_MOST:
                    history[-1]["result"] = "[cut]"  # 'show' has all of it
        return _within(history, HISTORY_MOST)

    @property
    def inputs(self) -> Inputs:
        """The results of the tasks that this one comes after and that are done, by id; read at the first access."""
        if self._inputs is None:
            self._inputs = self._yard.inputs(self.task)
        return self._inputs

    def task_dict(self) -> dict[str, Any]:
        """Return the task's fields, as its worker gets them: with the `inputs` of a task that comes after others."""
        fields = self.task.as_dict()
        if fields["after"]:
            fields["inputs"] = dict(self.inputs)
            if self.inputs.left_out:
                fields["inputs_left_out"] = self.inputs.left_out
        return fields

    def add(self, kind: str, data: Any = None, **options: Unpack[TaskOptions]) -> Task:
        """Add a task that came up during the work on this one: a part of it (`parent`), and `discovered_from` it."""
        fields: TaskOptions = {"parent": self.id, "discovered_from": self.id}
        fields.update(options)
        return self._yard.add(kind, data, **fields)

    def holds(self) -> bool:
        """Whether this claim still holds its task; this only reads: it renews nothing and logs nothing."""
        return self._yard.holding([self.ref])[0]

    def settled(self) -> State | None:
        """Return the state that this claim's own holder put the task into (`YardPort.settled`), or None; this only reads."""
        return self._yard.settled(self.ref)

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """Start the lease anew, and return its end."""
        return self._yard.heartbeat(self.ref, progress, note)

    def note(self, text: str) -> None:
        """Leave a note for the next worker on this task; this renews the lease too."""
        self._yard.heartbeat(self.ref, None, legal_text(text, "note"))

    def publish(self, source: str | PathLike[str], destination: str | PathLike[str]) -> str:
        """Put a copy of a file in place, never over one that a later claim of this task has put there.

        Return its real path. Readers see the old content or the new, whole.
        """
        from taskyard.yard import publish

        return publish.publish(self, os.fspath(source), os.fspath(destination))

    def done(self, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result; a repeated call changes nothing.

        A task that names a check is done only if that passes; with `verified` the caller has run it. With `conn`, a psycopg
        connection, a yard in PostgreSQL ends it in the caller's transaction: it is done once that commits.
        """
        if _BRANCH is not None:
            result = with_branch(self.handle, result)
        self._yard.done(self.ref, result, conn=conn, verified=verified)
        self.ended()

    def fail(self, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error; the task is retried later if attempts are left and `retry` is set. Return its state."""
        state = self._yard.fail(self.ref, reason, retry)
        self.ended()
        return state

    def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """Give the task back; it is ready again after `after` seconds, and this counts as no attempt."""
        self._yard.release(self.ref, after, reason)
        self.ended()

    def crash(self, reason: str) -> State:
        """End the claim as if this worker had died with it. Return the task's state."""
        state = self._yard.crash(self.ref, reason)
        self.ended()
        return state

    def ended(self) -> None:
        """Mark the claim as ended, by this object or in a batch, and remove its folder if it is empty."""
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
            beat_at = times.ticks() + min(_LOOK_EVERY, every)  # an unreachable store may be back before the lease ends
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
            pass  # the block's own error is more useful, and nothing was published

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


def with_branch(handle: str, result: Any) -> Any:
    """Return the result with the branch of this process' worktree, if it is a command that works on this claim in one."""
    if _BRANCH is None or os.environ.get("TASKYARD_CLAIM") != handle or not isinstance(result, dict | None):
        return result
    return {"branch": _BRANCH, **(result or {})}  # no commit, which would make the same done another one later


class ClaimBlock:
    """A `with` block on a claim, or on None if nothing was ready."""

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
    """Return the history with its texts cut to `budget` characters; the newest attempts keep theirs first."""
    for entry in reversed(history):
        for name in ("reason", "notes"):
            texts = entry[name] if name == "notes" else [entry[name] or ""]
            kept = []
            for text in reversed(texts):
                kept.append(text if len(text) <= budget else f"{text[:budget]} [cut]" if budget else "[cut]")
                budget = max(0, budget - len(text))
            entry[name] = kept[::-1] if name == "notes" else entry[name] and kept[0]
    return history
