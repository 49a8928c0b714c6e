"""The sixth schedule that breaks the obvious version, driven to the exact call: two tasks that use the same thing, claimed at the same moment."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import lapse, outlast, taken
from tests.directory.staging import AtCall, Step, Turns, drop, every_call, yard_on
from tests.directory.stories import check_log, check_places

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard

pytestmark = pytest.mark.proof

DECIDING = frozenset(("rename", "listdir", "read"))


def holders(claims: list[Claim | None]) -> list[Claim]:
    """Those who were told that they hold a task, and do."""
    return [claim for claim in claims if claim is not None and claim.holds()]


def test_6_of_two_claims_in_any_order_at_most_one_is_told_that_it_holds_the_thing(fresh: Callable[[], str]) -> None:
    seen = set()

    def play(first: int, second: int) -> list[int]:
        url = fresh()
        with yard_on(url, worker="other") as other:
            other.add("one", uses=["x"])
            other.add("two", uses=["y", "x"])
            order = iter([0] * (first + 1) + [1] * (second + 1) + [0])
            turns = Turns(order, lambda: check_places(url), DECIDING)
            yards = [yard_on(url, turns.cue(actor), worker=name) for actor, name in enumerate(("ada", "bob"))]
            claims: list[Claim | None] = [None, None]

            def claim(actor: int) -> None:
                claims[actor] = yards[actor].claim(kinds=("one", "two")[actor])

            turns.play(lambda: claim(0), lambda: claim(1))
            where = f"after {first} and {second} calls"
            held = holders(claims)
            assert len(held) <= 1, where
            assert len(os.listdir(f"{url}/processing")) == len(held), f"somebody did not stand back {where}"
            told = [event["event"] for event in other.events() if event["event"] != "added"]
            assert told == ["claimed"] * len(held), where
            seen.add(len(held))
            for one in held:
                one.done()
            for kind in ("one", "two"):
                again = other.claim(kinds=kind)
                if again is not None:
                    again.done()
            assert other.counts()["done"] == 2, where
            check_log(other)
            for yard in yards:
                yard.close()
        shutil.rmtree(url)
        return turns.calls

    calls = play(1000, 0)
    for first in range(calls[0]):
        for second in range(0, calls[1], 3):
            play(first, second)
    assert 1 in seen


@pytest.mark.parametrize("kinds", ["two", None])
def test_6_a_claim_at_any_call_of_a_claim_never_makes_two_holders(fresh: Callable[[], str], kinds: str | None) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            other.add("one", uses=["x"])
            other.add("two", uses=["x"])
            other.add("free")
            claims: list[Claim | None] = []
            cue = AtCall(number, lambda: claims.append(other.claim(kinds=kinds)))
            with yard_on(url, cue) as yard:
                claims.append(yard.claim(kinds="one"))
                if cue.taken:
                    held = [claim for claim in holders(claims) if claim.task.kind != "free"]
                    assert len(held) <= 1, f"at {cue.call}"
                    assert sum(event["event"] == "claimed" for event in other.events()) == len(holders(claims))
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


def test_6_a_resume_at_any_call_of_a_claim_keeps_what_it_has(fresh: Callable[[], str]) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            other.add("one", uses=["x"])
            other.add("two", uses=["x"])
            taken(other.claim(kinds="one"))
            again: list[Claim] = []
            cue = AtCall(number, lambda: again.extend(other.resume()))
            with yard_on(url, cue) as yard:
                assert yard.claim(kinds="two") is None, f"at {cue.call}"
            if cue.taken:
                assert len(holders([*again])) == 1
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


def test_6_a_resume_between_the_look_around_and_the_read_of_a_claims_file_keeps_what_it_has(url: str) -> None:
    """A task from the drop box is in no index, so its file is read: and by then it may have another name."""
    drop(url, "one.json", {"kind": "one", "uses": ["x"]})
    with yard_on(url, worker="other") as other:
        other.sweep()
        other.add("two", uses=["x"])
        held: list[Claim] = []
        claimed = Step("before", "rename", "/processing/", lambda: held.append(taken(other.claim(kinds="one"))))
        resumed = Step("before", "read", "/processing/", lambda: held.extend(other.resume()))

        def cue(name: str, paths: str, made: bool) -> None:
            claimed(name, paths, made)
            if held and f"/processing/{held[0].id}." in paths:
                resumed(name, paths, made)

        with yard_on(url, cue) as yard:
            mine = yard.claim(kinds="two")
            assert claimed.taken
            assert resumed.taken
            assert len(holders([*held, mine])) == 1


def test_6_a_claim_at_any_call_of_a_resume_finds_it_in_use(fresh: Callable[[], str]) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="ada") as other:
            other.add("one", uses=["x"])
            other.add("two", uses=["x"])
            taken(other.claim(kinds="one"))
            claims: list[Claim | None] = []
            cue = AtCall(number, lambda: claims.append(other.claim(kinds="two")))
            with yard_on(url, cue) as yard:
                again = yard.resume()
                if cue.taken:
                    assert len(holders([*again, *claims])) == 1, f"at {cue.call}"
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


def test_6_a_reap_at_any_call_of_a_claim_frees_it_for_one(fresh: Callable[[], str]) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            other.add("one", uses=["x"])
            other.add("two", uses=["x"])
            late = taken(other.claim(kinds="one", lease=0.02))
            outlast(late)
            again: list[Claim | None] = []

            def step() -> None:
                lapse(other, late)
                again.append(other.claim(kinds="one"))

            cue = AtCall(number, step)
            with yard_on(url, cue) as yard:
                again.append(yard.claim(kinds="two"))
                if cue.taken:
                    assert len(holders(again)) <= 1, f"at {cue.call}"
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


def test_6_a_thousand_tasks_that_cannot_run_are_read_once(fresh: Callable[[], str]) -> None:
    url = fresh()
    reads = 0

    def count(name: str, paths: str, made: bool) -> None:
        nonlocal reads
        reads += made and name == "read" and "/todo/" in paths

    with yard_on(url, count) as yard:
        yard.add_many([{"kind": "build", "uses": "x"}] * 1000)
        last = yard.add("build").id
        first = taken(yard.claim())
        assert taken(yard.claim()).task.id == last
        for _ in range(20):
            assert yard.claim() is None
        assert reads <= 1001
        first.done()
        assert taken(yard.claim()).task.uses == ["x"]


def test_6_a_task_that_uses_nothing_pays_nothing(fresh: Callable[[], str]) -> None:
    url = fresh()
    calls: list[str] = []

    def note(name: str, paths: str, made: bool) -> None:
        if made:
            calls.append(f"{name} {paths}")

    def once(yard: Yard) -> list[str]:
        claim = taken(yard.claim())
        calls.clear()
        taken(yard.claim()).release()
        claim.done()
        return [call for call in calls if call.startswith("listdir") and call.endswith("/processing")]

    with yard_on(url, note) as yard:
        yard.add_many([{"kind": "build"}] * 5)
        assert once(yard) == []
