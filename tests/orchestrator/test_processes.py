"""`taskyard orchestrate` as processes: killed, stopped and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.orchestrator.loop import LEASE
from tests.conftest import wait_until
from tests.processes import tools
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["directory", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = str(tmp_path / "a yard") if request.param == "directory" else postgres.url()
    taskyard.init(url).close()
    return url


def start(url: str, name: str, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "taskyard", "orchestrate", "--yard", url, "--worker", name, "--json", *more]
    process = subprocess.Popen(words, env=tools.environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    return process


def leads(process: subprocess.Popen[str]) -> bool | None:
    """What it said last about whether it leads; None if it has said nothing since."""
    assert process.stdout
    told: list[Any] = [json.loads(line) for line in process.stdout]
    return told[-1]["leads"] if told else None


def test_a_killed_leader_is_followed_and_a_stopped_one_does_no_harm(url: str) -> None:
    first = start(url, "first")
    wait_until(lambda: leads(first))
    second = start(url, "second")
    assert wait_until(lambda: leads(second) is False)
    os.kill(first.pid, signal.SIGSTOP)
    wait_until(lambda: leads(second))
    with taskyard.open(url) as yard:
        task = yard.add("build", delay=0.2)
        os.kill(first.pid, signal.SIGCONT)
        assert wait_until(lambda: leads(first) is False), "the old leader knows that it is none"
        wait_until(lambda: yard.get(task.id).state == "todo")  # reading wakes nothing: the leader has
        second.kill()
        second.wait()
        wait_until(lambda: leads(first))
        first.send_signal(signal.SIGTERM)
        assert first.wait() == 0
        assert yard.lead(60)["leads"], "a leader that ends in order lets another one lead at once"
        assert yard.audit()["verdict"] == "clean"


def test_once_does_one_round(url: str) -> None:
    with taskyard.open(url) as yard:
        yard.add("build", delay=0.001)
        told = tools.taskyard(url, "orchestrate", "--once").data
        assert told["leads"]
        assert set(told) >= {"leader", "term", "swept", "agents", "lapsed", "assigned", "returned", "refilled"}
        assert yard.lead(60)["leads"]
        stands_by = tools.taskyard(url, "orchestrate", "--once").data
        assert (stands_by["leads"], stands_by["leader"]) == (False, yard.worker)


def test_bad_options_are_refused(url: str) -> None:
    for words in (["--every", "10"], ["--load", "0", "--assign"], ["--accept", "5"]):
        assert tools.taskyard(url, "orchestrate", "--once", *words).code == 2


def test_a_gateway_can_orchestrate_what_it_serves(url: str) -> None:
    words = [sys.executable, "-m", "taskyard", "serve", "--yard", url, "--port", "0", "--orchestrate"]
    with subprocess.Popen(words, env=tools.environment(), stderr=subprocess.PIPE, text=True) as gateway:
        assert gateway.stderr
        lines = gateway.stderr
        wait_until(lambda: "leading" in lines.readline())
        with taskyard.open(url) as yard:
            assert not yard.lead(60)["leads"]
        gateway.send_signal(signal.SIGTERM)
        gateway.communicate()
    with taskyard.open(url) as yard:
        wait_until(lambda: yard.lead(LEASE)["leads"])


def test_nobody_orchestrates_through_a_gateway() -> None:
    answer = tools.taskyard("http://127.0.0.1:1/default", "orchestrate", "--once")
    assert answer.code == 2
    assert "serve --orchestrate" in answer.error["hint"]
