"""A process may die before any system call: then one sweep, and everything is as if it had died before or after the verb."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import times
from taskyard.core.store_records import Want
from taskyard.core.task import State
from tests.directory.kills import kills
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.proof

LEASE = 0.05
OPEN = (State.TODO, State.WAITING, State.BLOCKED)


def claim(yard: taskyard.Yard, lease: float = 60) -> taskyard.Claim:
    claim = yard.claim(lease=lease)
    assert claim is not None
    return claim


class Scene:
    """One verb: a yard made ready for it, the verb, and what must hold if it was answered."""

    def __init__(
        self,
        ready: Callable[[taskyard.Yard], Any],
        verb: Callable[[taskyard.Yard, Any], Any],
        holds: Callable[[taskyard.Yard, Any, Any], bool],
        rest: float = 0,
    ) -> None:
        self.rest = rest  # seconds until what was copied just now counts as old
        self.ready = ready
        self.verb = verb
        self.holds = holds


def drop(yard: taskyard.Yard, name: str, text: str) -> None:
    with open(f"{yard.url}/todo/{name}", "w") as file:
        file.write(text)


def lapsed(yard: taskyard.Yard) -> str:
    yard.add("k", {"n": 1})
    handle = claim(yard, LEASE).handle
    time.sleep(2 * LEASE)  # the lease is over then, by any clock
    return handle


def waiting(yard: taskyard.Yard) -> str:
    id = yard.add("k", {"n": 1}, delay=LEASE).id
    time.sleep(2 * LEASE)
    return id


def submitted(yard: taskyard.Yard, result: Any = {"n": 1}) -> str:  # noqa: B006  it is never changed
    id = yard.add("k", review=True).id
    claimed = yard.claim(id, worker="another", lease=60)
    assert claimed is not None
    claimed.done(result)
    return id


OLD_PAGE = "2026-01-01T00.kernel.1.jsonl"


def late(yard: taskyard.Yard) -> str:
    yard.tends = False
    return yard.add("k", expires="2001-01-01T00:00:00Z").id


def ended(yard: taskyard.Yard) -> str:
    with open(f"{yard.url}/events/{OLD_PAGE}", "w") as file:
        file.write("what happened then\n")
    id = yard.add("k", {"n": 1}, key="key").id
    with claim(yard) as held:
        held.note("a note")
        held.done({"r": 1})
    return id


def state(yard: taskyard.Yard, handle: str) -> str:
    return yard.get(handle.split(".", maxsplit=1)[0]).state


def followed(yard: taskyard.Yard, dependencies: int = 1, followers: int = 1) -> tuple[str, str, list[str]]:
    """The handle of the last of several dependencies, its task, and the tasks that wait for all of them."""
    ids = [yard.add("k", {"n": n}).id for n in range(dependencies)]
    waiting = [yard.add("k", after=ids).id for _ in range(followers)]
    for id in ids[:-1]:
        taken_id(yard, id).done()
    return taken_id(yard, ids[-1]).handle, ids[-1], waiting


def dropped_after(yard: taskyard.Yard) -> str:
    id = yard.add("k").id
    drop(yard, "a.json", f'{{"after": "{id[:-1]}", "n": 1}}')
    return id


def half_followed(yard: taskyard.Yard) -> tuple[str, str]:
    """The handle of one of two dependencies, and the task that waits for both."""
    ids = [yard.add("k").id, yard.add("k").id]
    last = yard.add("k", after=ids).id
    return taken_id(yard, ids[0]).handle, last


def taken_id(yard: taskyard.Yard, id: str) -> taskyard.Claim:
    claim = yard.claim(id)
    assert claim is not None
    return claim


def add_while_it_is_done(yard: taskyard.Yard, handle: str, **options: Any) -> str:
    """Add a task after one that is done between the registering and the publishing."""
    store: Any = yard._store
    register = store._shifts.edges.register

    def late(*args: Any) -> None:
        register(*args)
        yard.held(handle).done()

    store._shifts.edges.register = late
    return yard.add("k", after=handle.split(".", maxsplit=1)[0], **options).id


def using(yard: taskyard.Yard) -> str:
    yard.add("k", {"n": 1}, uses="x")
    id = yard.add("k", {"n": 2}, uses=["y", "x"]).id
    claim(yard)
    return id


def claim_in_conflict(yard: taskyard.Yard, _: Any) -> str | None:
    """Claim blindly, as one who has seen the other too late."""
    store: Any = yard._store
    store._claims._pass_over = lambda *_: None
    claim = store._claims.next(Want("w"), "00000000" + "9")
    return None if claim is None else claim.task.id


SCENES = {
    "add": Scene(lambda y: None, lambda y, _: y.add("k", {"n": 1}).id, lambda y, _, id: y.get(id).data == {"n": 1}),
    "add with a delay": Scene(lambda y: None, lambda y, _: y.add("k", delay=60).id, lambda y, _, id: y.get(id).state == "waiting"),
    "add many": Scene(lambda y: None, lambda y, _: y.add_many([{"kind": "k"}] * 7), lambda y, _, ids: all(y.get(id) for id in ids)),
    "add with a key": Scene(lambda y: None, lambda y, _: y.add("k", {"n": 1}, key="key").id, lambda y, _, id: y.get(id).key == "key"),
    "add with a known key": Scene(
        lambda y: y.add("k", {"n": 1}, key="key").id,
        lambda y, _: y.add("k", {"n": 1}, key="key").id,
        lambda y, first, id: first == id,
    ),
    "add with a deadline": Scene(lambda y: None, lambda y, _: y.add("k", expires=60).id, lambda y, _, id: y.get(id).expires is not None),
    "expire": Scene(late, lambda y, _: y.sweep().expired, lambda y, id, _: y.get(id).state == "cancelled"),
    "edit of a deadline": Scene(
        lambda y: y.add("k", expires=60).id,
        lambda y, id: y.edit(id, expires="2100-01-01T00:00:00Z").id,
        lambda y, id, _: y.get(id).expires == "2100-01-01T00:00:00.000Z",
    ),
    "claim": Scene(lambda y: y.add("k", {"n": 1}).id, lambda y, _: claim(y).handle, lambda y, id, handle: handle.startswith(id)),
    "claim by id": Scene(
        lambda y: y.add("k", {"n": 1}).id,
        lambda y, id: y.claim(id).handle,  # type: ignore[union-attr]
        lambda y, id, handle: handle.startswith(id),
    ),
    "heartbeat": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).heartbeat(progress=0.5),
        lambda y, handle, _: y.get(handle.split(".")[0]).progress == 0.5,
    ),
    "note": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).note("hello"),
        lambda y, handle, _: y.report(handle.split(".")[0]).notes[0]["text"] == "hello",
    ),
    "done": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).done(),
        lambda y, handle, _: state(y, handle) == "done",
    ),
    "done with a result": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).done({"r": 1}),
        lambda y, handle, _: y.get(handle.split(".")[0]).result == {"r": 1},
    ),
    "fail": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).fail("why"),
        lambda y, handle, _: y.get(handle.split(".")[0]).error == "why",
    ),
    "fail for good": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).fail("why", retry=False),
        lambda y, handle, _: state(y, handle) == "failed",
    ),
    "release": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.held(handle).release(),
        lambda y, handle, _: state(y, handle) == "todo",
    ),
    "submit": Scene(
        lambda y: (y.add("k", review=True), claim(y).handle)[1],
        lambda y, handle: y.held(handle).done({"n": 1}),
        lambda y, handle, _: y.get(handle.split(".")[0]).review == "pending",
    ),
    "accept": Scene(submitted, lambda y, id: y.accept(id).id, lambda y, id, _: y.get(id).result == {"n": 1}),
    "accept what has no result": Scene(
        lambda y: submitted(y, None), lambda y, id: y.accept(id).id, lambda y, id, _: y.get(id).state == "done"
    ),
    "reject": Scene(submitted, lambda y, id: y.reject(id, "no").id, lambda y, id, _: y.get(id).state == "todo"),
    "claim that is vouched for": Scene(
        lambda y: y.add("k", {"n": 1}).id,
        lambda y, _: (y.vouch(60), claim(y).handle)[1],
        lambda y, id, handle: handle.startswith(id),
    ),
    "resume": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, _: [again.handle for again in y.resume("w")],
        lambda y, handle, handles: handles != [handle] and state(y, handle) == "processing",
    ),
    "edit": Scene(
        lambda y: y.add("k", {"n": 1}).id,
        lambda y, id: y.edit(id, data={"n": 2}, priority=1).id,
        lambda y, id, _: y.get(id).data == {"n": 2},
    ),
    "edit once more": Scene(
        lambda y: y.edit(y.add("k", {"n": 1}).id, title="t").id,
        lambda y, id: y.edit(id, delay=60).id,
        lambda y, id, _: y.get(id).state == "waiting" and y.get(id).title == "t",
    ),
    "cancel": Scene(lambda y: y.add("k").id, lambda y, id: y.cancel(id).id, lambda y, id, _: y.get(id).state == "cancelled"),
    "cancel with a reason": Scene(
        lambda y: y.add("k").id,
        lambda y, id: y.cancel(id, "not needed").id,
        lambda y, id, _: (y.get(id).state, y.get(id).error) == ("cancelled", "not needed"),
    ),
    "cancel what runs": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: y.cancel(handle.split(".")[0]).id,
        lambda y, handle, _: state(y, handle) == "cancelled",
    ),
    "retry": Scene(
        lambda y: y.cancel(y.add("k").id).id,
        lambda y, id: y.retry(id).id,  # type: ignore[union-attr]
        lambda y, id, _: y.get(id).state == "todo",
    ),
    "reap": Scene(lapsed, lambda y, _: y.sweep().reaped, lambda y, handle, _: state(y, handle) == "todo", 2 * LEASE),
    "wake": Scene(waiting, lambda y, _: y.sweep().woken, lambda y, id, _: y.get(id).state == "todo"),
    "take in": Scene(lambda y: drop(y, "a.json", '{"n": 1}'), lambda y, _: y.sweep().taken, lambda y, _, n: y.counts()["todo"] == 1),
    "take in with a taskId": Scene(
        lambda y: drop(y, "a.json", '{"taskId": "a", "n": 1}'), lambda y, _: y.sweep().taken, lambda y, _, n: y.counts()["todo"] == 1
    ),
    "set aside": Scene(
        lambda y: drop(y, "a.json", '{"kind": "no good"}'), lambda y, _: y.sweep().taken, lambda y, _, n: len(y.set_aside()) == 1
    ),
    "add after what is done": Scene(
        ended,
        lambda y, first: y.add("k", after=first).id,
        lambda y, _, id: y.get(id).state == "todo",
    ),
    "add after what is not done": Scene(
        lambda y: y.add("k").id,
        lambda y, first: y.add("k", {"n": 1}, after=first).id,
        lambda y, first, id: y.get(id).state == "blocked" and y.get(id).after == [first],
    ),
    "add many after one": Scene(
        lambda y: y.add("k").id,
        lambda y, first: y.add_many([{"kind": "k", "after": first}] * 6),
        lambda y, _, ids: all(y.get(id).state == "blocked" for id in ids),
    ),
    "add after what is done meanwhile": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        add_while_it_is_done,
        lambda y, _, id: y.get(id).state == "todo",
    ),
    "add with a key after what is done meanwhile": Scene(
        lambda y: (y.add("k"), claim(y).handle)[1],
        lambda y, handle: add_while_it_is_done(y, handle, key="key"),
        lambda y, _, id: y.get(id).state == "todo",
    ),
    "add with a key after what is not done": Scene(
        lambda y: y.add("k").id,
        lambda y, first: y.add("k", {"n": 1}, after=first, key="key").id,
        lambda y, _, id: y.get(id).state == "blocked",
    ),
    "take in after what is not done": Scene(
        dropped_after,
        lambda y, first: y.sweep().taken,
        lambda y, first, _: y.get(y.find(state="blocked")[0].id).after == [first],
    ),
    "done with followers": Scene(
        lambda y: followed(y, followers=3),
        lambda y, ready: y.held(ready[0]).done(),
        lambda y, ready, _: all(y.get(id).state == "todo" for id in ready[2]),
    ),
    "done of the last of several": Scene(
        lambda y: followed(y, dependencies=3, followers=2),
        lambda y, ready: y.held(ready[0]).done({"r": 1}),
        lambda y, ready, _: all(y.get(id).state == "todo" for id in ready[2]),
    ),
    "done of the first of several": Scene(
        half_followed,
        lambda y, ready: y.held(ready[0]).done(),
        lambda y, ready, _: y.get(ready[1]).state == "blocked",
    ),
    "cancel of a blocked task": Scene(
        followed, lambda y, ready: y.cancel(ready[2][0]).id, lambda y, ready, id: y.get(id).state == "cancelled"
    ),
    "retry of a cancelled task that is blocked": Scene(
        lambda y: (ready := followed(y), y.cancel(ready[2][0]))[0],
        lambda y, ready: y.retry(ready[2][0]).id,  # type: ignore[union-attr]
        lambda y, ready, id: y.get(id).state == "blocked",
    ),
    "edit of a blocked task": Scene(
        followed,
        lambda y, ready: y.edit(ready[2][0], data={"n": 2}, priority=1).id,
        lambda y, ready, id: (y.get(id).state, y.get(id).data, y.get(id).after) == ("blocked", {"n": 2}, [ready[1]]),
    ),
    "claim of what uses something": Scene(
        lambda y: y.add("k", {"n": 1}, uses="x").id, lambda y, _: claim(y).handle, lambda y, id, handle: handle.startswith(id)
    ),
    "claim of what is in use": Scene(using, claim_in_conflict, lambda y, id, other: other is None and y.get(id).state == "todo"),
    "prune what is needed": Scene(
        lambda y: (ready := followed(y), y.cancel(ready[1]))[0],
        lambda y, ready: y.prune(age=0, apply=True)["tasks"],
        lambda y, ready, n: n == 0 and y.get(ready[1]).state == "cancelled",
        0.02,
    ),
    "prune": Scene(ended, lambda y, _: y.prune(age=0, apply=True)["tasks"], lambda y, _, n: y.counts()["done"] == 0 and not os.path.exists(f"{y.url}/events/{OLD_PAGE}"), 0.02),
}  # fmt: skip


@pytest.mark.parametrize("durability", ["fast", "durable"])
@pytest.mark.parametrize("name", SCENES)
def test_a_kill_at_any_system_call_leaves_nothing_for_anybody_to_repair(
    name: str, durability: str, tmp_path: Path
) -> None:
    scene = SCENES[name]
    template = str(tmp_path / "template")
    with taskyard.init(template, worker="w", durability=durability) as yard:
        ready = scene.ready(yard)
    before = check_places(template)

    def work(url: str) -> Any:
        with taskyard.open(url, worker="w") as yard:
            return scene.verb(yard, ready)

    for fatal, url, died, answer in kills(template, tmp_path, work, scene.rest):
        with taskyard.open(url, worker="other") as yard:
            yard.sweep()
            after = check_places(url)
            if name != "prune":
                assert set(before) <= set(after), f"a task is gone after a kill at call {fatal}"
            check_nothing_is_lost(yard, name, fatal)
            check_nothing_is_stuck(yard)
            if not died:
                assert scene.holds(yard, ready, answer), f"answered {answer!r}, but it does not hold"
        shutil.rmtree(url)
    print(f"{name}, {durability}: killed at each of {fatal - 1} system calls beside a change")  # noqa: T201  for whoever runs it with -s


def check_nothing_is_lost(yard: taskyard.Yard, name: str, fatal: int) -> None:
    """What was dropped or keyed is somewhere; the log is whole; nothing is stuck on its way."""
    root = yard.url
    there = f"after a kill at call {fatal}"
    if name in ("take in", "take in with a taskId"):
        assert yard.counts()["todo"] == 1, f"the dropped file is no task {there}: {os.listdir(root + '/tmp')}"
    if name == "set aside":
        assert len(yard.set_aside()) == 1 or os.path.exists(f"{root}/todo/a.json"), there
    keys = [entry for _, _, entries in os.walk(f"{root}/keys") for entry in entries]
    assert len(keys) <= len(check_places(root)), f"a key without a task {there}"
    assert not [entry for entry in os.listdir(f"{root}/tmp") if entry.endswith(".drop")], there
    entries = {entry for _, _, entries in os.walk(f"{root}/deadlines") for entry in entries}
    for id, (state, token) in check_places(root).items():
        if token.deadline and state in OPEN:
            entry = f"{id}.{times.moment(yard.get(id).expires, 'expires')}"
            assert entry in entries, f"no sweep will see its deadline {there}"
    if name != "prune":
        check_log(yard)
    elif not os.path.exists(f"{root}/events/{OLD_PAGE}"):
        with gzip.open(f"{root}/archive/events-{OLD_PAGE}.gz", "rt") as archive:
            assert archive.read() == "what happened then\n", there
