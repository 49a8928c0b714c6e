"""Claim locks: everybody can see who holds what, and no lock decides anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost
from tests.conftest import lapse, taken

if TYPE_CHECKING:
    from taskyard import Claim, Yard


def key(yard: Yard, claim: Claim) -> str:
    return f"taskyard:{{{yard.url.partition('project=')[2].partition('&')[0]}}}:lock:{claim.task.id}"


def shown(client: Any, yard: Yard, claim: Claim) -> Any:
    text = client.get(key(yard, claim))
    return None if text is None else json.loads(text)


def test_a_lock_shows_who_holds_a_task_under_which_fence_and_until_when(yard: Yard, client: Any) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=100))
    assert shown(client, yard, claim) == {
        "task": claim.task.id,
        "worker": "ada",
        "fence": claim.fence,
        "claim": claim.handle,
        "until": claim.lease_until,
    }
    assert 60_000 < client.pttl(key(yard, claim)) <= 100_000


@pytest.mark.parametrize("verb", ["done", "fail", "release", "cancel"])
def test_a_lock_goes_with_its_claim(yard: Yard, client: Any, verb: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    if verb == "cancel":
        yard.cancel(id)
    elif verb == "fail":
        claim.fail("no")
    else:
        getattr(claim, verb)()
    assert shown(client, yard, claim) is None


def test_a_heartbeat_renews_a_lock_and_brings_back_one_that_was_lost(yard: Yard, client: Any) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=100))
    client.pexpire(key(yard, claim), 5000)
    claim.heartbeat()
    assert client.pttl(key(yard, claim)) > 60_000
    client.flushall()
    until = claim.heartbeat()
    assert shown(client, yard, claim)["until"] == until


def test_a_resumed_claim_has_the_lock_and_the_old_one_cannot_take_it_away(yard: Yard, client: Any) -> None:
    yard.add("build")
    old = taken(yard.claim())
    [new] = yard.resume("ada")
    assert shown(client, yard, old)["claim"] == new.handle
    with pytest.raises(ClaimLost):
        old.done()
    assert shown(client, yard, old)["claim"] == new.handle


def test_a_late_lock_of_an_older_claim_does_not_replace_a_newer_one(yard: Yard, url: str, client: Any) -> None:
    """A process that was stopped between its claim and its lock goes on when another one has the task."""
    yard.add("build")
    old = taken(yard.claim(lease=0.05))
    lapse(yard, old)
    with taskyard.open(url, worker="bob") as other:
        new = taken(other.claim(lease=100))
        store: Any = yard._store
        before = store.stand(old.task.id)
        before.fence, before.nonce, before.worker = old.fence, old.handle.rpartition(".")[2], "ada"
        store.hints.renewed(before, 0, noted=False)
        assert shown(client, yard, new)["worker"] == "bob"


def test_a_lock_that_lies_changes_nothing_and_is_put_right(yard: Yard, client: Any) -> None:
    id = yard.add("build").id
    prefix = f"taskyard:{{{yard.url.partition('project=')[2].partition('&')[0]}}}:lock:"
    for lie in ('{"fence":99,"claim":"x","worker":"mallory"}', "no JSON", "[]", '{"fence":"many"}'):
        client.set(prefix + id, lie)  # it would stay for ever
        claim = taken(yard.claim())
        assert shown(client, yard, claim)["worker"] == "ada"
        claim.release()
    client.delete(prefix + id)
    client.rpush(prefix + id, "a list")
    claim = taken(yard.claim())
    assert shown(client, yard, claim)["claim"] == claim.handle
    claim.done()
    assert client.exists(prefix + id) == 0
