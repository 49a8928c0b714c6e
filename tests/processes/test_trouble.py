"""A place that cannot be written, or is full: said plainly with exit 8, nothing half done, and well again once the place is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sealed(place: str) -> Iterator[str]:
    """A yard with a task that nobody may write to."""
    with taskyard.open(place) as yard:
        yard.add("build")
        yard.add("other")
        claim = yard.claim(kinds=["other"])
        assert claim is not None
    everything = [Path(place), *Path(place).rglob("*")]
    before = {path: path.stat().st_mode for path in everything}
    for path in everything:
        path.chmod(before[path] & ~0o222)
    yield place
    for path in everything:
        path.chmod(before[path])


def test_a_yard_that_cannot_be_written_says_so(sealed: str) -> None:
    held = next(token for state, token, _ in tools.task_files(sealed) if state == "processing")
    handle = f"{held.id}.{held.fence}.{held.nonce}"
    before = tools.places(sealed)
    for argv in (["add", "build"], ["claim"], ["done", handle, "--result", "1"], ["cancel", held.id]):
        refused = tools.taskyard(sealed, *argv, prefix=tools.powerless())
        assert (refused.code, refused.error["code"]) == (8, "unavailable"), argv
        assert "Permission denied" in refused.error["message"], argv
        assert refused.error["hint"] == "check who owns the yard and its permissions", argv
    assert tools.places(sealed) == before
    said = subprocess.run(
        [*tools.powerless(), *tools.COMMAND, "add", "x", "--yard", sealed],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (said.returncode, said.stdout) == (8, "")
    assert said.stderr.startswith(f"taskyard: the yard {sealed} cannot be written: Permission denied")


def test_a_yard_that_cannot_be_read_says_so(place: str) -> None:
    Path(place).chmod(0)
    try:
        refused = tools.taskyard(place, "list", prefix=tools.powerless())
    finally:
        Path(place).chmod(0o755)
    assert (refused.code, refused.error["code"]) == (8, "unavailable")
    assert "Permission denied" in refused.error["message"]
    assert refused.error["hint"]


def test_no_yard_is_made_where_nothing_can_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        refused = tools.taskyard(None, "init", str(tmp_path / "yard"), prefix=tools.powerless())
    finally:
        tmp_path.chmod(0o755)
    assert (refused.code, refused.error["code"]) == (8, "unavailable")
    assert "Permission denied" in refused.error["message"]
    assert list(tmp_path.iterdir()) == []


def inside(namespace: list[str], script: str, *argv: str) -> Any:
    """Run a script of Python in a mount namespace of its own; it prints one JSON value."""
    done = subprocess.run(
        [*namespace, tools.PYTHON, "-c", SAYS + script, *argv],
        capture_output=True,
        text=True,
        env=tools.environment(),
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SAYS = """
import json, os, subprocess, sys
from pathlib import Path
def mount(*argv):
    subprocess.run(["mount", *argv], check=True)
def taskyard(*argv):
    done = subprocess.run([sys.executable, "-m", "taskyard", "--json", *argv], capture_output=True, text=True)
    return {"code": done.returncode, "err": done.stderr, **json.loads(done.stdout)}
def answer(value):
    print(json.dumps(value))
"""


def test_a_yard_on_a_read_only_mount_says_so(place: str) -> None:
    with taskyard.open(place) as yard:
        yard.add("build")
    script = """
yard = sys.argv[1]
mount("--bind", yard, yard)
mount("-o", "remount,bind,ro", yard)
answer([taskyard("add", "x", "--yard", yard), taskyard("claim", "--yard", yard)])
"""
    for said in inside(tools.unshared("--mount"), script, place):
        assert (said["code"], said["error"]["code"]) == (8, "unavailable")
        assert "Read-only file system" in said["error"]["message"]
        assert said["error"]["hint"] == "the filesystem is read-only; mount it for writing"
    assert list(tools.places(place).values()) == ["todo"]


FILLS_A_DISK = """
root = sys.argv[1]
mount("-t", "tmpfs", "-o", "size=320k", "tmpfs", root)
yard = root + "/yard"
ballast = Path(root, "ballast")
ballast.write_bytes(b"x" * 65536)
taskyard("init", yard)
data = json.dumps("x" * 9000)
said = [taskyard("add", "build", "--data", data, "--yard", yard)]
while said[-1]["code"] == 0 and len(said) < 100:
    said.append(taskyard("add", "build", "--data", data, "--yard", yard))
