"""`alive`: health checks find out a worker, a janitor or a gateway that lives but does not reach its yard."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.worker import Worker, heartbeats
from taskyard.worker import run as run_module
from taskyard.worker.alive_file import AliveFile
from tests.conftest import wait_until
from tests.processes import tools
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Answer


def grow_old(file: Path) -> None:
    """Make the last sign an hour old."""
    hour_ago = time.time() - 3600
    os.utime(file, (hour_ago, hour_ago))


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start commands that are ended with the test."""
    begun: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        begun.append(
            subprocess.Popen(
                [*tools.COMMAND, *words],
                env=tools.environment(TASKYARD=str(tmp_path / "yard")),
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_a_file_of_now_is_alive_and_an_old_or_missing_one_is_not(run: Callable[..., Answer], place: Path) -> None:
    assert run("alive", "sign").code == 1
    file = AliveFile(str(place / "sign"))
    answer = run("alive", "sign", "--json")
    assert (answer.code, answer.data["alive"], answer.data["age"]) == (1, False, None)
    assert "has not answered" in answer.data["why"]
    file.sign()
    answer = run("alive", "sign", "--json")
    assert (answer.code, answer.data["alive"], answer.data["why"]) == (0, True, None)
    grow_old(place / "sign")
    assert run("alive", "sign").out.startswith("not alive: its last sign of life is 36")
    assert run("alive", "sign", "--within", "7200").code == 0
    later = time.time() + 3600
    os.utime(place / "sign", (later, later))
    assert "ahead of the clock" in run("alive", "sign").out
    file.close()
    assert run("alive", "sign").code == 1


def test_a_sign_is_given_again_after_its_file_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskyard.worker.alive_file._EVERY", 0.0)
    file = AliveFile(str(tmp_path / "sign"))
    (tmp_path / "sign").unlink()
    file.sign()
    assert time.time() - (tmp_path / "sign").stat().st_mtime < 3600


@pytest.mark.parametrize("words", [("work", "--alive", "none/sign", "--", "true"), ("janitor", "--alive", "sign")])
def test_a_file_that_cannot_be_is_refused(words: tuple[str, ...], run: Callable[..., Answer], yard: Path) -> None:
    assert run(*words).code == 2


def test_a_worker_whose_yard_is_away_is_not_alive_until_it_is_back(
    started: Callable[..., subprocess.Popen[str]], run: Callable[..., Answer], tmp_path: Path
) -> None:
    yard, sign = tmp_path / "yard", tmp_path / "sign"
    opened = taskyard.init(yard, durability="fast")
    worker = started("work", "--alive", str(sign), "--", "mv", str(yard), str(tmp_path / "away"))
    wait_until(lambda: run("alive", str(sign)).code == 0)
    opened.add("move")
    opened.close()
    assert worker.stderr is not None
    assert "until it is back" in worker.stderr.readline()
    wait_until(lambda: time.time() - sign.stat().st_mtime > 1)  # it gives one sign a second at most
    grow_old(sign)
    assert run("alive", str(sign)).code == 1
    (tmp_path / "away").rename(yard)
    wait_until(lambda: run("alive", str(sign)).code == 0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert not sign.exists()


def test_a_janitor_is_alive_while_it_sweeps(
    started: Callable[..., subprocess.Popen[str]], run: Callable[..., Answer], tmp_path: Path
) -> None:
    taskyard.init(tmp_path / "yard", durability="fast").close()
    janitor = started("janitor", "--every", "0.05", "--alive", str(tmp_path / "sign"))
    wait_until(lambda: run("alive", str(tmp_path / "sign")).code == 0)
    grow_old(tmp_path / "sign")
    wait_until(lambda: run("alive", str(tmp_path / "sign")).code == 0)
    janitor.send_signal(signal.SIGTERM)
    assert janitor.wait(60) == 0


@pytest.mark.parametrize("late", [False, True], ids=["on time", "overdue"])
def test_a_busy_worker_gives_signs_only_if_its_heartbeats_are_on_time(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, going_on = threading.Event(), threading.Event()
    sign = tmp_path / "sign"

    def overdue(_: heartbeats.ThreadBeats) -> float:
        if going_on.is_set():
            asked.set()
        return 3600.0 if late else 0.0

    monkeypatch.setattr(heartbeats.ThreadBeats, "overdue", overdue)
    monkeypatch.setattr(run_module, "_SIGN_EVERY", 0.0)
    with taskyard.init("memory:busy-signs") as yard:
        yard.add("long")
        worker = Worker(yard)

        @worker.handles("long")
        def _(_: object) -> None:
            going_on.set()
            os.utime(sign, (0, 0))
            assert asked.wait(60)
            if not late:
                wait_until(lambda: sign.stat().st_mtime > 0)
            else:
                assert sign.stat().st_mtime == 0

        assert worker.run(drain=True, alive=str(sign))["done"] == 1


def test_a_look_that_is_not_taken_is_overdue() -> None:
    pulse = heartbeats.Heartbeats(lambda _: None, lambda _: None)
    assert pulse.overdue() == 0.0
    pulse.add("a-claim", 0.03)
    wait_until(lambda: pulse.overdue() > 0)
    pulse.turn()  # which finds that the claim was dropped
    pulse.remove("a-claim")
    assert pulse.overdue() == 0.0


def test_one_file_does_not_speak_for_several_processes(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard") as yard:
        worker = Worker(yard)
        worker.handles()(print)
        with pytest.raises(taskyard.Invalid, match="exclude each other"):
            worker.run(processes=True, alive=str(tmp_path / "sign"))


def test_a_gateway_is_alive_while_its_yard_answers(run: Callable[..., Answer], tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        gateway = Running({"default": yard})
        url = gateway.url()
        assert run("alive", url).code == 0
        assert run("alive", url, "--within", "5").code == 2
        assert "404" in run("alive", f"{url.rpartition('/')[0]}/other").out
        (tmp_path / "yard").rename(tmp_path / "away")
        wait_until(lambda: "503" in run("alive", url).out)
        gateway.stop()
    assert "does not answer" in run("alive", url).out
