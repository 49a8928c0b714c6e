"""Histories written by hand: who asked for what, from when to when, and what they were told; and the yard at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskyard.core.store_records import Report
from taskyard.core.task import State, Task
from taskyard.proof import FinalState, History, Verdict, check
from taskyard.proof.final_state import FinalTask
from taskyard.proof.history import Operation
from taskyard.proof.recorder import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE, TWO, THREE = (f"0000{letter * 17}" for letter in "123")
CLOCK = "one kernel"


def handle(fence: int, who: str = "ada", id: str = ONE) -> str:
    """The handle of a claim; each worker is one incarnation."""
    return f"{id}.{fence}.{who:0<8}{fence}".replace("u", "v").replace("i", "j").replace("l", "m").replace("o", "q")


class Tale:
    """A history and a final state in the making. Times are whole numbers: `at=(3, 5)` is asked at 3 and answered at 5."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.tasks: dict[str, FinalTask] = {}
        self.listed: dict[str, list[str]] = {}
        self.events: list[dict[str, Any]] | None = None
        self.drained = False
        self.limited: set[str] = set()
        self.clocks: dict[str, str] = {}
        self._lines = 1

    def op(
        self,
        who: str,
        at: tuple[int, int | None],
        verb: str,
        told: dict[str, Any] | None = None,
        refused: str | None = None,
        process: str | None = None,
        **given: Any,
    ) -> Tale:
        process = process or who
        header = {"process": process, "worker": who, "clock": self.clocks.get(process, CLOCK)}
        op = Operation(header, f"{process}.jsonl", at[0], {"ask": verb, "at": at[0], **given})
        if at[1] is not None:
            op.complete(at[1], {"at": at[1], "told": told if refused is None else None, "refused": refused})
        self.operations.append(op)
        return self

    def add(
        self,
        who: str,
        at: tuple[int, int | None],
        *ids: str,
        created: int | None = None,
        refused: str | None = None,
        **draft: Any,
    ) -> Tale:
        drafts = [{"kind": "build", "data": fingerprint(None), **draft}] * len(ids)
        told = {"ids": list(ids), "created": len(ids) if created is None else created}
        return self.op(who, at, "add", told, refused, drafts=drafts)

    def claim(self, who: str, at: tuple[int, int | None], *handles: str, verb: str = "claim", **given: Any) -> Tale:
        return self.op(who, at, verb, {"claims": list(handles)}, **given)

    def say(
        self,
        who: str,
        at: tuple[int, int | None],
        verb: str,
        claim: str,
        refused: str | None = None,
        result: Any = None,
        **more: Any,
    ) -> Tale:
        given = {"result": fingerprint(result)} if verb == "done" else {}
        return self.op(who, at, verb, {}, refused, claim=claim, **given, **more)

    def final(
        self,
        state: str,
        fence: int,
        *history: tuple[str, str],
        id: str = ONE,
        result: Any = None,
        worker: str | None = None,
        listed: Sequence[str] | None = None,
        **fields: Any,
    ) -> Tale:
        """The task at the end; its history is a row of (handle, outcome)."""
        task = Task(
            **{"id": id, "kind": "build", "state": State(state), "fence": fence, "max_attempts": 3} | fields,
            result=result,
            worker=worker,
        )
        entries = [
            {"claim": claim, "outcome": outcome, "worker": claim.split(".")[2].rstrip("0123456789")}
            for claim, outcome in history
        ]
        self.tasks[id] = FinalTask(Report(task, entries, [], [], lambda: None))
        self.listed[id] = [state] if listed is None else list(listed)
        return self

    def log(self, *moves: tuple[int, str], id: str = ONE, worker: str = "ada") -> Tale:
        self.events = [*(self.events or [])]
        for fence, event in moves:
            final = {"final": True} if event == "failed" else {}
            self.events.append({"task": id, "fence": fence, "event": event, "worker": worker, **final})
        return self

    def verdict(self) -> Verdict:
        final = FinalState(self.tasks, self.listed, self.events, drained=self.drained, limited=self.limited)
        return check(History(self.operations), final)

    def codes(self) -> set[str]:
        return set(self.verdict().codes)


def done() -> Tale:
    """Added, claimed, done: the shortest legal tale there is."""
    tale = (
        Tale()
        .add("boss", (1, 2), ONE)
        .claim("ada", (3, 4), handle(1))
        .say("ada", (5, 6), "done", handle(1), result="r")
    )
    return tale.final("done", 1, (handle(1), "done"), result="r", worker="ada").log(
        (0, "added"), (1, "claimed"), (1, "done")
    )


def taken_over() -> Tale:
    """ada got the task and was believed dead; bob has it now."""
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).claim("bob", (10, 12), handle(3, "bob"))
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")
