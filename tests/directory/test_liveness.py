"""A worker's death is seen at once where the kernel can be believed, and nowhere else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core.task import State
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.recovery import liveness
from tests.conftest import wait_until

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys, os, time
import taskyard
yard = taskyard.open(sys.argv[1], worker="ada")
yard.vouch(60)
claim = yard.claim()
if "fork" in sys.argv:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
print(claim.handle, flush=True)
time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build", {"n": 1})
    return tmp_path / "yard"


def held(place: Path, *words: str) -> subprocess.Popen[str]:
    """A process that holds the yard's one task, vouched for by its lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place), *words], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline()
    return holder


def killed(holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    if holder.stdout:
        holder.stdout.close()


def note(place: Path) -> Path:
    (lock,) = (place / "workers").iterdir()
    return lock


def test_a_killed_workers_task_is_free_at_once_and_counted_as_a_crash(place: Path) -> None:
    holder = held(place)
    with taskyard.open(place, worker="ben") as yard:
        assert not yard.sweep().reaped
        killed(holder)
        again = yard.claim()
        assert again is not None
        assert again.task.attempts == 1
        assert again.history[0]["outcome"] == "crash"
        assert again.history[0]["reason"] == "the worker ada died"


def test_a_living_workers_claim_is_marked_and_left_alone(place: Path) -> None:
    holder = held(place)
    try:
        (name,) = (path.name for path in (place / "processing").iterdir())
        assert ".l60000.L.ada-" in name
        with taskyard.open(place, worker="ben") as yard:
            assert yard.claim() is None
    finally:
        killed(holder)


def test_a_forked_child_of_a_dead_worker_does_not_keep_its_tasks(place: Path) -> None:
    holder = held(place, "fork")
    try:
        killed(holder)
        with taskyard.open(place, worker="ben") as yard:
            wait_until(lambda: yard.sweep().reaped == 1)  # the child lets go of its copy when it first runs
    finally:
        os.killpg(holder.pid, signal.SIGKILL)


def test_a_held_lock_does_not_keep_a_lease_from_ending(place: Path) -> None:
    with taskyard.open(place, worker="ada") as ada, taskyard.open(place, worker="ben") as ben:
        ada.vouch(60)
        claim = ada.claim(lease=0.01)
        assert claim is not None
        wait_until(lambda: ben.sweep().reaped == 1)


@pytest.mark.parametrize("change", ["kernel", "device", "inode"])
def test_a_lock_of_another_boot_or_another_file_says_nothing(place: Path, change: str) -> None:
    killed(held(place))
    words = json.loads(note(place).read_text())
    words[change] = "another" if change == "kernel" else words[change] + 1
    note(place).write_text(json.dumps(words))
    with taskyard.open(place, worker="ben") as yard:
        assert not yard.sweep().reaped
        assert yard.counts()["processing"] == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"kernel": null}'])
def test_a_lock_that_says_nonsense_says_nothing(place: Path, content: bytes) -> None:
    killed(held(place))
    note(place).write_bytes(content)
    with taskyard.open(place, worker="ben") as yard:
        assert not yard.sweep().reaped


def test_without_a_lock_the_lease_alone_counts(place: Path) -> None:
    killed(held(place))
    note(place).unlink()
    with taskyard.open(place, worker="ben") as yard:
        assert not yard.sweep().reaped


def test_on_a_network_filesystem_nobody_is_vouched_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskyard.stores.directory.filesystem.safety.is_local", lambda path: False)
    with taskyard.open(place, worker="ada") as yard:
        assert yard.vouch(60) is None
        claim = yard.claim()
        assert claim is not None
        assert claim.lease == 60
        (name,) = (path.name for path in (place / "processing").iterdir())
        assert ".L." not in name


def test_the_lock_of_a_dead_worker_goes_once_its_claims_are_reaped(place: Path) -> None:
    killed(held(place))
    with taskyard.open(place, worker="ben") as yard:
        yard.sweep()
        assert yard.counts()["todo"] == 1
        yard.sweep()
    assert list((place / "workers").iterdir()) == []


def test_a_worker_that_ends_takes_its_lock_along(place: Path) -> None:
    with taskyard.open(place, worker="ada") as yard:
        assert yard.vouch(60) is not None
        assert len(list((place / "workers").iterdir())) == 1
    assert list((place / "workers").iterdir()) == []


def test_a_vouched_claim_ends_as_any_other(place: Path) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.vouch(60)
        yard.add("build", {"n": 2})
        first, second = yard.claim(), yard.claim()
        assert first is not None
        assert second is not None
        first.done({"ok": 1})
        second.fail("broken", retry=False)
        assert yard.get(first.task.id).result == {"ok": 1}
        assert yard.get(second.task.id).error == "broken"
        assert yard.counts()[State.DONE] == 1
        second.fail("broken", retry=False)


def test_the_lock_is_seen_locked_from_its_first_moment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is locked under a name that nobody looks at, and only then given its own."""
    seen = []
    real = os.rename

    def rename(source: str, target: str) -> None:
        if "/workers/" in target:
            seen.append(Disk().held(source)[0])
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with taskyard.open(place, worker="ada") as yard:
        yard.vouch(60)
    assert seen == [True]
    assert liveness.INCARNATION == 8
