"""Whoever implements the Yard port is a yard: claims and workers run on one that knows its yard by requests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, Worker
from taskyard.worker.command import Command
from taskyard.worker.heartbeats import ThreadBeats
from tests.conftest import taken

from .loopback import LoopbackYard, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Job, Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", worker="gateway", durability="fast") as opened:
        yield opened


@pytest.fixture
def server(yard: Yard) -> Server:
    return Server(yard)


@pytest.fixture
def far(server: Server) -> Any:
    return LoopbackYard(server, "ada")


def test_each_verb_of_a_claim_is_one_request(yard: Yard, server: Server, far: Any) -> None:
    id = yard.add("build", {"n": 1}).id
    claim = taken(far.claim())
    assert (claim.task.data, claim.fence, claim.task.worker) == ({"n": 1}, 1, "ada")
    assert server.asked == ["claim"]
    claim.note("half way")
    claim.heartbeat(progress=0.5)
    claim.done({"ok": True})
    assert server.asked == ["claim", "heartbeat", "heartbeat", "done"]
    claim.done({"ok": True})  # a lost reply is safe to repeat
    with pytest.raises(Conflict):
        claim.done("another")
    assert yard.get(id).result == {"ok": True}


def test_a_late_verb_is_refused_by_the_other_side(yard: Yard, far: Any) -> None:
    id = yard.add("build").id
    claim = taken(far.claim(lease=60))
    yard.cancel(id)
    with pytest.raises(ClaimLost):
        claim.heartbeat()
    assert not claim.holds()


def test_the_check_of_a_task_runs_on_the_other_side(yard: Yard, far: Any) -> None:
    yard.checks["tests"] = ["false"]
    id = yard.add("build", verify="tests").id
    claim = taken(far.claim())
    with pytest.raises(Conflict, match="did not pass"):
        claim.done()
    assert yard.get(id).state == "processing"
    yard.checks["tests"] = ["true"]
    claim.done()
    assert yard.get(id).state == "done"


def test_a_block_on_a_far_claim_ends_its_task(yard: Yard, far: Any) -> None:
    id = yard.add("build", max_attempts=1).id
    with pytest.raises(ValueError, match="broken"), taken(far.claim()):
        raise ValueError("broken")
    assert yard.get(id).error == "ValueError: broken"


def test_a_worker_drains_a_far_yard(yard: Yard, server: Server, far: Any) -> None:
    yard.add_many([{"kind": "build", "data": number} for number in range(20)])
    broken = yard.add("break", max_attempts=1).id
    worker = Worker(far)
    worker._beats = ThreadBeats  # type: ignore[method-assign]  # a heartbeat process opens its yard by its URL

    @worker.handles("build")
    def build(job: Job) -> Any:
        return {"twice": 2 * job.data}

    @worker.handles("break")
    def fall_over(job: Job) -> None:
        raise ValueError("broken")

    assert worker.run(drain=True, concurrency=3).as_dict() == {"done": 20, "failed": 1}
    assert yard.counts()["done"] == 20
    assert str(yard.get(broken).error).startswith("ValueError: broken")
    assert {"claim_many", "done_many", "remains", "fail"} <= set(server.asked)


def test_a_command_runs_for_a_far_task(yard: Yard, far: Any) -> None:
    id = yard.add("build").id
    worker = Worker(far)
    worker._register(Command(["sh", "-c", 'echo "{\\"claim\\": \\"$TASKYARD_CLAIM\\"}"']), ())
    worker.run(once=True)
    assert yard.get(id).result["claim"].startswith(id)
