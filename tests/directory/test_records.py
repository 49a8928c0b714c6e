"""Records of how claims ended, beside a sweep that tidies up."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, Conflict, Unavailable
from taskyard.yard import janitor
from tests.conftest import outlast, taken, wait_until
from tests.directory.staging import Step, dead, die, yard_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard

WAYS: dict[str, Callable[[Yard, Claim], object]] = {
    "released": lambda yard, claim: yard.held(claim.handle).release(),
    "cancelled": lambda yard, claim: yard.cancel(claim.task.id),
    "resumed": lambda yard, claim: yard.resume("ada"),
}


def test_a_folder_that_a_sweep_drops_as_soon_as_it_is_made_costs_no_record(fresh: Callable[[], str]) -> None:
    dropped: list[str] = []

    def drop(name: str, paths: str, made: bool) -> None:
        if name == "mkdir" and made and "/results/" in paths and len(dropped) < 5:
            os.rmdir(paths)
            dropped.append(paths)

    with yard_on(fresh(), drop) as yard:
        id = yard.add("build", max_attempts=1).id
        taken(yard.claim()).fail("broken")
        assert yard.get(id).error == "broken"
    assert len(dropped) == 5


@pytest.mark.parametrize("ending", ["done", "fail"])
def test_an_ending_that_was_meant_and_not_made_is_not_logged_when_the_task_has_moved_on(
    fresh: Callable[[], str], ending: str
) -> None:
    """Its process has noted the event and dies before the move; the claim is reaped before anybody reads the note."""
    url = fresh()
    with yard_on(url) as yard:
        id = yard.add("build", max_attempts=1).id

        def meant() -> None:
            with yard_on(url, Step("before", "rename", f"/{'done' if ending == 'done' else 'failed'}/", die)) as own:
                claim = taken(own.claim(lease=0.05))
                claim.done("result") if ending == "done" else claim.fail("why")

        dead(meant)
        wait_until(lambda: janitor.sweep(yard._store, "reaper").reaped)
        taken(yard.claim(id)).release()
        yard.sweep()
        assert [event["event"] for event in yard.events()] == ["added", "claimed", "reaped", "claimed", "released"]


@pytest.mark.parametrize("after", ["nothing", "retry"])
def test_a_final_failure_that_was_made_is_logged_for_its_dead_process_also_after_a_retry(
    fresh: Callable[[], str], after: str
) -> None:
    url = fresh()
    with yard_on(url) as yard:
        id = yard.add("build", max_attempts=1).id

        def made() -> None:
            with yard_on(url, Step("after", "rename", "/failed/", die)) as own:
                taken(own.claim()).fail("why")

        dead(made)
        if after == "retry":
            yard.retry(id)
        yard.sweep()
        assert sorted(event["event"] for event in yard.events()) == sorted(
            ["added", "claimed", "failed", *(["retried"] if after == "retry" else [])]
        )


@pytest.mark.parametrize("after", ["nothing", "a claim"])
@pytest.mark.parametrize(("first", "second"), [(one, other) for one in WAYS for other in WAYS if one != other], ids=str)
def test_where_two_end_a_claim_at_once_its_history_tells_the_one_that_was_made(
    fresh: Callable[[], str], first: str, second: str, after: str
) -> None:
    """The second has written down its word when the first makes its move; neither counts as an error or a crash."""
    url = fresh()
    with yard_on(url) as yard:
        yard.add("build")
        claim = taken(yard.claim())
        overtaken = Step("before", "rename", "/processing/", lambda: WAYS[first](yard, claim))
        with yard_on(url, overtaken) as late:
            try:
                WAYS[second](late, claim)
            except (ClaimLost, Conflict):
                pass  # it may also have been done to the task as it stands now
        assert overtaken.taken
        if after == "a claim" and yard.get(claim.task.id).state == "todo":
            taken(yard.claim()).release()
        told = [entry["outcome"] for entry in yard.report(claim.task.id).history if entry["claim"] == claim.handle]
        assert told == [first]
        if first == "released":
            yard.held(claim.handle).release()  # said again, it gets the same answer
        elif second == "released":
            with pytest.raises(ClaimLost):
                yard.held(claim.handle).release()


@pytest.mark.parametrize("way", ["fail", "release"])
@pytest.mark.parametrize("then", ["cancelled", "retried", "claimed"])
def test_a_claim_that_its_holder_ended_just_before_a_cancel_tells_of_its_holders_ending(
    fresh: Callable[[], str], way: str, then: str
) -> None:
    """The cancel has written its record, comes too late, and cancels what it finds; a retry begins the counters anew."""
    url = fresh()
    with yard_on(url) as yard:
        id = yard.add("build").id
        claim = taken(yard.claim())
        quick = Step(
            "before", "rename", "/cancelled/", lambda: claim.fail("broken") if way == "fail" else claim.release()
        )
        with yard_on(url, quick) as boss:
            boss.cancel(id)
        if then != "cancelled":
            yard.retry(id)
        if then == "claimed":
            taken(yard.claim(id))
        outcomes = [entry["outcome"] for entry in yard.report(id).history]
    assert outcomes == ["error" if way == "fail" else "released"]


@pytest.mark.parametrize("first", ["crash", "cancelled", "resumed", "error"])
def test_a_release_that_came_too_late_is_not_told_in_the_history_whatever_happens_next(
    fresh: Callable[[], str], first: str
) -> None:
    """An edit takes a number too, and a retry begins the counters anew: neither may hide whose move was made."""
    url = fresh()
    with yard_on(url) as yard:
        id = yard.add("build").id
        claim = taken(yard.claim(lease=0.01 if first == "crash" else 60))
        if first == "crash":
            outlast(claim)
        quicker: dict[str, Callable[[], object]] = {
            "crash": yard.sweep,
            "cancelled": lambda: yard.cancel(id),
            "resumed": lambda: yard.resume("ada"),
            "error": lambda: yard.held(claim.handle).fail("no use", retry=False),
        }
        overtaken = Step("before", "rename", "/processing/", quicker[first])
        with yard_on(url, overtaken) as late, pytest.raises((ClaimLost, Conflict)):
            late.held(claim.handle).release()
        assert overtaken.taken
        if first == "resumed":
            yard.resume("ada")[0].release()
        if yard.get(id).state == "todo":
            yard.cancel(id)
        yard.retry(id)
        for number in range(3):
            yard.edit(id, title=f"edit {number}")
            outcomes = [entry["outcome"] for entry in yard.report(id).history if entry["claim"] == claim.handle]
            assert outcomes == [first]
        taken(yard.claim(id)).done()
        outcomes = [entry["outcome"] for entry in yard.report(id).history if entry["claim"] == claim.handle]
        assert outcomes == [first]


def test_a_note_that_did_not_fit_is_refused_and_spoils_no_other(url: str) -> None:
    """A full disk takes a part of a write; a process that is killed in the midst of one leaves the same."""
    with yard_on(url) as yard:
        claim = taken(yard.claim(yard.add("build").id))
        claim.note("first")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            with pytest.raises(Unavailable):
                claim.note('half of {"claim": "' + "x" * 5000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        claim.note("last")
        [notes] = Path(url, "attempts").rglob("notes.jsonl")
        assert notes.read_bytes().count(b"\n") == 2, "the last note stands behind the torn one, in the same line"
        assert [note["text"] for note in yard.report(claim.id).notes] == ["first", "last"]
