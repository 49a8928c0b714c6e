"""claim_many: several tasks at once, each as if it had been claimed alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Invalid, State, Unavailable
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Claim, Yard


def test_many_are_handed_out_in_the_order_of_urgency_and_age(yard: Yard) -> None:
    late, first, second = (yard.add("build", priority=priority).id for priority in (7, 2, 2))
    assert [claim.task.id for claim in yard.claim_many(10)] == [first, second, late]
    assert yard.claim_many(10) == []


def test_no_more_are_handed_out_than_were_asked_for(yard: Yard) -> None:
    ids = yard.add_many({"kind": "build"} for _ in range(5))
    assert [claim.task.id for claim in yard.claim_many(2)] == ids[:2]
    assert yard.counts()["todo"] == 3


def test_each_of_many_has_a_handle_and_an_ending_of_its_own(yard: Yard) -> None:
    yard.add_many({"kind": "build", "data": number} for number in range(4))
    done, failed, released, cancelled = claims = yard.claim_many(4)
    assert len({claim.handle for claim in claims}) == 4
    yard.cancel(cancelled.task.id)
    done.done({"n": 1})
    failed.fail("broken", retry=False)
    released.release()
    with pytest.raises(ClaimLost):
        cancelled.done()
    states = [yard.get(claim.task.id).state for claim in claims]
    assert states == [State.DONE, State.FAILED, State.TODO, State.CANCELLED]
    assert [claim.task.data for claim in claims] == [0, 1, 2, 3]


def test_many_of_some_kinds_are_only_of_these(yard: Yard) -> None:
    yard.add_many({"kind": kind} for kind in ("build", "test", "ship", "build"))
    assert [claim.task.kind for claim in yard.claim_many(9, kinds=["build", "ship"])] == ["build", "ship", "build"]
    assert [claim.task.kind for claim in yard.claim_many(9, kinds="test")] == ["test"]


def test_what_is_assigned_is_among_the_many_of_its_worker_alone(yard: Yard) -> None:
    everybodys = yard.add("build").id
    own = yard.add("build", assignee="ada").id
    yard.add("build", assignee="eve")
    assert [claim.task.id for claim in yard.claim_many(9)] == [everybodys, own]


def test_what_is_paused_is_not_among_the_many(yard: Yard) -> None:
    yard.add_many({"kind": kind} for kind in ("build", "test", "ship"))
    yard.pause("test")
    assert [claim.task.kind for claim in yard.claim_many(9)] == ["build", "ship"]
    yard.pause()
    yard.unpause("test")
    assert yard.claim_many(9) == []


def test_of_many_that_use_the_same_one_is_handed_out(yard: Yard) -> None:
    first = yard.add("build", uses=["db", "gpu"]).id
    yard.add("build", uses=["db"])
    plain = yard.add("build").id
    yard.add("build", uses=["gpu"])
    assert [claim.task.id for claim in yard.claim_many(9)] == [first, plain]


def test_what_uses_something_waits_for_none_that_is_less_urgent(yard: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(5))
    urgent = yard.add("build", uses=["db"], priority=0).id
    assert yard.claim_many(3)[0].task.id == urgent


def test_the_lease_of_many_is_the_one_that_was_asked_for(yard: Yard) -> None:
    yard.add("build")
    yard.add("build", lease=900)
    assert [claim.lease for claim in yard.claim_many(2, lease=77)] == [77, 77]


def test_what_is_abandoned_is_found_before_nothing_is_ready(yard: Yard) -> None:
    yard.add("build", delay=0.05)
    with pytest.raises(taskyard.TimedOut):
        yard.wait(yard.add("other", assignee="eve").id, timeout=0.1)
    assert len(yard.claim_many(5)) == 1


@pytest.mark.parametrize("number", [0, -1, 10_001, True, "3", 2.5, None])
def test_a_number_that_is_none_is_refused(yard: Yard, number: object) -> None:
    with pytest.raises(Invalid, match="number"):
        yard.claim_many(number)  # type: ignore[arg-type]


def test_many_who_ask_for_many_never_get_the_same(yard: Yard, yard_url: str) -> None:
    ids = yard.add_many({"kind": "build"} for _ in range(120))
    claims: list[Claim] = []
    lock = threading.Lock()

    def work() -> None:
        with taskyard.open(yard_url) as own:
            while found := own.claim_many(7):
                with lock:
                    claims.extend(found)
                for claim in found:
                    claim.done()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claim.task.id for claim in claims) == sorted(ids)
    assert yard.counts() == {**yard.counts(), "done": 120, "todo": 0, "processing": 0}


def test_one_of_many_can_be_claimed_by_name_meanwhile(yard: Yard) -> None:
    ids = yard.add_many({"kind": "build"} for _ in range(3))
    taken(yard.claim(ids[1]))
    assert [claim.task.id for claim in yard.claim_many(3)] == [ids[0], ids[2]]


def test_what_was_won_before_the_yard_went_away_is_told(
    yard: Yard, near: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = yard.add_many({"kind": "build"} for _ in range(150))
    store: Any = near._store
    part, verb = (store, "_claim")
    if hasattr(store, "_claims"):
        part, verb = store._claims, "_serve" if store.batch > 1 else "next"
    whole, calls = getattr(part, verb), iter(range(1000))

    def once(*given: Any) -> Any:
        if next(calls):
            raise Unavailable("cut off")
        return whole(*given)

    monkeypatch.setattr(part, verb, once)
    claims = yard.claim_many(150)
    assert [claim.task.id for claim in claims] == list(ids[: store.batch])
    with pytest.raises(Unavailable):
        yard.claim_many(150)
