"""The file of a process that has the yard open: whatever becomes of it, the process goes on, and comes to its end."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.directory.log import intents
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard.yard import Yard

WORK = """
import os, sys, taskyard
place = sys.argv[1]
with taskyard.open(place, worker="ada") as yard:
    for number in range(6):
        yard.add("build")
        yard.claim().done()
        (file,) = [f"{place}/writers/{name}" for name in os.listdir(f"{place}/writers")]
        HARM
"""
HARM = {
    "truncated": "os.truncate(file, 0)",
    "cut short": "os.truncate(file, 100)",
    "removed": "os.unlink(file); open(file, 'x')",
    "another's": "os.rename(file, file + '.old'); open(file, 'x'); os.unlink(file + '.old')",
}


@pytest.mark.parametrize("harm", HARM)
def test_a_process_survives_whatever_is_done_to_its_file(tmp_path: Path, harm: str) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    script = [sys.executable, "-c", WORK.replace("HARM", HARM[harm]), place]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with taskyard.open(place) as yard:
        yard.sweep()
        assert yard.counts()["done"] == 6
        assert len([event for event in yard.events(limit=100) if event["event"] == "done"]) == 6


def test_a_file_that_is_mapped_is_not_for_anybody_to_write(tmp_path: Path) -> None:
    """Whoever makes it shorter kills its process (SIGBUS); the kernel lets nobody else open it so, but root."""
    with taskyard.init(str(tmp_path / "yard"), durability="fast") as yard:
        yard.add("build")
        writer = context(yard).writer
        mode = (tmp_path / "yard" / "writers" / writer.tag).stat().st_mode
        assert mode & 0o222 == 0


def context(yard: Yard) -> Any:
    return yard._store._context  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_what_a_file_server_says_at_the_end_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    place = str(tmp_path / "yard")
    yard = taskyard.init(place, worker="ada")
    yard.add("build")
    taken(yard.claim()).done({"ok": 1})
    yard._store.liveness.vouch("ada", "abcdefgh")  # type: ignore[union-attr]
    kept = Path(place, "writers", context(yard).writer.tag)

    class Gone:
        """A disk whose every descriptor is lost."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def close(self, descriptor: int) -> None:
            os.close(descriptor)
            raise OSError(number, os.strerror(number))

        def remove(self, path: str) -> None:
            raise OSError(number, os.strerror(number), path)

    real = context(yard).disk
    for part in (context(yard).log, context(yard).liveness, context(yard).writer, yard._store._claims):  # type: ignore[attr-defined]
        monkeypatch.setattr(part, "_disk", Gone())
    yard.close()
    assert kept.exists(), "nobody could remove it; a sweep will"
    with taskyard.open(place) as other:
        other.sweep()
        assert not kept.exists()
        assert other.counts()["done"] == 1


# On a network filesystem


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A yard on what is taken for a file server's disk."""
    monkeypatch.setattr(safety, "is_local", lambda _: False)
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    return place


KILLED = """
import os, sys, taskyard
from taskyard.stores.directory.filesystem import safety
safety.is_local = lambda _: False
yard = taskyard.open(sys.argv[1], worker="ada")
claim = yard.claim()
type(yard._store._context.disk).write = staticmethod(lambda *_: os.kill(os.getpid(), 9))
claim.done()
"""


def test_a_killed_process_of_the_same_kernel_is_known_by_its_lock_on_a_network_too(network: str) -> None:
    with taskyard.open(network) as yard:
        task = yard.add("build").id
        subprocess.run([sys.executable, "-c", KILLED, network], check=False)
        assert yard.get(task).state == "done"
        yard.sweep()
        assert [event["event"] for event in yard.events(task=task)] == ["added", "claimed", "done"]


def test_a_killed_process_of_another_kernel_is_dead_after_a_minute_of_silence(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(network) as yard:
        task = yard.add("build").id
        subprocess.run([sys.executable, "-c", KILLED, network], check=False)
        context(yard).kernel = "elsewhere"  # so that no lock is believed
        yard.sweep()
        assert [event["event"] for event in yard.events(task=task)] == ["added", "claimed"]
        later = context(yard).clock.exact() + intents.UNSEEN + 1
        monkeypatch.setattr(type(context(yard).clock), "exact", lambda _: later)
        yard.sweep()
        assert [event["event"] for event in yard.events(task=task)] == ["added", "claimed", "done"]


def test_a_living_process_whose_file_another_machine_has_removed_makes_it_anew(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(network, worker="ada") as yard:
        yard.add("build")
        tag = context(yard).writer.tag
        kept = Path(network, "writers", tag)
        kept.unlink()
        monkeypatch.setattr(context(yard).log, "_period", -1)  # ten seconds later
        monkeypatch.setattr(context(yard).log, "_moment", (-1, ""))  # and so not within the same millisecond
        yard.add("build")
        assert context(yard).writer.tag == tag
        assert b'"event":"added"' in kept.read_bytes()
        page = kept.read_bytes()[intents.ROOM :].split(b"\n")[0].split()[-1].decode()
        assert Path(network, "events", page).exists()
    assert not kept.exists()


def test_an_ending_whose_event_may_be_in_another_machines_cache_is_no_damage(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(network, worker="ada") as yard:
        yard.add("build")
        monkeypatch.setattr(context(yard).log, "append", lambda _: None)
        taken(yard.claim()).done()
        context(yard).log.forget()
    with taskyard.open(network) as other:
        assert other.audit()["findings"] == []
        monkeypatch.setattr("taskyard.stores.directory.fsck.tasks.UNSEEN", -1)
        assert [finding["code"] for finding in other.audit()["findings"]] == ["unlogged_ending"]


def test_the_file_of_a_dead_process_is_held_by_one_who_may_write(network: str) -> None:
    """NFS gives an exclusive lock to those alone who have the file open for writing."""
    with taskyard.open(network) as yard:
        yard.add("build")
        copy = Path(network, "writers", "99999-deaddead")
        shutil.copy(Path(network, "writers", context(yard).writer.tag), copy)
        held = context(yard).disk.lock(str(copy))
        assert os.write(held, b"\n") == 1
        os.close(held)
