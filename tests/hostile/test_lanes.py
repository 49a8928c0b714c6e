"""A lane that this user cannot use keeps nobody from the others, and is named where somebody asks."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.yard import Yard

BAD = "0-theirs"  # more urgent than all others, so that every claim comes by it


def refused(number: int, *paths: str) -> OSError:
    error = OSError(number, os.strerror(number), *paths[:1])
    if len(paths) > 1:
        error.filename2 = paths[1]
    return error


@pytest.fixture(params=["listed", "a segment listed", "moved from"])
def yard(request: pytest.FixtureRequest, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    """A yard with a task in a lane of another user's; root is refused nothing, so the disk refuses it here."""
    with taskyard.open(place, worker="ada") as yard:
        yard.add("theirs", priority=0)
        yard.add("build")
        disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]
        listdir, rename = disk.listdir, disk.rename

        def closed_listing(self: Any, folder: str) -> Any:
            depth = folder.count("/") - place.count("/")
            if f"/todo/{BAD}" in folder and depth >= (3 if request.param == "a segment listed" else 2):
                raise refused(errno.EACCES, folder)
            return listdir(self, folder)

        def closed_move(path: str, target: str) -> None:
            if f"/todo/{BAD}" in path:
                raise refused(errno.EACCES, path, target)
            rename(path, target)

        if request.param == "moved from":
            monkeypatch.setattr(disk, "rename", staticmethod(closed_move))
        else:
            monkeypatch.setattr(disk, "listdir", closed_listing)
        yield yard


def test_claims_pass_over_a_lane_that_is_not_theirs_and_name_it(yard: Yard) -> None:
    claim = taken(yard.claim())
    assert claim.task.kind == "build"
    claim.done()
    (named,) = yard.unusable()
    assert f"todo/{BAD}" in named
    assert named.endswith("Permission denied")


def test_why_names_a_lane_that_is_not_theirs(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]
    may_change = disk.may_change
    monkeypatch.setattr(
        disk, "may_change", lambda self, folder: f"/todo/{BAD}" not in folder and may_change(self, folder)
    )
    taken(yard.claim()).done()
    assert yard.claim() is None
    facts = yard.why()
    assert f"todo/{BAD}" in facts["unusable"][0]
    assert facts["message"].startswith(f"passed over: {facts['unusable'][0]}")
    assert "who owns that folder" in facts["next"]


def test_what_is_ready_leaves_out_a_lane_that_is_not_theirs_and_names_it(yard: Yard, monkeypatch: Any) -> None:
    disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]
    may_change = disk.may_change
    monkeypatch.setattr(
        disk, "may_change", lambda self, folder: f"/todo/{BAD}" not in folder and may_change(self, folder)
    )
    assert [task.kind for task in yard.ready()] == ["build"]
    (named,) = yard.unusable()
    assert f"todo/{BAD}" in named
    assert named.endswith("Permission denied")
    monkeypatch.undo()
    assert [task.kind for task in yard.ready()] == ["theirs", "build"]
    assert yard.unusable() == []


def test_what_is_ready_shows_all_where_the_whole_yard_is_read_only(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(place) as yard:
        yard.add("build")
        disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]
        monkeypatch.setattr(disk, "may_change", lambda *_: False)
        assert [task.kind for task in yard.ready()] == ["build"]
        assert yard.unusable() == []


def test_a_lane_that_is_open_again_is_served_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(yard.claim()).task.kind == "build"
    monkeypatch.undo()
    yard._store._context.ready_cache.forget()  # type: ignore[attr-defined]  # a second later
    assert taken(yard.claim()).task.kind == "theirs"
    yard._store._context.ready_cache.forget()  # type: ignore[attr-defined]
    yard._store.claim(yard._want(None, None, None, None), ["abcdefgh1"])
    assert yard.unusable() == []


def test_where_nothing_at_all_can_be_claimed_that_is_said(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(place) as yard:
        yard.add("build")
        disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]

        def closed_move(path: str, target: str) -> None:
            raise refused(errno.EACCES, path, target)

        monkeypatch.setattr(disk, "rename", staticmethod(closed_move))
        monkeypatch.setattr(disk, "may_change", lambda *_: False)
        with pytest.raises(taskyard.Unavailable, match="Permission denied"):
            yard.claim()


@pytest.mark.parametrize("name", ["0-" + "k" * 200, "0-" + "%41" * 30, "0-build@" + "a" * 61])
def test_a_lane_whose_name_is_too_long_is_no_lane_and_fsck_names_it(place: str, name: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        first, second = (yard.add("build").id for _ in range(2))
        (file,) = Path(place, "todo").rglob(f"{first}*")
        bad = Path(place, "todo", name, first[:4])
        bad.mkdir(parents=True)
        file.rename(bad / file.name)
        claim = taken(yard.claim())
        assert claim.task.id == second
        claim.done()
        assert yard.claim() is None
        assert any(name in str(finding) for finding in yard.audit()["findings"])


@pytest.mark.proof
def test_a_claim_that_finds_nothing_and_a_look_at_what_is_ready_name_what_they_passed_over(place: str) -> None:
    """As another user, whom the system itself refuses it."""
    if os.geteuid() != 0:
        tools.lacking("only root can be another user")
    with taskyard.open(place) as yard:
        yard.add("theirs", priority=0)
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            os.chown(f"{folder}/{name}", 12_001, 12_001)
    os.chown(place, 12_001, 12_001)
    lane = f"{place}/todo/{BAD}"
    os.chown(lane, 0, 0)
    os.chmod(lane, 0o700)
    script = """
import json, os, sys
import taskyard, taskyard.doors.cli
from tests.hostile import imports
imports.load()
os.umask(0o022)
taskyard.doors.cli.main(["--yard", sys.argv[1], "claim", "--kind", "none"])  # whatever Python itself loads late
with taskyard.open(sys.argv[1]) as yard:
    yard.add("x")
    yard.claim(kinds="x").done()
    yard.sweep()
os.setgid(12_001); os.setuid(12_001)
with taskyard.open(sys.argv[1], worker="ada") as yard:
    yard.add("build")
    print(yard.claim().task.kind, yard.claim(), yard.unusable())
print(taskyard.doors.cli.main(["--yard", sys.argv[1], "claim", "--json"]))
taskyard.doors.cli.main(["--yard", sys.argv[1], "ready", "--json"])
taskyard.doors.cli.main(["--yard", sys.argv[1], "ready"])
"""
    for parent in (Path(place), *Path(place).parents):
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run([tools.PYTHON, "-c", script, place], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert f"build None ['{lane}: Permission denied']" in lines, done.stderr
    data = json.loads(lines[-1])["data"]
    assert data["tasks"] == []
    assert data["unusable"] == [f"{lane}: Permission denied"]
    assert f"nothing is ready: passed over: {lane}: Permission denied" in done.stderr
    error = json.loads(lines[-3])["error"]
    assert lines[-2] == "3"
    assert error["why"]["unusable"] == [f"{lane}: Permission denied"]
    assert lane in error["message"]
