"""pause: nothing more is handed out, and what runs goes on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict, Invalid, State
from tests.conftest import crash, retried, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Yard

SEEN = 0.05  # seconds after which whoever is busy claiming has seen a pause; it need not look before every claim


def test_a_paused_yard_hands_out_nothing(yard: Yard) -> None:
    id = yard.add("build").id
    yard.pause()
    assert yard.claim() is None
    assert yard.claim(kinds="build") is None
    assert yard.ready() == []
    assert yard.get(id).state is State.TODO
    assert [task.id for task in yard.find(state="todo")] == [id]
    yard.unpause()
    assert [task.id for task in yard.ready()] == [id]
    assert taken(yard.claim()).task.id == id


def test_a_paused_kind_is_passed_over(yard: Yard) -> None:
    deploy, build = yard.add("deploy", priority=0).id, yard.add("build").id
    yard.pause("deploy")
    assert [task.id for task in yard.ready()] == [build]
    assert yard.ready(kind="deploy") == []
    assert taken(yard.claim()).task.id == build
    assert yard.claim() is None
    assert yard.claim(kinds=["deploy", "build"]) is None
    yard.unpause("deploy")
    assert taken(yard.claim()).task.id == deploy


def test_a_kind_is_paused_by_its_whole_name(yard: Yard) -> None:
    kinds = ["a", "a.b", "a-b", "A", "ab", "漢字", "x:y"]
    for kind in kinds:
        yard.add(kind)
    for kind in ("a", "漢字", "x:y"):
        yard.pause(kind)
    assert yard.paused() == {"yard": False, "kinds": ["a", "x:y", "漢字"]}
    assert {task.kind for task in yard.ready()} == {"a.b", "a-b", "A", "ab"}


def test_a_named_task_is_refused_while_it_is_paused(yard: Yard) -> None:
    id = yard.add("build").id
    for kind in (None, "build"):
        yard.pause(kind)
        with pytest.raises(Conflict, match="paused") as refused:
            yard.claim(id)
        assert "unpause" in (refused.value.hint or "")
        yard.unpause(kind)
    assert taken(yard.claim(id)).task.id == id


def test_what_runs_goes_on(yard: Yard) -> None:
    ids = yard.add_many([{"kind": "build"}] * 3)
    one, two, three = (taken(yard.claim(id)) for id in ids)
    yard.pause()
    yard.pause("build")
    one.heartbeat(progress=0.5)
    one.note("still here")
    one.done("fine")
    two.fail("broken")
    three.release()
    assert [yard.get(id).state for id in ids] == [State.DONE, State.WAITING, State.TODO]
    assert yard.claim() is None


def test_everything_but_handing_out_works_on(yard: Yard) -> None:
    yard.pause()
    id = yard.add("build", delay=1000).id
    assert retried(yard, id).state is State.TODO
    assert yard.edit(id, title="New").title == "New"
    yard.cancel(id)
    yard.retry(id)
    held = yard.add("build").id
    yard.unpause()
    taken(yard.claim(held))
    yard.pause()
    [claim] = yard.resume()
    claim.done()
    assert yard.get(held).state is State.DONE


def test_what_a_dead_worker_left_comes_back_but_is_not_handed_out(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.05))
    yard.pause()
    wait_until(lambda: yard.sweep().reaped or yard.get(id).state is State.TODO)
    assert yard.claim() is None
    yard.unpause()
    assert taken(yard.claim()).fence > claim.fence


def test_a_pause_is_seen_by_all_and_outlives_whoever_said_it(yard: Yard, yard_url: str) -> None:
    yard.add_many([{"kind": "build"}] * 3)
    with taskyard.open(yard_url, worker="bob") as other:
        taken(other.claim())  # it knows now what lies there
        yard.pause("build")
        time.sleep(SEEN)
        assert other.claim() is None
        assert other.paused() == {"yard": False, "kinds": ["build"]}
        yard.unpause("build")
        taken(other.claim())
        with taskyard.open(yard_url) as third:
            third.pause()
        time.sleep(SEEN)
        assert other.claim() is None
        assert other.stats()["paused"] == {"yard": True, "kinds": []}


def test_a_patient_claim_gets_what_is_unpaused_meanwhile(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    yard.pause()
    got: list[Claim | None] = []

    def wait() -> None:
        with taskyard.open(yard_url, worker="bob") as own:
            got.append(own.claim(wait=20))

    thread = threading.Thread(target=wait)
    thread.start()
    yard.unpause()
    thread.join()
    assert [taken(claim).task.id for claim in got] == [id]


def test_pauses_may_be_repeated_and_taken_back_for_nothing(yard: Yard) -> None:
    assert yard.paused() == {"yard": False, "kinds": []}
    yard.unpause()
    yard.unpause("build")
    for _ in range(2):
        yard.pause()
        yard.pause("build")
    assert yard.paused() == {"yard": True, "kinds": ["build"]}
    yard.unpause()
    assert yard.paused() == {"yard": False, "kinds": ["build"]}
    yard.add("build")
    assert yard.claim() is None
    yard.unpause("build")
    taken(yard.claim())


def test_a_kind_that_is_no_kind_cannot_be_paused(yard: Yard) -> None:
    for kind in ("", "a b", "../x", "x" * 61):
        with pytest.raises(Invalid):
            yard.pause(kind)
        with pytest.raises(Invalid):
            yard.unpause(kind)
    assert yard.paused() == {"yard": False, "kinds": []}


def test_a_pause_changes_no_counters(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    before = yard.get(id)
    yard.pause()
    yard.claim()
    yard.unpause()
    assert yard.get(id).as_dict() == before.as_dict()
