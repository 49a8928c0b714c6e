"""Schedules go from one store to another, and back, and no tick comes again there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.doors.cli import main
from tests.contract.test_recurring import HOUR, far_off, next_of, sweep_at, ticks_of
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path


def told(url: str) -> list[dict[str, Any]]:
    with taskyard.open(url, worker="ada") as yard:
        yard.tends = False
        return yard.schedules()


def test_schedules_are_the_same_in_a_copy(tmp_path: Path) -> None:
    first, second, third = str(tmp_path / "first"), postgres.url(), str(tmp_path / "third")
    with taskyard.init(first, worker="ada") as yard:
        far_off(yard, "@hourly", {"a": 1}, tz="Europe/Berlin", title="Nächtlich")
        due = next_of(yard)
        assert sweep_at(yard, due) == 1
        yard.new_schedule("paused", "@daily", "build")
        yard.pause_schedule("paused")
        yard.pause()
        assert sweep_at(yard, due + HOUR) == 0
    for source, target in ((first, second), (second, third)):
        assert main(["copy", source, target]) == 0
        assert told(target) == told(first)
        assert main(["copy", source, target]) == 0  # it compares, and finds them equal
    with taskyard.open(third, worker="bob") as yard:
        yard.unpause()
        for _ in range(2):
            sweep_at(yard, due + HOUR)
        assert len(set(ticks_of(yard))) == len(yard.find()) == 2
        assert yard.audit()["findings"] == []
