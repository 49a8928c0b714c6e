"""One process of a torture: does what its plan says, writes down all that it asks for and is told, until it is killed.

Started as a program with one JSON object as its only word, and the yard in $TASKYARD.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # -P keeps the folder that it is started in out of the way; this tree comes last, for one that was found by its working directory.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from taskyard import opening
from taskyard.core.errors import Ambiguous, ClaimLost, Conflict, NotFound, Unavailable
from taskyard.proof.recorded_yard import RecordedYard
from taskyard.proof.recorder import HistoryWriter
from taskyard.proof.torture.plan import ADDING, LEASE, Plan
from taskyard.worker import supervisor_pipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.proof.recorded_yard import Held
    from taskyard.proof.torture.plan import Act

_REMEMBERED = 40
_NAP = 0.01  # seconds, where there is nothing to do


class Actor:
    """Plays the acts of its plan on one yard."""

    def __init__(self, witness: RecordedYard, quota: int | None, dropbox: str | None) -> None:
        self._yard = witness
        self._left = quota
        """How many tasks it may still add; None is any number."""
        self._dropbox = dropbox
        self._ids: list[str] = []
        self._handles: list[str] = []
        self._serial = 0
        self.told_to_end = threading.Event()

    def play(self, act: Act) -> None:
        """Do it; a refusal is an answer like any other."""
        if act.verb in ADDING and self._left is not None and self._left <= 0:
            act = act._replace(verb="done")
        try:
            play: Callable[[Act], None] = getattr(self, f"_{act.verb}", self._work)
            play(act)
        except (ClaimLost, Conflict, NotFound, Ambiguous):
            return
        except Unavailable:
            self.told_to_end.wait(_NAP)  # it is in the history, and counted

    # Putting tasks in

    def _add(self, act: Act) -> None:
        self._added(self._yard.add(act.kind, self._mark(), priority=act.number % 3 + 4))

    def _add_keyed(self, act: Act) -> None:
        self._added(self._yard.add("keyed", act.key, key=act.key))

    def _add_after(self, act: Act) -> None:
        needs = sorted({self._ids[-1 - act.number % len(self._ids)], self._ids[-1]}) if self._ids else []
        self._added(self._yard.add(act.kind, self._mark(), after=needs))

    def _add_late(self, act: Act) -> None:
        self._added(self._yard.add(act.kind, self._mark(), delay=act.pause * 20))

    def _add_many(self, act: Act) -> None:
        number = min(2 + act.number % 4, 9 if self._left is None else self._left)
        ids = self._yard.add_many([{"kind": act.kind, "data": self._mark()} for _ in range(number)])
        self._remember(ids, len(ids))

    def _drop(self, act: Act) -> None:
        mark = self._mark()
        self._put({"kind": act.kind, "data": mark}, act.kind, mark)

    def _drop_keyed(self, act: Act) -> None:
        self._put({"taskId": act.key, "kind": "keyed", "data": act.key}, "keyed", act.key, key=act.key)

    def _put(self, content: dict[str, Any], kind: str, data: Any, **options: Any) -> None:
        if self._dropbox is None:
            return
        name = f"{self._yard.scribe.process}-{self._serial}"
        hidden, path = f"{self._dropbox}/.{name}.part", f"{self._dropbox}/{name}.json"
        with open(hidden, "w") as file:
            json.dump(content, file)
        self._serial += 1
        self._yard.drop(lambda: os.rename(hidden, path), kind, data, **options)
        self._remember([], 1)

    def _mark(self) -> dict[str, Any]:
        """Data that no other task has, so that each can be told apart at the end."""
        self._serial += 1
        return {"by": self._yard.scribe.process, "n": self._serial}

    def _added(self, task: Any) -> None:
        self._remember([task.id], int(task.created))

    def _remember(self, ids: list[str], created: int) -> None:
        self._ids = (self._ids + ids)[-_REMEMBERED:]
        if self._left is not None:
            self._left -= created

    # Taking one

    def _work(self, act: Act) -> None:
        """Claim a task and end it as the act says."""
        hasty = act.verb == "oversleep"
        claim = self._yard.claim(kinds=[act.kind] if act.picky else None, lease=LEASE / 5 if hasty else None)
        if claim is None:
            self.told_to_end.wait(_NAP)
            return
        self._handles = [*self._handles, claim.handle][-_REMEMBERED:]
        self.told_to_end.wait(LEASE / 3 if hasty else act.pause)
        self._end(act.verb, claim)

    def _end(self, verb: str, claim: Held) -> None:
        result = {"by": claim.handle}
        if verb == "note_and_done":
            claim.note("so far")
            claim.heartbeat(progress=0.5)
        if verb in ("fail", "fail_for_good"):
            claim.fail("not this time", retry=verb == "fail")
        elif verb == "release":
            claim.release()
        elif verb != "forget":
            claim.done(result)
        if verb == "done_twice":
            claim.done({**result, "again": True})

    # What should not be, and must not matter

    def _speak_late(self, act: Act) -> None:
        if self._handles:
            claim = self._yard.held(self._handles[-1 - act.number % len(self._handles)])
            verbs: tuple[Callable[[], object], ...] = (
                lambda: claim.done("late"), claim.release, claim.heartbeat, lambda: claim.fail("late"), lambda: claim.note("late"),
            )  # fmt: skip
            verbs[act.number % len(verbs)]()

    def _resume(self, act: Act) -> None:
        for claim in self._yard.resume():
            self._handles = [*self._handles, claim.handle][-_REMEMBERED:]
            claim.done({"by": claim.handle}) if act.number % 3 else claim.release()

    def _cancel(self, act: Act) -> None:
        self._steer(act, self._yard.cancel)

    def _retry(self, act: Act) -> None:
        self._steer(act, self._yard.retry)

    def _edit(self, act: Act) -> None:
        self._steer(act, lambda task: self._yard.edit(task, title="edited", priority=act.number % 10))

    def _steer(self, act: Act, verb: Callable[[str], object]) -> None:
        if self._ids:
            verb(self._ids[-1 - act.number % len(self._ids)])

    def _sweep(self, act: Act) -> None:  # noqa: ARG002  every act is called alike
        self._yard.sweep()


def main(given: dict[str, Any]) -> None:
    """Play until told to end, or until whoever started this is gone."""
    supervisor_pipe.hold(lambda: os._exit(1))
    plan = Plan(given["seed"], given["workers"])
    slot, life = given["slot"], given["life"]
    name = plan.name(slot)
    with RecordedYard(opening.open(given["url"], name), HistoryWriter(given["history"], name)) as witness:
        actor = Actor(witness, given["quota"], given["dropbox"])
        signal.signal(signal.SIGTERM, lambda *_: actor.told_to_end.set())
        if slot % 2 == 0:
            witness.vouch(LEASE)  # others are told of its death by the kernel; of its neighbour's by the end of a lease
        for act in plan.acts(slot, life):
            actor.play(act)
            if actor.told_to_end.is_set():
                return


if __name__ == "__main__":
    main({"url": os.environ.pop("TASKYARD"), **json.loads(sys.argv[1])})
