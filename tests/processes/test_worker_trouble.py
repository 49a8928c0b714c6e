"""A worker whose yard is full, read-only or forbidden: it says so, waits, and stores what is finished when it can."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import taskyard
from taskyard import State
from tests.conftest import SOON, wait_until
from tests.processes import tools
from tests.processes.test_trouble import inside

WORKER = """
import threading, time
def worker(yard, script, *options):
    process = subprocess.Popen([sys.executable, "-m", "taskyard", "--yard", yard, "work", *options, "--", "sh", "-c", script],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process
def until(predicate):
    end = time.monotonic() + 30
    while not predicate():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
"""

FULL = """
root = sys.argv[1]
mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", root)
yard = root + "/yard"
taskyard("init", yard)
taskyard("add", "build", "--yard", yard)
script = f'touch {root}/up; while [ ! -e {root}/go ]; do sleep 0.01; done; head -c 90000 /dev/zero | tr "\\\\0" x | sed "s/.*/{{\\\\"text\\\\": \\\\"&\\\\"}}/"'
work = worker(yard, script, "--drain")
until(Path(root, "up").exists)
Path(root, "go").touch()
filler = open(root + "/ballast", "wb", buffering=0)
try:
    while True:
        filler.write(b"x" * 4096)
except OSError:
    pass
warned = work.stderr.readline()
os.unlink(root + "/ballast")
filler.close()
out, err = work.communicate(timeout=60)
[task] = taskyard("list", "--yard", yard)["data"]["tasks"]
shown = taskyard("show", task["id"], "--yard", yard)["data"]
answer({"warned": warned, "out": out, "err": err, "code": work.returncode, "shown": shown})
"""


def test_a_result_that_a_full_disk_refuses_is_stored_when_there_is_room(tmp_path: Path) -> None:
    said = inside(tools.unshared("--mount"), WORKER + FULL, str(tmp_path))
    assert "No space left on device" in said["warned"]
    assert said["code"] == 0
    assert said["out"].splitlines()[-1] == "1 done"
    assert "the yard is back" in said["err"]
    task = said["shown"]["task"]
    assert (task["state"], task["attempts"], len(task["result"]["text"])) == ("done", 0, 90_000)


READ_ONLY = """
yard, folder = sys.argv[1:]
script = f'touch {folder}/up; while [ ! -e {folder}/go ]; do sleep 0.01; done; echo "{{\\\\"ok\\\\": 1}}"'
work = worker(yard, script, "--drain")
until(Path(folder, "up").exists)
mount("--bind", yard, yard)
mount("-o", "remount,bind,ro", yard)
Path(folder, "go").touch()
warned = work.stderr.readline()
subprocess.run(["umount", "-l", yard], check=True)
out, err = work.communicate(timeout=60)
answer({"warned": warned, "out": out, "err": err, "code": work.returncode})
"""


def test_a_result_that_a_read_only_yard_refuses_is_stored_when_it_can_be_written(place: str, tmp_path: Path) -> None:
    with taskyard.open(place) as yard:
        id = yard.add("build").id
        said = inside(tools.unshared("--mount"), WORKER + READ_ONLY, place, str(tmp_path))
        assert "Read-only file system" in said["warned"]
        assert (said["code"], said["out"].splitlines()[-1]) == (0, "1 done")
        assert yard.get(id).result == {"ok": 1}


@pytest.mark.parametrize("when", ["idle", "at work"])
def test_a_worker_that_is_forbidden_its_yard_goes_on_when_it_is_allowed(place: str, tmp_path: Path, when: str) -> None:
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 2) if when == "at work" else []
        script = f"touch {tmp_path}/up; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"
        worker = subprocess.Popen(
            [*tools.powerless(), *tools.COMMAND, "work", "--max-tasks", "2", "--", "sh", "-c", script],
            env=tools.environment(TASKYARD=place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert worker.stderr is not None
        wait_until((tmp_path / "up").exists if ids else lambda: os.listdir(f"{place}/workers"))
        folders = [Path(place), *(path for path in Path(place).rglob("*") if path.is_dir())]
        before = {path: path.stat().st_mode for path in folders}
        for path in reversed(folders):
            path.chmod(0)
        (tmp_path / "go").touch()
        try:
            assert "Permission denied" in worker.stderr.readline()
        finally:
            for path in folders:
                path.chmod(before[path])
        ids = ids or yard.add_many([{"kind": "build"}] * 2)
        out, err = worker.communicate(timeout=SOON)
        assert (worker.returncode, out.splitlines()[-1], err) == (0, "2 done", "taskyard: warning: the yard is back\n")
        assert {(yard.get(id).state, yard.get(id).attempts) for id in ids} == {(State.DONE, 0)}
