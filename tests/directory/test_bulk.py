"""Many cancels on a directory: synced together before they are acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard.stores.directory.filesystem.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_many_cancels_are_synced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.init(str(tmp_path / "yard")) as yard:
        yard.add_many({"kind": "build"} for _ in range(100))
        alone, together = [], []
        monkeypatch.setattr(Disk, "sync", lambda _, path: alone.append(path))
        monkeypatch.setattr(Disk, "sync_all", lambda _, path: together.append(path))
        assert yard.bulk("cancel", kind="build", apply=True)["changed"] == 100
        assert together == [yard.url]
        assert len(alone) < 5
