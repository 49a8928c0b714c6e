"""Claims and endings of several threads at once: in one statement each time, and everybody gets an answer of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import ClaimLost, State, Unavailable
from taskyard.stores.postgres.batching import Combiner
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Yard


class Crew:
    """Threads that each do one thing; what each gave, or raised."""

    def __init__(self, *work: Any) -> None:
        self.answers: list[Any] = [None] * len(work)
        self._threads = [threading.Thread(target=self._do, args=each) for each in enumerate(work)]
        for thread in self._threads:
            thread.start()

    def _do(self, place: int, work: Any) -> None:
        try:
            self.answers[place] = work()
        except Exception as error:
            self.answers[place] = error

    def join(self) -> list[Any]:
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()
        return self.answers


def test_the_first_goes_alone_and_the_next_takes_all_along() -> None:
    go = threading.Event()
    served: list[list[int]] = []

    def serve(wishes: list[int]) -> list[int]:
        served.append(sorted(wishes))
        assert go.wait(10)
        return [wish * 10 for wish in wishes]

    combiner = Combiner(serve)
    first = Crew(lambda: combiner.ask(0))
    wait_until(lambda: served)
    rest = Crew(*(lambda n=n: combiner.ask(n) for n in range(1, 6)))
    wait_until(lambda: len(combiner._queue) == 5)
    go.set()
    assert (first.join(), rest.join()) == ([0], [10, 20, 30, 40, 50])
    assert served == [[0], [1, 2, 3, 4, 5]]
    assert combiner.ask(7) == 70


def test_what_goes_wrong_goes_wrong_for_those_who_were_in_it_and_no_others() -> None:
    calls: list[int] = []

    def serve(wishes: list[int]) -> list[int]:
        calls.append(len(wishes))
        if len(calls) == 1:
            raise Unavailable("away")
        return wishes

    combiner = Combiner(serve)
    with pytest.raises(Unavailable):
        combiner.ask(1)
    assert combiner.ask(2) == 2


def several(yard: Yard, number: int) -> list[Claim]:
    """As many claims as that with one statement."""
    store: Any = yard._store
    grants = store._claims._several(yard._anything, [yard._nonce() for _ in range(number)])
    from taskyard.yard.claim import Claim

    return [Claim(yard, grant.standing, grant) for grant in grants if grant is not None]


def test_a_batch_gets_the_most_urgent_and_oldest_each_once(yard: Yard) -> None:
    ids = yard.add_many([{"kind": "build", "priority": 5 - n % 2} for n in range(10)])
    claims = several(yard, 4)
    assert sorted(claim.task.id for claim in claims) == sorted(ids[1::2][:4])
    assert len({claim.handle for claim in claims}) == 4
    assert {claim.fence for claim in claims} == {1}
    assert len(several(yard, 20)) == 6
    assert several(yard, 3) == []
    assert [event["event"] for event in yard.events()] == ["added"] * 10 + ["claimed"] * 10


def test_a_batch_never_holds_one_thing_twice(yard: Yard) -> None:
    yard.add_many([{"kind": "build", "uses": ["x"]}] * 3 + [{"kind": "test", "uses": ["y"]}, {"kind": "plain"}])
    claims = several(yard, 5)
    assert sorted(claim.task.kind for claim in claims) == ["build", "plain", "test"]
    assert yard.counts()["todo"] == 2


def test_a_batch_passes_over_what_is_paused(yard: Yard) -> None:
    yard.add_many([{"kind": "build"}] * 3 + [{"kind": "test"}] * 3)
    yard.pause("build")
    assert [claim.task.kind for claim in several(yard, 5)] == ["test"] * 3
    yard.pause()
    assert several(yard, 5) == []


def test_each_ending_of_a_batch_is_guarded_by_itself(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first).id
    yard.add_many([{"kind": "build"}] * 3)
    claims = several(yard, 4)
    late = claims[2]
    yard.cancel(late.task.id)
    store: Any = yard._store
    whole = store._shifts._end_several
    go = threading.Event()
    sizes: list[int] = []

    def held_up(endings: list[Any]) -> Any:
        sizes.append(len(endings))
        assert go.wait(10)
        return whole(endings)

    store._shifts._dones = Combiner(held_up)
    crew = Crew(*(lambda claim=claim: claim.done({"of": claim.task.id}) for claim in claims))
    wait_until(lambda: len(store._shifts._dones._queue) == 3)
    go.set()
    answers = crew.join()
    assert [type(answer) for answer in answers] == [type(None), type(None), ClaimLost, type(None)]
    assert sizes == [1, 3]
    for claim in claims:
        if claim is not late:
            assert (yard.get(claim.task.id).state, yard.get(claim.task.id).result) == (
                State.DONE,
                {"of": claim.task.id},
            )
    assert yard.get(last).state is State.TODO
    assert [stale["result"] for stale in yard.report(late.task.id).stale_results] == [{"of": late.task.id}]
    claims[0].done({"of": claims[0].task.id})
    assert taken(yard.claim()).task.id == last


def test_each_ending_of_a_batch_is_logged_with_the_one_who_asked(yard: Yard) -> None:
    yard.add_many([{"kind": "build"}] * 4)
    store: Any = yard._store
    whole = store._shifts._end_several
    go = threading.Event()

    def held_up(endings: list[Any]) -> Any:
        assert go.wait(10)
        return whole(endings)

    store._shifts._dones = Combiner(held_up)
    twins = [yard.acting_for(name, by=f"{name}'s token") for name in ("bo", "cy", "di", "ed")]
    claims = [taken(twin.claim()) for twin in twins]
    crew = Crew(*(claim.done for claim in claims))
    wait_until(lambda: len(store._shifts._dones._queue) == 3)
    go.set()
    assert crew.join() == [None] * 4
    told = {event["worker"]: event["by"] for event in yard.events() if event["event"] == "done"}
    assert told == {name: f"{name}'s token" for name in ("bo", "cy", "di", "ed")}