def files():
    return {str(path.relative_to(yard)): path.read_text() for path in Path(yard).rglob("*") if path.is_file()}
full = files()
repeated = [taskyard("add", "build", "--data", data, "--yard", yard)["code"] for _ in range(3)]
fuller = files()
listed = taskyard("list", "--yard", yard)
claimed = taskyard("claim", "--yard", yard)
large = taskyard("done", claimed["data"]["claim"], "--result", json.dumps("x" * 20000), "--yard", yard)
held = taskyard("show", claimed["data"]["task"]["id"], "--yard", yard)
ballast.unlink()
again = taskyard("add", "build", "--data", data, "--yard", yard)
done = taskyard("done", claimed["data"]["claim"], "--result", json.dumps("x" * 20000), "--yard", yard)
shown = taskyard("show", claimed["data"]["task"]["id"], "--yard", yard)
answer({"said": said, "full": full, "repeated": repeated, "fuller": fuller, "listed": listed, "claimed": claimed, "large": large, "held": held,
        "again": again, "done": done, "shown": shown})
"""


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What happened on a disk of 320 KiB, until it was full, while it was, and after room was made."""
    return inside(tools.unshared("--mount"), FILLS_A_DISK, str(tmp_path_factory.mktemp("full")))


def test_a_yard_on_a_full_disk_says_so(full_disk: Any) -> None:
    *added, refused = full_disk["said"]
    assert added, "there was room for none"
    assert (refused["code"], refused["error"]["code"]) == (8, "unavailable")
    assert "No space left on device" in refused["error"]["message"]
    assert "make room on the disk" in refused["error"]["hint"]
    assert full_disk["repeated"] == [8, 8, 8]


def test_nothing_is_half_published_on_a_full_disk(full_disk: Any) -> None:
    ids = sorted(entry["data"]["task"]["id"] for entry in full_disk["said"][:-1])
    for files in (full_disk["full"], full_disk["fuller"]):
        tasks = {name: content for name, content in files.items() if name.split("/")[0] in tools.STATES}
        assert sorted(os.path.basename(name).split(".")[0] for name in tasks) == ids, (
            "nothing more than was acknowledged"
        )
        assert all(json.loads(content)["data"] == "x" * 9000 for content in tasks.values())
    assert [task["id"] for task in full_disk["listed"]["data"]["tasks"]] == ids
    assert (full_disk["large"]["code"], full_disk["large"]["error"]["code"]) == (8, "unavailable")
    assert (full_disk["held"]["data"]["task"]["state"], full_disk["held"]["data"]["task"]["result"]) == (
        "processing",
        None,
    )


def test_what_a_full_disk_refused_is_cleared_away(full_disk: Any) -> None:
    """Or a full disk stays full."""
    assert [name for name in full_disk["fuller"] if name.startswith("tmp/") and name != "tmp/clock"] == []


def test_a_disk_that_was_full_works_again_when_there_is_room(full_disk: Any) -> None:
    assert full_disk["again"]["code"] == 0
    assert full_disk["done"]["code"] == 0
    shown = full_disk["shown"]["data"]
    assert (shown["task"]["state"], shown["task"]["result"], shown["stale_results"]) == ("done", "x" * 20000, [])


@pytest.mark.damages("the yard is gone")
def test_a_yard_that_is_gone_is_not_made_again_in_silence(place: str, tmp_path: Path) -> None:
    with taskyard.open(place) as yard:
        Path(place).rename(tmp_path / "elsewhere")
        for verb in (lambda: yard.add("build"), yard.claim, yard.sweep):
            with pytest.raises(taskyard.Unavailable):
                verb()
    assert not Path(place).exists()
    refused = tools.taskyard(place, "add", "build")
    assert (refused.code, refused.error["code"]) == (8, "unavailable")
    assert not Path(place).exists()
