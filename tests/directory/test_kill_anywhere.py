"""A process may die between any two system calls: then one sweep, and everything is as if it had died before or after."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.directory.kills import killed_at
from tests.directory.stories import check_log, check_places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEASE = 0.05


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


OLD_PAGE = "2026-01-01T00.kernel.1.jsonl"


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
    died, fatal = True, 0
    while died:
        fatal += 1
        url = str(tmp_path / f"{fatal}")
        subprocess.run(["cp", "-a", template, url], check=True)  # with hard links kept, as shutil does not
        time.sleep(scene.rest)

        def work(url: str = url) -> Any:
            with taskyard.open(url, worker="w") as yard:
                return scene.verb(yard, ready)

        died, answer = killed_at(fatal, work)
        with taskyard.open(url, worker="other") as yard:
            yard.sweep()
            after = check_places(url)
            if name != "prune":
                assert set(before) <= set(after), f"a task is gone after a kill at call {fatal}"
            check_nothing_is_lost(yard, name, fatal)
            if not died:
                assert scene.holds(yard, ready, answer), f"answered {answer!r}, but it does not hold"
        shutil.rmtree(url)
    print(f"{name}, {durability}: killed at each of {fatal - 1} system calls")  # noqa: T201  for whoever runs it with -s
    assert fatal > 5


def check_nothing_is_lost(yard: taskyard.Yard, name: str, fatal: int) -> None:
    """What was dropped or keyed is somewhere; the log is whole; nothing is stuck on its way."""
    root = yard.url
    there = f"after a kill at call {fatal}"
    if name.startswith("take in"):
        assert yard.counts()["todo"] == 1, f"the dropped file is no task {there}: {os.listdir(root + '/tmp')}"
    if name == "set aside":
        assert len(yard.set_aside()) == 1 or os.path.exists(f"{root}/todo/a.json"), there
    keys = [entry for _, _, entries in os.walk(f"{root}/keys") for entry in entries]
    assert len(keys) <= len(check_places(root)), f"a key without a task {there}"
    assert not [entry for entry in os.listdir(f"{root}/tmp") if entry.endswith(".drop")], there
    if name != "prune":
        check_log(yard)
    elif not os.path.exists(f"{root}/events/{OLD_PAGE}"):
        with gzip.open(f"{root}/archive/events-{OLD_PAGE}.gz", "rt") as archive:
            assert archive.read() == "what happened then\n", there
