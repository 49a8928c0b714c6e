"""What a dead process had in mind is logged for it, unless it was another's move and that one is about to log it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.log import intents

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from taskyard.yard import Yard


def added(yard: Yard, id: str) -> list[dict[str, Any]]:
    return [event for event in yard.events(limit=1_000) if (event["task"], event["event"]) == (id, "added")]


def unlogged(yard: Yard, monkeypatch: Any) -> tuple[str, bytes]:
    """A task that is in its place, and whose adder has not come to log it yet; with what it is going to log."""
    log = yard._store._context.log  # type: ignore[attr-defined]
    lines: list[bytes] = []
    with monkeypatch.context() as patch:
        patch.setattr(log, "append", lines.append)
        id = yard.add("build", {"n": 1}).id
    return id, b"".join(lines)


def test_a_move_that_a_living_process_is_about_to_log_is_not_logged_for_a_dead_one(
    tmp_path: Path, monkeypatch: Any
) -> None:
    root = tmp_path / "yard"
    taskyard.init(str(root)).close()
    with taskyard.open(str(root), worker="ada") as ada, taskyard.open(str(root), worker="eve") as eve:
        id, line = unlogged(ada, monkeypatch)
        dead = root / "writers" / "99999-deaddead"
        shutil.copy(root / "writers" / ada._store._context.writer.tag, dead)  # type: ignore[attr-defined]
        eve.sweep()
        assert added(eve, id) == []
        assert dead.exists()
        ada._store._context.log.append(line)  # type: ignore[attr-defined]
        eve.sweep()
        assert [event["by"] for event in added(eve, id)] == ["ada"]
        assert not dead.exists()


def test_a_move_that_only_dead_processes_had_in_mind_is_logged_once(tmp_path: Path, monkeypatch: Any) -> None:
    root = tmp_path / "yard"
    taskyard.init(str(root)).close()
    with taskyard.open(str(root), worker="ada") as ada, taskyard.open(str(root), worker="eve") as eve:
        id, _ = unlogged(ada, monkeypatch)
        note = root / "writers" / ada._store._context.writer.tag  # type: ignore[attr-defined]
        for name in ("99998-deaddead", "99999-deaddead"):
            shutil.copy(note, root / "writers" / name)
        ada._store._context.log.forget()  # type: ignore[attr-defined]
        eve.sweep()
        assert len(added(eve, id)) == 1
        assert not list((root / "writers").glob("*-deaddead"))


THREADS = 8
CREW = """
import os, sys, threading, taskyard
yard = taskyard.open(sys.argv[1], worker="ada")
log, disk = yard._store._context.log, yard._store._context.disk
claims = [yard.claim() for _ in range(int(sys.argv[2]))]
said = threading.Semaphore(0)

def stand_still(descriptor, line):
    said.release()
    threading.Event().wait()

def work(claim):
    claim.done()

type(disk).write = staticmethod(stand_still)
for claim in claims:
    threading.Thread(target=work, args=(claim,), daemon=True).start()
for _ in claims:
    said.acquire()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_what_every_thread_of_a_killed_process_had_in_mind_is_logged(tmp_path: Path, durability: str) -> None:
    root = tmp_path / "yard"
    with taskyard.init(str(root), durability=durability) as yard:
        ids = set(yard.add_many([{"kind": "build"}] * THREADS))
        subprocess.run([sys.executable, "-c", CREW, str(root), str(THREADS)], check=False, timeout=60)
        assert yard.counts()["done"] == THREADS
        yard.sweep()
        logged = [event["task"] for event in yard.events(limit=1_000) if event["event"] == "done"]
        assert sorted(logged) == sorted(ids)
        yard.sweep()
        assert len(yard.events(limit=1_000)) == 3 * THREADS, "and once"
        assert yard.audit()["findings"] == []


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_threads_that_come_and_go_share_a_few_slots(tmp_path: Path, durability: str) -> None:
    root = tmp_path / "yard"
    with taskyard.init(str(root), durability=durability) as yard:
        writer = yard._store._context.writer  # type: ignore[attr-defined]
        yard.add("build")
        for _ in range(50):
            thread = threading.Thread(target=yard.add, args=("build",))
            thread.start()
            thread.join()
        assert (root / "writers" / writer.tag).stat().st_size <= 2 * intents.SIZE


def test_of_two_threads_that_had_the_same_move_in_mind_it_is_logged_once(tmp_path: Path) -> None:
    root = tmp_path / "yard"
    with taskyard.init(str(root), worker="ada") as yard:
        task = yard.add("build").id
        with taskyard.open(str(root), worker="eve") as eve:
            log = eve._store._context.log  # type: ignore[attr-defined]
            together = threading.Barrier(3)  # a thread that has ended would give its slot away

            def intend(event: str) -> None:
                together.wait()
                log.line(0, event, task, "build", 1, None, "eve")
                together.wait()

            with ThreadPoolExecutor(3) as pool:
                list(pool.map(intend, ("cancelled", "reaped", "cancelled")))
            note = root / "writers" / eve._store._context.writer.tag  # type: ignore[attr-defined]
            shutil.copy(note, root / "writers" / "99999-deaddead")
            log.forget()
        yard._store._context.disk.rename(  # type: ignore[attr-defined]
            *(str(path) for path in _cancelled(root, task))
        )
        yard.sweep()
        events = [event for event in yard.events(limit=1_000) if event["task"] == task]
        assert [event["event"] for event in events] == ["added", "cancelled"]


def _cancelled(root: Path, task: str) -> tuple[Path, Path]:
    """The names of the task before and after a cancel that nobody has logged."""
    (name,) = (root / "todo" / "5-build").rglob("*.json")
    (root / "cancelled" / task[:4]).mkdir()
    return name, root / "cancelled" / task[:4] / f"{task}.1.e0.c0.5-build.json"


ADD_AND_DIE = "import os, sys, taskyard; print(taskyard.open(sys.argv[1], worker='ada').add('build').id, flush=True); os.kill(os.getpid(), 9)"


@pytest.mark.parametrize("cut", [1, 5, 90])  # the end of the line alone, so that its fence is still there; and less
@pytest.mark.parametrize("survivor", [True, False])
def test_an_append_that_a_kill_tore_costs_no_event(tmp_path: Path, cut: int, survivor: bool) -> None:
    root = tmp_path / "yard"
    with taskyard.init(str(root), worker="eve") as eve:
        ids = [eve.add("build").id]
        said = subprocess.run([sys.executable, "-c", ADD_AND_DIE, str(root)], check=False, stdout=subprocess.PIPE)
        ids.append(said.stdout.decode().strip())
        (page,) = (root / "events").glob("*.jsonl")
        os.truncate(page, page.stat().st_size - cut)  # as the kernel leaves it where the line crosses a page of memory
        if survivor:
            ids.append(eve.add("build").id)  # behind what is torn, in the same line
            assert len(added(eve, ids[-1])) == 1
        for _ in range(2):
            eve.sweep()
            assert [len(added(eve, id)) for id in ids] == [1] * len(ids)
            assert [event["task"] for event in eve.events(task=ids[1])] == [ids[1]]
        assert page.read_bytes().endswith(b"\n"), "what follows is whole for every reader"
        assert {finding["code"] for finding in eve.audit()["findings"]} <= {"event_torn"}
