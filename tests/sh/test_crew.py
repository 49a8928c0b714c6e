"""Four shell workers and four Python workers on one yard, killed at random: every task is published once, none is lost."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.proof import History
from tests.conftest import sized, wait_until
from tests.directory.stories import check_log, check_places
from tests.processes import tools
from tests.processes.crew import history, recorded_yard
from tests.sh import shells

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_KILL = 125  # tasks
EACH = 4

# Writes down what it asks for and what it is told, each in one write, to a history of its own; it has no clock to tell the time by.
SHELL_WORKER = """
. "$1"
log=$2/shell-$$.jsonl
note() { printf "$@" >>"$log"; }
note '{"v":1,"process":"shell-%s","worker":"%s","clock":"shell-%s"}\\n' $$ "$TASKYARD_WORKER" $$
while :; do
    n=$((n + 1))
    note '{"n":%s,"ask":"claim"}\\n' $n
    if claim_task >/dev/null 2>&1; then note '{"n":%s,"told":{"claims":["%s"]}}\\n' $n "$TASK_HANDLE"
    else note '{"n":%s,"told":{"claims":[]}}\\n' $n; sleep 0.05; continue; fi
    printf '{"by":"%s"}\\n' "$TASK_HANDLE" >"$log.result"
    verb='done' result='"result":"null",'
    case $n in
        *3) ;;
        *7) verb=release result= ;;
        *9) verb=fail result= ;;
        *) result="\\"result\\":\\"{\\\\\\"by\\\\\\":\\\\\\"$TASK_HANDLE\\\\\\"}\\"," ;;
    esac
    n=$((n + 1))
    note '{"n":%s,%s"ask":"%s","claim":"%s"}\\n' $n "$result" $verb "$TASK_HANDLE"
    case $verb$result in
        done*null*) complete_task "$TASK_HANDLE" 2>/dev/null ;;
        release) release_task "$TASK_HANDLE" 2>/dev/null ;;
        fail) fail_task "$TASK_HANDLE" 'not this time' 2>/dev/null ;;
        *) complete_task "$TASK_HANDLE" "$log.result" 2>/dev/null ;;
    esac
    case $? in
        0) note '{"n":%s,"told":{}}\\n' $n ;;
        4) note '{"n":%s,"refused":"claim_lost"}\\n' $n ;;
        *) note '{"n":%s,"refused":"internal"}\\n' $n ;;
    esac
done
"""
PYTHON_WORKER = """
import sys, time, taskyard
from taskyard.proof import HistoryWriter, RecordedYard
opened = taskyard.open(sys.argv[1])
with RecordedYard(opened, HistoryWriter(sys.argv[2], opened.worker)) as yard:
    while True:
        claim = yard.claim(lease=2)
        if claim is None:
            time.sleep(0.02)
            continue
        time.sleep(0.01)  # shells are slower, and should have their share
        try:
            claim.done({"by": claim.handle})
        except taskyard.ClaimLost:
            continue
"""


class Crew:
    """Members that are started, killed, and started again."""

    def __init__(self, shell: shells.Shell) -> None:
        self._shell = shell
        self._folder = history(shell.yard)
        self._number = 0
        self.members: list[subprocess.Popen[bytes]] = []

    def start(self, python: bool) -> None:
        self._number += 1
        if python:
            words = [tools.PYTHON, "-c", PYTHON_WORKER, self._shell.yard, self._folder]
            env = tools.environment()
        else:
            words = [*self._shell.words, "-c", SHELL_WORKER, "worker", str(shells.CLIENT), self._folder]
            env = self._shell.environment({"TASKYARD_LEASE": "2", "TASKYARD_WORKER": f"shell-{self._number}"})
        self.members.append(subprocess.Popen(words, env=env))

    def kill(self, position: int) -> None:
        member = self.members[position]
        member.kill()
        member.wait()


@pytest.fixture(params=shells.NAMES)
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    place = str(tmp_path / "yard")
    taskyard.init(place, durability="fast").close()
    tools.settle(place, max_attempts=999, max_crashes=1000, backoff=0.05, backoff_cap=0.2, sweep_every=0.5)
    crew = Crew(shells.shell(request.param, tmp_path, place))
    yield crew
    for position in range(len(crew.members)):
        crew.kill(position)


def is_noted(place: str) -> bool:
    """Whether a killed shell's note stands: what it had started, a `mv` say, may outlive it for a moment, and holds that open."""
    return any(note.read_text().split("\n")[0] for note in Path(place, "writers").glob("*.sh"))


@sized("kills", 3, 16)
def test_every_task_is_published_once_and_none_is_lost(crew: Crew, tmp_path: Path, kills: int) -> None:
    tasks = kills * PER_KILL
    place = str(tmp_path / "yard")
    with recorded_yard(place) as yard:
        kinds = ("build", "docs.html", "漢字")
        ids = yard.add_many([{"kind": kinds[n % 3], "data": n, "priority": 4 + n % 3} for n in range(tasks)])
        for number in range(2 * EACH):
            crew.start(python=number % 2 == 0)
        for number in range(kills):
            time.sleep(random.uniform(0.05, 0.4))  # when it dies must not matter
            crew.kill(number)
            crew.start(python=number % 2 == 0)
        wait_until(lambda: (yard.sweep(), yard.counts()["done"] == tasks)[1], timeout=240)
        for position in range(len(crew.members)):
            crew.kill(position)
        wait_until(lambda: (yard.sweep(), not is_noted(place))[1])
    assert sorted(check_places(place)) == sorted(ids)  # each in one place
    tools.judge(place, drained=True, log=False)
    by_shells = [op for op in History.load(history(place)) if op.worker.startswith("shell-") and op.verb == "done"]
    assert sum(op.answer is not None for op in by_shells) > tasks / 50, "the shells have done their share"
    with taskyard.open(place) as yard:
        done = [event["task"] for event in yard.events(event=["done"], limit=100_000)]
        assert max(Counter(done).values()) == 1
        assert len(done) == tasks, "what was killed before it could be logged is logged by the sweep"
        check_log(yard)
