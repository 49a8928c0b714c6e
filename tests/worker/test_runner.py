"""Running one claim: what is published of it, and what becomes of a store that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, NotFound, State, Unavailable
from taskyard.worker import Job, outcome
from taskyard.worker.guard_client import GuardClient
from taskyard.worker.outage import FIRST_PAUSE, LONGEST_PAUSE, Trouble
from taskyard.worker.outcome import Ending, Outcome
from taskyard.worker.runner import Runner
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", worker="ada", durability="fast") as opened:
        opened.add("build")
        yield opened


class Says:
    """A handler that says this."""

    def __init__(self, ended: Outcome | Exception) -> None:
        self._ended = ended

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:  # noqa: ARG002  a handler is given both
        if isinstance(self._ended, Exception):
            raise self._ended
        return self._ended


def ran(job: Job, ended: Outcome | Exception, patience: Callable[[Unavailable], bool] = lambda _: False) -> Ending:
    """How the run of a handler that says this ended."""
    runner = Runner(lambda _: Says(ended), {}, GuardClient(None), patience)
    return runner.conclude(job, runner.perform(job)).ending


def test_a_result_that_cannot_be_stored_is_stored_as_soon_as_it_can(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, done = Job(taken(yard.claim())), taskyard.Claim.done
    refusals = [Unavailable("full"), Unavailable("still full")]
    met: list[Unavailable] = []

    def refusing(claim: Any, result: Any = None, **__: Any) -> None:
        if refusals:
            raise refusals.pop(0)
        done(claim, result)

    def heard(error: Unavailable) -> bool:
        met.append(error)
        return True

    monkeypatch.setattr(taskyard.Claim, "done", refusing)
    assert ran(job, outcome.done("kept"), heard) is Ending.DONE
    assert len(met) == 2
    assert yard.get(job.id).result == "kept"


def test_a_worker_that_must_go_leaves_what_it_cannot_store_to_the_lease(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(taken(yard.claim()))

    def refusing(claim: Any, result: Any = None, **__: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(taskyard.Claim, "done", refusing)
    assert ran(job, outcome.done("lost")) is Ending.LOST
    assert yard.get(job.id).state is State.PROCESSING


@pytest.mark.parametrize("refusal", [ClaimLost, Conflict, NotFound])
def test_a_claim_that_is_over_takes_nobody_down(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, refusal: type[Exception]
) -> None:
    def refusing(claim: Any, *_: Any, **__: Any) -> None:
        raise refusal

    for verb in ("done", "fail", "release", "crash"):
        monkeypatch.setattr(taskyard.Claim, verb, refusing)
    job = Job(taken(yard.claim()))
    for ended in (outcome.done(), outcome.error("x"), outcome.fatal("x"), outcome.later(), outcome.crashed("x")):
        assert ran(job, ended) is Ending.LOST


@pytest.mark.parametrize("error", [OSError(11, "Resource temporarily unavailable"), Unavailable("away")])
def test_work_that_could_not_be_begun_is_nobodys_failure(yard: Yard, error: Exception) -> None:
    job = Job(taken(yard.claim()))
    assert ran(job, error) is Ending.LATER
    task = yard.get(job.id)
    assert (task.state, task.attempts) == (State.WAITING, 0)


def test_what_is_done_counts_even_if_the_worker_is_going(yard: Yard) -> None:
    job = Job(taken(yard.claim()))
    job.stop(0, lost=False)
    assert ran(job, outcome.done("made it")) is Ending.DONE


@pytest.mark.parametrize(("lost", "ending"), [(True, Ending.LOST), (False, Ending.RELEASED)])
def test_work_that_was_stopped_has_not_failed(yard: Yard, lost: bool, ending: Ending) -> None:
    job = Job(taken(yard.claim()))
    job.stop(0, lost=lost)
    assert ran(job, outcome.error("killed by SIGTERM")) is ending
    assert yard.get(job.id).attempts == 0


def test_trouble_is_said_once_and_waited_out_longer_and_longer() -> None:
    said: list[str] = []
    trouble = Trouble(said.append)
    trouble.over()
    pauses = [trouble.met(Unavailable("full")) for _ in range(10)]
    assert said == ["full; trying again until it is back"]
    assert pauses[0] <= FIRST_PAUSE * 1.25
    assert LONGEST_PAUSE * 0.75 <= pauses[-1] <= LONGEST_PAUSE * 1.25
    trouble.met(Unavailable("forbidden"))
    trouble.over()
    trouble.over()
    assert said[1:] == ["forbidden; trying again until it is back", "the yard is back"]
    assert trouble.met(Unavailable("full")) <= FIRST_PAUSE * 1.25
