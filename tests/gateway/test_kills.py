"""Gateways that are killed or end: nothing is lost, and workers go on by themselves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Unavailable
from tests.conftest import SOON, wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path

TASKS = 120


@pytest.fixture(params=["directory", pytest.param("postgresql", marks=pytest.mark.proof)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new yard that gateways serve."""
    url = str(tmp_path / "yard") if request.param == "directory" else postgres.url()
    taskyard.init(url, durability="fast" if request.param == "directory" else None).close()
    return url


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


def serve(place: str, port: int) -> subprocess.Popen[str]:
    """A gateway that answers by now."""
    process = subprocess.Popen(
        [sys.executable, "-m", "taskyard", "--yard", place, "serve", "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert f"http://127.0.0.1:{port}/default serves" in process.stderr.readline()
    with taskyard.open(f"http://127.0.0.1:{port}") as yard:
        wait_until(lambda: _answers(yard))
    return process


def _answers(yard: taskyard.Yard) -> bool:
    try:
        yard.paused()
    except Unavailable:
        return False
    return True


class Crew:
    """Threads that add and do tasks, and try again when no gateway answers."""

    def __init__(self, url: str) -> None:
        self.done: list[str] = []
        self.outages = 0
        self._url = url
        self._threads = [threading.Thread(target=self._add)]
        self._threads += [threading.Thread(target=self._work, args=(f"w{number}",)) for number in range(4)]
        for thread in self._threads:
            thread.start()

    def _add(self) -> None:
        with taskyard.open(self._url, worker="adder") as yard:
            for number in range(TASKS):
                while True:
                    try:
                        yard.add("build", number, key=f"task {number}")
                        break
                    except Unavailable:
                        self.outages += 1

    def _work(self, name: str) -> None:
        with taskyard.open(self._url, worker=name) as yard:
            while len(self.done) < TASKS:
                try:
                    # A server may carry out the claim of a killed gateway after the same was asked of another: a lease ends that.
                    claim = yard.claim(wait=0.5, lease=20)
                except Unavailable:
                    self.outages += 1
                    continue
                while claim is not None:
                    try:
                        claim.done(name)
                        self.done.append(claim.id)
                        break
                    except Unavailable:
                        self.outages += 1

    def join(self) -> None:
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()


def logged(yard: taskyard.Yard) -> list[str]:
    return [event["task"] for event in yard.events(event="done", limit=10_000)]


def check(place: str, crew: Crew) -> None:
    assert len(crew.done) == len(set(crew.done)) == TASKS
    with taskyard.open(place) as yard:
        assert yard.counts() == {**dict.fromkeys(yard.counts(), 0), "done": TASKS}
        # What a killed gateway could not log any more, a sweep logs for it.
        wait_until(lambda: (yard.sweep(), sorted(logged(yard)) == sorted(crew.done))[1])
        assert yard.audit()["verdict"] == "clean"


def test_a_gateway_that_is_killed_and_started_again_loses_nothing(place: str) -> None:
    port = free_port()
    process = serve(place, port)
    crew = Crew(f"http://127.0.0.1:{port}/default")
    for done in (TASKS // 4, TASKS // 2):
        wait_until(lambda most=done: len(crew.done) >= most)  # type: ignore[misc]
        process.kill()
        process.wait()
        process = serve(place, port)
    crew.join()
    process.kill()
    process.wait()
    check(place, crew)


def test_of_two_gateways_one_may_be_killed_and_nobody_notices(place: str) -> None:
    ports = (free_port(), free_port())
    first, second = (serve(place, port) for port in ports)
    crew = Crew("http://" + ",".join(f"127.0.0.1:{port}" for port in ports))
    wait_until(lambda: len(crew.done) >= TASKS // 4)
    first.kill()
    crew.join()
    second.kill()
    first.wait()
    second.wait()
    assert crew.outages == 0
    check(place, crew)


def test_a_gateway_that_is_asked_to_end_closes_its_yards(tmp_path: Path) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    port = free_port()
    process = serve(place, port)
    with taskyard.open(f"http://127.0.0.1:{port}") as yard:
        yard.add("build")
    assert os.listdir(f"{place}/writers"), "a yard that is at work has its file there"
    process.terminate()
    process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGTERM
    assert not os.listdir(f"{place}/writers")
