"""Measure how soon the next orchestrator leads when the leader is killed, and when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import taskyard
from bench.yards import say
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Collection

ROUNDS = int(os.environ.get("TASKYARD_BENCH_LEADERS", "10"))
_PATIENCE = 30.0


def report(folder: str) -> None:
    """Print the middle and the longest time without a leader, on a directory and in PostgreSQL."""
    say("orchestrator", f"seconds until the next one leads, {ROUNDS} times each, three of them running")
    with Server() as server:
        for name, url in (("directory", f"{folder}/led"), ("postgresql", server.url("led"))):
            taskyard.init(url).close()
            for how in (signal.SIGKILL, signal.SIGSTOP):
                found = sorted(_rounds(url, how))
                print(
                    f"  {name:12} leader {how.name:8} middle {found[len(found) // 2]:.1f} s, longest {found[-1]:.1f} s"
                )


def _rounds(url: str, how: signal.Signals) -> list[float]:
    """Hurt the leader again and again; another one takes its place in the crew."""
    crew = {f"boss-{number}": _start(url, f"boss-{number}") for number in range(3)}
    found = []
    with taskyard.open(url, worker="watcher") as yard:
        try:
            for number in range(3, 3 + ROUNDS):
                leader = _leader(yard, crew)
                begin = time.monotonic()
                os.kill(crew[leader].pid, how)
                _leader(yard, crew.keys() - {leader})
                found.append(time.monotonic() - begin)
                _end(crew.pop(leader))
                crew[f"boss-{number}"] = _start(url, f"boss-{number}")
        finally:
            for process in crew.values():
                _end(process)
    return found


def _leader(yard: taskyard.Yard, crew: Collection[str]) -> str:
    """Return who leads, once that is one of these; to ask does not take the lead."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        told = yard.lead(_PATIENCE)
        if told["leads"]:
            yard.resign()  # nobody led yet
        elif told["leader"] in crew:
            return str(told["leader"])
        time.sleep(0.02)
    raise TimeoutError(json.dumps(told))


def _start(url: str, name: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "taskyard", "orchestrate", "--yard", url, "--worker", name]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
