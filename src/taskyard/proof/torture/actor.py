"""One process of a torture: runs the actions of its plan and records each request and answer, until it is killed.

As a program it takes one JSON object as its only argument, and the yard's URL from $TASKYARD.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import TYPE_CHECKING

if __name__ == "__main__":
    # Python's -P keeps the working directory off the path. This tree is needed if taskyard was imported from there.
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

    from taskyard.proof.recorded_yard import RecordedClaim
    from taskyard.proof.torture.plan import Action

_REMEMBERED = 40  # ids and handles that an actor can choose from
_PAUSE = 0.01  # seconds to wait if there is nothing to do


def _sleep(seconds: float) -> None:
    """Sleep as `time.sleep` does, which libfaketime fails at times: it sleeps until a moment of a clock that is faked."""
    select.select((), (), (), seconds)


class Actor:
    """Runs actions on one yard."""

    def __init__(self, yard: RecordedYard, quota: int | None, dropbox: str | None) -> None:
        self._yard = yard
        self._left = quota
        """How many tasks it may still add; None means any number."""
        self._dropbox = dropbox
        self._ids: list[str] = []
        self._handles: list[str] = []
        self._serial = 0
        self.stop_requested = False
        """Set by a signal handler, so a plain flag: an Event that is set while its own thread waits on it stands still."""

    def stop(self, *_: object) -> None:
        """Ask for the end after the current action; a signal handler."""
        self.stop_requested = True

    def run(self, action: Action) -> None:
        """Run one action; an error that refuses it is an answer like any other."""
        if action.verb in ADDING and self._left is not None and self._left <= 0:
            action = action._replace(verb="done")
        try:
            method: Callable[[Action], None] = getattr(self, f"_{action.verb}", self._work)
            method(action)
        except (ClaimLost, Conflict, NotFound, Ambiguous):
            return
        except Unavailable:
            _sleep(_PAUSE)  # the history has the error, and the supervisor counts it

    # Actions that add tasks

    def _add(self, action: Action) -> None:
        self._added(self._yard.add(action.kind, self._unique_data(), priority=action.number % 3 + 4))

    def _add_keyed(self, action: Action) -> None:
        self._added(self._yard.add("keyed", action.key, key=action.key))

    def _add_after(self, action: Action) -> None:
        needs = sorted({self._ids[-1 - action.number % len(self._ids)], self._ids[-1]}) if self._ids else []
        self._added(self._yard.add(action.kind, self._unique_data(), after=needs))

    def _add_late(self, action: Action) -> None:
        self._added(self._yard.add(action.kind, self._unique_data(), delay=action.pause * 20))

    def _add_many(self, action: Action) -> None:
        number = min(2 + action.number % 4, 9 if self._left is None else self._left)
        ids = self._yard.add_many([{"kind": action.kind, "data": self._unique_data()} for _ in range(number)])
        self._remember(ids, len(ids))

    def _drop(self, action: Action) -> None:
        data = self._unique_data()
        self._drop_file({"kind": action.kind, "data": data}, action.kind, data)

    def _drop_keyed(self, action: Action) -> None:
        self._drop_file(
            {"taskId": action.key, "kind": "keyed", "data": action.key}, "keyed", action.key, key=action.key
        )

    def _drop_file(self, content: dict[str, Any], kind: str, data: Any, **options: Any) -> None:
        if self._dropbox is None:
            return
        name = f"{self._yard.writer.process}-{self._serial}"
        hidden, path = f"{self._dropbox}/.{name}.part", f"{self._dropbox}/{name}.json"
        with open(hidden, "w") as file:
            json.dump(content, file)
        self._serial += 1
        self._yard.drop(lambda: os.rename(hidden, path), kind, data, **options)
        self._remember([], 1)

    def _unique_data(self) -> dict[str, Any]:
        """Return data that no other task has, so that the checker can distinguish them."""
        self._serial += 1
        return {"by": self._yard.writer.process, "n": self._serial}

    def _added(self, task: Any) -> None:
        self._remember([task.id], int(task.created))

    def _remember(self, ids: list[str], created: int) -> None:
        self._ids = (self._ids + ids)[-_REMEMBERED:]
        if self._left is not None:
            self._left -= created

    # Actions that claim a task

    def _work(self, action: Action) -> None:
        """Claim a task and end it by the action's verb."""
        oversleeps = action.verb == "oversleep"
        kinds = [action.kind] if action.only_kind else None
        claim = self._yard.claim(kinds=kinds, lease=LEASE / 5 if oversleeps else None)
        if claim is None:
            _sleep(_PAUSE)
            return
        self._handles = [*self._handles, claim.handle][-_REMEMBERED:]
        _sleep(LEASE / 3 if oversleeps else action.pause)
        self._end(action.verb, claim)

    def _end(self, verb: str, claim: RecordedClaim) -> None:
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

    # Late verbs, and changes by others

    def _speak_late(self, action: Action) -> None:
        if self._handles:
            claim = self._yard.held(self._handles[-1 - action.number % len(self._handles)])
            verbs: tuple[Callable[[], object], ...] = (
                lambda: claim.done("late"), claim.release, claim.heartbeat, lambda: claim.fail("late"), lambda: claim.note("late"),
            )  # fmt: skip
            verbs[action.number % len(verbs)]()

    def _resume(self, action: Action) -> None:
        for claim in self._yard.resume():
            self._handles = [*self._handles, claim.handle][-_REMEMBERED:]
            claim.done({"by": claim.handle}) if action.number % 3 else claim.release()

    def _cancel(self, action: Action) -> None:
        self._change(action, self._yard.cancel)

    def _retry(self, action: Action) -> None:
        self._change(action, self._yard.retry)

    def _edit(self, action: Action) -> None:
        self._change(action, lambda task: self._yard.edit(task, title="edited", priority=action.number % 10))

    def _change(self, action: Action, verb: Callable[[str], object]) -> None:
        if self._ids:
            verb(self._ids[-1 - action.number % len(self._ids)])

    def _sweep(self, action: Action) -> None:  # noqa: ARG002  every action is called alike
        self._yard.sweep()


def main(given: dict[str, Any]) -> None:
    """Run the plan's actions until SIGTERM, or until the process that started this one ends."""
    supervisor_pipe.hold(lambda: os._exit(1))
    plan = Plan(given["seed"], given["workers"])
    slot, life = given["slot"], given["life"]
    name = plan.name(slot)
    with RecordedYard(opening.open(given["url"], name), HistoryWriter(given["history"], name)) as yard:
        actor = Actor(yard, given["quota"], given["dropbox"])
        signal.signal(signal.SIGTERM, actor.stop)
        if slot % 2 == 0:
            yard.vouch(LEASE)  # others see its death by a lock, and that of odd slots by the end of the lease
        for action in plan.actions(slot, life):
            actor.run(action)
            if actor.stop_requested:
                return


if __name__ == "__main__":
    main({"url": os.environ.pop("TASKYARD"), **json.loads(sys.argv[1])})
