"""resume: a worker that has forgotten everything takes its claims again, and its older self is shut out."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Invalid, State
from tests.conftest import lapse, outlast, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard


def test_a_worker_takes_its_claims_again_under_a_new_fence(yard: Yard, yard_url: str) -> None:
    ids = yard.add_many({"kind": "build", "data": n} for n in range(3))
    old = [taken(yard.claim(id)) for id in ids[:2]]
    with taskyard.open(yard_url, worker="ada") as again:
        claims = again.resume()
        assert [claim.task.id for claim in claims] == ids[:2]
        assert [claim.task.data for claim in claims] == [0, 1]
        for before, claim in zip(old, claims, strict=True):
            assert claim.fence > before.fence
            assert claim.handle != before.handle
            assert (claim.task.state, claim.task.worker, claim.task.fence) == (State.PROCESSING, "ada", claim.fence)
            assert claim.task.lease_until is not None
            task = again.get(claim.task.id)
            assert (task.state, task.worker, task.fence, task.attempts) == (State.PROCESSING, "ada", claim.fence, 0)
        claims[0].done("finished")
        claims[1].release()
    assert (yard.get(ids[0]).state, yard.get(ids[0]).result) == (State.DONE, "finished")
    assert yard.get(ids[1]).state is State.TODO


@pytest.mark.parametrize(
    "verb",
    [
        lambda old: old.done("late"),
        lambda old: old.fail("late"),
        lambda old: old.release(),
        lambda old: old.heartbeat(),
    ],
    ids=["done", "fail", "release", "heartbeat"],
)
def test_the_older_incarnation_is_shut_out(yard: Yard, yard_url: str, verb: Callable[[Claim], Any]) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    with taskyard.open(yard_url, worker="ada") as again:
        [claim] = again.resume()
        for stale in (old, yard.held(old.handle)):
            with pytest.raises(ClaimLost):
                verb(stale)
        assert not old.holds()
        assert claim.holds()
        claim.done("new")
    assert yard.get(id).result == "new"


def test_what_the_older_incarnation_brings_is_kept_as_stale(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    with taskyard.open(yard_url, worker="ada") as again:
        [claim] = again.resume()
        with pytest.raises(ClaimLost):
            old.done("late")
        claim.done("new")
    report = yard.report(id)
    assert report.task.result == "new"
    assert [(stale["claim"], stale["result"]) for stale in report.stale_results] == [(old.handle, "late")]
    assert [(entry["claim"], entry["outcome"]) for entry in report.history] == [
        (old.handle, "resumed"),
        (claim.handle, "done"),
    ]


def test_the_history_tells_of_the_claim_that_was_taken_over(yard: Yard) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    old.note("halfway")
    [claim] = yard.resume()
    [entry] = claim.history
    assert (entry["claim"], entry["outcome"], entry["worker"], entry["fence"]) == (
        old.handle,
        "resumed",
        "ada",
        old.fence,
    )
    assert [note["text"] for note in yard.report(id).notes] == ["halfway"]
    assert yard.get(id).error is None


def test_nothing_held_is_nothing_to_resume(yard: Yard) -> None:
    assert yard.resume() == []
    yard.add("build")
    assert yard.resume() == []
    taken(yard.claim()).done()
    assert yard.resume() == []


def test_only_claims_of_exactly_this_name_are_taken(yard: Yard) -> None:
    names = ["ada", "ada-2", "Ada", "ad", "a.d.a", "漢字"]
    ids = {name: yard.add("build").id for name in names}
    for name in names:
        taken(yard.claim(ids[name], worker=name))
    assert [claim.task.id for claim in yard.resume("a.d.a")] == [ids["a.d.a"]]
    assert [claim.task.id for claim in yard.resume()] == [ids["ada"]]
    assert [claim.task.worker for claim in yard.resume("漢字")] == ["漢字"]
    assert yard.resume("nobody") == []


def test_without_a_given_name_there_is_nobody_to_resume(yard_url: str) -> None:
    with taskyard.open(yard_url) as nameless:
        nameless.add("build")
        taken(nameless.claim())
        with pytest.raises(Invalid) as refused:
            nameless.resume()
        assert refused.value.hint


def test_a_resumed_claim_begins_a_whole_lease(yard: Yard) -> None:
    yard.add("build")
    old = taken(yard.claim(lease=0.5))
    outlast(old)
    [claim] = yard.resume()  # nobody has reaped it, so it is still ours
    assert claim.lease == 0.5
    assert (claim.lease_until or "") > (old.lease_until or "")
    claim.heartbeat()
    claim.done()


def test_a_resumed_claim_lapses_like_any_other(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim(lease=0.1))
    [claim] = yard.resume()
    lapse(yard, claim)
    assert (yard.get(id).state, yard.get(id).attempts) == (State.TODO, 1)
    with pytest.raises(ClaimLost):
        claim.done()


def test_resume_may_be_repeated_and_the_last_one_holds(yard: Yard) -> None:
    id = yard.add("build").id
    first = taken(yard.claim())
    [second] = yard.resume()
    [third] = yard.resume()
    assert first.fence < second.fence < third.fence
    with pytest.raises(ClaimLost):
        second.done("second")
    third.done("third")
    assert yard.get(id).result == "third"


def test_progress_begins_anew(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).heartbeat(progress=0.5)
    [claim] = yard.resume()
    assert yard.get(id).progress is None
    claim.heartbeat(progress=0.25)
    assert yard.get(id).progress == 0.25


def test_a_task_that_was_edited_is_resumed_as_it_is(yard: Yard) -> None:
    id = yard.add("build", "old", max_attempts=2).id
    yard.edit(id, data="new", title="T", max_attempts=5)
    taken(yard.claim())
    [claim] = yard.resume()
    assert (claim.task.data, claim.task.title, claim.task.max_attempts) == ("new", "T", 5)
    claim.fail("broken")
    assert (yard.get(id).attempts, yard.get(id).max_attempts) == (1, 5)


def test_two_incarnations_resuming_at_once_share_the_claims_without_overlap(yard: Yard, yard_url: str) -> None:
    ids = yard.add_many([{"kind": "build"}] * 20)
    for _ in ids:
        taken(yard.claim())
    begin = threading.Barrier(4)
    held: list[Claim] = []

    def resume() -> None:
        own = taskyard.open(yard_url, worker="ada")
        begin.wait()
        held.extend(own.resume())

    threads = [threading.Thread(target=resume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claim.task.id for claim in held if claim.holds()) == sorted(ids)
    assert len({claim.handle for claim in held}) == len(held)


def test_a_done_and_a_resume_racing_have_one_winner(yard: Yard, yard_url: str) -> None:
    for round_ in range(30):
        id = yard.add("build").id
        old = taken(yard.claim(id))
        begin = threading.Barrier(2)
        lost: list[ClaimLost] = []

        def end(old: Claim = old, begin: threading.Barrier = begin, lost: list[ClaimLost] = lost) -> None:
            begin.wait()
            try:
                old.done("old")
            except ClaimLost as error:
                lost.append(error)

        thread = threading.Thread(target=end)
        with taskyard.open(yard_url, worker="ada") as again:
            thread.start()
            begin.wait()
            claims = again.resume()
            thread.join()
            assert len(claims) == len(lost), f"round {round_}: {claims} {lost}"
            for claim in claims:
                claim.done("new")
        task = yard.get(id)
        assert (task.state, task.result) == (State.DONE, "new" if claims else "old")
