"""A repeated answer is given only after what it tells of is safe: the first time its sync may have failed."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard
from tests.conftest import taken

if TYPE_CHECKING:
    from pathlib import Path


class Failing(Disk):
    """A disk that can make names, and not sync those in the chosen places."""

    def __init__(self) -> None:
        self.fails_in: tuple[str, ...] = ()
        self.synced: list[str] = []

    def sync(self, path: str) -> None:
        if any(f"/{place}" in path for place in self.fails_in):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        self.synced.append(path)
        super().sync(path)

    def sync_all(self, path: str) -> None:
        if self.fails_in:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        self.synced.append(path)
        super().sync_all(path)


@pytest.fixture
def disk() -> Failing:
    return Failing()


@pytest.fixture
def yard(tmp_path: Path, disk: Failing) -> Any:
    taskyard.init(tmp_path / "yard").close()
    with Yard(DirectoryStore(str(tmp_path / "yard"), disk=disk), "ada") as yard:
        yield yard


def events(yard: Yard, name: str) -> int:
    return sum(event["event"] == name for event in yard.events())


@pytest.mark.parametrize("result", [None, {"ok": True}])
@pytest.mark.parametrize("by_handle", [False, True])
def test_a_done_whose_sync_failed_is_synced_before_it_is_acknowledged(
    yard: Yard, disk: Failing, result: Any, by_handle: bool
) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    disk.fails_in = ("done/",)
    with pytest.raises(taskyard.Unavailable):
        claim.done(result)
    again = yard.held(claim.handle) if by_handle else claim
    with pytest.raises(taskyard.Unavailable):
        again.done(result)
    disk.fails_in, disk.synced = (), []
    again.done(result)
    assert {f"{yard._store.url}/done", f"{yard._store.url}/done/{id[:4]}"} <= set(disk.synced)
    assert events(yard, "done") == 1
    assert yard.get(id).result == result


def test_a_failure_whose_sync_failed_is_synced_before_it_is_acknowledged(yard: Yard, disk: Failing) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    disk.fails_in = ("waiting/",)
    with pytest.raises(taskyard.Unavailable):
        claim.fail("it broke")
    with pytest.raises(taskyard.Unavailable):
        claim.fail("it broke")
    disk.fails_in, disk.synced = (), []
    claim.fail("it broke")
    assert any("/waiting/" in path and path.endswith(id[:4]) for path in disk.synced)
    assert (events(yard, "failed"), yard.get(id).attempts) == (1, 1)


@pytest.mark.parametrize("place", ["todo/", "keys/"])
def test_an_add_whose_sync_failed_is_synced_before_its_key_is_acknowledged(
    yard: Yard, disk: Failing, place: str
) -> None:
    disk.fails_in = (place,)
    with pytest.raises(taskyard.Unavailable):
        yard.add("build", {"n": 1}, key="same")
    with pytest.raises(taskyard.Unavailable):
        yard.add("build", {"n": 1}, key="same")
    disk.fails_in, disk.synced = (), []
    task = yard.add("build", {"n": 1}, key="same")
    root = yard._store.url
    assert f"{root}/todo/5-build/{task.id[:4]}" in disk.synced
    assert any(path.startswith(f"{root}/keys/") for path in disk.synced)
    assert (yard.counts()["todo"], events(yard, "added")) == (1, 1)


def test_many_known_keys_share_one_sync(yard: Yard, disk: Failing) -> None:
    drafts = [{"kind": "build", "key": f"k{n}"} for n in range(20)]
    first = yard.add_many(drafts)
    disk.synced = []
    assert yard.add_many(drafts) == first
    assert disk.synced == [yard._store.url]


def test_an_edit_whose_sync_failed_is_in_the_log(yard: Yard, disk: Failing) -> None:
    id = yard.add("build").id
    disk.fails_in = ("todo/",)
    with pytest.raises(taskyard.Unavailable):
        yard.edit(id, data={"n": 2})
    disk.fails_in = ()
    assert (yard.get(id).data, events(yard, "edited")) == ({"n": 2}, 1)
