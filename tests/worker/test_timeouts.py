"""timeout: an attempt that takes too long is stopped, and is an error."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State
from taskyard.worker import Worker, function
from tests.conftest import SOON, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard
    from taskyard.worker import Job

LONG = [sys.executable, "-c", "import time; time.sleep(100)"]
TELL = ["sh", "-c", 'echo "{\\"told\\": \\"$TASKYARD_TIMEOUT\\"}"']


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", worker="ada", durability="fast") as opened:
        yield opened


def ran(yard: Yard, worker: Worker, **options: Any) -> taskyard.Task:
    id = yard.add("sharpen", max_attempts=1, **options).id
    worker.run(once=True)
    return yard.get(id)


def handled(yard: Yard, handler: Any, usual: float | None = None, **options: Any) -> taskyard.Task:
    worker = Worker(yard)
    worker.handles("sharpen", timeout=usual)(handler)
    return ran(yard, worker, **options)


@pytest.mark.parametrize(("own", "workers"), [(0.2, None), (0.2, 100.0), (None, 0.2)])
def test_a_command_is_stopped_by_the_tasks_timeout_and_else_by_the_workers(
    yard: Yard, own: float | None, workers: float | None
) -> None:
    worker = Worker(yard)
    worker.command(LONG, timeout=workers, grace=0.1)
    task = ran(yard, worker, timeout=own)
    assert (task.state, task.error) == (State.FAILED, "timed out after 0.2 s")


def test_a_command_is_told_how_long_it_has(yard: Yard) -> None:
    worker = Worker(yard)
    worker.command(TELL, timeout=50.0)
    assert ran(yard, worker, timeout=30).result == {"told": "30"}
    assert ran(yard, worker).result == {"told": "50"}


@pytest.mark.parametrize(("own", "workers"), [(0.1, None), (0.1, 100.0), (None, 0.1)])
def test_a_function_sees_that_its_time_is_up_and_what_it_returns_is_no_result(
    yard: Yard, own: float | None, workers: float | None
) -> None:
    def patient(job: Job) -> str:
        wait_until(lambda: job.cancelled)
        return "too late"

    task = handled(yard, patient, workers, timeout=own)
    assert (task.state, task.error, task.result) == (State.FAILED, "timed out after 0.1 s", None)


def test_an_async_function_is_cancelled_when_its_time_is_up(yard: Yard) -> None:
    async def patient(job: Job) -> None:
        await asyncio.sleep(SOON)

    assert handled(yard, patient, timeout=0.1).error == "timed out after 0.1 s"


def test_a_function_that_goes_on_after_its_timeout_loses_its_claim(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "GRACE", 0.1)
    id = yard.add("sharpen", max_attempts=1, timeout=0.1).id
    over = threading.Event()

    def deaf(_: Job) -> str:
        wait_until(lambda: yard.get(id).state is State.FAILED)
        over.set()
        return "too late"

    worker = Worker(yard)
    worker.handles("sharpen")(deaf)
    worker.run(once=True)
    assert over.is_set()
    task = yard.get(id)
    assert (task.state, task.error, task.result) == (State.FAILED, "timed out after 0.1 s", None)


def test_a_function_that_is_quick_enough_is_done(yard: Yard) -> None:
    assert handled(yard, lambda _: 3, timeout=50).result == 3
