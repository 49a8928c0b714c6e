"""A RecordedYard wraps a yard for a worker: the history has all of its requests and answers, also those in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.proof import FinalState, History, HistoryWriter, RecordedYard, check

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard.worker import Job


def test_all_that_a_worker_with_several_slots_does_is_witnessed(yard_url: str, tmp_path: Path) -> None:
    with RecordedYard(taskyard.open(yard_url, "ada"), HistoryWriter(tmp_path / "history", "ada")) as recorded_yard:
        recorded_yard.add_many([{"kind": "build", "data": n} for n in range(60)])
        stand_in: Any = recorded_yard
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


def test_many_claims_are_as_many_as_were_asked_for(yard_url: str, tmp_path: Path) -> None:
    with RecordedYard(taskyard.open(yard_url, "ada"), HistoryWriter(tmp_path / "history", "ada")) as recorded_yard:
        recorded_yard.add_many([{"kind": "build", "data": n} for n in range(10)])
        for number in (1, 4, 2):
            assert len(recorded_yard.claim_many(number)) == number
    history = History.load(tmp_path / "history")
    assert [len(op.answer["claims"]) for op in history if op.verb == "claim" and op.answer] == [1, 4, 2]
