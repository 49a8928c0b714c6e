"""Many tasks at once: counted first, each moved by itself, and what has moved on is left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, Invalid, NotFound, State
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard import Yard


def states(yard: Yard, ids: list[str]) -> list[str]:
    return [str(yard.get(id).state) for id in ids]


def test_a_bulk_verb_only_counts_until_it_is_to_be_applied(yard: Yard) -> None:
    ids = [yard.add("build", title=f"Part {n}").id for n in range(7)]
    yard.add("test")
    told = yard.bulk("cancel", kind="build")
    assert (told["count"], told["changed"], told["refused"], told["applied"]) == (7, 0, [], False)
    assert [task["title"] for task in told["tasks"]] == [f"Part {n}" for n in range(5)]
    assert set(states(yard, ids)) == {"todo"}


def test_a_filter_cancels_what_matches_and_nothing_else(yard: Yard) -> None:
    builds = [yard.add("build", mission="login").id for _ in range(3)]
    other = yard.add("build", mission="search").id
    test = yard.add("test", mission="login").id
    told = yard.bulk("cancel", kind="build", mission="login", reason="not needed", apply=True)
    assert (told["count"], told["changed"], told["refused"]) == (3, 3, [])
    assert states(yard, [*builds, other, test]) == ["cancelled"] * 3 + ["todo"] * 2
    assert yard.get(builds[0]).error == "not needed"


def test_ended_tasks_are_not_counted_for_a_cancel(yard: Yard) -> None:
    yard.add("build")
    taken(yard.claim()).done()
    yard.add("build")
    assert yard.bulk("cancel", kind="build", apply=True)["count"] == 1


def test_a_retry_chooses_what_is_failed_cancelled_or_waiting(yard: Yard) -> None:
    done, failed, cancelled, waiting, todo = (yard.add("build", delay=3600 if n == 3 else 0).id for n in range(5))
    taken(yard.claim(done)).done()
    taken(yard.claim(failed)).fail("no", retry=False)
    yard.cancel(cancelled)
    told = yard.bulk("retry", kind="build", apply=True)
    assert (told["count"], told["changed"], told["refused"]) == (3, 3, [])
    assert states(yard, [done, failed, cancelled, waiting, todo]) == ["done", "todo", "todo", "todo", "todo"]


def test_a_state_chooses_among_what_a_verb_could_move(yard: Yard) -> None:
    failed, cancelled = (yard.add("build").id for _ in range(2))
    taken(yard.claim(failed)).fail("no", retry=False)
    yard.cancel(cancelled)
    assert yard.bulk("retry", state=["failed"], apply=True)["changed"] == 1
    assert states(yard, [failed, cancelled]) == ["todo", "cancelled"]


def test_a_release_takes_a_workers_claims_and_counts_no_attempt(yard: Yard) -> None:
    mine = [yard.add("build").id for _ in range(2)]
    claims = [taken(yard.claim(id, worker="bob")) for id in mine]
    other = taken(yard.claim(yard.add("build").id, worker="eve"))
    told = yard.bulk("release", worker="bob", reason="bob is gone", apply=True)
    assert (told["count"], told["changed"]) == (2, 2)
    for id, claim in zip(mine, claims, strict=True):
        task = yard.get(id)
        assert (task.state, task.attempts, task.worker) == (State.TODO, 0, None)
        with pytest.raises(ClaimLost):
            claim.heartbeat()
        assert [(entry["outcome"], entry["reason"]) for entry in yard.report(id).history] == [
            ("released", "bob is gone")
        ]
        assert [(event["event"], event["by"]) for event in yard.events(task=id)][-2:] == [
            ("released", "ada"),
            ("refused", "ada"),
        ]
    other.done()


def test_a_release_can_name_tasks(yard: Yard) -> None:
    held, free = (yard.add("build").id for _ in range(2))
    taken(yard.claim(held, worker="bob"))
    told = yard.bulk("release", [held, free], apply=True)
    assert (told["count"], told["changed"], [entry["id"] for entry in told["refused"]]) == (2, 1, [free])
    assert states(yard, [held, free]) == ["todo", "todo"]


def test_named_tasks_that_cannot_be_moved_are_refused_with_the_reason(yard: Yard) -> None:
    ids = [yard.add("build").id for _ in range(3)]
    taken(yard.claim(ids[1])).done()
    told = yard.bulk("cancel", yard.shorten(ids), apply=True)
    assert (told["count"], told["changed"]) == (3, 2)
    [refused] = told["refused"]
    assert refused["id"] == ids[1]
    assert "has ended" in refused["reason"]
    assert states(yard, ids) == ["cancelled", "done", "cancelled"]


def test_an_unknown_name_is_refused_before_anything_is_moved(yard: Yard) -> None:
    id = yard.add("build").id
    with pytest.raises(NotFound):
        yard.bulk("cancel", [id, "0" * 21], apply=True)
    assert states(yard, [id]) == ["todo"]


def test_a_whole_graph_is_cancelled_without_a_refusal(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("build", after=[f"{first}:cancel"]).id
    third = yard.add("build", after=[f"{second}:cancel", first]).id
    told = yard.bulk("cancel", kind="build", apply=True)
    assert (told["count"], told["changed"], told["refused"]) == (3, 3, [])
    told = yard.bulk("retry", kind="build", apply=True)
    assert (told["changed"], told["refused"]) == (3, [])
    assert states(yard, [first, second, third]) == ["todo", "blocked", "blocked"]


def test_a_task_that_moves_on_before_its_turn_is_left_as_it_is(
    yard: Yard, near: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [yard.add("build").id for _ in range(2)]
    upkeep = near._store.upkeep
    stand_all = upkeep.stand_all

    def claimed_after(some: Sequence[str]) -> dict[str, taskyard.core.task.Standing]:
        found = stand_all(some)
        taken(yard.claim(ids[0], worker="bob"))
        return found

    monkeypatch.setattr(upkeep, "stand_all", claimed_after)
    told = yard.bulk("cancel", state="todo", apply=True)
    assert (told["count"], told["changed"]) == (2, 1)
    assert told["refused"] == [{"id": ids[0], "reason": f"task {yard.get(ids[0]).short} is processing now"}]
    assert states(yard, ids) == ["processing", "cancelled"]


def test_no_more_are_chosen_than_were_confirmed(yard: Yard) -> None:
    ids = [yard.add("build").id for _ in range(5)]
    assert yard.bulk("cancel", kind="build", most=2, apply=True)["changed"] == 2
    assert states(yard, ids) == ["cancelled", "cancelled", "todo", "todo", "todo"]


def test_many_cancels_reach_what_comes_after_them(yard: Yard) -> None:
    tops = [yard.add("top").id for _ in range(40)]
    run = yard.add_many({"kind": "run", "after": f"{top}:run"} for top in tops)
    ended = yard.add_many({"kind": "ended", "after": f"{top}:cancel"} for top in tops)
    blocked = yard.add_many({"kind": "blocked", "after": top} for top in tops)
    assert yard.bulk("cancel", kind="top", apply=True)["changed"] == 40
    assert {*states(yard, tops), *states(yard, ended)} == {"cancelled"}
    assert (set(states(yard, run)), set(states(yard, blocked))) == ({"todo"}, {"blocked"})


def test_progress_is_reported_up_to_the_end(yard: Yard, near: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(250))
    seen: list[tuple[int, int]] = []
    near.bulk("cancel", kind="build", apply=True, progress=lambda *told: seen.append(told))
    assert seen == [(100, 250), (200, 250), (250, 250)]


@pytest.mark.parametrize("given", [{}, {"ids": ["0"], "kind": "build"}], ids=["nothing", "both"])
def test_a_bulk_verb_needs_names_or_a_filter_and_not_both(yard: Yard, given: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        yard.bulk("cancel", **given)  # type: ignore[arg-type]


def test_only_three_verbs_are_for_many_tasks(yard: Yard) -> None:
    with pytest.raises(Invalid, match="not a verb") as refused:
        yard.bulk("done", kind="build")
    assert refused.value.hint == "verbs are cancel, retry, release"


def test_a_prune_by_filter_spares_what_does_not_match(yard: Yard) -> None:
    done = [yard.add("build", mission="login").id for _ in range(2)]
    for id in done:
        taken(yard.claim(id)).done()
    other = yard.add("test").id
    cancelled = yard.add("build").id
    for id in (other, cancelled):
        yard.cancel(id)
    assert yard.prune(count=0, kind="test")["tasks"] == 1
    assert yard.prune(count=0, mission="login")["tasks"] == 2
    assert yard.prune(count=0, state="cancelled")["tasks"] == 2
    assert yard.prune(count=1, mission="login", apply=True)["tasks"] == 1
    assert yard.prune(count=0, kind="build", state=["cancelled"], apply=True)["tasks"] == 1
    left = [done[1], other]
    assert [task.id for task in yard.find()] == left
    assert yard.prune(age="1h", kind="test")["tasks"] == 0


def test_a_prune_by_filter_takes_all_that_match_without_an_age_or_a_count(yard: Yard) -> None:
    ids = [yard.add("build").id for _ in range(3)]
    for id, worker in zip(ids, ("ada", "bob", "ada"), strict=True):
        taken(yard.claim(id, worker=worker)).done()
    other = yard.add("test").id
    yard.cancel(other)
    assert yard.prune(worker="ada")["tasks"] == 2
    assert yard.prune(state="cancelled", apply=True)["tasks"] == 1
    assert yard.prune(ids=[ids[0], ids[1]], worker="bob", apply=True)["tasks"] == 1
    assert {task.id for task in yard.find(state="done")} == {ids[0], ids[2]}
    assert yard.prune(ids=ids[0], apply=True)["tasks"] == 1
    with pytest.raises(NotFound):
        yard.prune(ids=other)
    open_one = yard.add("build").id
    assert yard.prune(ids=[open_one], apply=True)["tasks"] == 0
    assert yard.get(open_one).state == "todo"


def test_a_prune_by_filter_leaves_the_log(yard: Yard) -> None:
    yard.cancel(yard.add("build").id)
    before = len(yard.events())
    assert yard.prune(count=0, kind="build", apply=True) | {"archives": [], "oldest": None, "kept": 0} == {
        "tasks": 1,
        "events": 0,
        "archives": [],
        "oldest": None,
        "applied": True,
        "kept": 0,
    }
    assert len(yard.events()) >= before


def test_a_wait_by_filter_waits_for_what_matches_now(yard: Yard) -> None:
    ended = yard.add("build").id
    yard.cancel(ended)
    ids = [yard.add("build", mission="login").id for _ in range(2)]
    yard.add("test")
    with pytest.raises(taskyard.TimedOut, match="2 of 2"):
        yard.wait(kind="build", timeout=0)
    for id in ids:
        taken(yard.claim(id)).done({"n": id})
    assert yard.wait(kind="build") == []
    found = yard.wait(kind="build", state=["done"])
    assert [(task.id, task.result) for task in found] == [(id, {"n": id}) for id in ids]
