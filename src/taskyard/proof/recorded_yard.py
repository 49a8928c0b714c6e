"""A yard, and claims of it, that write down what they are asked for and what they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core.errors import TaskyardError
from taskyard.proof.recorder import word
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

_DRAFTED = ("key", "after", "assignee")


class RecordedYard:
    """Stands for a yard, also to a `Worker`: the verbs that promise something are written down, all others go to the yard itself."""

    def __init__(self, yard: Yard, scribe: HistoryWriter) -> None:
        self.yard = yard
        self.scribe = scribe

    def __getattr__(self, name: str) -> Any:
        return getattr(self.yard, name)

    def add(self, kind: str, data: Any = None, **options: Any) -> Task:
        """As the yard's."""
        asked = self.scribe.ask("add", drafts=[drafted({"kind": kind, "data": data, **options})])
        task = self.settled_by(asked, lambda: self.yard.add(kind, data, **options))
        self.scribe.told(asked, ids=[task.id], created=int(task.created))
        return task

    def add_many(self, tasks: Sequence[dict[str, Any]]) -> Added:
        """As the yard's."""
        asked = self.scribe.ask("add", drafts=[drafted(fields) for fields in tasks])
        added = self.settled_by(asked, lambda: self.yard.add_many(tasks))
        self.scribe.told(asked, ids=list(added), created=added.created)
        return added

    def drop(self, put: Callable[[], object], kind: str, data: Any = None, **options: Any) -> None:
        """Have something that makes a task put into the drop box; `put` does it."""
        asked = self.scribe.ask("drop", drafts=[drafted({"kind": kind, "data": data, **options})])
        put()
        self.scribe.told(asked)

    def claim(
        self, id: str | None = None, *, kinds: Iterable[str] | None = None, worker: str | None = None, **options: Any
    ) -> Held | None:
        """As the yard's."""
        wanted = None if kinds is None else list(kinds)
        asked = self.scribe.ask("claim", id=id, kinds=wanted, worker=worker or self.yard.worker)
        claim = self.settled_by(asked, lambda: self.yard.claim(id, kinds=wanted, worker=worker, **options))
        self.scribe.told(asked, claims=[] if claim is None else [claim.handle])
        return None if claim is None else Held(self, claim)

    def claim_many(self, number: int, *, kinds: Iterable[str] | None = None, **options: Any) -> list[Held]:
        """As the yard's."""
        wanted = None if kinds is None else list(kinds)
        asked = self.scribe.ask("claim", number=number, kinds=wanted, worker=options.get("worker") or self.yard.worker)
        claims = self.settled_by(asked, lambda: self.yard.claim_many(number, kinds=wanted, **options))
        self.scribe.told(asked, claims=[claim.handle for claim in claims])
        return [Held(self, claim) for claim in claims]

    def resume(self, worker: str | None = None) -> list[Held]:
        """As the yard's."""
        asked = self.scribe.ask("resume", worker=worker or self.yard.worker)
        claims = self.settled_by(asked, lambda: self.yard.resume(worker))
        self.scribe.told(asked, claims=[claim.handle for claim in claims])
        return [Held(self, claim) for claim in claims]

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """As the yard's; one that was not made is open, until its claim says it alone."""
        asked = [self.scribe.ask("done", claim=str(handle_of(claim)), result=word(result)) for claim, result in ended]
        try:
            made = self.yard.done_many(ended)
        except TaskyardError as error:
            for number in asked:
                self.scribe.refused(number, error.code)
            raise
        for number, done in zip(asked, made, strict=True):
            if done:
                self.scribe.told(number)
            else:
                self.scribe.refused(number, "unavailable")
        return made

    def held(self, handle: str) -> Held:
        """As the yard's."""
        return Held(self, self.yard.held(handle))

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """As the yard's."""
        return self._steered("cancel", id, lambda: self.yard.cancel(id, reason))

    def retry(self, id: str) -> Task | None:
        """As the yard's."""
        return self._steered("retry", id, lambda: self.yard.retry(id))

    def edit(self, id: str, **changes: Any) -> Task:
        """As the yard's."""
        return self._steered("edit", id, lambda: self.yard.edit(id, **changes), fields=sorted(changes))

    def _steered(self, verb: str, id: str, act: Callable[[], Answer], **given: Any) -> Answer:
        asked = self.scribe.ask(verb, id=id, **given)
        answer = self.settled_by(asked, act)
        self.scribe.told(asked)
        return answer

    def settled_by(self, asked: int, act: Callable[[], Answer]) -> Answer:
        """Act, and write down a refusal."""
        try:
            return act()
        except TaskyardError as error:
            self.scribe.refused(asked, error.code)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.yard.close()
        self.scribe.close()


class Held:
    """Stands for a claim in the same way."""

    def __init__(self, witness: RecordedYard, claim: Claim) -> None:
        self._witness = witness
        self.claim = claim

    def __getattr__(self, name: str) -> Any:
        return getattr(self.claim, name)

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """As the claim's."""
        return self._said("heartbeat", lambda: self.claim.heartbeat(progress, note))

    def note(self, text: str) -> None:
        """As the claim's."""
        self._said("note", lambda: self.claim.note(text))

    def done(self, result: Any = None, *, verified: bool = False) -> None:
        """As the claim's."""
        self._said("done", lambda: self.claim.done(result, verified=verified), result=word(result))

    def fail(self, reason: str, retry: bool = True) -> State:
        """As the claim's."""
        return self._said("fail", lambda: self.claim.fail(reason, retry), reason=word(reason))

    def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """As the claim's."""
        self._said("release", lambda: self.claim.release(after, reason))

    def __enter__(self) -> Self:
        self.claim.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Heartbeats beside the block are not written down: what got no answer in a history proves nothing either way.
        if self.claim.is_over:
            self.claim.__exit__(kind, error, trace)
        elif error is None:
            self._said("done", lambda: self.claim.__exit__(None, None, None), result=word(None))
        else:
            verb = "fail" if isinstance(error, Exception) else "release"
            self._witness.scribe.ask(verb, claim=self.claim.handle)  # whether it counted is not told
            self.claim.__exit__(kind, error, trace)

    def _said(self, verb: str, act: Callable[[], Answer], **given: Any) -> Answer:
        asked = self._witness.scribe.ask(verb, claim=self.claim.handle, **given)
        answer = self._witness.settled_by(asked, act)
        self._witness.scribe.told(asked)
        return answer


def drafted(fields: dict[str, Any]) -> dict[str, Any]:
    """What a history says of a task that is asked for."""
    kept = {name: fields[name] for name in _DRAFTED if fields.get(name)}
    return {"kind": fields["kind"], "data": word(fields.get("data")), **kept}
