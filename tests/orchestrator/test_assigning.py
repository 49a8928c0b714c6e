"""Assignments: accepted or given back, found again by the next leader, and never in the way of a person's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.orchestrator.loop import Orchestrator
from tests.conftest import crash, taken, wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture(params=["memory", "directory", "postgresql"])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    urls = {"memory": "memory:orchestrated", "directory": str(tmp_path / "yard")}
    url = urls.get(request.param) or postgres.url()
    with taskyard.init(url, worker="boss") as made:
        yield made


@pytest.fixture
def ada(yard: Yard) -> Iterator[Yard]:
    """An agent that is at work on builds."""
    with taskyard.open(yard.url, worker="ada") as opened:
        yard.add("build")
        taken(opened.claim()).done()
        yield opened


def test_a_ready_task_is_assigned_to_an_agent_that_takes_its_kind(yard: Yard, ada: Yard) -> None:
    build, ship = yard.add("build"), yard.add("ship")
    told = Orchestrator(yard, assign=True).round()
    assert told["leads"]
    assert told["assigned"] == [{"task": build.id, "agent": "ada"}]
    assert yard.get(ship.id).assignee is None
    with taskyard.open(yard.url, worker="bob") as bob:
        assert taken(bob.claim()).id == ship.id
        assert bob.claim() is None
    assert taken(ada.claim()).id == build.id


def test_what_is_not_accepted_in_time_goes_back_to_the_pool(yard: Yard, ada: Yard) -> None:
    task = yard.add("build")
    orchestrator = Orchestrator(yard, assign=True, accept=0.05)
    assert orchestrator.round()["assigned"]
    back = wait_until(lambda: orchestrator.round()["returned"])
    assert back == [{"task": task.id, "agent": ada.worker}]


def test_the_next_leader_gives_back_what_the_one_before_had_assigned(yard: Yard, ada: Yard) -> None:
    task = yard.add("build")
    first = Orchestrator(yard, assign=True)
    assert first.round()["assigned"]
    first.resign()
    with taskyard.open(yard.url, worker="second") as opened:
        second = Orchestrator(opened, accept=0.05)
        assert wait_until(lambda: second.round()["returned"]) == [{"task": task.id, "agent": ada.worker}]
    assert yard.get(task.id).assignee is None


def test_a_leader_that_ends_in_order_leaves_nothing_assigned_that_was_not_accepted(yard: Yard, ada: Yard) -> None:
    first, second = yard.add("build"), yard.add("build")
    told: list[dict[str, object]] = []
    Orchestrator(yard, assign=True).run(0.0, lambda _: taken(ada.claim()) is not None, told.append, pytest.fail)
    assert len(told[0]["assigned"]) == 2  # type: ignore[arg-type]
    assert yard.get(first.id).state == "processing"
    assert yard.get(second.id).assignee is None


def test_a_task_with_many_notes_is_known_to_be_assigned_by_an_orchestrator(yard: Yard, ada: Yard) -> None:
    task = yard.add("build")
    held = taken(ada.claim())
    for number in range(1001):
        held.note(f"step {number}")
    held.release()
    orchestrator = Orchestrator(yard, assign=True, accept=0.05)
    assert orchestrator.round()["assigned"]
    assert wait_until(lambda: orchestrator.round()["returned"]) == [{"task": task.id, "agent": ada.worker}]


def test_a_task_that_moves_under_a_round_does_not_end_the_orchestrator(
    yard: Yard, ada: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = yard.add("build")
    orchestrator, find = Orchestrator(yard, assign=True), yard.find
    warned: list[str] = []

    def pruned(*given: object, **named: object) -> object:
        if warned:
            return find(*given, **named)  # type: ignore[arg-type]
        raise taskyard.NotFound

    monkeypatch.setattr(yard, "find", pruned)
    told: list[dict[str, object]] = []
    orchestrator.run(0.0, lambda _: bool(told), told.append, warned.append)
    assert len(warned) == 1
    assert told[0]["assigned"] == [{"task": task.id, "agent": "ada"}]


def test_a_persons_assignee_is_never_touched(yard: Yard, ada: Yard) -> None:
    theirs = yard.add("build", assignee="ada")
    ours = yard.add("build")
    orchestrator = Orchestrator(yard, assign=True, accept=0.0)
    assert orchestrator.round()["assigned"] == [{"task": ours.id, "agent": "ada"}]
    yard.edit(ours.id, assignee="carl")  # a person thinks otherwise
    for _ in range(3):
        told = orchestrator.round()
        assert (told["assigned"], told["returned"]) == ([], [])
    assert yard.get(ours.id).assignee == "carl"
    assert yard.get(theirs.id).assignee == ada.worker


def test_what_an_agent_died_with_goes_back_to_the_pool(yard: Yard, ada: Yard) -> None:
    task = yard.add("build")
    orchestrator = Orchestrator(yard, assign=True, accept=0.05)
    assert orchestrator.round()["assigned"]
    crash(ada, task.id)
    assert yard.get(task.id).assignee == "ada"
    wait_until(lambda: orchestrator.round()["returned"])
    assert yard.get(task.id).assignee is None


def test_a_second_orchestrator_stands_by_and_changes_nothing(yard: Yard, ada: Yard) -> None:
    yard.add("build")
    assert Orchestrator(yard).round()["leads"]
    with taskyard.open(yard.url, worker="second") as opened:
        told = Orchestrator(opened, assign=True).round()
    assert told == {"leads": False, "leader": "boss", "term": told["term"]}
    assert ada.claim() is not None


def test_two_leaders_at_once_assign_each_task_once(yard: Yard, ada: Yard) -> None:
    """The old one was stopped in the middle of its round, after it had asked whether it leads."""
    task = yard.add("build")
    old = Orchestrator(yard, assign=True)
    with taskyard.open(yard.url, worker="second") as opened:
        stale = yard.get(task.id)
        assert Orchestrator(opened, assign=True)._assign(_agents(opened), {})
        assert not old._reservations.assign(stale, "bob")
    assert yard.get(task.id).assignee == ada.worker


def _agents(yard: Yard) -> list[object]:
    from taskyard.orchestrator.agents import Agents

    return list(Agents(yard).look())
