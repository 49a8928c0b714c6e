"""Janitors as processes, killed and with wrong clocks: each tick is added exactly once, and a worker wakes for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import times
from tests.conftest import wait_until
from tests.contract.test_recurring import ticks_of
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(place: str) -> Iterator[Start]:
    """Start a command on the yard; all are ended with the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, **env: str) -> subprocess.Popen[bytes]:
        command = [*tools.COMMAND, *argv[:1], "--yard", place, *argv[1:]]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=tools.environment(**env)
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def check(yard: taskyard.Yard) -> None:
    """Every tick is there once, and none comes twice in the log; of those since the first, few were missed."""
    ticks = ticks_of(yard)
    assert len(set(ticks)) == len(ticks) == len(yard.events(event="added"))
    assert yard.audit()["verdict"] == "clean"


def test_two_janitors_that_are_killed_again_and_again_add_each_tick_once(place: str, start: Start) -> None:
    with taskyard.open(place) as yard:
        yard.tends = False
        yard.new_schedule("nightly", "* * * * * *", "build")
        for number in range(2):
            two = [start("janitor", "--every", "0.05") for _ in range(2)]
            wait_until(lambda number=number: len(yard.find()) > 2 * number + 1)  # type: ignore[misc]
            for janitor in two:
                janitor.kill()
                janitor.wait()
        yard.pause_schedule("nightly")
        yard.sweep()
        check(yard)


@pytest.mark.parametrize("offset", ["+3600s", "-3600s"])
def test_a_janitor_whose_own_clock_is_wrong_adds_ticks_by_the_yards_time(place: str, start: Start, offset: str) -> None:
    with taskyard.open(place) as yard:
        yard.tends = False
        yard.new_schedule("nightly", "* * * * * *", "build")
        start("janitor", "--every", "0.05", **tools.faketime(offset), FAKE_UTIME="1")
        start("janitor", "--every", "0.05")
        wait_until(lambda: len(yard.find()) > 2)
        yard.pause_schedule("nightly")
        yard.sweep()
        check(yard)
        for tick in ticks_of(yard):
            assert abs(times.moment(tick, "tick") - yard._store.reasons.now()) < 600_000


def test_a_worker_that_sleeps_wakes_for_a_tick_without_a_janitor(place: str, start: Start) -> None:
    with taskyard.open(place) as yard:
        yard.tends = False
        yard.new_schedule("nightly", "*/2 * * * * *", "build")
        start("work", "--max-tasks", "3", "--", sys.executable, "-c", "pass")
        wait_until(lambda: len(yard.find(state="done")) >= 2)
        check(yard)
