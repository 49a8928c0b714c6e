"""Rates are read from the end of the log, and say so where that is not all of the hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core.activity import EVENTS
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.log.activity import activity
from tests.conftest import taken

if TYPE_CHECKING:
    from pathlib import Path


def now(yard: taskyard.Yard) -> int:
    return yard._store.log.activity().now


def test_a_long_hour_is_extrapolated_from_its_end(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add_many({"kind": "build"} for _ in range(8000))
        found = activity(Disk(), f"{place}/events", now(yard), most=1 << 18)
        rates, estimated = found.rates(EVENTS)
        assert "hour" in estimated
        assert 7000 < rates["hour"]["added"] < 9000
        assert yard.stats()["rates"]["hour"]["added"] == 8000


def test_what_a_note_says_is_no_event(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
        taken(yard.claim()).note('","event":"done"\n{"at":"')
        assert yard.stats()["rates"]["minute"]["done"] == 0


@pytest.mark.damages
def test_what_is_no_line_of_the_log_is_passed_over(place: str, tmp_path: Path) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
        [page] = (tmp_path / "yard" / "events").iterdir()
        with page.open("ab") as file:
            file.write(b'\n{"at":"2026\nnonsense\n\xff\xfe\n')
        yard.add("build")
        assert yard.stats()["rates"]["hour"]["added"] == 2


def test_names_that_are_no_tasks_are_not_counted(place: str, tmp_path: Path) -> None:
    with taskyard.open(place, worker="ada") as yard:
        id = yard.add("build").id
        yard.add("build")
        folder = tmp_path / "yard" / "todo" / "5-build" / id[:4]
        (folder / f"{id[:4]}.tmp").write_text("{}")
        assert yard.stats()["counts"]["todo"] == 2
        (folder / f"{id[:4]}.tmp").unlink()
