"""A yard's settings: read and changed through the yard, on every store alike."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Invalid
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def test_settings_are_the_defaults_until_they_are_set(yard: Yard) -> None:
    before = yard.settings()
    assert (before["max_attempts"], before["ageing"], before["max_todo"], before["kinds"]) == (3, None, None, {})
    after = yard.set_settings({"max_attempts": 5, "kinds": {"build": {"concurrency": 2, "rate": 60}}})
    assert after == {**before, "max_attempts": 5, "kinds": {"build": {"concurrency": 2, "rate": 60}}}
    assert yard.settings() == after
    assert yard.set_settings({"kinds": {"build": {"rate": None}}})["kinds"] == {"build": {"concurrency": 2}}
    assert yard.set_settings({"max_attempts": None, "kinds": None}) == before


def test_a_setting_that_cannot_be_changes_nothing(yard: Yard) -> None:
    before = yard.set_settings({"max_attempts": 4})
    for changes in ({"lease": 60, "max_attempts": 0}, {"lease": 60, "colour": "red"}):
        with pytest.raises(Invalid):
            yard.set_settings(changes)
    assert yard.settings() == before


def test_a_change_counts_at_once_here_and_within_seconds_elsewhere(yard: Yard, yard_url: str) -> None:
    with taskyard.open(yard_url) as other:
        yard.set_settings({"lease": 77, "max_attempts": 9})
        assert yard.add("build").max_attempts == 9
        claim = taken(yard.claim())
        assert claim.lease == 77

        def heeds() -> bool:
            other.tend()
            return other.policy.lease == 77

        wait_until(heeds)
        assert other.add("build").max_attempts == 9
    with taskyard.open(yard_url) as third:
        assert third.policy.max_attempts == 9


def test_changes_of_many_at_once_are_all_kept(yard: Yard, yard_url: str) -> None:
    def change(number: int) -> None:
        with taskyard.open(yard_url) as own:
            for turn in range(3):
                own.set_settings({"kinds": {f"k{number}": {"max_todo": turn}}})

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert yard.settings()["kinds"] == {f"k{number}": {"max_todo": 2} for number in range(4)}
