"""The heartbeat beside a `with` block: the lease is kept while the block runs, and a lost claim is told."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, State, Unavailable
from taskyard.core import times
from taskyard.yard import claim as claim_module
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def _after(moment: str | None, seconds: float) -> bool:
    assert moment is not None
    return time.time() * 1000 > times.moment(moment, "moment") + seconds * 1000


@pytest.mark.parametrize("known", ["the claim", "its handle"])
def test_a_block_longer_than_its_lease_keeps_its_claim(yard: Yard, known: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.9))
    with claim if known == "the claim" else yard.held(claim.handle):

        def swept_in_vain() -> bool:
            yard.sweep()
            return _after(claim.lease_until, 0.2)

        wait_until(swept_in_vain)
        assert yard.get(id).state is State.PROCESSING
    assert yard.get(id).state is State.DONE


def test_a_block_is_told_when_its_claim_was_lost(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.3))

    def lose() -> None:
        assert not claim.lost
        yard.cancel(id)
        wait_until(lambda: claim.lost)

    with pytest.raises(ClaimLost), claim:
        lose()


def test_the_heartbeat_ends_with_the_block(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.3))
    with claim:
        assert any(claim.handle in thread.name for thread in threading.enumerate())
    assert not any(claim.handle in thread.name for thread in threading.enumerate())
    assert not claim.lost


def test_beside_a_block_others_see_the_task_held(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    with taken(yard.claim()), taskyard.open(yard_url) as other:
        assert other.claim() is None
        assert other.get(id).worker == "ada"


@pytest.fixture
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have holders look ten times as often whether they were asleep."""
    monkeypatch.setattr(claim_module, "_LOOK_EVERY", 0.2)


def _wakes_after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the machine wake up after so long a suspend: leases went on, the monotonic clock stood still."""
    ticks = times.ticks
    monkeypatch.setattr(times, "ticks", lambda: ticks() + seconds)


@pytest.mark.usefixtures("_looks_often")
def test_a_block_beats_at_once_when_its_machine_wakes_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    id = yard.add("build").id
    with taken(yard.claim(lease=1800)) as claim:
        before = yard.get(id).lease_until
        _wakes_after(3600, monkeypatch)
        wait_until(lambda: yard.get(id).lease_until != before)
        assert not claim.lost


@pytest.mark.usefixtures("_looks_often")
def test_a_beat_that_failed_is_soon_tried_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    id = yard.add("build").id
    claim, failures = taken(yard.claim(lease=1800)), [Unavailable()]
    heartbeat = claim.heartbeat

    def troubled() -> str:
        if failures:
            raise failures.pop()
        return heartbeat()

    monkeypatch.setattr(claim, "heartbeat", troubled)
    with claim:
        before = yard.get(id).lease_until
        _wakes_after(3600, monkeypatch)
        wait_until(lambda: yard.get(id).lease_until != before)
    assert not failures
