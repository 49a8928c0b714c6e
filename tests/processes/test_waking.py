"""Waking across processes: by a copied file, by a death, after a fork, without inotify; and at what cost."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.log.watch import Watch
from taskyard.stores.wakeup import Wakeup
from tests.conftest import is_listening, taken, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from taskyard.core.task import Standing

LONG, SOON = 60.0, 15.0

WAIT = """
import json, sys, taskyard
with taskyard.open(sys.argv[1]) as yard:
    claim = yard.claim(wait=60)
    print(json.dumps({"data": claim.task.data, "ctypes": "ctypes" in sys.modules}))
"""


@pytest.fixture
def waiter(place: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a process that waits for a task and says its data; it listens by the time it is handed over."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str = WAIT, listens: bool = True) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [tools.PYTHON, "-c", script, place], stdout=subprocess.PIPE, text=True, env=tools.environment()
        )
        started.append(process)
        if listens:
            wait_until(lambda: is_listening(process.pid), timeout=SOON)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=SOON)
    return json.loads(out)


@pytest.mark.parametrize("way", ["cp", "mv", "slowly"])
def test_a_file_put_into_the_drop_box_wakes(place: str, waiter: Callable[..., Any], tmp_path: Path, way: str) -> None:
    process = waiter()
    file = tmp_path / "order.json"
    file.write_text('{"kind": "build", "data": {"n": 1}}')
    if way == "slowly":
        with open(f"{place}/todo/order.json", "w") as target:
            for letter in file.read_text():
                target.write(letter)
                target.flush()
    else:
        subprocess.run([way, str(file), f"{place}/todo/"], check=True)
    assert answer(process)["data"] == {"n": 1}


def test_a_command_wakes_a_command(place: str, waiter: Callable[..., Any]) -> None:
    process = subprocess.Popen(
        [*tools.COMMAND, "claim", "--wait", "60", "--json", "--yard", place],
        stdout=subprocess.PIPE,
        text=True,
        env=tools.environment(),
    )
    wait_until(lambda: is_listening(process.pid), timeout=SOON)
    id = tools.taskyard(place, "add", "build").data["task"]["id"]
    assert answer(process)["data"]["task"]["id"] == id


def test_only_whoever_waits_pays_for_it(place: str) -> None:
    """A command that does not wait loads nothing of what waiting needs."""
    probe = "import sys, taskyard; taskyard.open(sys.argv[1]).claim(); print(*sys.modules)"
    done = subprocess.run(
        [tools.PYTHON, "-c", probe, place], capture_output=True, text=True, check=True, env=tools.environment()
    )
    assert {"ctypes", "select", "taskyard.stores.wakeup"} & set(done.stdout.split()) == set()


def test_a_yard_on_a_full_machine_is_looked_at_now_and_then(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users have 128 inotify instances by default; the next one gets EMFILE."""

    def refused(_: Disk) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Disk, "watcher", refused)
    _woken_by_an_add(place)


def test_a_yard_that_cannot_be_watched_is_looked_at_now_and_then(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Disk, "watch", refused)
    before = len(os.listdir("/proc/self/fd"))
    _woken_by_an_add(place)
    assert len(os.listdir("/proc/self/fd")) == before, "what cannot be watched with is let go of"


def _woken_by_an_add(place: str) -> None:
    with taskyard.open(place) as yard, taskyard.open(place) as other:
        claims: list[Any] = []
        thread = threading.Thread(target=lambda: claims.append(yard.claim(wait=LONG)))
        thread.start()
        id = other.add("build").id
        thread.join(SOON)
        assert taken(claims[0]).task.id == id


