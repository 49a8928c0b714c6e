"""The limits of kinds: never more at a time, never more in a minute, by all workers together, on every store."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict
from tests.conftest import outlast, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Yard


def test_no_more_of_a_kind_are_held_than_its_concurrency(yard: Yard) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 2}}})
    yard.add_many([{"kind": "build", "priority": 0}] * 4)
    other = yard.add("test").id
    first, second = taken(yard.claim()), taken(yard.claim())
    assert {first.task.kind, second.task.kind} == {"build"}
    assert [task.id for task in yard.ready()] == [other]
    assert taken(yard.claim()).task.id == other
    assert yard.claim() is None
    assert yard.claim(kinds="build") is None
    first.done()
    assert taken(yard.claim()).task.kind == "build"
    assert yard.claim() is None


def test_claims_of_many_at_once_stay_within_the_limit(yard: Yard) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 3}, "call": {"rate": 2}}})
    yard.add_many([{"kind": "build"}] * 6 + [{"kind": "call"}] * 4 + [{"kind": "free"}] * 2)
    kinds = sorted(claim.task.kind for _ in range(4) for claim in yard.claim_many(10))
    assert kinds == ["build"] * 3 + ["call"] * 2 + ["free"] * 2


@pytest.mark.parametrize("ending", ["done", "fail", "release", "cancel", "lapse"])
def test_whatever_ends_a_claim_makes_room(yard: Yard, ending: str) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 1}}})
    first, second = yard.add("build").id, yard.add("build").id
    claim = taken(yard.claim(first, lease=0.05 if ending == "lapse" else None))
    if ending == "lapse":
        outlast(claim)
    elif ending == "cancel":
        yard.cancel(first)
    elif ending == "fail":
        claim.fail("broken")
    else:
        getattr(claim, ending)()
    assert taken(yard.claim()).task.id in (first, second)
    assert yard.claim() is None


def test_a_task_that_is_named_is_refused_with_the_limit(yard: Yard) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 1}, "call": {"rate": 1}}})
    ids = [yard.add(kind).id for kind in ("build", "build", "call", "call")]
    taken(yard.claim(ids[0]))
    taken(yard.claim(ids[2]))
    for id, text in ((ids[1], "1 of 1 are held"), (ids[3], "1 a minute")):
        with pytest.raises(Conflict, match=text):
            yard.claim(id)


def test_why_names_the_limit_that_is_reached(yard: Yard) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 1}, "call": {"rate": 1}}})
    ids = [yard.add(kind).id for kind in ("build", "build", "call", "call")]
    taken(yard.claim())
    taken(yard.claim())
    assert yard.claim() is None
    facts = {fact["kind"]: fact for fact in yard.why()["limits"]}
    assert (facts["build"]["limit"], facts["build"]["number"], facts["build"]["in"]) == ("concurrency", 1, None)
    assert (facts["call"]["limit"], facts["call"]["number"], facts["call"]["count"]) == ("rate", 1, 1)
    assert 0 < facts["call"]["in"] <= 61
    assert "1 of 1 are held" in yard.why()["message"]
    assert yard.why(ids[1])["reasons"][0]["code"] == "limited"
    assert yard.why(ids[3])["reasons"][0]["limit"] == "rate"


def test_a_rate_counts_claims_whatever_became_of_them(yard: Yard, near: Yard) -> None:
    yard.set_settings({"kinds": {"call": {"rate": 3}}})
    yard.add_many([{"kind": "call"}] * 5)
    for ending in ("release", "done", "fail"):
        claim = taken(yard.claim())
        claim.fail("no") if ending == "fail" else getattr(claim, ending)()
    assert yard.claim() is None
    assert yard.ready() == []
    yard.set_settings({"kinds": {"call": {"rate": 4}}})
    taken(yard.claim())
    assert yard.claim() is None
    alarm = near.alarm()
    assert alarm is not None
    assert 0 < alarm <= 61
    yard.set_settings({"kinds": None})
    taken(yard.claim())


def test_limits_that_are_taken_away_wake_whoever_waits(yard: Yard, yard_url: str) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 1}}})
    yard.add_many([{"kind": "build"}] * 2)
    taken(yard.claim())
    got: list[Claim | None] = []

    def wait() -> None:
        with taskyard.open(yard_url, worker="bob") as bob:
            got.append(bob.claim(wait=40))

    waiting = threading.Thread(target=wait)
    waiting.start()
    yard.set_settings({"kinds": {"build": {"concurrency": 2}}})
    waiting.join()
    assert got[0] is not None


def test_many_workers_at_once_never_hold_more_than_the_limit(yard: Yard, yard_url: str) -> None:
    yard.set_settings({"kinds": {"build": {"concurrency": 2}, "call": {"rate": 10}}})
    yard.add_many([{"kind": "build"}] * 40 + [{"kind": "call"}] * 20)
    end = time.monotonic() + 50
    door, held, most = (
        threading.Lock(),
        0,
        0,
    )  # not by the log: a done is logged after its sync, and the next claim need not wait

    def work(number: int) -> None:
        nonlocal held, most
        with taskyard.open(yard_url, worker=f"w{number}") as own:
            while time.monotonic() < end and (yard.counts()["done"] < 50):
                claim = own.claim(wait=0.05)
                if claim is None:
                    continue
                if claim.task.kind == "build":
                    with door:
                        held += 1
                        most = max(most, held)
                    time.sleep(0.001)
                    with door:
                        held -= 1
                claim.done()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert yard.counts()["done"] == 50
    assert 0 < most <= 2
    assert sum(event["event"] == "claimed" for event in yard.events(kind="call")) == 10


def test_another_process_heeds_a_limit_within_seconds(yard: Yard, yard_url: str) -> None:
    with taskyard.open(yard_url, worker="bob") as bob:
        yard.set_settings({"kinds": {"build": {"concurrency": 1}}})

        def heeds() -> bool:
            bob.tend()
            claims = [claim for _ in range(2) if (claim := bob.claim()) is not None]
            for claim in claims:
                claim.release()
            return len(claims) == 1

        yard.add_many([{"kind": "build"}] * 2)
        wait_until(heeds)
