"""A witness stands for a yard, also to a worker: what that asks for and is told is in the history, however much at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.proof import FinalState, History, HistoryWriter, RecordedYard, check

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard.worker import Job


def test_all_that_a_worker_with_several_slots_does_is_witnessed(yard_url: str, tmp_path: Path) -> None:
    with RecordedYard(taskyard.open(yard_url, "ada"), HistoryWriter(tmp_path / "history", "ada")) as witness:
        witness.add_many([{"kind": "build", "data": n} for n in range(60)])
        stand_in: Any = witness
        worker = taskyard.Worker(stand_in)

        @worker.handles()
        def handler(job: Job) -> Any:
            if job.data % 20 == 19:
                raise taskyard.Fail("not this one")
            return {"by": job.handle}

        worker.run(concurrency=4, drain=True)
    with taskyard.open(yard_url) as yard:
        verdict = check(History.load(tmp_path / "history"), FinalState.of(yard, drained=True))
    assert verdict.legal, str(verdict)
    assert (verdict.figures["claims"], verdict.figures["done"], verdict.figures["failed"]) == (60, 57, 3)