def test_a_bell_that_cannot_be_had_is_tried_for_again(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bell = Wakeup(Watch(Disk(), place, local=True))
    with monkeypatch.context() as patched:
        patched.setattr(Disk, "watcher", lambda _: (_ for _ in ()).throw(OSError(errno.EMFILE, "")))
        heard = bell.listen()
        assert bell.wait(LONG, heard) != heard, "without a watch it is soon worth a look"
    heard = (heard[0], 30)  # after so many naps
    assert bell.wait(LONG, heard) != heard, "what was had at last begins with a look"
    heard = bell.listen()
    assert bell.wait(0.02, heard) == heard, "with one, nothing has happened"
    bell.close()


def test_naps_grow_where_nobody_rings(place: str) -> None:
    bell = Wakeup(Watch(Disk(), place, local=False))
    naps = [bell._pause(number) for number in (0, 5, 10, 1000)]
    assert naps[0] <= 0.005
    assert naps == sorted(naps)
    assert 1.5 <= naps[-1] <= 2.0
    assert Wakeup(Watch(Disk(), place, local=True))._pause(1000) <= 1.0


@pytest.mark.damages("a worker of a short name is made up")
def test_the_death_of_a_worker_rings(place: str) -> None:
    """Its file in workers/ is open for writing as long as it lives; the folder may be made after the waiter began."""
    bell = Wakeup(Watch(Disk(), place, local=True))
    heard = bell.listen()
    if not os.path.exists(f"{place}/workers"):
        os.mkdir(f"{place}/workers")
        assert bell.wait(SOON, heard) != heard
    script = "import sys; file = open(sys.argv[1], 'w'); print('ready', flush=True); sys.stdin.read()"
    worker = subprocess.Popen(
        [tools.PYTHON, "-c", script, f"{place}/workers/ada-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    while (after := bell.wait(0.05, heard)) != heard:  # until nothing rings any more
        heard = after
    worker.kill()
    assert bell.wait(SOON, heard) != heard
    worker.communicate()
    bell.close()


def test_a_yard_that_is_moved_away_and_back_is_listened_to_again(place: str) -> None:
    with taskyard.open(place) as yard:
        assert yard.claim(wait=0.01) is None
        os.rename(place, f"{place}.away")
        with contextlib.suppress(taskyard.Unavailable):
            yard.claim(wait=0.05)
        os.rename(f"{place}.away", place)
        claims: list[Any] = []
        thread = threading.Thread(target=lambda: claims.append(yard.claim(wait=LONG)))
        thread.start()
        wait_until(lambda: is_listening(os.getpid()))
        with taskyard.open(place) as other:
            id = other.add("build").id
        thread.join(SOON)
        assert taken(claims[0]).task.id == id


FORKED = """
import json, os, sys, taskyard
yard = taskyard.open(sys.argv[1])
assert yard.claim(kinds=["nothing"], wait=0.01) is None   # the parent listens before it forks
if os.fork():
    claim = yard.claim(kinds=["parent"], wait=60)
    os.wait()
    print(json.dumps(claim.task.kind))
else:
    claim = yard.claim(kinds=["child"], wait=60)
    os._exit(0 if claim.task.kind == "child" else 1)
"""


def test_parent_and_forked_child_are_both_woken(place: str, waiter: Callable[..., Any]) -> None:
    process = waiter(FORKED)
    with taskyard.open(place) as yard:
        yard.add("child")
        wait_until(lambda: yard.counts()["processing"] == 1, timeout=SOON)
        yard.add("parent")
    assert answer(process) == "parent"


def test_nothing_is_left_open(place: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with taskyard.open(place) as yard:
            assert yard.claim(wait=0.001) is None
    for _ in range(5):
        yard = taskyard.open(place)
        assert yard.claim(wait=0.001) is None
        yard.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not is_listening(os.getpid())


def test_a_close_ends_the_waits_of_other_threads_and_lets_go_of_everything(place: str) -> None:
    bell = Wakeup(Watch(Disk(), place, local=True))
    heard = bell.listen()
    ended: list[bool] = []
    threads = [threading.Thread(target=lambda: ended.append(bell.wait(LONG, heard) != heard)) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: bell._waiting == 3)
    bell.close()
    for thread in threads:
        thread.join(SOON)
    assert ended == [True] * 3
    assert bell._pipe is None
    assert bell.source.descriptors() == []


STORM = """
import sys, taskyard
with taskyard.open(sys.argv[1]) as yard:
    print("ready", flush=True)
    while True:
        yard.add_many([{"kind": "other"}] * 50)
        while (claim := yard.claim(kinds=["other"])) is not None:
            claim.done()
"""


def test_a_storm_of_what_nobody_here_wants_costs_a_waiter_little(place: str, waiter: Callable[..., Any]) -> None:
    storm = waiter(STORM, listens=False)
    assert storm.stdout.readline() == "ready\n"
    with taskyard.open(place) as yard:
        yard.claim(kinds=["mine"], wait=0.05)
        begin, spent = time.monotonic(), _cpu()
        assert yard.claim(kinds=["mine"], wait=2) is None
        share = (_cpu() - spent) / (time.monotonic() - begin)
        assert share < 0.25, f"{share:.0%} of a core for nothing"
        threading.Timer(0.05, lambda: taskyard.open(place).add("mine")).start()
        assert yard.claim(kinds=["mine"], wait=LONG) is not None


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def test_an_idle_waiter_does_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(place) as yard:
        yard.policy.sweep_every = 1e6  # nor does its turn to sweep come
        yard.claim(wait=0.01)
        looks: list[int] = []
        overdue = yard._store.upkeep.overdue

        def counted(limit: int) -> list[Standing]:
            looks.append(limit)
            return overdue(limit)

        monkeypatch.setattr(yard._store.upkeep, "overdue", counted)
        assert yard.claim(wait=1) is None
        assert len(looks) == 2, "once before it sleeps, and once before it says that nothing is ready"
