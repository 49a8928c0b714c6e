"""get, find, ready, shorten and counts: what is there, oldest first, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Ambiguous, Invalid, NotFound, State, Task
from taskyard.core import ids
from tests.conftest import crash, outlast, taken

if TYPE_CHECKING:
    from taskyard import Yard
    from taskyard.yard.arguments import Page


def found(page: Page) -> list[str]:
    return [task.id for task in page]


def test_an_unknown_id_is_not_found_with_a_hint(yard: Yard) -> None:
    yard.add("build")
    for id in ("0" * 21, "zzzzzzzz", "", "abc", "x" * 22, "no such!", "../etc", "%41%41", "il0o"):
        with pytest.raises(NotFound) as caught:
            yard.get(id)
        assert not isinstance(caught.value, Ambiguous)
        assert caught.value.hint


@pytest.mark.parametrize("id", [7, None])
@pytest.mark.parametrize("verb", ["get", "report", "accept", "cancel", "retry", "edit"])
def test_an_id_must_be_a_text(yard: Yard, verb: str, id: object) -> None:
    with pytest.raises(Invalid, match=f"a task id must be a text, not {type(id).__name__}"):
        getattr(yard, verb)(id, **({"title": "new"} if verb == "edit" else {}))


def test_the_id_of_why_must_be_a_text(yard: Yard) -> None:
    with pytest.raises(Invalid, match="a task id must be a text, not int"):
        yard.why(5)  # type: ignore[arg-type]


def test_a_task_of_a_list_has_every_attribute(yard: Yard) -> None:
    yard.add("build")
    for task in (*yard.ready(), *yard.find()):
        assert (task.fence, repr(task)) == (0, f"<Task {task.id} build todo fence=0>")
        assert {name for name in Task.FIELDS if not hasattr(task, name)} == set()
        assert task.as_dict()["id"] == task.id
    taken(yard.claim())
    (held,) = yard.find()
    assert (held.fence, held.state) == (1, State.PROCESSING)


def test_a_unique_beginning_will_do_in_upper_case_too(yard: Yard) -> None:
    for id in yard.add_many({"kind": "build"} for _ in range(20)):
        assert yard.get(id[:-1]).id == id
        assert yard.get(id[:-1].upper()).id == id


def test_many_tasks_are_got_whole_by_ids_and_by_keys(yard: Yard) -> None:
    ids_ = yard.add_many([{"kind": "build", "data": {"n": n}, "key": f"k{n}"} for n in range(4)])
    yard.edit(ids_[1], title="New")
    taken(yard.claim(ids_[2])).done({"ok": True})
    found = yard.get_many([ids_[2], ids_[0]], keys=["k1", "k0", "unknown"])
    assert [task.id for task in found] == ids_[:3], "each once, oldest first"
    assert [task.data for task in found] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (found[1].title, found[1].key, found[2].state, found[2].result) == ("New", "k1", State.DONE, {"ok": True})
    assert [task.short for task in found] == yard.shorten(ids_[:3])
    assert yard.get_many([]) == yard.get_many(keys=["unknown"]) == []
    assert [task.id for task in yard.get_many(keys=["k3"])] == ids_[3:]


def test_many_tasks_are_got_by_whole_ids_alone(yard: Yard) -> None:
    id = yard.add("build").id
    for wrong in (yard.shorten([id])[0], "nonsense"):
        with pytest.raises(Invalid, match="not a whole id"):
            yard.get_many([wrong])
    with pytest.raises(Invalid, match="key"):
        yard.get_many(keys=["line\nbreak"])


def test_no_ids_have_no_short_names(yard: Yard) -> None:
    assert yard.shorten([]) == []


def test_a_beginning_of_several_is_ambiguous_and_names_them(yard: Yard) -> None:
    one, two = yard.add_many([{"kind": "build"}, {"kind": "build"}])
    with pytest.raises(Ambiguous) as caught:
        yard.get(one[: ids.SEGMENT])
    assert one in caught.value.message
    assert two in caught.value.message
    assert caught.value.hint


def test_a_beginning_finds_a_task_in_every_state(yard: Yard) -> None:
    id = yard.add("build", delay=1000).id
    short = id[:12]
    assert yard.get(short).state is State.WAITING
    yard.retry(short)
    assert yard.get(short).state is State.TODO
    claim = taken(yard.claim(short))
    assert yard.get(short).state is State.PROCESSING
    claim.fail("broken", retry=False)
    assert yard.get(short).state is State.FAILED
    yard.retry(short)
    yard.cancel(short)
    assert yard.get(short).state is State.CANCELLED
    yard.retry(short)
    taken(yard.claim(short)).done()
    assert yard.get(short).state is State.DONE


def test_a_list_shows_the_compact_fields(yard: Yard) -> None:
    id = yard.add("build", {"n": 1}, title="Build it", priority=2, mission="ship").id
    taken(yard.claim())
    [task] = yard.find()
    assert task.as_line() == {
        "id": id,
        "short": ids.short(id),
        "kind": "build",
        "title": "Build it",
        "state": "processing",
        "priority": 2,
        "worker": "ada",
        "mission": "ship",
    }
    assert isinstance(task.state, State)


def test_a_list_is_oldest_first_over_kinds_priorities_and_states(yard: Yard) -> None:
    made = [yard.add(f"kind{n % 3}", priority=n % 10, delay=1000 * (n % 2)).id for n in range(12)]
    yard.cancel(made[0])
    taken(yard.claim(made[4])).done()
    taken(yard.claim(made[2]))
    assert found(yard.find()) == made


def test_a_list_can_be_narrowed_by_state(yard: Yard) -> None:
    todo, waiting, held, done, failed, cancelled = yard.add_many(
        {"kind": "build", "delay": 1000 if n == 1 else 0} for n in range(6)
    )
    taken(yard.claim(held))
    taken(yard.claim(done)).done()
    taken(yard.claim(failed)).fail("broken", retry=False)
    yard.cancel(cancelled)
    by_state = {
        "todo": todo,
        "waiting": waiting,
        "processing": held,
        "done": done,
        "failed": failed,
        "cancelled": cancelled,
    }
    for state, id in by_state.items():
        assert found(yard.find(state=state)) == [id]
        assert found(yard.find(state=State(state))) == [id]
    assert found(yard.find(state="blocked")) == []
    assert found(yard.find(state=["cancelled", "todo"])) == [todo, cancelled]
    assert yard.counts() == {**dict.fromkeys(by_state, 1), "blocked": 0}


def test_a_list_can_be_narrowed_by_kind_mission_and_worker(yard: Yard) -> None:
    one = yard.add("build", mission="ship").id
    two = yard.add("test", mission="ship").id
    three = yard.add("build").id
    taken(yard.claim(three, worker="bob"))
    assert found(yard.find(kind="build")) == [one, three]
    assert found(yard.find(kind=["build", "test"])) == [one, two, three]
    assert found(yard.find(mission="ship")) == [one, two]
    assert found(yard.find(mission="shi")) == []
    assert found(yard.find(worker="bob")) == [three]
    assert found(yard.find(worker="ada")) == []
    assert found(yard.find(kind="build", mission="ship", state="todo")) == [one]


def test_a_list_of_a_workers_tasks_has_the_ended_and_the_assigned_and_no_other_workers(yard: Yard) -> None:
    names = ["bob", "bob-2", "a.bob", "@", "bob ä-b"]
    own: dict[str, list[str]] = {}
    for name in names:
        done, failed, held = (yard.add("build", assignee=name if number == 1 else None).id for number in range(3))
        taken(yard.claim(done, worker=name)).done()
        taken(yard.claim(failed, worker=name)).fail("broken", retry=False)
        taken(yard.claim(held, worker=name))
        own[name] = [done, failed, held]
    yard.add("build", assignee="bob")
    for name in names:
        assert found(yard.find(worker=name)) == own[name]
        assert [task.id for task in yard.find(worker=name, state="failed")] == own[name][1:2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "asleep"},
        {"kind": "?"},
        {"limit": 0},
        {"limit": 10_001},
        {"limit": "5"},
        {"cursor": "x"},
        {"cursor": ""},
    ],
    ids=str,
)
def test_a_list_refuses_what_can_never_be_right(yard: Yard, wrong: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        yard.find(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "limit", "pages"), [(7, 3, [3, 3, 1]), (6, 3, [3, 3]), (3, 3, [3]), (2, 1, [1, 1]), (0, 3, [0])]
)
def test_pages_follow_one_another_to_the_end(yard: Yard, number: int, limit: int, pages: list[int]) -> None:
    made = yard.add_many({"kind": f"kind{n % 2}"} for n in range(number))
    page = yard.find(limit=limit)
    sizes, seen = [len(page)], found(page)
    while page.next is not None:
        page = yard.find(limit=limit, cursor=page.next)
        sizes.append(len(page))
        seen += found(page)
    assert (sizes, seen) == (pages, made)


def test_pages_go_on_while_tasks_come_and_move(yard: Yard) -> None:
    made = yard.add_many({"kind": "build"} for _ in range(4))
    page = yard.find(limit=2)
    taken(yard.claim(made[0])).done()
    yard.cancel(made[1])
    made.append(yard.add("build").id)
    assert found(yard.find(limit=10, cursor=page.next)) == made[2:]


def test_a_page_holds_a_hundred_unless_told(yard: Yard) -> None:
    made = yard.add_many({"kind": "build"} for _ in range(101))
    page = yard.find()
    assert (found(page), page.next) == (made[:100], made[99])
    assert found(yard.find(cursor=page.next)) == made[100:]


def test_ready_is_what_this_worker_could_get_now(yard: Yard) -> None:
    mine, anybodys, bobs, later, held = yard.add_many(
        [
            {"kind": "build", "assignee": "ada"},
            {"kind": "test", "mission": "ship"},
            {"kind": "build", "assignee": "bob"},
            {"kind": "build", "delay": 1000},
            {"kind": "build"},
        ]
    )
    taken(yard.claim(held))
    assert found(yard.ready()) == [mine, anybodys]
    assert found(yard.ready(worker="bob")) == [anybodys, bobs]
    assert found(yard.ready(kind="build")) == [mine]
    assert found(yard.ready(mission="ship")) == [anybodys]
    assert found(yard.ready(limit=1)) == [mine]
    assert yard.get(later).state is State.WAITING


def test_ready_shows_what_a_dead_worker_left(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    assert found(yard.ready()) == [id]


def test_counts_are_by_state_and_by_kind(yard: Yard, yard_url: str) -> None:
    empty = yard.stats()
    assert (empty["counts"], empty["kinds"]) == (dict.fromkeys(map(str, State), 0), {})
    assert (empty["set_aside"], empty["paused"]) == (0, {"yard": False, "kinds": []})
    yard.add_many(
        [
            {"kind": "build"},
            {"kind": "build", "priority": 1},
            {"kind": "test", "assignee": "bob"},
            {"kind": "test", "delay": 1000},
        ]
    )
    taken(yard.claim(kinds="build")).done()
    with taskyard.open(yard_url) as other:
        stats = other.stats()
    assert stats["kinds"] == {"build": {"todo": 1, "done": 1}, "test": {"waiting": 1, "todo": 1}}
    assert stats["counts"] == {
        "waiting": 1,
        "blocked": 0,
        "todo": 2,
        "processing": 0,
        "done": 1,
        "failed": 0,
        "cancelled": 0,
    }


def test_what_was_handed_out_cannot_be_used_to_change_the_history(yard: Yard) -> None:
    id = yard.add("build").id
    late = taken(yard.claim())
    late.note("kept")
    late.release()
    with pytest.raises(taskyard.ClaimLost):
        late.done({"n": [1]})
    report = yard.report(id)
    report.history[0]["outcome"] = "done"
    report.notes[0]["text"] = "changed"
    report.stale_results[0]["result"]["n"].append(2)
    again = yard.report(id)
    assert (again.history[0]["outcome"], again.notes[0]["text"], again.stale_results[0]["result"]) == (
        "released",
        "kept",
        {"n": [1]},
    )


def test_looking_at_one_task_the_log_or_the_counts_moves_nothing(yard: Yard, yard_url: str) -> None:
    lapsed, due = yard.add("build").id, yard.add("build", delay=0.05).id
    outlast(taken(yard.claim(lapsed, lease=0.05)))
    before = list(yard.events())
    with taskyard.open(yard_url, worker="bob") as other:
        other.policy.sweep_every = 0.0  # whoever looks is due to sweep
        assert other.get(lapsed).state is State.PROCESSING
        assert other.report(due).task.state is State.WAITING
        assert other.counts()["processing"] == other.stats()["counts"]["waiting"] == 1
        assert list(other.events()) == before
        assert list(other.events(task=lapsed))[-1]["event"] == "claimed"
    assert list(yard.events()) == before
