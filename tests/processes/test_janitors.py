"""A heartbeat keeps a claim for as long as its block runs; a janitor gives back what the dead left, and ends when it is told."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import SOON, wait_until
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Crew = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def janitor(place: str) -> Iterator[subprocess.Popen[str]]:
    """A janitor of its own, sweeping every 50 ms."""
    argv = [*tools.COMMAND, "janitor", "--every", "0.05", "--json", "--yard", place]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tools.environment())
    yield process
    process.kill()
    process.communicate()


def did(janitor: subprocess.Popen[str]) -> dict[str, int]:
    """What the first sweep did that did anything."""
    assert janitor.stdout is not None
    for line in janitor.stdout:
        swept: dict[str, int] = json.loads(line)["data"]
        if any(swept.values()):
            return swept
    raise AssertionError("the janitor ended")


def test_a_heartbeat_beside_a_block_keeps_the_claim_over_many_leases(
    place: str, crew: Crew, janitor: subprocess.Popen[str]
) -> None:
    with recorded_yard(place) as yard:
        id = yard.add("build").id
        worker = crew(place, "work_with_heartbeat", "1")
        handle = tools.said(worker)
        first = yard.get(id).lease_until
        assert first is not None
        wait_until(lambda: (yard.get(id).lease_until or "") > first)
        # Another task comes and goes with every lease: the janitor is at work, and three leases pass.
        for _ in range(3):
            yard.add("other")
            other = yard.claim(kinds=["other"], lease=1)
            assert other is not None
            assert did(janitor)["reaped"] == 1
            yard.cancel(other.task.id)
            assert yard.get(id).state == "processing"
        tools.tell(worker)
        assert tools.told([worker]) == ["held"]
        assert (yard.get(id).state, yard.get(id).fence, yard.report(id).history[0]["claim"]) == ("done", 1, handle)
    tools.judge(place)


def test_a_janitor_gives_back_what_a_killed_worker_held(place: str, crew: Crew, janitor: subprocess.Popen[str]) -> None:
    with recorded_yard(place) as yard:
        id = yard.add("build").id
        worker = crew(place, "work_with_heartbeat", "0.5")
        handle = tools.said(worker)
        worker.kill()
        assert did(janitor)["reaped"] == 1
        assert tools.places(place) == {id: "todo"}
        claim = yard.claim()
        assert claim is not None
        assert [(entry["claim"], entry["outcome"]) for entry in claim.history] == [(handle, "crash")]
    tools.judge(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_janitor_ends_well_when_it_is_told_to(
    place: str, janitor: subprocess.Popen[str], number: signal.Signals
) -> None:
    with taskyard.open(place) as yard:
        yard.add("build", delay=0.01)
        assert janitor.stdout is not None
        assert did(janitor)["woken"] == 1  # it is at work
        janitor.send_signal(number)
        assert janitor.wait(timeout=SOON) == 0
        assert not any(any(json.loads(line)["data"].values()) for line in janitor.stdout)
        assert janitor.stderr is not None
        assert janitor.stderr.read() == ""


def test_many_janitors_reap_a_task_once(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000)
    with recorded_yard(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 50)
        for _ in ids:
            assert yard.claim(lease=0.3) is not None
        sweepers = [crew(place, "sweep_for_ever") for _ in range(4)]
        wait_until(lambda: yard.counts()["processing"] == 0)
        for sweeper in sweepers:
            tools.tell(sweeper)
        tools.told(sweepers)
        assert tools.places(place) == dict.fromkeys(ids, "todo")
        assert {yard.get(id).attempts for id in ids} == {1}
    tools.judge(place)
