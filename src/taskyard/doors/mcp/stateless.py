"""The ten tools for an agent of which nothing is remembered between two calls: it brings its claim's handle itself.

No process heartbeats for it, so its claims have the lease of a one-shot claim. Every call that carries the handle renews it.
`claim`, `resume` and `wait` are cut into a look and an answer, because the server that waits between looks holds no thread.
"""

from __future__ import annotations

from taskyard.core.errors import TaskyardError, TimedOut
from taskyard.core.task import Handle
from taskyard.doors.mcp import refusals, replies, tools, verbs
from taskyard.doors.mcp.claims import Claims
from taskyard.doors.mcp.replies import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

    Answer = tuple[str, bool]

WAIT_MOST = 45.0  # seconds: clients cut a call at about 60


class StatelessAgent:
    """One call of an agent: checked and answered, and forgotten."""

    def __init__(self, yard: YardPort, named: bool) -> None:
        self._yard = yard
        self._named = named
        """Whether the worker's name is the agent's own."""
        self._tools: dict[str, Callable[..., dict[str, Any]]] = {
            "done": self._done,
            "fail": self._fail,
            "release": self._release,
            "note": self._note,
            "ready": lambda **given: verbs.ready(yard, **given),
            "show": lambda task: replies.whole(yard.report(task)),
            "add": self._add,
        }

    def check(self, name: str, arguments: dict[str, Any]) -> None:
        """Raise `Refusal` for a call that cannot be made as it is."""
        if name in refusals.ENDINGS and arguments.get("claim") is None:
            raise Refusal(
                f"{name} needs claim: this server remembers nothing between two calls",
                f"{name}(claim=..., ...) with the 'claim' that claim() answered; resume() if that is lost",
            )
        refusals.check(name, arguments, tools.SHARED)
        if name == "resume" and not self._named:
            raise Refusal(
                "resume needs a name of your own, and this connection has none",
                "claim() takes a task; a person may name you with the header Taskyard-Worker in this server's settings",
            )
        if name == "wait" and not arguments["tasks"]:
            raise Refusal("tasks is empty", "wait(tasks=[ids])")
        if "claim" in arguments:
            refusals.chosen(arguments["claim"], name, Claims(self._yard, 0))

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool that does not wait."""
        return self._tools[name](**self.renewed(name, arguments))

    def renewed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Renew the claim that a tool carries beside its own arguments, and return those."""
        if name in refusals.ENDINGS or "claim" not in arguments:
            return arguments
        self._yard.heartbeat(arguments["claim"])
        return {word: value for word, value in arguments.items() if word != "claim" or name == "add"}

    def refusal(self, error: TaskyardError, name: str, arguments: dict[str, Any]) -> Refusal:
        """Return the refusal for an error of the yard."""
        claim = arguments.get("claim")
        if error.code == "conflict" and name in refusals.ENDINGS and self._holds(claim):
            return Refusal(
                error.message,
                "put that right, then done(claim, result) again; you still hold the task, and fail(claim, reason) gives it up",
            )
        verb = "done" if error.code == "claim_lost" else name  # whatever carried a claim that is lost: stop that work
        return refusals.refusal(error, verb, claim, Claims(self._yard, 0))

    def _holds(self, claim: Any) -> bool:
        try:
            return self._yard.holding([claim])[0]
        except TaskyardError:
            return False

    # What waits: a look, and its answer

    def try_claim(self, given: dict[str, Any]) -> Claim | None:
        """Claim a task, if one is ready."""
        return self._yard.claim(given.get("task"), kinds=given.get("kind"), mission=given.get("mission"))

    def claimed(self, claim: Claim | None, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a claim, or why there is none."""
        if claim is not None:
            return replies.claimed(claim)
        return verbs.nothing_ready(self._yard, given.get("kind"), given.get("mission"), given.get("wait", 0))

    def resume(self) -> list[Claim]:
        """Take this agent's claims again."""
        return self._yard.resume()

    def ended(self, given: dict[str, Any]) -> dict[str, Any] | TimedOut:
        """Return how tasks ended; the error that tells which have not, if some have not."""
        try:
            return {"ended": [replies.ended(task) for task in self._yard.wait(*given["tasks"], timeout=0)]}
        except TimedOut as late:
            return late

    # What does not

    def _done(self, claim: str, result: Any = None) -> dict[str, Any]:
        self._yard.done(claim, result)
        return {"done": self._name(claim), "review": verbs.review(self._yard, Handle.parse(claim).id)}

    def _fail(self, claim: str, reason: str, retry: bool = True) -> dict[str, Any]:
        state = self._yard.fail(claim, reason, retry)
        return {"failed": self._name(claim), "state": str(state)}

    def _release(self, claim: str, reason: str | None = None) -> dict[str, Any]:
        self._yard.release(claim, reason=reason)
        return {"released": self._name(claim)}

    def _note(self, claim: str, text: str, progress: float | None = None) -> dict[str, Any]:
        until = self._yard.heartbeat(claim, progress, text)
        return {"noted": self._name(claim), "yours_until": until}

    def _add(
        self, claim: str | None = None, tasks: list[dict[str, Any]] | None = None, **fields: Any
    ) -> dict[str, Any]:
        found = None if claim is None else Handle.parse(claim).id
        return verbs.add(self._yard, found, tasks, fields)

    def _name(self, claim: str) -> str:
        return verbs.name(self._yard, Handle.parse(claim).id)
