"""Clocks don't matter: time is the file system's, and a worker whose own clock is an hour off neither loses nor steals a claim."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import times
from tests.conftest import taken, wait_until
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3600
NEAR = 60_000  # milliseconds: slow machines are not an hour slow


@pytest.fixture(params=["+3600s", "-3600s"], ids=["an-hour-ahead", "an-hour-behind"])
def offset(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# libfaketime has utime(None), "now by the server's clock", write its own idea of now, unless FAKE_UTIME is set. No machine with a wrong clock
# does that; but such a worker may do no harm either, and a file's ctime is beyond its reach.
@pytest.fixture(params=["files-by-the-server", "files-by-the-worker"])
def skewed(request: pytest.FixtureRequest, offset: str) -> dict[str, str]:
    """The environment of a process whose clock is wrong; that it is wrong is checked."""
    env = tools.faketime(offset) | ({"FAKE_UTIME": "1"} if request.param == "files-by-the-server" else {})
    asked = subprocess.run(
        [tools.PYTHON, "-c", "import time; print(time.time())"],
        env=tools.environment(**env),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert abs(float(asked.stdout) - time.time() - float(offset[:-1])) < HOUR / 2, "libfaketime does not work here"
    return env


def is_now(moment: str, ahead: float = 0.0) -> bool:
    return abs(times.moment(moment, "moment") - (time.time() + ahead) * 1000) < NEAR


def test_a_sweep_by_a_wrong_clock_reaps_nothing_alive(place: str, skewed: dict[str, str]) -> None:
    with taskyard.open(place) as yard:
        yard.add("build")
        claim = taken(yard.claim(lease=60))
        assert tools.taskyard(place, "janitor", env=skewed).data["reaped"] == 0
        assert tools.taskyard(place, "claim", env=skewed).code == 3
        claim.heartbeat()
        claim.done("mine")
        assert yard.get(claim.task.id).result == "mine"


def test_a_claim_by_a_wrong_clock_is_not_lost_and_ends_well(place: str, skewed: dict[str, str]) -> None:
    with taskyard.open(place) as yard:
        id = yard.add("build").id
        claimed = tools.taskyard(place, "claim", "--lease", "60", env=skewed).data
        for _ in range(2):
            assert yard.sweep().reaped == 0
            assert yard.claim() is None
            assert is_now(tools.taskyard(place, "heartbeat", claimed["claim"], env=skewed).data["lease_until"], 60)
        assert tools.taskyard(place, "done", claimed["claim"], env=skewed).code == 0
        assert yard.get(id).state == "done"


def test_the_task_of_a_dead_worker_comes_back_whoever_had_the_wrong_clock(place: str, skewed: dict[str, str]) -> None:
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 2)
        first = tools.taskyard(
            place, "claim", "--lease", "0.5", env=skewed
        ).data  # its worker ends here, and never comes back
        tools.taskyard(place, "heartbeat", first["claim"], env=skewed)
        wait_until(lambda: yard.sweep().reaped)
        second = taken(yard.claim(ids[1], lease=0.5))
        wait_until(lambda: tools.taskyard(place, "janitor", env=skewed).data["reaped"])
        assert [yard.report(id).history[0]["outcome"] for id in ids] == ["crash", "crash"]
        assert second.task.id == ids[1]


def test_times_are_the_file_systems(place: str, skewed: dict[str, str]) -> None:
    added = tools.taskyard(place, "add", "build", env=skewed).data["task"]
    assert is_now(added["created_at"])
    later = tools.taskyard(place, "add", "later", "--delay", "600", env=skewed).data["task"]
    assert is_now(later["not_before"], 600)
    claimed = tools.taskyard(place, "claim", "--lease", "600", env=skewed).data
    assert claimed["task"]["id"] == added["id"]
    assert is_now(claimed["lease_until"], 600)
    assert is_now(tools.taskyard(place, "heartbeat", claimed["claim"], env=skewed).data["lease_until"], 600)
    assert is_now(tools.taskyard(place, "show", added["id"]).data["task"]["lease_until"], 600)
    assert is_now(tools.taskyard(place, "show", added["id"], env=skewed).data["task"]["lease_until"], 600)
    tools.taskyard(place, "done", claimed["claim"], env=skewed)
    assert is_now(tools.taskyard(place, "show", added["id"]).data["history"][0]["at"])
    assert all(is_now(event["at"]) for event in tools.events(place))
    assert tools.taskyard(place, "janitor", env=skewed).data["woken"] == 0


@pytest.mark.parametrize("files", [{"FAKE_UTIME": "1"}, {}], ids=["files-by-the-server", "files-by-the-worker"])
def test_a_crew_of_wrong_clocks_does_every_task_once(
    place: str, crew: Callable[..., subprocess.Popen[str]], files: dict[str, str]
) -> None:
    ahead, behind = (tools.faketime(offset) | files for offset in ("+3600s", "-3600s"))
    with recorded_yard(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 500)
    sweepers = [crew(place, "sweep_for_ever", env=env) for env in (ahead, behind)]
    won = tools.race([crew(place, "drain", "", "5", env=env) for env in (ahead, behind, {})])
    for sweeper in sweepers:
        tools.tell(sweeper)
    tools.told(sweepers)
    tools.judge(place, drained=True)
    assert {entry["claim"].split(".")[1] for entry in won} == {"1"}
    assert tools.places(place) == dict.fromkeys(ids, "done")
    assert tools.events(place, "reaped") == []
