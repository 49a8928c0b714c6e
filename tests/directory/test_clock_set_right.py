"""A clock that was hours ahead and is set right: followers of the log go on to get what happens, and sweeps go on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3_600_000_000_000  # nanoseconds


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the yard's time so many hours ahead of what it is."""
    from taskyard.stores.directory.filesystem.disk import Disk

    real, ahead = Disk.now, [0]
    monkeypatch.setattr(Disk, "now", lambda self, probe: real(self, probe) + ahead[0] * HOUR)

    def set_to(hours: int) -> None:
        ahead[0] = hours

    return set_to


@pytest.fixture
def touched(shift: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """As `shift`, also for the times that files get by being touched from then on."""
    from taskyard.stores.directory.filesystem.disk import Disk

    stamp, touch = Disk.stamp, Disk.touch
    ahead, at = [0], dict[str, int]()

    def touched(self: Disk, path: str) -> None:
        touch(self, path)
        at[path] = ahead[0]

    monkeypatch.setattr(Disk, "touch", touched)
    monkeypatch.setattr(Disk, "stamp", lambda self, path: stamp(self, path) + at.get(path, 0) * HOUR // 1_000_000)

    def set_to(hours: int) -> None:
        ahead[0] = hours
        shift(hours)

    return set_to


def test_a_dead_workers_claim_comes_back_though_the_clock_was_set_back(
    url: str, touched: Callable[[int], None]
) -> None:
    with taskyard.open(url, worker="ada") as ada:
        id = ada.add("build").id
        assert ada.claim(lease=0.2) is not None
    touched(-2)
    with taskyard.open(url, worker="bo") as bo:
        wait_until(lambda: bo.sweep().reaped)
        again = taken(bo.claim())
        assert (again.task.id, again.task.attempts) == (id, 1)


def test_a_living_workers_claim_is_not_taken_because_the_clock_was_set_back(
    url: str, touched: Callable[[int], None]
) -> None:
    with taskyard.open(url, worker="ada") as ada, taskyard.open(url, worker="bo") as bo:
        ada.add("build")
        claim = taken(ada.claim(lease=60))
        touched(-2)
        for _ in range(3):
            assert bo.sweep().reaped == 0
        claim.done()


def news(url: str, cursor: str | None) -> tuple[list[str], str]:
    with taskyard.open(url) as yard:
        page = yard.events(cursor=cursor, limit=1_000)
        return [event["task"] for event in page], page.cursor


def added(url: str) -> str:
    with taskyard.open(url) as yard:
        return yard.add("build").id


@pytest.mark.parametrize("ahead", [1, 5, 24, 24 * 6])
def test_what_comes_after_the_clock_was_set_right_is_told(url: str, shift: Callable[[int], None], ahead: int) -> None:
    first = added(url)
    told: list[str] = []
    cursor: str | None = None
    expected = [first]
    for hours in range(max(0, ahead - 2), ahead + 1):  # several hours of it
        shift(hours)
        expected.append(added(url))
        some, cursor = news(url, cursor)
        told += some
    shift(0)
    for _ in range(3):
        expected.append(added(url))
        some, cursor = news(url, cursor)
        told += some
    assert sorted(told) == sorted(expected)
    with taskyard.open(url) as yard:
        assert yard.audit()["verdict"] == "clean"


def test_a_process_that_lives_through_it_goes_on_where_it_was(url: str, shift: Callable[[int], None]) -> None:
    with taskyard.open(url) as yard:
        clock: Any = yard._store._context.clock  # type: ignore[attr-defined]
        shift(5)
        yard.add("build")
        _, cursor = news(url, None)
        shift(0)
        clock.exact()
        later = yard.add("build").id
        assert news(url, cursor)[0] == [later]


@pytest.mark.parametrize("name", ["9999-12-31T23.x.jsonl", "zzzz-zz-zzTzz.x.jsonl", "2053-01-01T00.abcdefgh.jsonl"])
def test_a_page_that_no_clock_has_made_holds_nobody(url: str, name: str) -> None:
    Path(url, "events", name).touch()
    added(url)
    assert [page[:13] for page in os.listdir(f"{url}/events") if page != name] == [
        time.strftime("%Y-%m-%dT%H", time.gmtime())
    ]


def test_sweeps_go_on_at_once(url: str, shift: Callable[[int], None]) -> None:
    with taskyard.open(url) as yard:
        upkeep = yard._store.upkeep
        assert not upkeep.turn(1000.0)
        shift(-1)
        assert upkeep.turn(1000.0), "the last turn was taken an hour ahead of now"
        shift(0)
        assert not upkeep.turn(1000.0)


def test_a_leader_that_died_before_it_is_followed(url: str, shift: Callable[[int], None]) -> None:
    with taskyard.open(url) as yard:
        leadership = yard._store.leadership
        assert leadership.lead("ada", "b979d98y", 1000.0).leads
        assert not leadership.lead("bob", "c979d98y", 1000.0).leads
        shift(-1)
        assert leadership.lead("bob", "c979d98y", 1000.0).leads
