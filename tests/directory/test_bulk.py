"""Many tasks at once on a directory: cancels are synced together, and a batch that was given up says what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Unavailable
from taskyard.stores.directory.filesystem.disk import Disk
from tests.directory.staging import Step, yard_on

if TYPE_CHECKING:
    from collections.abc import Callable


def test_many_cancels_are_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.init(str(tmp_path / "yard")) as yard:
        yard.add_many({"kind": "build"} for _ in range(100))
        alone, together = [], []
        monkeypatch.setattr(Disk, "sync", lambda _, path: alone.append(path))
        monkeypatch.setattr(Disk, "sync_all", lambda _, path: together.append(path))
        assert yard.bulk("cancel", kind="build", apply=True)["changed"] == 100
        assert together == [yard.url]
        assert len(alone) < 5


def test_a_batch_whose_files_were_given_up_names_and_logs_no_task_that_is_not_there(fresh: Callable[[], str]) -> None:
    """Its adder was stopped for so long that a sweep took its files for left over."""
    url = fresh()

    def give_up() -> None:
        for path in Path(url, "tmp").glob("*.json"):
            path.unlink()

    with yard_on(url, Step("after", "rename", "/todo/", give_up)) as yard:
        with pytest.raises(Unavailable) as refused:
            yard.add_many({"kind": "build"} for _ in range(5))
        assert "these stay" not in refused.value.message
        assert sum(yard.counts().values()) == 0
        assert yard.events(event="added") == []
