"""Python functions as handlers: what they are given, what they may say, and what becomes of it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Invalid, State
from taskyard.worker import Fail, Job, Retry, Worker
from tests.conftest import wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

_serial = iter(range(1000))


@pytest.fixture(params=["memory", "directory", "postgresql"])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    url = f"memory:handlers-{next(_serial)}" if request.param == "memory" else str(tmp_path / "yard")
    if request.param == "postgresql":
        url = postgres.url()
    with taskyard.init(url, worker="ada", durability="fast") as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Yard]:
    """A yard in a directory."""
    with taskyard.init(tmp_path / "yard", worker="ada", durability="fast") as opened:
        yield opened


def once(yard: Yard, handler: Any, **options: Any) -> Any:
    """Have this handler do one task; gives the report of it."""
    id = yard.add("sharpen", {"n": 1}, **options).id
    worker = Worker(yard)
    worker.handles("sharpen")(handler)
    worker.run(once=True)
    return yard.report(id)


def test_what_a_function_returns_is_the_result(yard: Yard) -> None:
    task = once(yard, lambda job: {"doubled": job.data["n"] * 2}).task
    assert (task.state, task.result) == (State.DONE, {"doubled": 2})


def test_a_dead_workers_task_comes_back_while_every_slot_is_busy(yard: Yard) -> None:
    yard._store.policy.sweep_every = 0.2
    lost = yard.add("build", lease=0.3).id
    with taskyard.open(yard.url, worker="dead") as dead:
        assert dead.claim(lost) is not None
    kept, over = (
        yard.add("sharpen", lease=3600).id,
        threading.Event(),
    )  # a heartbeat, which sweeps too, every 20 minutes
    worker = Worker(yard)
    worker.handles("sharpen")(lambda _: over.wait(60) and None)
    at_work = threading.Thread(target=lambda: worker.run(max_tasks=1, concurrency=1))
    at_work.start()
    try:
        wait_until(lambda: yard.get(kept).state is State.PROCESSING)
        wait_until(lambda: yard.get(lost).state is State.TODO)  # looking at a task sweeps nothing
        assert yard.get(kept).state is State.PROCESSING
    finally:
        over.set()
        at_work.join()


def test_an_async_function_is_awaited(yard: Yard) -> None:
    async def handler(job: Job) -> Any:
        await asyncio.sleep(0)
        return job.data

    class Called:
        async def __call__(self, job: Job) -> Any:
            return ["called", job.kind]

    assert once(yard, handler).task.result == {"n": 1}
    assert once(yard, Called()).task.result == ["called", "sharpen"]


def test_a_job_tells_all_about_its_task(yard: Yard) -> None:
    seen: list[Job] = []

    def handler(job: Job) -> None:
        seen.append(job)
        job.progress(0.5)
        job.note("half way")
        assert not job.cancelled
        assert job.history == []
        if job.workdir is not None:
            with open(os.path.join(job.workdir, "made"), "w") as file:
                file.write("it")

    report = once(yard, handler, title="Sharpen it")
    [job] = seen
    assert (job.id, job.kind, job.title, job.fence) == (report.task.id, "sharpen", "Sharpen it", report.task.fence)
    assert [note["text"] for note in report.notes] == ["half way"]
    assert (job.workdir is None) == (not os.path.isabs(yard.url))
    if job.workdir is not None:
        assert "made" in os.listdir(job.workdir)
    assert job.handle in repr(job)


def test_an_exception_is_an_error_with_its_traceback(yard: Yard) -> None:
    def broken(job: Job) -> None:
        raise ValueError("no flour")

    report = once(yard, broken)
    assert (report.task.state, report.task.attempts) == (State.WAITING, 1)
    reason = report.history[0]["reason"]
    assert reason.startswith("ValueError: no flour\n\nTraceback")
    assert "in broken" in reason
    assert "function.py" not in reason, "our own lines tell nobody anything"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_handler_that_would_end_the_process_ends_only_its_task(yard: Yard, error: BaseException) -> None:
    def handler(job: Job) -> None:
        raise error

    assert type(error).__name__ in once(yard, handler).history[0]["reason"]


def test_fail_is_not_tried_again(yard: Yard) -> None:
    def handler(job: Job) -> None:
        raise Fail("never will")

    task = once(yard, handler).task
    assert (task.state, task.error) == (State.FAILED, "never will")


def test_retry_is_not_counted(yard: Yard) -> None:
    def handler(job: Job) -> None:
        raise Retry(after=3600, reason="the oven is cold")

    report = once(yard, handler)
    assert (report.task.state, report.task.attempts) == (State.WAITING, 0)
    assert (report.history[0]["outcome"], report.history[0]["reason"]) == ("released", "the oven is cold")


@pytest.mark.parametrize("after", [None, -1, float("nan"), float("inf"), 1e12, "soon", 4e9])
def test_a_retry_without_a_sensible_time_backs_off(yard: Yard, after: Any) -> None:
    def handler(job: Job) -> None:
        raise Retry(after=after)

    assert once(yard, handler).task.state is State.WAITING


@pytest.mark.parametrize("reason", ["", "   ", None, 5, b"bytes"])
@pytest.mark.parametrize("kind", [Fail, Retry])
def test_a_reason_that_is_none_does_not_take_the_worker_down(place: Yard, kind: Any, reason: Any) -> None:
    def handler(job: Job) -> None:
        raise kind(reason) if kind is Fail else kind(reason=reason)

    assert once(place, handler).task.state is (State.FAILED if kind is Fail else State.WAITING)


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "\ud800", "x" * (2 << 20)])
def test_a_result_that_cannot_be_kept_is_an_error(yard: Yard, result: Any) -> None:
    report = once(yard, lambda job: result)
    assert report.task.state is State.WAITING
    assert "its result cannot be kept" in report.history[0]["reason"]


def test_what_a_handler_says_itself_stands(yard: Yard) -> None:
    def done(job: Job) -> str:
        job.claim.done("said")
        return "returned"

    def failed(job: Job) -> None:
        job.claim.fail("said", retry=False)

    def released(job: Job) -> None:
        job.claim.release(after=3600)
        raise ValueError("too late")

    assert once(yard, done).task.result == "said"
    assert once(yard, failed).task.error == "said"
    report = once(yard, released)
    assert (report.task.state, [entry["outcome"] for entry in report.history]) == (State.WAITING, ["released"])


def test_a_kind_without_a_handler_is_left_to_others(yard: Yard) -> None:
    other = yard.add("bake").id
    assert once(yard, lambda job: None).task.state is State.DONE
    assert yard.get(other).state is State.TODO


def test_a_handler_without_kinds_does_the_rest(yard: Yard) -> None:
    worker, did = Worker(yard), []
    worker.handles("sharpen")(lambda job: did.append(("sharpen", job.kind)))
    worker.handles()(lambda job: did.append(("rest", job.kind)))
    yard.add_many([{"kind": kind} for kind in ("sharpen", "bake", "sweep")])
    assert worker.run(drain=True)["done"] == 3
    assert sorted(did) == [("rest", "bake"), ("rest", "sweep"), ("sharpen", "sharpen")]


def test_a_worker_without_handlers_is_refused(yard: Yard) -> None:
    with pytest.raises(Invalid):
        Worker(yard).run()
    with pytest.raises(Invalid):
        Worker(yard).handles("no good")(lambda job: None)
    with pytest.raises(Invalid):
        Worker(yard).command([])


def test_a_cancelled_task_tells_its_handler_and_publishes_nothing(yard: Yard) -> None:
    def plain(job: Job) -> str:
        yard.cancel(job.id)
        wait_until(lambda: job.cancelled)
        return "too late"

    async def patient(job: Job) -> None:
        yard.cancel(job.id)
        await asyncio.sleep(600)

    def asks(job: Job) -> None:
        yard.cancel(job.id)
        job.note("am I still wanted?")

    for handler in (plain, patient, asks):
        task = once(yard, handler).task
        assert (task.state, task.result) == (State.CANCELLED, None)


def test_a_stop_lets_what_runs_finish(yard: Yard) -> None:
    worker = Worker(yard)

    @worker.handles("sharpen")
    def handler(job: Job) -> str:
        worker.stop()
        time.sleep(0.05)
        return "finished"

    ids = yard.add_many([{"kind": "sharpen"}] * 2)
    assert worker.run().as_dict() == {"done": 1}
    assert sorted(yard.get(id).state for id in ids) == [State.DONE, State.TODO]


def test_what_is_finished_within_the_last_grace_is_not_thrown_away(yard: Yard) -> None:
    worker = Worker(yard)

    @worker.handles("plain", "patient")
    def handler(job: Job) -> str:
        worker.stop()
        wait_until(lambda: job.released)
        return "finished after all"

    id = yard.add("plain").id
    assert worker.run(grace=0.05).as_dict() == {"done": 1}
    assert yard.get(id).state is State.DONE


def test_what_a_handler_returns_because_it_was_told_to_stop_is_no_result(yard: Yard) -> None:
    worker = Worker(yard)

    @worker.handles("plain")
    def handler(job: Job) -> str:
        worker.stop()
        wait_until(lambda: job.cancelled)
        return "half of it"

    id = yard.add("plain").id
    assert worker.run(grace=0.05).as_dict() == {"released": 1}
    assert (yard.get(id).state, yard.get(id).attempts) == (State.TODO, 0)


def test_a_drain_waits_for_what_comes_back_and_for_what_others_hold(yard: Yard) -> None:
    worker = Worker(yard)
    yard.policy.backoff = 0.05
    yard.add("build", max_attempts=2)
    yard.add("build", delay=3600)

    @worker.handles("build")
    def handler(job: Job) -> None:
        raise ValueError("broken")

    assert worker.run(drain=True).as_dict() == {"error": 1, "failed": 1}
    assert yard.counts()["failed"] == 1


def test_a_drain_does_not_end_between_a_done_and_what_it_lets_go(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    first = yard.add("build")
    second = yard.add("build", after=first)
    claim = yard.claim(first.id)
    assert claim is not None
    worker = Worker(yard)
    done: list[str] = []
    looks: list[bool] = []
    look = yard.remains

    def missed(kinds: frozenset[str] | None, mission: str | None = None) -> bool:
        """The first look falls into the moment when the first task is done, and the second still blocked."""
        looks.append(look(kinds, mission))
        if len(looks) == 1:
            claim.done()
            return False
        return looks[-1]

    monkeypatch.setattr(yard, "remains", missed)
    worker.handles("build")(lambda job: done.append(job.id))
    worker.run(drain=True)
    assert done == [second.id]


def test_an_option_that_run_does_not_know_is_refused(yard: Yard) -> None:
    worker = Worker(yard)
    worker.handles("build")(lambda job: None)
    with pytest.raises(Invalid, match="not an option of run: timeout"):
        worker.run(timeout=5)  # type: ignore[call-arg]


def test_an_async_handler_is_cancelled_at_the_end_of_the_grace(yard: Yard) -> None:
    worker = Worker(yard)

    @worker.handles("sharpen")
    async def handler(job: Job) -> None:
        worker.stop()
        await asyncio.sleep(600)

    id = yard.add("sharpen").id
    assert worker.run(grace=0.05).as_dict() == {"released": 1}
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.TODO, 0)


def test_a_handler_that_hears_nothing_loses_its_task_and_not_the_worker(yard: Yard) -> None:
    worker, go, ended = Worker(yard), threading.Event(), threading.Event()

    @worker.handles("sharpen")
    def handler(job: Job) -> str:
        worker.stop()
        worker.stop()
        go.wait(30)
        ended.set()
        return "too late"

    id = yard.add("sharpen").id
    assert worker.run(grace=30).as_dict() == {"released": 1}
    assert yard.get(id).state is State.TODO
    handle = os.pipe()  # whatever was opened since must not be written to
    go.set()
    ended.wait(10)
    wait_until(lambda: not any(thread.name.startswith("slot") for thread in threading.enumerate()))
    os.set_blocking(handle[0], False)
    with pytest.raises(BlockingIOError):
        os.read(handle[0], 1)
    for number in handle:
        os.close(number)
    assert yard.get(id).state is State.TODO


def test_a_stop_before_and_after_a_run_is_no_error(yard: Yard) -> None:
    worker = Worker(yard)
    worker.handles("sharpen")(lambda job: None)
    yard.add("sharpen")
    worker.run(drain=True)
    worker.stop()
    again = Worker(yard)
    again.handles("sharpen")(lambda job: None)
    again.stop()
    yard.add("sharpen")
    assert again.run().total == 0


def test_concurrency_is_how_many_run_at_once_and_max_tasks_how_many_in_all(yard: Yard) -> None:
    worker, at_once, running, lock = Worker(yard), [0], [0], threading.Lock()
    together = threading.Barrier(3, timeout=20)

    @worker.handles("sharpen")
    def handler(job: Job) -> None:
        with lock:
            running[0] += 1
            at_once[0] = max(at_once[0], running[0])
        together.wait()
        with lock:
            running[0] -= 1

    yard.add_many([{"kind": "sharpen"}] * 8)
    assert worker.run(concurrency=8, max_tasks=3).as_dict() == {"done": 3}
    assert at_once == [3]
    assert yard.counts()["todo"] == 5


def test_idle_exit_ends_a_worker_that_has_nothing_to_do(yard: Yard) -> None:
    worker = Worker(yard)
    worker.handles("sharpen")(lambda job: None)
    yard.add("sharpen")
    assert worker.run(idle_exit=0.1).as_dict() == {"done": 1}


def test_what_is_done_is_logged(place: Yard, caplog: pytest.LogCaptureFixture) -> None:
    def broken(job: Job) -> None:
        raise ValueError("no flour")

    with caplog.at_level(logging.INFO, "taskyard"):
        once(place, broken)
        once(place, lambda job: None)
    bad, good = (record.getMessage() for record in caplog.records)
    assert "error after" in bad
    assert bad.endswith(": ValueError: no flour")
    assert "done after" in good


def test_a_check_gates_done(place: Yard) -> None:
    tool = ["sh", "-c", 'grep -q \'"result":{"good":true}\' || { echo "not good" >&2; exit 1; }']
    worker = Worker(place, checks={"taste": tool})

    @worker.handles("bake")
    def bake(job: Job) -> Any:
        return {"good": job.data}

    good = place.add("bake", True, verify="taste").id
    bad = place.add("bake", False, verify="taste").id
    unknown = place.add("bake", True, verify="smell").id
    worker.run(max_tasks=3)
    assert place.get(good).state is State.DONE
    assert place.get(bad).state is State.WAITING
    assert place.report(bad).history[0]["reason"] == "the check 'taste' did not pass: exit 1: not good"
    assert "'smell', which this worker does not know" in place.report(unknown).history[0]["reason"]


def test_a_task_cancelled_during_its_check_is_not_done_and_the_check_is_stopped(place: Yard, tmp_path: Path) -> None:
    worker = Worker(place, checks={"taste": ["sh", "-c", f"echo $$ > {tmp_path}/up; exec sleep 600"]})
    worker.handles("bake")(lambda job: "cake")
    id = place.add("bake", verify="taste").id

    def cancel() -> None:
        wait_until((tmp_path / "up").exists)
        with taskyard.open(place.url) as other:
            other.cancel(id)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    assert worker.run(once=True).as_dict() == {"lost": 1}
    canceller.join()
    task = place.get(id)
    assert (task.state, task.result) == (State.CANCELLED, None)


def test_a_yard_in_memory_has_no_processes(yard: Yard) -> None:
    worker = Worker(yard)
    worker.handles("sharpen")(lambda job: None)
    if yard.url.startswith("memory:"):
        with pytest.raises(Invalid, match="one process"):
            worker.run(processes=True)


def test_an_idle_worker_tells_of_a_pause_once(yard: Yard) -> None:
    worker = Worker(yard)
    told: list[str] = []
    yard.add("build")
    yard.pause()
    worker.handles("build")(lambda job: None)
    running = threading.Thread(target=lambda: worker.run(max_tasks=1, tell=told.append))
    running.start()
    wait_until(lambda: told)
    yard.add("build")
    yard.unpause()
    running.join(30)
    assert told == ["paused: the whole yard; nothing of it is handed out before 'taskyard unpause'"]
