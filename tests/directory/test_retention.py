"""Retention: what ended first goes first, whatever segment it is in, and a turn costs the same however much there is."""

from __future__ import annotations

import errno
import gzip
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import ids
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.retention import prune
from taskyard.stores.directory.store import DirectoryStore
from taskyard.stores.directory.tasks import segments
from taskyard.yard import Yard
from tests.conftest import taken, wait_until
from tests.processes import tools
from tests.recording import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of four tasks."""
    monkeypatch.setattr(segments, "SIZE", 4)


def end(yard: Yard, number: int, kind: str = "k") -> list[str]:
    ids = yard.add_many([{"kind": kind}] * number)
    for id in ids:
        taken(yard.claim(id)).done({"of": id})
    return ids


def tick(url: str) -> None:
    """Wait until what happens next happens later, by the filesystem's clock."""
    probe = Path(url, "tmp", "probe")
    probe.touch()
    before = probe.stat().st_ctime_ns // 1_000_000

    def later() -> bool:
        probe.touch()
        return probe.stat().st_ctime_ns // 1_000_000 > before

    wait_until(later)


def archived(url: str) -> list[str]:
    """The ids of all tasks in the archive."""
    lines = [
        json.loads(line)
        for path in sorted(Path(url, "archive").glob("tasks-*"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert all(line["task"]["result"] == {"of": line["task"]["id"]} for line in lines)
    return [str(line["task"]["id"]) for line in lines]


@pytest.mark.usefixtures("small")
def test_a_task_of_an_old_segment_that_ended_last_is_kept(url: str) -> None:
    with taskyard.open(url) as yard:
        slow = yard.add("slow").id
        ended = end(yard, 10)
        tick(url)
        taken(yard.claim(slow)).done({"of": slow})
        assert yard.prune(count=3, apply=True)["tasks"] == 8
        assert sorted(archived(url)) == sorted(ended[:8])
        assert yard.get(slow).state == "done"


@pytest.mark.usefixtures("small")
def test_the_sweep_keeps_to_the_count_and_leaves_nothing_behind(url: str) -> None:
    tools.settle(url, retention_count=6)
    with taskyard.open(url) as yard:
        for _ in range(5):
            ended = end(yard, 7)
            yard.sweep()
            assert yard.counts()["done"] == 6
        assert [yard.get(id).result for id in ended[1:]] == [{"of": id} for id in ended[1:]]
        assert len(archived(url)) == len(set(archived(url))) == 29
    assert [len(list(Path(url, place).rglob("*.json"))) for place in ("results", "done")] == [6, 6]
    assert os.listdir(f"{url}/dead") == []


def segment_markers(url: str) -> list[str]:
    return [name for name in os.listdir(f"{url}/segments") if ids.is_segment(name)]


@pytest.mark.usefixtures("small")
def test_markers_go_with_the_tasks_of_their_segments(url: str) -> None:
    with taskyard.open(url) as yard:
        first = yard.add("first").id
        end(yard, 100)
        yard.prune(count=0, apply=True)
        assert len(segment_markers(url)) == 16 + 1
        assert yard.get(first).state == "todo"
        (again,) = end(yard, 1)
        assert again[:4] >= max(segment_markers(url))


def test_the_sweep_waits_until_an_archive_is_worth_its_file_but_not_for_ever(url: str) -> None:
    tools.settle(url, retention_age=0.2, retention_count=100)
    with taskyard.open(url) as yard:
        end(yard, 3)
        yard.sweep()
        assert yard.counts()["done"] == 3

        def swept() -> bool:
            yard.sweep()
            return yard.counts()["done"] == 0

        wait_until(swept)
    assert len(os.listdir(f"{url}/archive")) == 1


def test_a_share_is_bounded_and_the_next_turn_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "SHARE", 5)
    tools.settle(url, retention_count=0)
    with taskyard.open(url) as yard:
        end(yard, 12)
        left = []
        for _ in range(3):
            yard.sweep()
            left.append(yard.counts()["done"])
    assert left == [7, 2, 0]


def test_a_sweep_begins_no_other_archive_when_it_takes_too_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "_ARCHIVE", 5)
    monkeypatch.setattr(prune, "LONG", -1)
    tools.settle(url, retention_count=0)
    with taskyard.open(url) as yard:
        end(yard, 12)
        left = []
        for _ in range(3):
            yard.sweep()
            left.append(yard.counts()["done"])
    assert left == [7, 2, 0]


def test_an_archive_is_no_larger_than_memory_bears(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "_BYTES", 2000)
    with taskyard.open(url) as yard:
        ids = end(yard, 12)
        told = yard.prune(count=0, apply=True)
    assert (told["tasks"], len(told["archives"]) > 2) == (12, True)
    assert sorted(archived(url)) == sorted(ids)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("limits", [{"count": 40}, {"age": 3600}])
def test_a_turn_that_has_nothing_to_do_looks_at_no_task(url: str, limits: dict[str, Any]) -> None:
    with taskyard.open(url) as yard:
        end(yard, 40)
        disk = Counting(url)
        pruner = yard._store.upkeep._pruner  # type: ignore[attr-defined]
        for part in (pruner, pruner._ended, pruner._ended._segments, pruner._ended._locator):
            monkey(part, disk)
        yard.prune(**limits)
    assert disk.count("changed_at") == 0
    assert disk.count("listdir") <= (4 if "age" in limits else 3 + 10 + 3)


class Counting(Recorder):
    """A disk that counts what is asked of it."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        call = super().__getattr__(name)

        def counted(*args: object, **options: object) -> object:
            self.asked.append(name)
            return call(*args, **options)

        return counted

    def count(self, name: str) -> int:
        return self.asked.count(name)


def monkey(part: object, disk: Counting) -> None:
    setattr(part, "_disk", disk)  # noqa: B010  a simulated disk takes its place


def test_what_attempts_left_in_their_folders_goes_to_the_archive_with_them(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build")
        claim = taken(yard.claim())
        folder = Path(str(claim.workdir))
        (folder / "out").mkdir()
        (folder / "stdout.log").write_text("it is built\n")
        (folder / "out" / "picture").write_bytes(b"\xff\x00")
        (folder / "large").write_bytes(bytes((1 << 20) + 1))
        (folder / "link").symlink_to("/etc/passwd")
        claim.note("half of it")
        claim.done()
        assert yard.prune(count=0, apply=True)["tasks"] == 1
    [archive] = (tmp_path / "yard" / "archive").iterdir()
    kept = {Path(file["path"]).name: file for file in json.loads(gzip.decompress(archive.read_bytes()))["files"]}
    assert kept["stdout.log"]["text"] == "it is built\n"
    assert kept["picture"]["base64"] == "/wA="
    assert "1048577 bytes" in kept["large"]["left_out"]
    assert "symbolic link" in kept["link"]["left_out"]
    assert kept.keys() == {"stdout.log", "picture", "large", "link"}
    assert not folder.exists()


@pytest.mark.usefixtures("small")
def test_many_tasks_are_archived_with_one_listing_for_each_segment(url: str) -> None:
    with taskyard.open(url) as yard:
        end(yard, 40)
        disk = Counting(url)
        store = yard._store
        monkey(store._context.locator, disk)  # type: ignore[attr-defined]
        monkey(store._context.records, disk)  # type: ignore[attr-defined]
        assert yard.prune(count=0, apply=True)["tasks"] == 40
    assert disk.count("listdir") <= 4 + 10 * 7


def test_a_late_word_that_comes_while_its_task_is_pruned_is_in_nobodys_way(url: str) -> None:
    with taskyard.open(url) as yard:
        (id,) = end(yard, 1)
        yard.prune(count=0, apply=True)
        Path(url, "results", id[:4]).mkdir()
        Path(url, "results", id[:4], f"{id}.1.abcdefgh1.stale-0123456789ab.json").write_text("{}")
        yard.sweep()
        with pytest.raises(taskyard.NotFound):
            yard.get(id)


def test_what_cannot_be_archived_stays(url: str) -> None:
    with taskyard.open(url) as yard:
        id = yard.add("k").id
        yard.edit(id, title="edited")
        taken(yard.claim(id)).done({"of": id})
        (body,) = Path(url, "edits").rglob("*.json")
        body.unlink()
        assert yard.prune(count=0, apply=True)["archives"] == []
        assert yard.counts()["done"] == 1
    assert os.listdir(f"{url}/archive") == []


class Barred(Disk):
    """A disk on which what has this in its path is another user's, who keeps it to himself."""

    def __init__(self, part: str, number: int) -> None:
        self._part, self._errno = part, number

    def _open(self, path: str, flags: int) -> int:  # type: ignore[override]
        if self._part in path:
            raise OSError(self._errno, os.strerror(self._errno), path)
        return os.open(path, flags)


@pytest.mark.parametrize("part", ["stdout.log", "notes.jsonl", ".done.json", "/out", "/attempts/0000", "/results/0000"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_a_task_stays_as_long_as_something_of_it_cannot_be_read(url: str, part: str, number: int) -> None:
    with taskyard.open(url) as yard:
        id = yard.add("build").id
        claim = taken(yard.claim())
        folder = Path(str(claim.workdir))
        (folder / "stdout.log").write_text("it is built\n")
        (folder / "out").mkdir()
        (folder / "out" / "picture").write_bytes(b"\xff\x00")
        claim.note("half of it")
        claim.done({"ok": True})
        other = yard.add("test").id
        taken(yard.claim()).done()
        before = yard.report(id)
    with Yard(DirectoryStore(url, disk=Barred(part, number))) as blind:
        try:
            told = blind.prune(count=0, apply=True)
        except taskyard.Unavailable:
            assert number == errno.EMFILE, "what cannot be read keeps nobody else"
        else:
            assert (told["tasks"], told["kept"]) == (1, 1)
    with taskyard.open(url) as yard:
        assert yard.report(id).notes == before.notes
        assert yard.report(id).task.result == {"ok": True}
        assert (folder / "stdout.log").read_text() == "it is built\n"
        assert (folder / "out" / "picture").exists()
        told = yard.prune(count=0, apply=True)
        assert (told["tasks"], told["kept"]) == (1 if number == errno.EACCES else 2, 0)
        with pytest.raises(taskyard.NotFound):
            yard.get(other)


def test_a_socket_that_an_attempt_left_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build")
        claim = taken(yard.claim())
        monkeypatch.chdir(str(claim.workdir))  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("server")
        claim.done()
        assert yard.prune(count=0, apply=True)["tasks"] == 1
    [archive] = (tmp_path / "yard" / "archive").iterdir()
    [kept] = json.loads(gzip.decompress(archive.read_bytes()))["files"]
    assert "not an ordinary file" in kept["left_out"]
