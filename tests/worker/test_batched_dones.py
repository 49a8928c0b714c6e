"""Claims and dones of a worker with several slots, where the store takes many at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State
from taskyard.worker import Job, Worker
from tests.conftest import wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def yard() -> Iterator[Yard]:
    with taskyard.init(postgres.url(), worker="ada", durability="fast") as opened:
        yield opened


def started(yard: Yard, handler: Any, **options: Any) -> tuple[Worker, threading.Thread]:
    worker = Worker(yard)
    worker.handles("build")(handler)
    thread = threading.Thread(target=lambda: worker.run(**options), daemon=True)
    thread.start()
    return worker, thread


def test_a_worker_holds_no_more_tasks_than_it_has_slots(yard: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(20))
    go = threading.Event()
    worker, thread = started(yard, lambda _: go.wait(), concurrency=3, drain=True)
    wait_until(lambda: yard.counts()["processing"] == 3)
    held = len(yard.find(state="processing"))
    go.set()
    thread.join(30)
    assert (held, yard.counts()["done"]) == (3, 20)
    assert all(
        len([event for event in yard.events(task=task.id) if event["event"] == "claimed"]) == 1 for task in yard.find()
    )
    worker.stop()


def test_a_burst_of_tasks_takes_few_statements(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.add_many({"kind": "build"} for _ in range(300))
    said: list[int] = []
    done_many = yard.done_many

    def counted(ended: Any) -> list[bool]:
        said.append(len(ended))
        return done_many(ended)

    monkeypatch.setattr(yard, "done_many", counted)
    _, thread = started(yard, lambda _: None, concurrency=50, drain=True)
    thread.join(60)
    assert yard.counts()["done"] == sum(said) == 300
    assert len(said) < 100
    assert max(said) <= 50


def test_a_done_is_stored_while_its_slot_is_busy_with_the_next(yard: Yard) -> None:
    go, ran = threading.Event(), []

    def build(job: Job) -> None:
        ran.append(job.id)
        if job.data == "long":
            go.wait()

    short = yard.add("build", "short").id
    long = [yard.add("build", "long").id for _ in range(3)]
    _, thread = started(yard, build, concurrency=2, drain=True)
    wait_until(lambda: yard.get(short).state is State.DONE)
    wait_until(lambda: len(ran) == 3)
    assert yard.counts()["processing"] == 2
    go.set()
    thread.join(30)
    assert [yard.get(id).state for id in long] == [State.DONE] * 3


def test_of_dones_that_are_said_together_each_is_guarded_by_itself(yard: Yard) -> None:
    ids = yard.add_many({"kind": "build", "data": number} for number in range(8))
    gate = threading.Barrier(9)
    reports: dict[str, str] = {}

    def build(job: Job) -> int:
        gate.wait(30)
        gate.wait(30)
        return int(job.data)

    worker = Worker(yard)
    worker.handles("build")(build)
    thread = threading.Thread(
        target=lambda: worker.run(
            concurrency=8, max_tasks=8, report=lambda job, outcome, _: reports.update({job.id: outcome.ending})
        )
    )
    thread.start()
    gate.wait(30)
    with taskyard.open(yard.url, worker="boss") as boss:
        boss.cancel(ids[3])
        gate.wait(30)
    thread.join(30)
    assert reports == {id: "lost" if id == ids[3] else "done" for id in ids}
    assert [yard.get(id).result for id in ids] == [None if number == 3 else number for number in range(8)]


def test_a_done_that_others_come_after_lets_them_go(yard: Yard) -> None:
    first = [yard.add("build").id for _ in range(4)]
    last = yard.add("build", after=first).id
    _, thread = started(yard, lambda job: job.id == last, concurrency=4, drain=True)
    thread.join(30)
    assert (yard.get(last).state, yard.get(last).result) == (State.DONE, True)


def test_what_a_handler_said_of_its_claim_stands_though_dones_are_said_together(yard: Yard) -> None:
    def build(job: Job) -> str:
        if job.data == "release":
            job.claim.release(after=3600)
        else:
            job.claim.done("its own")
        return "the handler's"

    own, back = yard.add("build", "done").id, yard.add("build", "release").id
    _, thread = started(yard, build, concurrency=4, max_tasks=2)
    thread.join(30)
    assert (yard.get(own).result, yard.get(back).state) == ("its own", State.WAITING)
    assert [event["event"] for event in yard.events() if event["event"] == "refused"] == []


def test_a_killed_worker_is_charged_only_what_its_slots_had(yard: Yard) -> None:
    ids = yard.add_many({"kind": "build"} for _ in range(60))
    code = (
        "import sys, time, taskyard\n"
        "worker = taskyard.Worker(taskyard.open(sys.argv[1], worker='eve'))\n"
        "worker.handles('build')(lambda job: time.sleep(60))\n"
        "worker.run(concurrency=5)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, yard.url])
    try:
        wait_until(lambda: yard.counts()["processing"] == 5)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (yard.counts()["processing"], yard.counts()["todo"]) == (5, 55)
    assert sum(yard.get(id).fence for id in ids) == 5


def test_at_a_stop_what_no_slot_has_begun_is_handed_back_uncounted(yard: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(12))
    begun = threading.Event()

    def build(_: Job) -> None:
        begun.set()
        time.sleep(0.2)

    worker, thread = started(yard, build, concurrency=6, grace=10)
    assert begun.wait(30)
    worker.stop()
    thread.join(30)
    assert yard.counts()["processing"] == 0
    assert all(task.attempts == 0 for task in yard.find())


def test_dones_that_were_stored_and_never_answered_are_told_as_done(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.add_many({"kind": "build", "data": number} for number in range(6))
    done_many = yard.done_many
    lost: list[int] = []

    def unanswered(ended: Any) -> list[bool]:
        made = done_many(ended)
        if not lost:
            lost.append(len(ended))
            raise taskyard.Unavailable("cut off")
        return made

    monkeypatch.setattr(yard, "done_many", unanswered)
    worker = Worker(yard)
    worker.handles("build")(lambda job: {"n": job.data})
    tally = worker.run(concurrency=3, drain=True)
    assert lost
    assert (tally.as_dict(), yard.counts()["done"]) == ({"done": 6}, 6)
    assert [task for task in yard.find(state="done") if yard.report(task.id).stale_results] == []
