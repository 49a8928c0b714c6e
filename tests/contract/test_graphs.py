"""A batch is a graph: its tasks come after one another by local names and keys, in any order, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Ambiguous, Invalid, NotFound
from tests.conftest import sized, taken

if TYPE_CHECKING:
    from taskyard import Yard


def finish(yard: Yard, id: str) -> None:
    taken(yard.claim(id)).done()


def states(yard: Yard, ids: list[str]) -> list[str]:
    return [str(yard.get(id).state) for id in ids]


def tasks(yard: Yard) -> int:
    return sum(yard.counts().values())


def test_a_diamond_opens_and_closes(yard: Yard) -> None:
    top, left, right, bottom = yard.add_many(
        [
            {"kind": "top", "ref": "top"},
            {"kind": "side", "ref": "left", "after": ["top"]},
            {"kind": "side", "ref": "right", "after": "top"},
            {"kind": "bottom", "after": ["left", {"ref": "right"}]},
        ]
    )
    assert states(yard, [top, left, right, bottom]) == ["todo", "blocked", "blocked", "blocked"]
    assert yard.get(bottom).after == [left, right]
    finish(yard, top)
    finish(yard, left)
    assert states(yard, [right, bottom]) == ["todo", "blocked"]
    finish(yard, right)
    assert yard.get(bottom).state == "todo"


def test_the_order_in_the_file_does_not_matter_and_the_ids_come_in_it(yard: Yard) -> None:
    ids = yard.add_many(
        [
            {"kind": "last", "after": ["second", "first"]},
            {"kind": "second", "ref": "second", "after": ["first"]},
            {"kind": "first", "ref": "first"},
        ]
    )
    assert [yard.get(id).kind for id in ids] == ["last", "second", "first"]
    assert yard.get(ids[0]).after == [ids[1], ids[2]]
    order = []
    while (claim := yard.claim()) is not None:
        order.append(claim.task.kind)
        claim.done()
    assert order == ["first", "second", "last"]


def test_keys_of_the_batch_and_of_the_yard_are_names_too(yard: Yard) -> None:
    known = yard.add("fetch", key="fetch 1").id
    build, test = yard.add_many(
        [
            {"kind": "build", "key": "build 1", "after": ["fetch 1"]},
            {"kind": "test", "after": ["build 1", {"key": "fetch 1", "on_failure": "run"}]},
        ]
    )
    assert yard.get(build).after == [known]
    assert yard.get(test).after == [build, known]
    assert yard.add("ship", after="build 1").after == [build]
    finish(yard, known)
    finish(yard, build)
    assert yard.get(test).state == "todo"


def test_a_known_key_in_a_graph_is_the_task_that_has_it(yard: Yard) -> None:
    known = yard.add("build", {"n": 1}, key="build 1").id
    ids = yard.add_many(
        [
            {"kind": "test", "after": ["b"]},
            {"kind": "build", "data": {"n": 1}, "key": "build 1", "ref": "b"},
        ]
    )
    assert (ids[1], ids.created, yard.get(ids[0]).after) == (known, 1, [known])
    finish(yard, known)
    again = yard.add_many(
        [
            {"kind": "build", "data": {"n": 1}, "key": "build 1", "ref": "b"},
            {"kind": "test", "after": ["b"]},
        ]
    )
    assert (again[0], yard.get(again[1]).state) == (known, "todo")


def test_a_graph_that_is_added_twice_is_there_once(yard: Yard) -> None:
    graph: list[dict[str, Any]] = [
        {"kind": "test", "key": "test", "after": ["build"]},
        {"kind": "build", "key": "build"},
    ]
    first = yard.add_many(graph)
    assert list(yard.add_many(graph)) == list(first)
    assert tasks(yard) == 2


@pytest.mark.parametrize(
    ("graph", "path"),
    [
        ([{"ref": "a", "after": "a"}], "a cannot come after itself"),
        ([{"ref": "a", "after": "b"}, {"ref": "b", "after": "a"}], "a after b after a"),
        (
            [{"ref": "a", "after": "c"}, {"ref": "b", "after": "a"}, {"ref": "c", "after": ["b", "d"]}, {"ref": "d"}],
            "a after c after b after a",
        ),
        ([{"key": "a", "after": "b"}, {"ref": "b", "after": ["a"]}], "a after b after a"),
        (
            [{"ref": str(number), "after": str((number + 1) % 100)} for number in range(100)],
            "0 after 1 after 2 .*after 0",
        ),
    ],
)
def test_a_cycle_is_refused_with_its_path_and_nothing_is_added(
    yard: Yard, graph: list[dict[str, Any]], path: str
) -> None:
    with pytest.raises(Invalid, match=path):
        yard.add_many([{"kind": "step"}] + [{"kind": "step", **fields} for fields in graph])
    assert tasks(yard) == 0


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        ({"kind": "test", "after": {"ref": "nobody"}}, NotFound, "task 3: no task of this batch has the ref 'nobody'"),
        ({"kind": "test", "after": {"key": "nobody"}}, NotFound, "task 3: no task has the key 'nobody'"),
        ({"kind": "test", "after": "nobody"}, NotFound, "task 3: no task has the id 'nobody'"),
        ({"kind": "test", "after": "z" * 21}, NotFound, "task 3: no task has the id zzzz"),
        ({"kind": "test", "after": "0-zzzz"}, NotFound, "task 3: no task has the short name 0-zzzz"),
        ({"kind": "test", "ref": "a"}, Invalid, "task 3: the ref 'a' is that of task 1 too"),
        ({"kind": "test", "after": ["a", "a:run"]}, Invalid, "task 3: after names 'a' twice, with block and with run"),
        ({"kind": "test", "after": [7]}, Invalid, "task 3: after"),
        ({"kind": "te/st", "after": ["a"]}, Invalid, "task 3: "),
        ({"kind": "test", "parent": "nobody"}, NotFound, "parent: no task has the id 'nobody'"),
    ],
)
def test_one_bad_task_and_nothing_is_added(yard: Yard, bad: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        yard.add_many([{"kind": "build", "ref": "a"}, {"kind": "test", "after": ["a"]}, bad])
    assert tasks(yard) == 0


def test_a_name_that_may_mean_two_tasks_is_refused(yard: Yard) -> None:
    with pytest.raises(Ambiguous, match="task 3"):
        yard.add_many(
            [{"kind": "build", "ref": "one"}, {"kind": "build", "key": "one"}, {"kind": "test", "after": ["one"]}]
        )
    assert tasks(yard) == 0


def test_two_names_of_one_task_are_one_need(yard: Yard) -> None:
    build, test = yard.add_many(
        [{"kind": "build", "ref": "b", "key": "build"}, {"kind": "test", "after": ["b", "build", {"key": "build"}]}]
    )
    assert yard.get(test).after == [build]


def test_parents_and_discoverers_are_looked_up_and_shown(yard: Yard) -> None:
    parent = yard.add("epic").id
    child = yard.add("part", parent=yard.shorten([parent])[0], discovered_from=parent)
    assert (child.parent, child.discovered_from) == (parent, parent)
    shown = yard.get(child.id)
    assert (shown.parent, shown.discovered_from) == (parent, parent)
    assert (shown.as_dict()["parent"], shown.as_dict()["discovered_from"]) == (parent, parent)
    claim = taken(yard.claim(child.id))
    assert (claim.task.parent, claim.task.discovered_from) == (parent, parent)
    claim.done()
    assert (yard.get(child.id).parent, yard.get(child.id).discovered_from) == (parent, parent)
    for field in ("parent", "discovered_from"):
        with pytest.raises(NotFound):
            yard.add("part", **{field: "z" * 21})  # type: ignore[arg-type]
    assert tasks(yard) == 2


def test_a_claim_adds_parts_of_its_task(yard: Yard) -> None:
    epic = yard.add("epic").id
    claim = taken(yard.claim(epic))
    part = claim.add("part", {"n": 1}, title="A part")
    assert (part.parent, part.discovered_from, part.data, part.title) == (epic, epic, {"n": 1}, "A part")
    other = claim.add("part", parent=part.id)
    assert (other.parent, other.discovered_from) == (part.id, epic)
    claim.release()
    assert yard.edit(part.id, title="The part").parent == epic


def test_a_task_shows_its_children_oldest_first(yard: Yard) -> None:
    epic = yard.add("epic").id
    claim = taken(yard.claim(epic))
    found = [claim.add("part").id]
    found += yard.add_many([{"kind": "part", "parent": epic, "delay": 60}] * 6)
    found += yard.add_many([{"kind": "part", "parent": epic, "key": f"part {n}"} for n in range(6)])
    found.append(yard.add("part", parent=epic, key="alone").id)
    found.append(yard.add("part", parent=epic, after=found[0]).id)
    assert not yard.add("part", parent=epic, key="alone").created
    grandchild = yard.add("part", parent=found[0]).id
    yard.add("part", discovered_from=epic)
    assert yard.report(epic).children(100) == found
    assert yard.report(epic).children(3) == found[:3]
    assert (yard.report(found[0]).children(100), yard.report(grandchild).children(100)) == ([grandchild], [])
    claim.done()
    finish(yard, found[0])
    yard.cancel(found[1])
    assert yard.report(epic).children(100) == found, "whatever has become of them"


def test_the_yard_finds_tasks_by_ids_and_by_keys(yard: Yard, near: Yard) -> None:
    first = yard.add("build", {"n": 1}, key="one", title="One").id
    second = yard.add("test", {"n": 2}, after=[f"{first}:run"], parent=first).id
    store = near._store
    from taskyard.core.needs import on_failure
    from taskyard.core.store_records import Query

    found, cursor = store.find(Query(ids=[second, first, "z" * 21], limit=1))
    assert ([task.id for task in found], cursor) == ([first, second], None)
    assert [task.state for task in found] == ["todo", "blocked"]
    found, _ = store.find(Query(keys=["one", "two"]))
    assert [(task.id, task.key) for task in found] == [(first, "one")]
    taken(yard.claim(first)).done({"all": "well"})
    found, _ = store.find(Query(ids=[first, second], whole=True))
    assert [task.as_dict() for task in found] == [near._store.get(id).task.as_dict() for id in (first, second)]
    assert (found[0].result, found[0].data, found[1].after, found[1].parent) == (
        {"all": "well"},
        {"n": 1},
        [first],
        first,
    )
    assert on_failure(found[1].after[0]) == "run"
    assert store.find(Query(ids=[])) == ([], None)


@sized("width", 300, 10_000)
def test_a_wide_fan_in_and_a_wide_fan_out(yard: Yard, width: int) -> None:
    sides: list[dict[str, Any]] = [{"kind": "side", "ref": str(number), "after": ["top"]} for number in range(width)]
    ids = yard.add_many(
        [{"kind": "bottom", "after": [str(number) for number in range(width)]}, *sides, {"kind": "top", "ref": "top"}]
    )
    assert yard.counts()["blocked"] == width + 1
    assert yard.get(ids[0]).after == list(ids[1:-1])
    taken(yard.claim(kinds="top")).done()
    assert (yard.counts()["todo"], yard.counts()["blocked"]) == (width, 1)
    while claims := yard.claim_many(1000, kinds="side"):
        assert all(yard.done_many([(claim.ref, None) for claim in claims]))
    assert taken(yard.claim()).task.id == ids[0]


@sized("length", 100, 1000)
def test_a_long_chain_is_worked_off_link_by_link(yard: Yard, length: int) -> None:
    chain: list[dict[str, Any]] = [{"kind": "link", "ref": "0"}]
    chain += [{"kind": "link", "ref": str(number), "after": str(number - 1)} for number in range(1, length)]
    ids = yard.add_many(chain[::-1])[::-1]
    order = []
    while (claim := yard.claim()) is not None:
        order.append(claim.task.id)
        claim.done()
    assert order == list(ids)


@sized("length", 100, 1000)
def test_a_long_chain_is_cancelled_from_its_first_link(yard: Yard, length: int) -> None:
    chain: list[dict[str, Any]] = [{"kind": "link", "ref": "0"}]
    chain += [{"kind": "link", "ref": str(number), "after": f"{number - 1}:cancel"} for number in range(1, length)]
    ids = yard.add_many(chain)
    yard.cancel(ids[0])
    assert yard.counts()["cancelled"] == length
