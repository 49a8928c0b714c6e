"""One winner: however many processes race for a task, under whatever names, one gets it, and every task is done once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import sized
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Crew = Callable[..., subprocess.Popen[str]]

RACERS = 8
many = sized("number", 400, 2000)


@pytest.fixture
def durable(tmp_path: Path) -> str:
    """A yard as people make it."""
    path = str(tmp_path / "durable")
    taskyard.init(path).close()
    return path


def fill(yard: str, number: int) -> list[str]:
    with recorded_yard(yard) as opened:
        return opened.add_many([{"kind": "build", "data": n} for n in range(number)])


def everything_was_done_once(yard: str, ids: list[str], won: list[dict[str, Any]]) -> None:
    """Each task was claimed by one racer, once, under fence 1, and its result is that racer's."""
    verdict = tools.judge(yard, drained=True)
    assert verdict.figures["done"] == verdict.figures["claims"] == len(won) == len(ids)
    assert {entry["claim"].split(".")[1] for entry in won} == {"1"}
    assert tools.places(yard) == dict.fromkeys(ids, "done")


@many
def test_eight_processes_race_for_many_tasks(durable: str, crew: Crew, number: int) -> None:
    ids = fill(durable, number)
    won = tools.race([crew(durable, "drain") for _ in range(RACERS)])
    everything_was_done_once(durable, ids, won)
    assert len({entry["worker"] for entry in won}) > 1, "nobody raced"


@many
def test_eight_processes_of_one_name_race_for_many_tasks(place: str, crew: Crew, number: int) -> None:
    ids = fill(place, number)
    won = tools.race([crew(place, "drain", "same-name") for _ in range(RACERS)])
    everything_was_done_once(place, ids, won)
    assert {entry["worker"] for entry in won} == {"same-name"}
    assert len({entry["pid"] for entry in won}) > 1, "nobody raced"


@many
@pytest.mark.parametrize("name", ["", "same-name"], ids=["own-names", "one-name"])
def test_processes_of_containers_with_equal_pids_and_hosts_race(place: str, crew: Crew, name: str, number: int) -> None:
    inside = tools.container("twin")
    ids = fill(place, number)
    won = tools.race([crew(place, "drain", name, prefix=inside) for _ in range(RACERS)])
    everything_was_done_once(place, ids, won)
    assert {(entry["pid"], entry["host"]) for entry in won} == {(1, "twin")}
    assert len({entry["claim"].split(".")[2][:8] for entry in won}) > 1, "nobody raced"


@sized("number", 16, 300)
def test_eight_command_lines_race(durable: str, crew: Crew, number: int) -> None:
    ids = fill(durable, number)
    won = tools.race([crew(durable, "drain_by_command") for _ in range(RACERS)])
    everything_was_done_once(durable, ids, won)


@pytest.mark.proof
@pytest.mark.parametrize("number", [60])
def test_eight_command_lines_of_one_name_race(place: str, crew: Crew, number: int) -> None:
    ids = fill(place, number)
    won = tools.race([crew(place, "drain_by_command", "same-name") for _ in range(RACERS)])
    everything_was_done_once(place, ids, won)
    assert {entry["worker"] for entry in won} == {"same-name"}


@pytest.mark.proof
@pytest.mark.parametrize("number", [60])
def test_command_lines_of_containers_with_equal_pids_and_hosts_race(place: str, crew: Crew, number: int) -> None:
    inside = tools.container("twin")
    ids = fill(place, number)
    won = tools.race([crew(place, "drain_by_command", prefix=inside) for _ in range(RACERS)])
    everything_was_done_once(place, ids, won)
    twins = {entry["worker"].rsplit("-", 1)[0] for entry in won}
    assert all(name.startswith("twin-") for name in twins)
    assert len(twins) < number, "no two processes had the same pid"
