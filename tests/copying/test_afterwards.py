"""A copy is a yard like any other: work goes on there as it would have gone on in its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, opening
from tests.conftest import retried, taken
from tests.copying.test_same import STORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

WAYS = [(source, target) for source in STORES for target in STORES]
every_way = pytest.mark.parametrize(("source", "target"), WAYS)


@pytest.fixture
def copied(
    source: str, target: str, paused: Callable[..., str], new: Callable[[str], str]
) -> Callable[[Callable[[Yard], None]], Yard]:
    """The copy of a yard to which this has been done, unpaused."""

    def make(life: Callable[[Yard], None]) -> Yard:
        other = new(target)
        opening.copy(paused(source, life), other, with_claims=True)
        yard = taskyard.open(other, worker="ada")
        assert yard.claim() is None, "the copy hands out work although it was not unpaused"
        yard.unpause()
        return yard

    return make


@every_way
def test_work_goes_on(copied: Callable[..., Yard]) -> None:
    tried: list[str] = []

    def life(yard: Yard) -> None:
        tried.extend(yard.add("build", {"n": n}, max_attempts=1).id for n in range(3))
        claim = taken(yard.claim())
        claim.fail("broke")
        assert yard.get(claim.task.id).state == "failed"

    with copied(life) as yard:
        claim = taken(yard.claim())
        assert claim.task.data == {"n": 1}
        claim.done({"ok": True})
        assert yard.get(tried[1]).result == {"ok": True}
        assert retried(yard, tried[0]).fence == 2
        again = taken(yard.claim())
        assert (again.task.id, again.fence) == (tried[0], 3), "fences only rise"
        again.done()
        assert [entry["outcome"] for entry in yard.report(tried[0]).history] == ["error", "done"]


@every_way
def test_the_last_need_that_is_done_lets_a_task_go(copied: Callable[..., Yard]) -> None:
    made: dict[str, str] = {}

    def life(yard: Yard) -> None:
        made["one"], made["two"] = yard.add("build").id, yard.add("build").id
        made["ship"] = yard.add("ship", after=[made["one"], made["two"]]).id
        made["off"] = yard.add("ship", after=[made["two"]]).id
        yard.cancel(made["off"])
        taken(yard.claim(made["one"])).done()

    with copied(life) as yard:
        assert yard.get(made["ship"]).state == "blocked"
        assert retried(yard, made["off"]).state == "blocked", "called off while it was blocked, it is so still"
        taken(yard.claim(made["two"])).done()
        for name in ("ship", "off"):
            assert yard.get(made[name]).state == "todo"


@every_way
def test_a_key_stands_for_what_was_added_under_it(copied: Callable[..., Yard]) -> None:
    made: dict[str, str] = {}

    def life(yard: Yard) -> None:
        made["plain"] = yard.add("build", {"n": 1, "m": 2}, key="plain ž").id
        made["edited"] = yard.add("build", {"n": 2}, key="edited").id
        yard.edit(made["edited"], data={"n": 3})

    with copied(life) as yard:
        for key, data in (("plain ž", {"m": 2, "n": 1}), ("edited", {"n": 2})):
            again = yard.add("build", data, key=key)
            assert (again.id, again.created) == (made[key.split(" ")[0]], False)
            with pytest.raises(Conflict):
                yard.add("build", {"n": 3}, key=key)
            with pytest.raises(Conflict):
                yard.add("deploy", data, key=key)
        assert yard.get(made["edited"]).data == {"n": 3}
        yard.edit(made["edited"], data={"n": 4})
        assert not yard.add("build", {"n": 2}, key="edited").created
        new = yard.add("build", {"n": 9}, key="new")
        assert new.created


@every_way
def test_handles_of_claims_that_are_over_are_refused(copied: Callable[..., Yard]) -> None:
    handles: list[str] = []

    def life(yard: Yard) -> None:
        for n in range(2):
            yard.add("build", n)
            claim = taken(yard.claim())
            handles.append(claim.handle)
            claim.release() if n else claim.done({"n": n})
        claim = taken(yard.claim())
        handles.append(claim.handle)
        yard.cancel(claim.task.id)

    with copied(life) as yard:
        yard.held(handles[0]).done({"n": 0})
        with pytest.raises(Conflict):
            yard.held(handles[0]).fail("after all")
        for handle in handles[1:]:
            with pytest.raises(ClaimLost):
                yard.held(handle).done({"late": True})
            with pytest.raises(ClaimLost):
                yard.held(handle).heartbeat()
        stale = yard.report(handles[1].split(".")[0]).stale_results
        assert [entry["result"] for entry in stale] == [{"late": True}] * 2


@every_way
def test_a_claim_that_is_held_goes_on_under_its_handle(copied: Callable[..., Yard]) -> None:
    handles: list[str] = []

    def life(yard: Yard) -> None:
        for name in ("one", "two"):
            yard.add(name, {"of": name}, uses=["db"], lease=600)
        claim = taken(yard.claim(worker="bob"))
        claim.heartbeat(progress=0.5)
        claim.note("half way")
        handles.append(claim.handle)

    with copied(life) as yard:
        task = yard.get(handles[0].split(".")[0])
        assert (task.state, task.worker, task.progress) == ("processing", "bob", 0.5)
        assert yard.claim() is None, "what it uses is in use"
        held = yard.held(handles[0])
        held.heartbeat()
        assert held.lease == 600
        held.done({"ok": 1})
        assert yard.get(task.id).result == {"ok": 1}
        assert taken(yard.claim()).task.kind == "two"


@every_way
def test_new_tasks_come_after_all_that_were_copied(copied: Callable[..., Yard]) -> None:
    before: list[str] = []

    def life(yard: Yard) -> None:
        for priority in range(10):
            before.extend(yard.add_many([{"kind": "build", "data": n, "priority": priority} for n in range(3)]))

    with copied(life) as yard:
        new = [yard.add("build", n, priority=n).id for n in range(10)]
        new += yard.add_many([{"kind": "build"}] * 1100)
        segments = {id[:4] for id in before}
        assert not segments.intersection(id[:4] for id in new), "a segment was used by two"
        assert [task.id for task in yard.find(limit=2000)] == before + new
        assert yard.shorten(new[:1])


@every_way
def test_the_log_goes_on_where_it_was(copied: Callable[..., Yard]) -> None:
    def life(yard: Yard) -> None:
        yard.add("build")
        taken(yard.claim()).done()

    with copied(life) as yard:
        page = yard.events()
        assert [event["event"] for event in page] == ["added", "claimed", "done", "unpaused"]
        yard.add("more")
        assert [event["event"] for event in yard.events(cursor=page.cursor)] == ["added"]
        assert [event["event"] for event in yard.events()] == ["added", "claimed", "done", "unpaused", "added"]


@every_way
def test_two_yards_become_one_only_by_way_of_a_third(copied: Callable[..., Yard], new: Callable[[str], str]) -> None:
    """A copy can be copied on; but never into a yard that has tasks."""
    with copied(lambda yard: yard.add("build")) as yard:
        yard.add("more")
        yard.pause()
        third = new("directory")
        assert opening.copy(yard.url, third).tasks == 2
        with pytest.raises(Conflict, match="not empty"):
            opening.copy(third, str(_other(new)))


def _other(new: Callable[[str], str]) -> str:
    url = new("directory")
    with taskyard.init(url) as yard:
        yard.add("mine")
    return url


@every_way
def test_names_are_the_same_in_the_copy(copied: Callable[..., Yard]) -> None:
    named: dict[str, str] = {}

    def life(yard: Yard) -> None:
        yard.add_many({"kind": "build"} for _ in range(5))
        taken(yard.claim()).done()
        named.update({task.id: task.short for task in yard.find()})

    with copied(life) as yard:
        assert {task.id: task.short for task in yard.find()} == named
        assert {yard.get(name).id: name for name in named.values()} == named
