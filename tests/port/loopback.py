"""A yard behind a wire: every verb is one request and one answer, both plain JSON, and all policy is on the other side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard import Claim, Task
from taskyard.core.retry import Policy
from taskyard.core.store_records import Report
from taskyard.core.task import Handle, State
from taskyard.core.times import moment
from taskyard.yard.arguments import Events
from taskyard.yard.claim_verbs import handle_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard import Yard
    from taskyard.port import ClaimRef, Waiter


class Server:
    """Answers requests out of a real yard."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.asked: list[str] = []

    def ask(self, request: str) -> str:
        verb, given = json.loads(request)
        self.asked.append(verb)
        try:
            act = getattr(self, f"on_{verb}", None) or getattr(self.yard, verb)
            return json.dumps({"ok": act(**given)})
        except taskyard.TaskyardError as error:
            return json.dumps({"error": [type(error).__name__, error.message, error.hint]})

    def on_claim_many(self, worker: str, **given: Any) -> list[Any]:
        claims = self.yard.claim_many(worker=worker, **given)
        return [[claim.handle, claim.task.as_dict(), claim.lease_until] for claim in claims]

    def on_claim(self, **given: Any) -> list[Any]:
        claim = self.yard.claim(**given)
        return [] if claim is None else [[claim.handle, claim.task.as_dict(), claim.lease_until]]

    def on_report(self, id: str) -> list[Any]:
        found = self.yard.report(id)
        return [found.task.as_dict(), found.history, found.notes, found.stale_results]

    def on_events(self, **given: Any) -> list[Any]:
        events = self.yard.events(**given)
        return [list(events), events.cursor]

    def on_remains(self, kinds: list[str] | None) -> bool:
        return self.yard.remains(None if kinds is None else frozenset(kinds))


class Granted:
    """What came over the wire with a claim."""

    def __init__(self, task: dict[str, Any], lease_until: str) -> None:
        self.task = Task(**{**task, "state": State(task["state"])})
        self.lease_until = moment(lease_until, "lease_until")


class LoopbackYard:
    """The client's side: it keeps nothing and decides nothing."""

    tends = False
    named: str | None = None
    batch = 10
    one_process = False
    url = label = "loopback:"
    checks: dict[str, list[str]] = {}  # noqa: RUF012  a server's own
    policy = Policy()

    def __init__(self, server: Server, worker: str) -> None:
        self._server = server
        self.worker = worker

    def _ask(self, verb: str, **given: Any) -> Any:
        answer = json.loads(self._server.ask(json.dumps([verb, given])))
        if "error" in answer:
            name, message, hint = answer["error"]
            raise getattr(taskyard, name)(message, hint=hint)
        return answer["ok"]

    def _claims(self, granted: list[Any]) -> list[Claim]:
        return [Claim(self, Handle.parse(handle), Granted(task, until)) for handle, task, until in granted]  # type: ignore[arg-type]

    def claim(self, id: str | None = None, **given: Any) -> Claim | None:
        claims = self._claims(self._ask("claim", id=id, worker=self.worker, **given))
        return claims[0] if claims else None

    def claim_many(self, number: int, kinds: Iterable[str] | None = None, **given: Any) -> list[Claim]:
        wanted = None if kinds is None else sorted(kinds)
        return self._claims(self._ask("claim_many", number=number, kinds=wanted, worker=self.worker, **given))

    def heartbeat(self, claim: ClaimRef, progress: float | None = None, note: str | None = None) -> str:
        return str(self._ask("heartbeat", claim=str(handle_of(claim)), progress=progress, note=note))

    def done(self, claim: ClaimRef, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        self._ask("done", claim=str(handle_of(claim)), result=result, verified=verified)

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        return [bool(made) for made in self._ask("done_many", ended=[[str(handle_of(c)), r] for c, r in ended])]

    def fail(self, claim: ClaimRef, reason: str = "", retry: bool = True) -> State:
        return State(self._ask("fail", claim=str(handle_of(claim)), reason=reason, retry=retry))

    def release(self, claim: ClaimRef, after: float = 0.0, reason: str | None = None) -> None:
        self._ask("release", claim=str(handle_of(claim)), after=after, reason=reason)

    def crash(self, claim: ClaimRef, reason: str) -> State:
        return State(self._ask("crash", claim=str(handle_of(claim)), reason=reason))

    def holding(self, claims: Sequence[ClaimRef]) -> list[bool]:
        return [bool(held) for held in self._ask("holding", claims=[str(handle_of(claim)) for claim in claims])]

    def settled(self, claim: ClaimRef) -> State | None:
        state = self._ask("settled", claim=str(handle_of(claim)))
        return None if state is None else State(state)

    def lease(self, claim: ClaimRef) -> float:
        return float(self._ask("lease", claim=str(handle_of(claim))))

    def workdir(self, claim: ClaimRef, *, make: bool = False) -> str | None:
        return None  # the folder is on the other side

    def tidy(self, claim: ClaimRef) -> None:
        return None

    def report(self, id: str) -> Report:
        task, history, notes, stale = self._ask("report", id=id)
        return Report(Task(**{**task, "state": State(task["state"])}), history, notes, stale, lambda: None)

    def get(self, id: str) -> Task:
        return self.report(id).task

    def events(self, **given: Any) -> Events:
        found, cursor = self._ask("events", **given)
        events = Events(found)
        events.cursor = cursor
        return events

    def log_end(self) -> str:
        return str(self._ask("log_end"))

    def remains(self, kinds: frozenset[str] | None) -> bool:
        return bool(self._ask("remains", kinds=None if kinds is None else sorted(kinds)))

    def paused(self) -> dict[str, Any]:
        return dict(self._ask("paused"))

    def unusable(self) -> list[str]:
        return list(self._ask("unusable"))

    def give_back_dead(self) -> list[tuple[str, str]]:
        return []

    def vouch(self, lease: float) -> int | None:
        return None  # no kernel knows of a worker behind a wire: its lease does

    def alarm(self) -> float | None:
        return 0.05

    def waiter(self, seconds: float | None, stopped: Callable[[], bool] | None = None) -> Waiter:
        return self._server.yard.waiter(seconds, stopped)  # a gateway's long poll

    def wake(self) -> None:
        self._server.yard.wake()

    def tend(self) -> None:
        return None  # the other side does
