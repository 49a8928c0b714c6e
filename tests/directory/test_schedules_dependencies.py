"""The fifth schedule that breaks the obvious version, driven to the exact call: an edge that is registered too late, or seen by nobody."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Conflict, NotFound
from taskyard.stores.directory.recovery import edges as edge_recovery
from tests.conftest import taken, wait_until
from tests.directory.staging import AtCall, Turns, every_call, yard_on
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

pytestmark = pytest.mark.proof

DECIDING = frozenset(("create", "rename", "remove", "rmdir", "listdir", "has"))


def state(yard: Yard, id: str) -> str:
    return check_places(yard.url)[id][0]


def is_unstuck(yard: Yard) -> None:
    """Nothing is stuck, without anybody's sweep."""
    check_places(yard.url)
    check_log(yard)
    done = {task.id for task in yard.find(state="done", limit=1000)}
    for task in yard.find(state="blocked", limit=1000):
        assert set(yard.get(task.id).after) - done, f"{task.id} is blocked by nothing"


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("several", [1, 3])
def test_5_a_done_at_any_call_of_an_add_after_it_is_not_missed(
    fresh: Callable[[], str], several: int, key: str | None
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            ids = [other.add("build").id for _ in range(several)]
            claims = [taken(other.claim(id)) for id in ids]

            def step() -> None:
                for claim in claims:
                    claim.done()

            cue = AtCall(number, step)
            with yard_on(url, cue) as yard:
                task = yard.add("ship", after=ids, key=key)
            if cue.taken:
                assert state(other, task.id) == "todo", f"at {cue.call}"
                if task.state == "blocked":  # as it was added; then somebody else let it go
                    assert (task.fence, other.get(task.id).fence) == (0, 1)
                else:
                    assert task.fence == other.get(task.id).fence
                is_unstuck(other)
                check_nothing_is_stuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15


def test_5_an_add_at_any_call_of_a_done_is_not_missed(fresh: Callable[[], str]) -> None:
    states = set()

    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first = other.add("build").id
            before = other.add("ship", after=first).id
            added: list[str] = []
            cue = AtCall(number, lambda: added.append(other.add("ship", after=first).id))
            with yard_on(url, cue) as yard:
                claim = taken(yard.claim(first))
                claim.done()
            if cue.taken:
                states.add(other.get(added[0]).fence)
                assert state(other, before) == state(other, added[0]) == "todo", f"at {cue.call}"
                is_unstuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15
    assert states == {0, 1}, "one came too early to be ready at once, another one too late to be blocked"


def test_5_two_dones_of_the_last_two_needs_let_the_task_go_once_in_any_order(fresh: Callable[[], str]) -> None:
    def play(first: int, second: int) -> list[int]:
        url = fresh()
        with yard_on(url, worker="other") as other:
            ids = [other.add("build").id for _ in range(2)]
            last = other.add("ship", after=ids).id
            handles = [taken(other.claim(id)).handle for id in ids]
            order = iter([0] * (first + 1) + [1] * (second + 1) + [0])
            turns = Turns(order, lambda: check_places(url), DECIDING)
            yards = [yard_on(url, turns.cue(actor), worker="ada") for actor in (0, 1)]
            turns.play(lambda: yards[0].held(handles[0]).done(), lambda: yards[1].held(handles[1]).done())
            for yard in yards:
                yard.close()
            assert state(other, last) == "todo", f"after {first} and {second} calls"
            events = [event["event"] for event in other.events(task=last)]
            assert events == ["added", "blocked", "unblocked"], f"after {first} and {second} calls"
            check_nothing_is_stuck(other)
        shutil.rmtree(url)
        return turns.calls

    calls = play(1000, 0)
    for first in range(calls[0]):
        for second in range(0, calls[1], 2):
            play(first, second)


@pytest.mark.parametrize("verb", ["edit", "edit its time", "cancel and retry", "cancel"])
def test_5_whatever_is_done_to_a_blocked_task_at_any_call_of_the_last_done_it_goes_on(
    fresh: Callable[[], str], verb: str
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first = other.add("build").id
            last = other.add("ship", {"n": 1}, after=first).id
            handle = taken(other.claim(first)).handle
            cue = AtCall(number, lambda: meddle(other, last, verb))
            with yard_on(url, cue) as yard:
                yard.held(handle).done()
            if cue.taken:
                wanted = {"cancel": "cancelled", "edit its time": "waiting"}.get(verb, "todo")
                assert state(other, last) == wanted, f"at {cue.call}"
                assert other.get(last).after == [first]
                is_unstuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15


@pytest.mark.parametrize("verb", ["edit", "edit its time", "cancel and retry"])
def test_5_the_last_done_at_any_call_of_what_is_done_to_a_blocked_task_is_not_missed(
    fresh: Callable[[], str], verb: str
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first = other.add("build").id
            last = other.add("ship", {"n": 1}, after=first).id
            claim = taken(other.claim(first))
            cue = AtCall(number, claim.done)
            with yard_on(url, cue) as yard:
                meddle(yard, last, verb)
            if cue.taken:
                assert state(other, last) == ("waiting" if verb == "edit its time" else "todo"), f"at {cue.call}"
                is_unstuck(other)
                check_nothing_is_stuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15


def meddle(yard: Yard, id: str, verb: str) -> None:
    if verb.startswith("edit"):
        changes: dict[str, Any] = {"data": {"n": 2}} if verb == "edit" else {"delay": 3600}
        yard.edit(id, **changes)
        return
    yard.cancel(id)
    if verb == "cancel and retry":
        yard.retry(id)


def test_5_a_prune_at_any_call_of_an_add_after_what_failed_takes_nothing_that_is_needed(
    fresh: Callable[[], str],
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first = other.add("build").id
            taken(other.claim(first)).fail("broken", retry=False)
            wait_until(lambda: other.prune(age=0)["tasks"] == 1)
            cue = AtCall(number, lambda: other.prune(age=0, apply=True))
            added = None
            with yard_on(url, cue) as yard:
                try:
                    added = yard.add("ship", after=first).id
                except NotFound:
                    assert first not in check_places(url)
                    assert not [file for _, _, files in os.walk(f"{url}/needs") for file in files], f"at {cue.call}"
            if cue.taken and added is not None:
                assert state(other, first) == "failed", f"at {cue.call}"
                other.retry(first)
                taken(other.claim(first)).done()
                assert state(other, added) == "todo"
                check_nothing_is_stuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15


def test_5_an_add_at_any_call_of_a_prune_of_what_failed_is_refused_or_keeps_it(fresh: Callable[[], str]) -> None:
    outcomes = set()

    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first = other.add("build").id
            other.cancel(first)
            wait_until(lambda: other.prune(age=0)["tasks"] == 1)
            added: list[str] = []

            def step() -> None:
                try:
                    added.append(other.add("ship", after=first).id)
                except NotFound:
                    outcomes.add("refused")

            cue = AtCall(number, step)
            with yard_on(url, cue) as yard:
                yard.prune(age=0, apply=True)
                yard.sweep()
            if cue.taken:
                assert (first in check_places(url)) == bool(added), f"at {cue.call}"
                if added:
                    outcomes.add("kept")
                    assert (state(other, first), state(other, added[0])) == ("cancelled", "blocked"), f"at {cue.call}"
                    other.retry(first)
                    taken(other.claim(first)).done()
                    assert state(other, added[0]) == "todo"
                    check_nothing_is_stuck(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15
    assert outcomes == {"refused", "kept"}


def test_5_a_prune_of_what_is_done_at_any_call_of_an_add_after_it_blocks_nobody(fresh: Callable[[], str]) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            first, still = other.add("build").id, other.add("build").id
            claim, held = taken(other.claim(first)), taken(other.claim(still))

            def step() -> None:
                claim.done()
                wait_until(lambda: other.prune(age=0, apply=True)["tasks"] == 1)

            cue = AtCall(number, step)
            added = None
            with yard_on(url, cue) as yard:
                try:
                    added = yard.add("ship", after=[first, still]).id
                except NotFound:
                    assert cue.taken
            if cue.taken and added is not None:
                held.done()
                other.sweep()
                assert state(other, added) == "todo", f"at {cue.call}"
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 15


def test_5_what_was_missed_is_found_segment_by_segment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's note of what was intended helps here: as after a power cut, or on a network filesystem."""
    with yard_on(url) as yard:
        firsts = [yard.add(f"kind-{n}").id for n in range(4)]
        lasts = [yard.add(f"after-{n}", after=firsts).id for n in range(4)]
        follow: Any = yard._store._shifts  # type: ignore[attr-defined]
        monkeypatch.setattr(follow, "_go_on", lambda *_: None)
        for id in firsts:
            taken(yard.claim(id)).done()
        assert {state(yard, id) for id in lasts} == {"blocked"}
        monkeypatch.undo()
        monkeypatch.setattr(edge_recovery, "_PER_ROUND", 1)
        wait_until(lambda: (yard.sweep(), {state(yard, id) for id in lasts} == {"todo"})[1])
        wait_until(lambda: (yard.sweep(), not os.listdir(f"{url}/followers"))[1])
        check_nothing_is_stuck(yard)
        check_log(yard)


def test_5_edges_of_a_task_that_never_came_are_removed_after_a_while(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with yard_on(url) as yard:
        first = yard.add("build").id
        last = yard.add("ship", after=first).id
        store: Any = yard._store
        never = f"{last[:4]}{last[4:-1]}{'0' if last[-1] != '0' else '1'}"
        store._shifts.edges.register({never: [first]}, False)
        yard.sweep()
        assert os.path.exists(f"{url}/needs/{never[:4]}/{never}/{first}"), "somebody may be about to add it"
        monkeypatch.setattr(edge_recovery, "PATIENCE", 0)
        monkeypatch.setattr(edge_recovery, "_PER_ROUND", 1)
        wait_until(lambda: (yard.sweep(), not os.path.exists(f"{url}/needs/{never[:4]}/{never}"))[1])
        assert os.listdir(f"{url}/followers/{first[:4]}/{first}") == [last]
        assert os.listdir(f"{url}/needs/{last[:4]}/{last}") == [first]
        taken(yard.claim(first)).done()
        assert state(yard, last) == "todo"


def test_5_a_chain_of_a_thousand_needs_costs_a_few_calls_each(url: str) -> None:
    """Fan-in is two calls for each edge, however many there are."""
    calls = 0

    def count(name: str, paths: str, made: bool) -> None:
        nonlocal calls
        calls += made and ("/needs/" in paths or "/followers/" in paths)

    with yard_on(url, count) as yard:
        firsts = yard.add_many([{"kind": "build"}] * 100)
        lasts = [yard.add("ship", after=firsts).id for _ in range(5)]
        calls = 0
        for _ in firsts:
            taken(yard.claim(kinds="build")).done()
        assert {state(yard, id) for id in lasts} == {"todo"}
        edges = len(firsts) * len(lasts)
        assert calls <= 4 * edges + 4 * len(firsts), f"{calls / edges:.1f} calls for each edge"


def test_5_a_refused_claim_of_a_blocked_task_changes_nothing(url: str) -> None:
    with yard_on(url) as yard:
        first = yard.add("build").id
        last = yard.add("ship", after=first).id
        before = check_places(url)[last][1].fence
        with pytest.raises(Conflict):
            yard.claim(last)
        assert check_places(url)[last][1].fence == before
