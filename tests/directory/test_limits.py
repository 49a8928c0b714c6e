"""The slots of a rate in a directory: each is won by one process, also in the same millisecond."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import taskyard
from taskyard.core.limits import WINDOW
from taskyard.core.settings import KindLimits
from taskyard.stores.directory.context import Context
from taskyard.stores.directory.tasks.limits import Limits
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

NOW = 1_800_000_000_000


def limits(root: str, rate: int) -> Limits:
    context = Context(root, None, None, False)
    context.kinds = {"call": KindLimits(rate=rate)}
    return Limits(context)


def test_two_that_take_the_last_slot_in_one_millisecond_do_not_both_win(fresh: Callable[[], str]) -> None:
    root = fresh()
    first, second = limits(root, 1), limits(root, 1)
    assert first._slots("call", 1, NOW) == second._slots("call", 1, NOW)
    assert first.enter("call", NOW) is not None
    assert second.enter("call", NOW) is None


def test_a_slot_is_free_again_after_a_minute_or_when_it_is_given_back(fresh: Callable[[], str]) -> None:
    one = limits(fresh(), 2)
    taken = [one.enter("call", NOW), one.enter("call", NOW + 10)]
    assert None not in taken
    assert one.enter("call", NOW + WINDOW) is None
    assert one.enter("call", NOW + WINDOW + 100) is not None
    again = one.enter("call", NOW + WINDOW + 100)
    assert again is not None
    one.leave(again)
    one.forget()
    assert one.enter("call", NOW + WINDOW + 200) is not None
    assert one.enter("call", NOW + WINDOW + 300) is None


def test_a_claim_that_one_listing_misses_while_its_worker_takes_it_over_is_counted(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(place, worker="ada") as ada, taskyard.open(place, worker="bob") as bob:
        ada.set_settings({"kinds": {"call": {"concurrency": 1}}})
        ada.add_many([{"kind": "call"}] * 2)
        held = taken(ada.claim()).task.id
        [name] = os.listdir(f"{place}/processing")
        counted: Limits = bob._store._claims.limits  # type: ignore[attr-defined]
        bob.claim()  # it has read the limits
        whole, listings = counted._context.disk.listdir, 0

        def listdir(folder: str) -> list[str]:
            nonlocal listings
            listings += 1
            return [other for other in whole(folder) if other != name or listings > 1]

        monkeypatch.setattr(counted._context.disk, "listdir", listdir)
        assert name.startswith(held)
        assert counted.exceeded("call", "another")


def test_slots_that_others_took_and_gave_back_are_found_at_once(fresh: Callable[[], str]) -> None:
    root = fresh()
    one, other = limits(root, 3), limits(root, 3)
    assert one._slots("call", 3, NOW)
    for slot in [other.enter("call", NOW) for _ in range(3)]:
        assert slot is not None
        other.leave(slot)
    assert one.enter("call", NOW) is not None
