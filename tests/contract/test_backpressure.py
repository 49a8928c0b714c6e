"""max_todo: a yard, or a kind, takes only so many tasks that wait for a worker; an adder is refused, or waits for room."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Full, State, TaskyardError
from tests.conftest import SOON, crash, retried, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def bound(yard: Yard, max_todo: int | None = None, **kinds: int) -> None:
    yard.set_settings({"max_todo": max_todo, "kinds": {kind: {"max_todo": most} for kind, most in kinds.items()}})


def test_an_add_to_a_full_yard_is_refused_and_says_how_full(yard: Yard) -> None:
    bound(yard, 3)
    for _ in range(3):
        yard.add("build")
    with pytest.raises(Full, match="the yard is full: 3 of 3 tasks wait for a worker") as refused:
        yard.add("test")
    error = refused.value
    assert isinstance(error, TaskyardError)
    assert (error.code, error.kind, error.count, error.most, error.wanted) == ("full", None, 3, 3, 1)
    assert yard.counts()["todo"] == 3
    assert yard.full() == yard.stats()["full"] == [{"kind": None, "count": 3, "max_todo": 3}]


def test_a_full_kind_leaves_other_kinds_alone(yard: Yard) -> None:
    bound(yard, None, build=1)
    yard.add("build")
    with pytest.raises(Full, match="kind build is full: 1 of 1") as refused:
        yard.add("build")
    assert refused.value.kind == "build"
    yard.add_many([{"kind": "test"}] * 5)


def test_there_is_room_again_as_soon_as_a_worker_claims(yard: Yard) -> None:
    bound(yard, 2)
    for _ in range(2):
        yard.add("build")
    for _ in range(5):
        with pytest.raises(Full):
            yard.add("build")
        claim = taken(yard.claim())
        yard.add("build", wait=30)  # where a count took long, the next one is put off for a moment
        claim.done()
    assert yard.counts()["todo"] == 2


def test_what_waits_and_what_is_blocked_counts_and_what_is_held_or_ended_does_not(yard: Yard) -> None:
    bound(yard, 4)
    done, held = yard.add("build").id, yard.add("build").id
    taken(yard.claim(done)).done()
    taken(yard.claim(held))
    yard.add("build", delay=60)
    yard.add("build", after=held)
    yard.cancel(yard.add("build").id)
    yard.add_many([{"kind": "build"}] * 2)
    with pytest.raises(Full, match="4 of 4"):
        yard.add("build")


def test_what_comes_back_is_never_refused(yard: Yard) -> None:
    bound(yard, 3)
    failed, released, crashed = (yard.add("build", max_attempts=9).id for _ in range(3))
    claims = [taken(yard.claim(id)) for id in (failed, released)]
    yard.add_many([{"kind": "build"}] * 2)
    claims[0].fail("no flour")
    claims[1].release()
    crash(yard, crashed)
    gone = yard.cancel(failed).id
    assert retried(yard, gone).state is State.TODO
    with pytest.raises(Full, match="5 of 3"):
        yard.add("build")


def test_a_known_key_is_answered_also_when_the_yard_is_full(yard: Yard) -> None:
    bound(yard, 1)
    first = yard.add("build", {"n": 1}, key="k")
    again = yard.add("build", {"n": 1}, key="k")
    assert (again.id, again.created) == (first.id, False)
    assert yard.add_many([{"kind": "build", "data": {"n": 1}, "key": "k"}] * 3).created == 0


def test_a_batch_is_added_as_a_whole_or_not_at_all(yard: Yard) -> None:
    bound(yard, 4)
    yard.add_many([{"kind": "build"}] * 2)
    with pytest.raises(Full, match="2 of 4 tasks wait for a worker, and 3 more do not fit"):
        yard.add_many([{"kind": "build"}] * 3)
    assert yard.counts()["todo"] == 2
    yard.add_many([{"kind": "build", "ref": "a"}, {"kind": "build", "after": "a"}])


def test_a_batch_that_can_never_fit_is_refused_at_once_however_long_it_would_wait(yard: Yard) -> None:
    bound(yard, 4)
    with pytest.raises(Full, match="can never fit") as refused:
        yard.add_many([{"kind": "build"}] * 5, wait=1000)
    assert refused.value.wanted > refused.value.most


def test_an_adder_that_waits_in_vain_is_refused_when_its_time_is_up(yard: Yard) -> None:
    bound(yard, 0)
    with pytest.raises(Full):
        yard.add("build", wait=0.05)


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_an_adder_that_waits_is_woken_when_room_is_made(yard: Yard, yard_url: str, batch: bool) -> None:
    bound(yard, 2)
    first = yard.add_many([{"kind": "build"}] * 2)
    added: list[str] = []

    def add() -> None:
        with taskyard.open(yard_url, worker="bea") as other:
            added.extend(
                other.add_many([{"kind": "a", "ref": "a"}, {"kind": "b", "after": "a"}], wait=SOON)
                if batch
                else [other.add("late", wait=SOON).id]
            )

    adder = threading.Thread(target=add)
    adder.start()
    for id in first:
        taken(yard.claim(id)).done()
    adder.join(SOON)
    assert len(added) == 1 + batch
    assert yard.get(added[0]).state is State.TODO


def test_a_task_that_a_running_task_adds_counts_too(yard: Yard) -> None:
    bound(yard, 1)
    yard.add("build")
    claim = taken(yard.claim())
    claim.add("part")
    with pytest.raises(Full):
        claim.add("part")


def test_a_bound_that_is_taken_away_or_raised_makes_room(yard: Yard) -> None:
    bound(yard, 1)
    yard.add("build")
    bound(yard, 2)
    yard.add("build")
    with pytest.raises(Full):
        yard.add("build")
    yard.set_settings({"max_todo": None})
    yard.add("build")
    assert yard.full() == []


def test_adders_at_the_same_moment_overshoot_by_no_more_than_their_number(yard: Yard, yard_url: str) -> None:
    most, adders = 20, 4
    bound(yard, most)

    def add() -> None:
        with taskyard.open(yard_url, worker="bea") as other:
            try:
                while True:
                    other.add("build")
            except Full:
                return

    threads = [threading.Thread(target=add) for _ in range(adders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= yard.counts()["todo"] <= most + adders


def test_a_producer_that_is_too_fast_is_held_and_nothing_is_lost(yard: Yard, yard_url: str) -> None:
    most, number = 5, 60
    bound(yard, most)
    seen: list[int] = []

    def produce() -> None:
        with taskyard.open(yard_url, worker="bea") as other:
            for n in range(number):
                other.add("build", n, wait=SOON)

    producer = threading.Thread(target=produce)
    producer.start()
    done: list[int] = []
    while len(done) < number:
        claim = wait_until(yard.claim)
        done.append(claim.task.data)
        claim.done()
        seen.append(yard.counts()["todo"])
    producer.join()
    assert done == list(range(number))
    assert max(seen) <= most + 1
