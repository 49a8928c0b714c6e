"""A short name is found by looking into one segment, whatever else there is; and what a page of names costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard.core import ids
from taskyard.stores.directory.tasks import segments
from tests.conftest import taken
from tests.directory.staging import yard_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


@pytest.fixture(autouse=True)
def _few_tasks_a_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SIZE", 8)


def calls_of(url: str, work: Callable[[Yard], object]) -> int:
    """How many calls of the disk this takes on a yard that was opened before."""
    calls = 0

    def count(name: str, paths: str, made: bool) -> None:
        nonlocal calls
        calls += not made

    with yard_on(url, count) as yard:
        calls = 0
        work(yard)
        return calls


def fill(yard: Yard, number: int) -> None:
    yard.add_many([{"kind": "build"}] * number)
    for _ in range(number // 2):
        taken(yard.claim()).done()


def test_a_name_costs_the_same_calls_however_many_tasks_there_are(url: str) -> None:
    with yard_on(url) as yard:
        fill(yard, 16)
        name = yard.cancel(yard.add("build").id).short  # it stays where it is
    few = calls_of(url, lambda yard: yard.get(name))
    with yard_on(url) as yard:
        fill(yard, 800)
        segments_now = {task.id[: ids.SEGMENT] for task in yard.find(limit=1000)}
    assert len(segments_now) > 100
    assert calls_of(url, lambda yard: yard.get(name)) == few
    assert few < 48


def test_a_page_of_many_lanes_looks_into_each_folder_once(url: str) -> None:
    """To look for every segment of the page in every lane would be the product of the two."""
    lanes = 60
    with yard_on(url) as yard:
        yard.add_many({"kind": f"kind{number}"} for number in range(lanes))
        wanted = [task.id for task in yard.find()]
    assert len({id[: ids.SEGMENT] for id in wanted}) == lanes
    assert calls_of(url, lambda yard: yard.shorten(wanted)) < 8 * lanes
