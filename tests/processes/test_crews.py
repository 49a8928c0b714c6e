"""Crews of workers that are killed at random: every task is published once, none is lost, and no process is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import taskyard
from bench import crew
from taskyard.worker.guard import processes
from tests.conftest import sized
from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system has no /proc")


def left_behind(mark: str) -> list[str]:
    """What still runs with this mark in its environment."""
    found = []
    for pid in processes() or ():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0") and pid != os.getpid():
                    with open(f"/proc/{pid}/cmdline", "rb") as words:
                        found.append(f"{pid} {words.read()!r}")
        except OSError:
            continue
    return found


@sized("tasks", 60, 300)
def test_a_crew_under_random_kills_publishes_every_task_once_and_leaves_no_process(
    place: str, tmp_path: Path, tasks: int
) -> None:
    tools.settle(place, backoff=0.02, backoff_cap=0.1, max_crashes=1000)
    mark = f"CREW_TEST={tmp_path}"
    told = crew.drained(place, tasks=tasks, workers=4, kill_every=0.1, environment={"CREW_TEST": str(tmp_path)})
    assert told.kills > 0
    assert left_behind(mark) == []
    states = tools.places(place)
    assert len(states) == tasks
    assert set(states.values()) == {"done"}, "a fifth of them fails once, and is done the second time"
    ended = [event["task"] for event in tools.events(place, "done")]
    assert sorted(ended) == sorted(states), "each once"
    with taskyard.open(place) as yard:
        reports = [yard.report(id) for id in states]
    late = [(report.task.fence, entry["fence"]) for report in reports for entry in report.stale_results]
    assert all(fence < last for last, fence in late)
    assert len(late) <= told.kills, "one who is killed in the midst of a done leaves a result that does not count"


def test_a_killed_workers_task_is_with_another_soon(place: str) -> None:
    delays = crew.recoveries(place, 3)
    assert len(delays) == 3
    assert max(delays) < 10, "and not only at the end of a lease of 60 s"
