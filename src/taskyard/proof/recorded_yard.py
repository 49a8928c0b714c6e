"""A yard and its claims, wrapped so that each request and each answer is written to a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core.errors import TaskyardError
from taskyard.proof.recorder import fingerprint
from taskyard.yard.claim_verbs import handle_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self, TypeVar

    from taskyard.core.task import State, Task
    from taskyard.port import ClaimRef
    from taskyard.proof.recorder import HistoryWriter
    from taskyard.yard import Yard
    from taskyard.yard.arguments import Added
    from taskyard.yard.claim import Claim

    Answer = TypeVar("Answer")

_DRAFT_FIELDS = ("key", "after", "assignee")


class RecordedYard:
    """Wraps a yard, also for a `Worker`. It records the verbs that promise something, and passes all others through."""

    def __init__(self, yard: Yard, writer: HistoryWriter) -> None:
        self.yard = yard
        self.writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.yard, name)

    def add(self, kind: str, data: Any = None, **options: Any) -> Task:
        """Record the yard's verb."""
        request = self.writer.request("add", drafts=[recorded_draft({"kind": kind, "data": data, **options})])
        task = self.call(request, lambda: self.yard.add(kind, data, **options))
        self.writer.answered(request, ids=[task.id], created=int(task.created))
        return task

    def add_many(self, tasks: Sequence[dict[str, Any]]) -> Added:
        """Record the yard's verb."""
        request = self.writer.request("add", drafts=[recorded_draft(fields) for fields in tasks])
        added = self.call(request, lambda: self.yard.add_many(tasks))
        self.writer.answered(request, ids=list(added), created=added.created)
        return added

    def drop(self, put: Callable[[], object], kind: str, data: Any = None, **options: Any) -> None:
        """Record a file that `put` moves into the drop box."""
        request = self.writer.request("drop", drafts=[recorded_draft({"kind": kind, "data": data, **options})])
        put()
        self.writer.answered(request)

    def claim(
        self, id: str | None = None, *, kinds: Iterable[str] | None = None, worker: str | None = None, **options: Any
    ) -> RecordedClaim | None:
        """Record the yard's verb."""
        wanted = None if kinds is None else list(kinds)
        request = self.writer.request("claim", id=id, kinds=wanted, worker=worker or self.yard.worker)
        claim = self.call(request, lambda: self.yard.claim(id, kinds=wanted, worker=worker, **options))
        self.writer.answered(request, claims=[] if claim is None else [claim.handle])
        return None if claim is None else RecordedClaim(self, claim)

    def claim_many(self, number: int, *, kinds: Iterable[str] | None = None, **options: Any) -> list[RecordedClaim]:
        """Record the yard's verb."""
        wanted = None if kinds is None else list(kinds)
        request = self.writer.request(
            "claim", number=number, kinds=wanted, worker=options.get("worker") or self.yard.worker
        )
        claims = self.call(request, lambda: self.yard.claim_many(number, kinds=wanted, **options))
        self.writer.answered(request, claims=[claim.handle for claim in claims])
        return [RecordedClaim(self, claim) for claim in claims]

    def resume(self, worker: str | None = None) -> list[RecordedClaim]:
        """Record the yard's verb."""
        request = self.writer.request("resume", worker=worker or self.yard.worker)
        claims = self.call(request, lambda: self.yard.resume(worker))
        self.writer.answered(request, claims=[claim.handle for claim in claims])
        return [RecordedClaim(self, claim) for claim in claims]

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """Record the yard's verb; a done that was not made stays unknown, until the worker sends it alone."""
        requests = [
            self.writer.request("done", claim=str(handle_of(claim)), result=fingerprint(result))
            for claim, result in ended
        ]
        try:
            made = self.yard.done_many(ended)
        except TaskyardError as error:
            for request in requests:
                self.writer.failed(request, error.code)
            raise
        for request, done in zip(requests, made, strict=True):
            if done:
                self.writer.answered(request)
            else:
                self.writer.failed(request, "unavailable")
        return made

    def held(self, handle: str) -> RecordedClaim:
        """Record the yard's verb."""
        return RecordedClaim(self, self.yard.held(handle))

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Record the yard's verb."""
        return self._change("cancel", id, lambda: self.yard.cancel(id, reason))

    def retry(self, id: str) -> Task | None:
        """Record the yard's verb."""
        return self._change("retry", id, lambda: self.yard.retry(id))

    def edit(self, id: str, **changes: Any) -> Task:
        """Record the yard's verb."""
        return self._change("edit", id, lambda: self.yard.edit(id, **changes), fields=sorted(changes))

    def _change(self, verb: str, id: str, action: Callable[[], Answer], **arguments: Any) -> Answer:
        request = self.writer.request(verb, id=id, **arguments)
        answer = self.call(request, action)
        self.writer.answered(request)
        return answer

    def call(self, request: int, action: Callable[[], Answer]) -> Answer:
        """Run the action, and record its error."""
        try:
            return action()
        except TaskyardError as error:
            self.writer.failed(request, error.code)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.yard.close()
        self.writer.close()


class RecordedClaim:
    """Wraps a claim in the same way."""

    def __init__(self, yard: RecordedYard, claim: Claim) -> None:
        self._yard = yard
        self.claim = claim

    def __getattr__(self, name: str) -> Any:
        return getattr(self.claim, name)

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """Record the claim's verb."""
        return self._call("heartbeat", lambda: self.claim.heartbeat(progress, note))

    def note(self, text: str) -> None:
        """Record the claim's verb."""
        self._call("note", lambda: self.claim.note(text))

    def done(self, result: Any = None, *, verified: bool = False) -> None:
        """Record the claim's verb."""
        self._call("done", lambda: self.claim.done(result, verified=verified), result=fingerprint(result))

    def fail(self, reason: str, retry: bool = True) -> State:
        """Record the claim's verb."""
        return self._call("fail", lambda: self.claim.fail(reason, retry), reason=fingerprint(reason))

    def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """Record the claim's verb."""
        self._call("release", lambda: self.claim.release(after, reason))

    def __enter__(self) -> Self:
        self.claim.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Heartbeats that run beside the block are not recorded: a history proves nothing by what it leaves out.
        if self.claim.is_over:
            self.claim.__exit__(kind, error, trace)
        elif error is None:
            self._call("done", lambda: self.claim.__exit__(None, None, None), result=fingerprint(None))
        else:
            verb = "fail" if isinstance(error, Exception) else "release"
            self._yard.writer.request(verb, claim=self.claim.handle)  # `__exit__` does not return whether it counted
            self.claim.__exit__(kind, error, trace)

    def _call(self, verb: str, action: Callable[[], Answer], **arguments: Any) -> Answer:
        request = self._yard.writer.request(verb, claim=self.claim.handle, **arguments)
        answer = self._yard.call(request, action)
        self._yard.writer.answered(request)
        return answer


def recorded_draft(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a requested task that a history keeps."""
    kept = {name: fields[name] for name in _DRAFT_FIELDS if fields.get(name)}
    return {"kind": fields["kind"], "data": fingerprint(fields.get("data")), **kept}
