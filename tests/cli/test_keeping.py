"""`claim --keep PID`: a keeper renews the lease while that process lives, and then is gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import State, init
from taskyard.core.processes import Process
from taskyard.doors.cli import keeper
from tests.conftest import taken, wait_until

from .test_processes import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from taskyard import Yard

    from .conftest import Answer

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system has no /proc")
LEASE = 0.6


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = str(tmp_path / "shared")
    init(path, durability="fast").close()
    return path


@pytest.fixture
def opened(url: str) -> Iterator[Yard]:
    with init(url, worker="boss") as yard:
        yield yard


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process to keep a claim for."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def claim(url: str, pid: int, *more: str) -> Any:
    """Claim with a keeper, from a process of its own that is gone when this returns."""
    argv = [*COMMAND, "claim", "--json", "--lease", str(LEASE), "--keep", str(pid), "--worker", "ada", *more]
    done = subprocess.run(argv, capture_output=True, env=environment(url), check=False, timeout=60)
    assert done.stderr == b""
    return json.loads(done.stdout)


def keepers(handle: str) -> list[int]:
    """The processes that keep this claim."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if handle.encode() in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue
    return found


def test_a_kept_claim_outlives_its_lease_until_its_process_ends(
    url: str, opened: Yard, sleeper: subprocess.Popen[bytes]
) -> None:
    id = opened.add("build").id
    data = claim(url, sleeper.pid)["data"]
    [keeper] = wait_until(lambda: keepers(data["claim"]))
    end = time.monotonic() + 3 * LEASE
    while time.monotonic() < end:
        opened.sweep()
        assert opened.get(id).state is State.PROCESSING
        time.sleep(0.05)
    assert os.getsid(keeper) == keeper
    assert os.readlink(f"/proc/{keeper}/cwd") == "/"
    assert {os.readlink(f"/proc/{keeper}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}
    sleeper.send_signal(signal.SIGKILL)  # and not waited for: a zombie is dead too
    wait_until(lambda: opened.sweep().reaped)
    wait_until(lambda: not keepers(data["claim"]))
    assert opened.get(id).state is State.TODO


def test_a_keeper_ends_with_the_claim_and_leaves_no_mark_in_the_log(
    url: str, opened: Yard, sleeper: subprocess.Popen[bytes]
) -> None:
    id = opened.add("build").id
    handle = claim(url, sleeper.pid)["data"]["claim"]
    wait_until(lambda: keepers(handle))
    opened.held(handle).done("fine")
    wait_until(lambda: not keepers(handle))
    assert [event["event"] for event in opened.events(task=id)] == ["added", "claimed", "done"]


def test_a_keeper_of_a_lost_claim_does_not_keep_the_next_one(
    url: str, opened: Yard, sleeper: subprocess.Popen[bytes]
) -> None:
    id = opened.add("build").id
    handle = claim(url, sleeper.pid)["data"]["claim"]
    wait_until(lambda: keepers(handle))
    opened.held(handle).release()
    again = taken(opened.claim(id))
    wait_until(lambda: not keepers(handle))
    assert again.holds()


def test_whoever_reads_the_answer_does_not_wait_for_the_keeper(
    url: str, opened: Yard, sleeper: subprocess.Popen[bytes]
) -> None:
    opened.add("build")
    script = f'out=$("{sys.executable}" -m taskyard claim --keep {sleeper.pid} 3>&1); echo "$out"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=environment(url), check=True, timeout=30)
    handle = done.stdout.split()[1].decode()
    assert keepers(handle)
    opened.held(handle).release()


def test_a_process_that_is_not_there_exits_2_before_anything_is_claimed(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    with subprocess.Popen(["true"]) as gone:
        pass
    for pid in (str(gone.pid), "0", "-1", "x", "", "99999999999999999999"):
        error = ask("claim", f"--keep={pid}", code=2)
        assert error["code"] == "invalid"
        assert "$$" in error["hint"]
    assert ask("show", id)["task"]["fence"] == 0


def test_nothing_ready_starts_no_keeper(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "start", lambda *_: pytest.fail("there is nothing to keep"))
    assert ask("claim", "--keep", str(os.getpid()), code=3)["code"] == "nothing_ready"


def test_a_memory_yard_cannot_be_kept_from_outside(run: Callable[..., Answer]) -> None:
    answer = run("claim", "--keep", str(os.getpid()), "--yard", "memory:", "--json")
    assert (answer.code, answer.error["code"]) == (2, "invalid")


def test_a_keeper_that_cannot_be_started_is_a_warning(
    run: Callable[..., Answer], ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("add", "build")

    def broken(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(keeper, "start", broken)
    answer = run("claim", "--keep", str(os.getpid()), "--json")
    assert answer.data["task"]["state"] == "processing"
    assert "heartbeat" in answer.err


def test_a_process_is_told_from_another_of_the_same_number(sleeper: subprocess.Popen[bytes]) -> None:
    watched = keeper.watched(str(sleeper.pid))
    assert watched.started.isdigit()
    assert watched.lives()
    assert not Process(sleeper.pid, str(int(watched.started) - 1)).lives()
    sleeper.kill()
    wait_until(lambda: not watched.lives())
    assert sleeper.poll() is not None or not watched.lives()


def test_a_keeper_tries_again_while_the_yard_is_away(opened: Yard, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from taskyard import Claim, Unavailable

    opened.add("build")
    held = taken(opened.claim(lease=0.3))
    beats: list[str] = []

    def heartbeat(self: Claim) -> str:
        beats.append(self.handle)
        if len(beats) < 3:
            raise Unavailable
        held.done()
        return ""

    monkeypatch.setattr(Claim, "heartbeat", heartbeat)
    keeper.keep(url, "ada", held.handle, keeper.watched(str(os.getpid())))
    assert beats == [held.handle] * 3


def test_a_keeper_beats_at_once_when_its_machine_wakes_up(
    opened: Yard, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskyard import Claim

    opened.add("build")
    held = taken(opened.claim(lease=1800))
    now, beats = [1000.0], []

    def heartbeat(self: Claim) -> str:
        beats.append(now[0])
        if len(beats) == 2:
            held.done()
        return ""

    def slept(_: float) -> None:
        now[0] += 3600  # while the monotonic clock stood still

    monkeypatch.setattr(Claim, "heartbeat", heartbeat)
    monkeypatch.setattr(keeper, "ticks", lambda: now[0])
    monkeypatch.setattr("time.sleep", slept)
    keeper.keep(url, "ada", held.handle, keeper.watched(str(os.getpid())))
    assert beats == [4600.0, 8200.0]
