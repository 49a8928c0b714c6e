"""A yard is made in a folder that another user shares with the group, as the mount point of a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.stores.directory.filesystem import sharing

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_that_is_shared_already_is_not_changed(tmp_path: Path) -> None:
    """Only its owner could change it: a change, also to what it is already, is refused to all others."""
    place = tmp_path / "volume"
    place.mkdir()
    place.chmod(0o2775)
    before = place.stat()
    sharing.give(str(place), before.st_gid)
    assert place.stat().st_ctime_ns == before.st_ctime_ns
    place.chmod(0o755)
    sharing.give(str(place))
    assert place.stat().st_mode & 0o7777 == 0o2775
