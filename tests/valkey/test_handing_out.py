"""Hand-out lists: one waiting worker is woken for each task, and PostgreSQL decides what it gets."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.stores.postgres.claims import Claims
from taskyard.stores.postgres.valkey import source as sources
from tests.conftest import taken, wait_until
from tests.valkey.waiting import Claimer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from taskyard import Yard
    from taskyard.core.store_records import Grant, Want


def lists(client: Any) -> dict[str, list[str]]:
    """What is in the hand-out lists, by priority and name."""
    return {
        key.partition("}:ready:")[2]: client.zrange(key, 0, -1)
        for key in sorted(client.scan_iter("taskyard:*:ready:*"))
    }


def test_a_ready_task_is_in_its_lists_until_it_is_claimed(yard: Yard, client: Any) -> None:
    first, later = yard.add("build").id, yard.add("build", priority=7).id
    mine = yard.add("test", assignee="bob").id
    yard.add("build", delay=60)
    assert lists(client) == {"5:build": [first], "5:*": [first], "5:@bob": [mine], "7:build": [later], "7:*": [later]}
    claim = taken(yard.claim())
    assert lists(client) == {"5:@bob": [mine], "7:build": [later], "7:*": [later]}
    claim.release()
    yard.edit(later, priority=1)
    assert lists(client) == {"1:*": [later], "1:build": [later], "5:build": [first], "5:*": [first], "5:@bob": [mine]}
    yard.cancel(first)
    yard.cancel(later)
    assert lists(client) == {"5:@bob": [mine]}


def test_of_many_who_wait_one_is_woken_for_each_task(url: str, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        yards = [stack.enter_context(taskyard.open(url, worker=f"worker-{n}")) for n in range(6)]
        claimers = [Claimer(each).asleep() for each in yards]
        wait_until(lambda: sum(claimer.source._leads for claimer in claimers) == 1)
        tried: list[str] = []
        claim = Claims.claim

        def noted(self: Claims, want: Want, nonces: Sequence[str]) -> list[Grant]:
            tried.append(want.worker)
            return claim(self, want, nonces)

        monkeypatch.setattr(Claims, "claim", noted)
        id = yard.add("build").id
        wait_until(lambda: any(claimer.answer for claimer in claimers))
        [winner] = [claimer for claimer in claimers if claimer.answer]
        assert winner.got().task.id == id
        assert len(set(tried)) <= 3, "the winner, and who leads before and after: the others slept on"
        for _ in range(5):
            yard.add("build")
        for claimer in claimers:
            claimer.got()


def test_a_word_to_all_who_claim_is_heard_among_other_messages(
    url: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(url, worker="bob") as waiting:
        claimer = Claimer(waiting).asleep()
        wait_until(lambda: claimer.source._leads)
        tried: list[str] = []
        claim = Claims.claim

        def noted(self: Claims, want: Want, nonces: Sequence[str]) -> list[Grant]:
            tried.append(want.worker)
            return claim(self, want, nonces)

        monkeypatch.setattr(Claims, "claim", noted)
        monkeypatch.setattr(sources, "LEADERS_BEAT", 3600.0)  # a leader looks by itself after every event
        claimer.source._beat_at = claimer.source._prove_by = float("inf")
        with client.pipeline(transaction=True) as together:
            for channel in ("events", "look", "events"):
                together.publish(f"{claimer.source._keys.prefix}{channel}", "{}")
            together.execute()
        wait_until(lambda: tried)
        claimer.source._beat_at = 0.0
        waiting.add("build")
        claimer.got()


def test_kinds_and_assignees_wake_those_who_serve_them(url: str, yard: Yard) -> None:
    with ExitStack() as stack:
        anna, bob, eve = (stack.enter_context(taskyard.open(url, worker=name)) for name in ("anna", "bob", "eve"))
        builds, tests, anything = Claimer(anna, kinds=["build", "doc"]), Claimer(bob, kinds=["test"]), Claimer(eve)
        for each in (builds, tests, anything):
            each.asleep()
        mine = yard.add("doc", assignee="eve").id
        assert anything.got().task.id == mine
        test, doc = yard.add("test").id, yard.add("doc").id
        assert (tests.got().task.id, builds.got().task.id) == (test, doc)


def test_a_hint_never_breaks_the_order_of_claims(yard: Yard, url: str, client: Any, plain: str) -> None:
    """The list names a task that is less urgent than one that it does not know of."""
    with taskyard.open(plain) as apart, taskyard.open(url, worker="bob") as other:
        apart.pause()
        claimer = Claimer(other).asleep()
        urgent, later = apart.add("build", priority=1).id, yard.add("build", priority=8).id
        apart.unpause()
        assert claimer.got().task.id == urgent
        assert taken(yard.claim()).task.id == later


def test_a_task_that_uses_something_wakes_a_worker_when_that_is_free(yard: Yard, url: str) -> None:
    yard.add("build", uses=["door"])
    held = taken(yard.claim())
    with taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        id = yard.add("build", uses=["door"]).id
        wait_until(lambda: yard._store.hints.server.ask(("EXISTS", f"{yard._store.hints.keys.prefix}held_back")) == [1])  # type: ignore[union-attr]
        held.done()
        assert claimer.got().task.id == id


def test_a_hint_of_a_task_that_another_took_is_not_lost_for_the_next_one(yard: Yard, url: str, client: Any) -> None:
    """Who pops a hint and gets another task gives the hint back."""
    with taskyard.open(url, worker="bob") as other:
        first, second = yard.add("build").id, yard.add("build").id
        store: Any = other._store
        store.hints.popped.append((f"{store.hints.keys.prefix}ready:5:*", second))
        client.zrem(f"{store.hints.keys.prefix}ready:5:*", second)
        assert taken(other.claim()).task.id == first
        assert lists(client)["5:*"] == [second]


def test_refill_puts_what_is_ready_into_the_lists_and_what_is_held_back_into_none(yard: Yard, client: Any) -> None:
    ids = [yard.add("build").id for _ in range(3)]
    mine = yard.add("build", assignee="bob").id
    yard.add("paused")
    yard.pause("paused")
    client.flushall()
    assert yard._store.hints is not None
    assert yard._store.hints.refill() == 4
    assert lists(client) == {"5:*": ids, "5:build": ids, "5:@bob": [mine]}
    assert yard._store.hints.refill() == 4
    assert lists(client) == {"5:*": ids, "5:build": ids, "5:@bob": [mine]}, "each once"


def test_a_worker_that_is_busy_takes_no_hint_from_those_who_wait(yard: Yard, url: str, client: Any) -> None:
    with taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        yard.add("build")
        claimer.got()
        assert not claimer.source._popping
        id = yard.add("build").id
        assert lists(client)["5:*"] == [id]
