"""The ten tools, for one agent on one yard."""

from __future__ import annotations

import json
from threading import Event, Lock

from taskyard.core.errors import NotFound, TaskyardError, TimedOut
from taskyard.core.times import ticks
from taskyard.doors.mcp import refusals, replies, verbs
from taskyard.doors.mcp.checks import Checks
from taskyard.doors.mcp.claims import LEASE, Claims, Held
from taskyard.doors.mcp.replies import Refusal
from taskyard.yard.claim import with_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.task import Handle
    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

IDLE = 4 * 3600.0  # seconds without a call after which claims are no longer renewed
WAIT_MOST = 45.0  # seconds: clients cut a call at about 60
_SLICE = 5.0  # seconds of a wait after which a closing server, or a cancelled call, is noticed
_REPEAT = 600.0  # seconds in which the same add again is taken for a lost reply


class Agent:
    """One agent: what it holds, and the tools that it calls. Calls may come from several threads."""

    def __init__(
        self, yard: YardPort, idle: float = IDLE, closing: Event | None = None, lent: str | None = None
    ) -> None:
        self._yard = yard
        self._lent = lent
        """The handle of the claim that a worker made for its command, which is this agent; or None."""
        self.lock = yard.vouch(LEASE)
        """The descriptor of the lock that backs the claims, or None."""
        self.claims = Claims(yard, idle)
        self.closing = Event() if closing is None else closing
        """Set when the client is gone: every wait ends."""
        if lent is not None:
            self._borrow(lent)
        self._claiming = Lock()
        self._ended: tuple[str, str, str] | None = None
        self._checks = Checks(self.closing)
        self._adding = Lock()
        self._added: dict[str, tuple[float, str]] = {}
        self._tools: dict[str, Callable[..., dict[str, Any]]] = {
            "claim": self._claim,
            "done": self._done,
            "fail": self._fail,
            "release": self._release,
            "note": self._note,
            "resume": self._resume,
            "ready": self._ready,
            "show": self._show,
            "add": self._add,
            "wait": self._wait,
        }

    def _borrow(self, handle: str) -> None:
        try:
            claim = self._yard.held(handle)
            self._yard.get(claim.id)
            if claim.holds():
                self.claims.take(claim, is_lent=True)
        except NotFound:
            self._lent = None  # it is a claim in another yard
        except TaskyardError:
            return  # it is over, or the yard is away: its worker knows

    @property
    def yard(self) -> YardPort:
        """The yard that the tools use."""
        return self._yard

    def call(self, name: str, arguments: dict[str, Any], cancelled: Event | None = None) -> tuple[str, bool]:
        """Run a tool and return its text, and whether it is a refusal."""
        self.claims.called()
        try:
            refusals.check(name, arguments)
            stopped = _Stopped(self.closing, cancelled)
            more = {"stopped": stopped} if name in ("claim", "wait") else {}
            return replies.line(self._tools[name](**arguments, **more)), False
        except Refusal as refused:
            return str(refused), True
        except TaskyardError as error:
            return str(refusals.refusal(error, name, arguments.get("claim"), self.claims)), True
        except Exception as error:
            return str(
                Refusal(
                    f"unexpected {type(error).__name__}: {error}", f"{name} again; if that fails too, tell a person"
                )
            ), True

    # Take

    def _claim(
        self,
        task: str | None = None,
        kind: str | None = None,
        mission: str | None = None,
        wait: float = 0,
        another: bool = False,
        *,
        stopped: _Stopped,
    ) -> dict[str, Any]:
        end = ticks() + wait
        while True:
            left = end - ticks()
            waiter = None
            if left > 0:  # it listens before the look
                waiter = self._yard.claim_waiter(min(left, _SLICE), stopped, kinds=kind, mission=mission)
            # Not locked while it waits: two agents may share this server. Two calls at once must not both pass the check.
            with self._claiming:
                self._refuse_second(task, another)
                claim = None if stopped.cancelled() else self._yard.claim(task, kinds=kind, mission=mission)
                if claim is not None:
                    self._take(claim)
            if claim is not None and stopped.cancelled():
                self.claims.drop(claim.handle)
                claim.release(reason="the call that claimed it was cancelled")
                return {"nothing_ready": "the call was cancelled", "next": "claim()"}
            if claim is not None:
                self.claims.forget_lost()
                return replies.claimed(claim)
            if waiter is None or stopped():
                return verbs.nothing_ready(self._yard, kind, mission, wait)
            waiter.nap(self._yard.alarm())

    def _take(self, claim: Claim) -> None:
        """Hold a claim. From here on `done` without a claim means this one, and is no repetition."""
        self._ended = None
        self.claims.take(claim)

    def _refuse_second(self, task: str | None, another: bool) -> None:
        held = self.claims.all()
        if another or not (held or self._lent):
            return
        if not held:
            raise Refusal(
                "your worker has handed you one task, and it is over",
                "end, and your worker goes on with the next; claim(another=true) only if your task is to work on others",
            )
        names = ", ".join(each.name for each in held[:3])
        raise Refusal(
            f"you hold {names} already",
            f"finish it with done(result), fail(reason) or release(); resume() shows it again; "
            f"claim({'task=..., ' if task else ''}another=true) if several of you share this server",
        )

    def _resume(self) -> dict[str, Any]:
        """Return what is held here; claims of the same name that are held elsewhere are taken again under a new fence.

        Not within a worker's command: the others of the name are that worker's own, and a new fence would shut it out.
        """
        own = {held.id for held in self.claims.all()}
        found = self._yard.find(state="processing", worker=self._yard.worker, limit=100)
        if self._lent is None and any(task.id not in own for task in found):
            for claim in self._yard.resume():
                self._take(claim)
        self.claims.forget_lost()
        return verbs.claims([held.claim for held in self.claims.all() if self._still(held)])

    def _still(self, held: Held) -> bool:
        if held.claim.holds():
            return True
        self.claims.drop(held.handle)
        return False

    # End

    def _done(self, result: Any = None, claim: str | None = None) -> dict[str, Any]:
        def done(ref: Held | Handle) -> dict[str, Any]:
            handle = ref.handle if isinstance(ref, Held) else str(ref)
            self._yard.done(_ref(ref), with_branch(handle, result))
            return {"done": self._name(ref), "review": self._review(ref), **self._spooled(ref)}

        def checked(ref: Held | Handle) -> dict[str, Any]:
            if not isinstance(ref, Held) or ref.claim.task.verify is None:
                return done(ref)
            told = self._checks.done(ref.handle, result, lambda: done(ref), WAIT_MOST)
            again = "its check still runs: call done again, with the same result"
            return {"checking": self._name(ref), "next": again} if told is None else told

        return self._end("done", claim, [result], checked)

    def _fail(self, reason: str, retry: bool = True, claim: str | None = None) -> dict[str, Any]:
        def fail(ref: Held | Handle) -> dict[str, Any]:
            state = self._yard.fail(_ref(ref), reason, retry)
            return {"failed": self._name(ref), "state": str(state), **self._spooled(ref)}

        return self._end("fail", claim, [reason, retry], fail)

    def _review(self, ref: Held | Handle) -> str | None:
        """Return what a task that was just ended waits for, if another one must accept its result."""
        if isinstance(ref, Held):
            return verbs.REVIEW if ref.claim.task.needs_review else None
        return verbs.review(self._yard, ref.id)

    def _spooled(self, ref: Held | Handle) -> dict[str, bool]:
        """Return whether the ending is kept in the spool, because the yard is away."""
        return {"spooled": True} if self._yard.is_spooled(_ref(ref)) else {}

    def _release(self, reason: str | None = None, claim: str | None = None) -> dict[str, Any]:
        def release(ref: Held | Handle) -> dict[str, Any]:
            self._yard.release(_ref(ref), reason=reason)
            return {"released": self._name(ref)}

        return self._end("release", claim, [reason], release)

    def _end(
        self, verb: str, claim: str | None, said: list[Any], end: Callable[[Held | Handle], dict[str, Any]]
    ) -> dict[str, Any]:
        words = json.dumps(said, sort_keys=True)
        if claim is None and self._ended is not None and not self.claims.all() and self._ended[:2] == (verb, words):
            return dict(
                json.loads(self._ended[2])
            )  # only the reply was lost: the agent holds nothing, and says the same again
        ref = refusals.chosen(claim, verb, self.claims)
        handle = ref.handle if isinstance(ref, Held) else str(ref)
        try:
            reply = end(ref)
        except TaskyardError as error:
            refused = refusals.refusal(error, verb, handle, self.claims)
            if error.code in ("claim_lost", "not_found"):
                self.claims.drop(handle)
            raise refused from error
        if "checking" in reply:
            return reply
        self.claims.drop(handle)
        self._ended = (verb, words, json.dumps(reply))
        return reply

    def _note(self, text: str, progress: float | None = None, claim: str | None = None) -> dict[str, Any]:
        ref = refusals.chosen(claim, "note", self.claims)
        self._yard.heartbeat(_ref(ref), progress, text)
        foreign = None if isinstance(ref, Held) else "resume(), so that this server keeps the claim for you"
        return {"noted": self._name(ref), "next": foreign}

    def _name(self, ref: Held | Handle) -> str:
        return ref.name.split(" ")[0] if isinstance(ref, Held) else verbs.name(self._yard, ref.id)

    # Look

    def _ready(self, **given: Any) -> dict[str, Any]:
        return verbs.ready(self._yard, **given)

    def _show(self, task: str) -> dict[str, Any]:
        return replies.whole(self._yard.report(task))

    def _wait(self, tasks: list[str], wait: float = WAIT_MOST, *, stopped: _Stopped) -> dict[str, Any]:
        if not tasks:
            raise Refusal("tasks is empty", "wait(tasks=[ids])")
        end = ticks() + wait
        while True:
            left = end - ticks()
            waiter = self._yard.waiter(min(left, _SLICE), stopped) if left > 0 else None
            try:
                return {"ended": [replies.ended(task) for task in self._yard.wait(*tasks, timeout=0)]}
            except TimedOut as late:
                if waiter is None or stopped():
                    return {"waiting": late.message, "next": "still waiting: call wait again"}
            waiter.nap()

    # Put in

    def _add(self, tasks: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
        words = json.dumps([tasks, fields], sort_keys=True)
        with self._adding:  # the same call twice at once is a repetition too
            before = self._added.get(words)
            if before is not None and ticks() - before[0] < _REPEAT:
                again = "added before, and not again; another one like it needs a key of its own"
                return {**json.loads(before[1]), "note": again}
            held = self.claims.all()
            found = held[0].id if len(held) == 1 else None  # the task that the agent works on: there it found this work
            reply = verbs.add(self._yard, found, tasks, fields)
            self._added = {word: kept for word, kept in self._added.items() if ticks() - kept[0] < _REPEAT}
            self._added[words] = (ticks(), json.dumps(reply))
            return reply


class _Stopped:
    """Whether a wait must end: the client is gone, or has cancelled the call."""

    def __init__(self, closing: Event, cancelled: Event | None) -> None:
        self._closing = closing
        self._cancelled = cancelled

    def __call__(self) -> bool:
        return self._closing.is_set() or self.cancelled()

    def cancelled(self) -> bool:
        """Whether the client wants no answer any more; one that is only gone may come back for what it has claimed."""
        return self._cancelled is not None and self._cancelled.is_set()


def _ref(ref: Held | Handle) -> Any:
    return ref.claim.ref if isinstance(ref, Held) else str(ref)
