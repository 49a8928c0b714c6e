"""Six agents with the SDK's own client, three of each era, each with another mishap: every task is published once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Thread

import pytest

import taskyard
from taskyard import State
from taskyard.core.ids import short
from tests.conftest import sized, wait_until
from tests.servers import postgres

ROOT = Path(__file__).parent.parent.parent
CREW = [
    ("2026-07-28", "none"),
    ("2026-07-28", "killed"),
    ("2026-07-28", "orphaned"),
    ("2025-11-25", "stopped"),
    ("2025-11-25", "reconnecting"),
    ("2025-11-25", "forgetful"),
]
_LEASE = 10  # seconds, so that the stopped agent's task comes back while the others work


class Running:
    """A scripted agent, and what it has printed."""

    def __init__(self, url: str, era: str, mishap: str, *files: Path) -> None:
        self.mishap = mishap
        words = [sys.executable, "-m", "tests.mcp.scripted", url, era, mishap, *map(str, files)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.lines: list[str] = []
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def held(self) -> str | None:
        """The task in its hands when its mishap comes."""
        return next((line.split()[1] for line in self.lines if line.startswith("holding")), None)

    def did(self) -> list[str]:
        return [line.split()[1] for line in self.lines if line.startswith("did")]

    def ended(self) -> int:
        code = self.process.wait(timeout=100)
        self._reader.join()
        return code


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("store", ["directory", pytest.param("postgresql", marks=pytest.mark.proof)])
@sized("number", 24, 300)
def test_six_agents_with_six_mishaps_publish_every_task_once(
    store: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = str(tmp_path / "yard") if store == "directory" else postgres.url()
    go, end = tmp_path / "go", tmp_path / "end"
    with taskyard.init(url, worker="boss") as yard:
        added = [{"kind": "count", "title": f"Count to {n}", "data": {"n": n}, "lease": _LEASE} for n in range(number)]
        ids = yard.add_many(added)
        crew = [Running(url, era, mishap, go, end) for era, mishap in CREW]
        by = {agent.mishap: agent for agent in crew}
        stopped = by["stopped"]
        wait_until(lambda: all(agent.held() for agent in crew))
        frozen = [*children(stopped.process.pid), stopped.process.pid]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        by["killed"].process.kill()
        go.touch()
        try:
            wait_until(lambda: yard.counts()["done"] == number)
        finally:  # a server that stands still would outlive a test that fails
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        wait_until(lambda: len(yard.report(str(stopped.held())).stale_results) == 1)
        end.touch()
        assert {agent.mishap: agent.ended() for agent in crew} == {
            mishap: -signal.SIGKILL if mishap == "killed" else 0 for _, mishap in CREW
        }
        assert Counter(name for agent in crew for name in agent.did()) == Counter(map(short, ids))
        assert [yard.get(id).result for id in ids] == [{"n": n} for n in range(number)]
        assert {yard.get(id).state for id in ids} == {State.DONE}
        told = Counter(event["task"] for event in yard.events(event="done", limit=10_000))
        assert told == Counter(ids)
    total: Counter[str] = Counter()
    for agent in crew:
        total += Counter(json.loads(agent.lines[-1]) if agent.mishap != "killed" else {})
    calls, tokens = total["calls"] / total["tasks"], total["characters"] / 4 / total["tasks"]
    with capsys.disabled():
        sys.stderr.write(f"\n{store}: {number} tasks, {calls:.2f} calls and {tokens:.0f} tokens a task\n")
    assert calls < 2.5  # two, and what the mishaps cost
    assert tokens < 300
