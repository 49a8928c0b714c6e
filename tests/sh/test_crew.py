"""Four shell workers and four Python workers on one yard, killed at random: every task is published once, none is lost."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import wait_until
from tests.directory.stories import check_log, check_places
from tests.processes import tools
from tests.sh import shells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASKS = 2000
KILLS = 16
EACH = 4

# Says every claim and every done that it was told of, each in one write, to a file of its own.
SHELL_WORKER = """
. "$1"
while :; do
    claim_task >/dev/null 2>&1 || { sleep 0.05; continue; }
    printf 'claim %s\\n' "$TASK_HANDLE" >>"$2"
    printf '{"by": "%s"}\\n' "$TASK_HANDLE" >"$2.result"
    case $((n = n + 1)) in
        *3) complete_task "$TASK_HANDLE" 2>/dev/null && printf 'bare %s\\n' "$TASK_HANDLE" >>"$2" ;;
        *7) release_task "$TASK_HANDLE" 2>/dev/null ;;
        *9) fail_task "$TASK_HANDLE" 'not this time' 2>/dev/null ;;
        *) complete_task "$TASK_HANDLE" "$2.result" 2>/dev/null && printf 'done %s\\n' "$TASK_HANDLE" >>"$2" ;;
    esac
done
"""
PYTHON_WORKER = """
import sys, time, taskyard
log = open(sys.argv[2], "a", buffering=1)
with taskyard.open(sys.argv[1]) as yard:
    while True:
        claim = yard.claim(lease=2)
        if claim is None:
            time.sleep(0.02)
            continue
        log.write(f"claim {claim.handle}\\n")
        time.sleep(0.01)  # shells are slower, and should have their share
        try:
            claim.done({"by": claim.handle})
        except taskyard.ClaimLost:
            continue
        log.write(f"done {claim.handle}\\n")
"""


class Crew:
    """Members that are started, killed, and started again."""

    def __init__(self, shell: shells.Shell, folder: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._number = 0
        self.members: list[subprocess.Popen[bytes]] = []

    def start(self, python: bool) -> None:
        self._number += 1
        log = str(self._folder / f"{self._number}.log")
        if python:
            words = [tools.PYTHON, "-c", PYTHON_WORKER, self._shell.yard, log]
            env = tools.environment()
        else:
            words = [*self._shell.words, "-c", SHELL_WORKER, "worker", str(shells.CLIENT), log]
            env = self._shell.environment({"TASKYARD_LEASE": "2"})
        self.members.append(subprocess.Popen(words, env=env))

    def kill(self, position: int) -> None:
        member = self.members[position]
        member.kill()
        member.wait()

    def said(self) -> list[tuple[str, str]]:
        lines = []
        for log in self._folder.glob("*.log"):
            lines += [line.split() for line in log.read_text().splitlines()]
        return [(verb, handle) for verb, handle in lines]


@pytest.fixture(params=shells.NAMES)
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    place = str(tmp_path / "yard")
    taskyard.init(place, durability="fast").close()
    tools.settle(place, max_attempts=1000, max_crashes=1000, backoff=0.05, backoff_cap=0.2, sweep_every=0.5)
    logs = tmp_path / "logs"
    logs.mkdir()
    crew = Crew(shells.shell(request.param, tmp_path, place), logs)
    yield crew
    for position in range(len(crew.members)):
        crew.kill(position)


def test_every_task_is_published_once_and_none_is_lost(crew: Crew, tmp_path: Path) -> None:
    place = str(tmp_path / "yard")
    with taskyard.open(place) as yard:
        kinds = ("build", "docs.html", "漢字")
        ids = yard.add_many([{"kind": kinds[n % 3], "data": n, "priority": 4 + n % 3} for n in range(TASKS)])
        for number in range(2 * EACH):
            crew.start(python=number % 2 == 0)
        for number in range(KILLS):
            time.sleep(random.uniform(0.05, 0.4))  # when it dies must not matter
            crew.kill(number)
            crew.start(python=number % 2 == 0)
        wait_until(lambda: (yard.sweep(), yard.counts()["done"] == TASKS)[1], timeout=240)
        for position in range(len(crew.members)):
            crew.kill(position)
        yard.sweep()
        found = check_places(place)  # each in one place
        assert sorted(found) == sorted(ids)
        said = crew.said()
        claims = [handle for verb, handle in said if verb == "claim"]
        assert len(set(claims)) == len(claims), "no claim comes twice"
        fences = Counter(handle.rsplit(".", 1)[0] for handle in claims)
        assert max(fences.values()) == 1, "no fence comes twice"
        published = {handle.split(".")[0]: (verb, handle) for verb, handle in said if verb != "claim"}
        assert len(published) == sum(verb != "claim" for verb, _ in said), "no task was done twice"
        for id, (verb, handle) in published.items():
            task = yard.get(id)
            assert f"{id}.{task.fence}." == handle[: len(f"{id}.{task.fence}.")]
            assert task.result == (None if verb == "bare" else {"by": handle})
        by_shells = [log.with_suffix("").read_text() for log in (tmp_path / "logs").glob("*.result")]
        assert sum(log.count("done ") for log in by_shells) > TASKS / 50, "the shells have done their share"
        done = [event["task"] for event in yard.events(event=["done"], limit=100_000)]
        assert max(Counter(done).values()) == 1
        assert len(done) == TASKS, "what was killed before it could be logged is logged by the sweep"
        check_log(yard)
