"""What each worker did, from the events of the log: which task it held from when to when, and what went wrong. No I/O."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Event = dict[str, Any]

ENDS = ("done", "failed", "released", "reaped", "cancelled")
"""Events that end a claim."""
_MARKED = ("reaped", "refused")


class Span:
    """One claim: who held which task, from when to when; None where that lies outside the events."""

    __slots__ = ("begin", "end", "fence", "how", "kind", "task", "worker")

    def __init__(self, worker: str, task: str, kind: str, fence: int, begin: str | None) -> None:
        self.worker = worker
        self.task = task
        self.kind = kind
        self.fence = fence
        self.begin = begin
        self.end: str | None = None
        self.how: str | None = None
        """The event that ended it; `resumed` if a later claim took the task over. None while it runs."""

    def as_dict(self) -> dict[str, Any]:
        """Return the span as plain data."""
        return {"task": self.task, "kind": self.kind, "begin": self.begin, "end": self.end, "how": self.how}


class WorkerHistory:
    """What one worker did, as far as the events show."""

    __slots__ = ("counts", "last_at", "marks", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.marks: list[dict[str, Any]] = []
        """Claims that it lost (`reaped`), and what it said too late (`refused`)."""
        self.counts = {"done": 0, "failed": 0, "reaped": 0, "refused": 0}
        self.last_at: str | None = None


def by_worker(events: Iterable[Event]) -> dict[str, WorkerHistory]:
    """Return what each worker did; the events come oldest first."""
    found: dict[str, WorkerHistory] = {}
    running: dict[str, Span] = {}
    for event in events:
        name, task = str(event["event"]), str(event["task"])
        worker = event.get("worker")
        if name == "claimed" and worker is not None:
            _close(running.pop(task, None), event, "resumed")
            running[task] = Span(worker, task, str(event["kind"]), int(event["fence"]), event["at"])
            _of(found, worker).spans.append(running[task])
        elif name in ENDS:
            span = running.pop(task, None)
            if span is None and worker is not None and name != "cancelled":
                span = Span(worker, task, str(event["kind"]), int(event["fence"]), None)
                _of(found, worker).spans.append(span)
            _close(span, event, name)
            worker = span.worker if span is not None else worker
        if worker is not None:
            _note(_of(found, worker), event)
    return found


def _of(found: dict[str, WorkerHistory], worker: str) -> WorkerHistory:
    return found.setdefault(worker, WorkerHistory())


def _close(span: Span | None, event: Event, how: str) -> None:
    if span is not None:
        span.end, span.how = event["at"], how


def _note(history: WorkerHistory, event: Event) -> None:
    """Count the event, and mark it if something went wrong; what a janitor did is no sign of life."""
    name = event["event"]
    if name in history.counts:
        history.counts[name] += 1
    if name in _MARKED:
        history.marks.append({"at": event["at"], "event": name, "task": event["task"], "reason": event.get("reason")})
    if name != "reaped":
        history.last_at = event["at"]
