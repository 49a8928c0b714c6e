"""process_loop: a command for each task, a heartbeat beside it, and an ending for each way in which it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.worker.guard import descendants
from tests.conftest import is_alive, taken, wait_until
from tests.directory.stories import check_log, check_places
from tests.processes import tools
from tests.sh.shells import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard import Yard
    from tests.sh.shells import Shell

TELL = """printf '%s\\n' "$TASKYARD" "$TASKYARD_CLAIM" "$TASKYARD_TASK" "$TASKYARD_FENCE" "$TASKYARD_WORKDIR" "$TASKYARD_WORKER"
cat"""


@pytest.fixture
def begin(sh: Shell) -> Iterator[Callable[..., int]]:
    """Starts a loop and gives its process id; whatever is left of it is ended with the test."""
    started = []

    def call(*argv: str, **env: str) -> int:
        started.append(sh.start("process_loop", *argv, env=env))
        return started[-1].pid

    yield call
    for process in started:
        process.kill()
        process.communicate()


def test_the_command_is_told_of_its_task_and_has_it_on_its_input(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", {"n": 1})
    said = sh.run("process_loop", "--once", "--", "sh", "-c", TELL, env={"TASKYARD_WORKER": "Ada L"})
    assert (said.code, said.err) == (0, "")
    report = yard.report(task.id)
    assert (report.task.state, report.task.worker) == ("done", "Ada L")
    workdir = report.history[0]["workdir"]
    told = Path(workdir, "stdout.log").read_text().splitlines()
    assert told[:6] == [yard.url, report.history[0]["claim"], task.id, "1", workdir, "Ada L"]
    assert json.loads(told[6])["data"] == {"n": 1}
    check_log(yard)


def test_a_result_is_left_in_the_workdir_and_nothing_else_is_kept_without_need(sh: Shell, yard: Yard) -> None:
    first, second = yard.add("build"), yard.add("build")
    words = (
        "process_loop",
        "--once",
        "sh",
        "-c",
        '[ "$TASKYARD_TASK" != "$0" ] || echo "[1]" >"$TASKYARD_WORKDIR/result.json"',
    )
    for _ in range(2):
        assert sh.run(*words, first.id).code == 0
    assert (yard.get(first.id).result, yard.get(second.id).result) == ([1], None)
    assert yard.report(second.id).history[0]["workdir"] is None
    assert sh.run(*words, first.id).code == 3, "nothing is ready"


def test_exit_codes_decide(sh: Shell, yard: Yard) -> None:
    tools.settle(yard.url, backoff=1000, backoff_cap=1e6)
    kinds = {"done": 0, "later": 75, "never": 65, "error": 7, "killed": 0}
    tasks = {kind: yard.add(kind, {"code": code}).id for kind, code in kinds.items()}
    script = 'read -r task; case $task in *killed*) kill -9 $$;; esac; code=${task##*\'"code":\'}; echo oops >&2; exit "${code%%\\}*}"'
    for _ in kinds:
        assert sh.run("process_loop", "--once", "--", "sh", "-c", script).code == 0
    with taskyard.open(yard.url) as fresh:
        found = {kind: fresh.get(id) for kind, id in tasks.items()}
        assert {kind: (str(task.state), task.attempts) for kind, task in found.items()} == {
            "done": ("done", 0),
            "later": ("waiting", 0),
            "never": ("failed", 1),
            "error": ("waiting", 1),
            "killed": ("waiting", 1),
        }
        assert (found["never"].error, found["error"].error) == ("exit 65: oops", "exit 7: oops")
        assert found["killed"].error == "killed by signal 9"
        check_log(fresh)


def test_a_result_that_is_no_json_is_an_error(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", max_attempts=1)
    assert sh.run("process_loop", "--once", "sh", "-c", 'echo "{" >"$TASKYARD_WORKDIR/result.json"').code == 0
    failed = yard.get(task.id)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.startswith("its result cannot be kept")


def test_drain_says_how_many_tasks_failed_for_good(sh: Shell, yard: Yard) -> None:
    yard.add("build", max_attempts=1)
    yard.add("build")
    yard.add("test")
    script = "case $TASKYARD_TASK in $0) exit 0 ;; esac; exit 65"
    good = yard.add("build").id
    said = sh.run("process_loop", "--kind", "build", "--drain", "--", "sh", "-c", script, good)
    assert (said.code, "failed for good: 2" in said.err) == (1, True)
    assert (yard.counts()["failed"], yard.counts()["done"], yard.counts()["todo"]) == (2, 1, 1)
    again = sh.run("process_loop", "--kind", "test", "--drain", "true")
    assert (again.code, again.err) == (0, "")


def test_drain_ends_when_nothing_of_its_kinds_is_left(sh: Shell, yard: Yard) -> None:
    tools.settle(yard.url, backoff=0.1)
    task = yard.add("build")
    yard.add("build", max_attempts=1)
    other = yard.add("other")
    script = f'[ "$TASKYARD_FENCE" -gt 1 ] || [ "$TASKYARD_TASK" != {task.id} ]'
    assert sh.run("process_loop", "--kind", "build", "--drain", "--", "sh", "-c", script).code == 0
    assert yard.get(task.id).state == "done"
    assert [entry["outcome"] for entry in yard.report(task.id).history] == ["error", "done"]
    assert yard.get(other.id).state == "todo"
    check_log(yard)


def test_a_script_may_hand_over_a_function(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    said = sh.script(
        'work() { cat >/dev/null; echo "\\"$1 $TASKYARD_TASK\\"" >"$TASKYARD_WORKDIR/result.json"; }\nprocess_loop --once work for'
    )
    assert said.code == 0
    assert yard.get(task.id).result == f"for {task.id}"


def test_it_beats_beside_the_work(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", lease=1)
    said = sh.run("process_loop", "--once", "--", "sleep", "3")
    assert said.code == 0
    assert [entry["outcome"] for entry in yard.report(task.id).history] == ["done"]
    assert yard.get(task.id).fence == 1, "nobody has swept it away meanwhile"


def test_a_sweep_finds_it_alive_while_it_works(yard: Yard, begin: Callable[..., int], tmp_path: Path) -> None:
    task = yard.add("build", lease=1)
    flag = tmp_path / "flag"
    begin("sh", "-c", f"while [ ! -e {flag} ]; do sleep 0.1; done")
    wait_until(lambda: yard.get(task.id).state == "processing")
    end = time.monotonic() + 2.5
    while time.monotonic() < end:  # for two and a half leases
        assert yard.sweep().reaped == 0
        time.sleep(0.05)
    flag.touch()
    wait_until(lambda: yard.get(task.id).state == "done")


def test_a_command_whose_claim_is_lost_is_stopped_with_all_it_started(
    yard: Yard, begin: Callable[..., int], tmp_path: Path
) -> None:
    task = yard.add("build", lease=1)
    pids = tmp_path / "pids"
    begin("sh", "-c", f"sleep 600 & echo $$ $! >{pids}; wait")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    running = [int(pid) for pid in pids.read_text().split()]
    yard.cancel(task.id)
    wait_until(lambda: not any(map(is_alive, running)))
    assert yard.report(task.id).stale_results == []
    other = yard.add("other")
    wait_until(lambda: yard.get(other.id).state == "processing"), "and it goes on"


def test_it_ends_in_order_when_it_is_told_to(yard: Yard, begin: Callable[..., int], tmp_path: Path) -> None:
    task = yard.add("build")
    pids = tmp_path / "pids"
    loop = begin("sh", "-c", f"sleep 600 & echo $$ $! >{pids}; wait")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    os.kill(loop, signal.SIGTERM)
    wait_until(lambda: not is_alive(loop))
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())
    report = yard.report(task.id)
    assert (report.task.state, report.task.attempts) == ("todo", 0)
    assert [entry["outcome"] for entry in report.history] == ["released"]
    check_log(yard)


def test_the_command_of_a_killed_loop_is_stopped_and_beats_no_more(
    yard: Yard, begin: Callable[..., int], tmp_path: Path
) -> None:
    tools.settle(yard.url, sweep_every=1e8)
    task = yard.add("build", lease=3)
    pids = tmp_path / "pids"
    loop = begin("sh", "-c", f"sleep 600 & echo $$ $! >{pids}; wait")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    os.kill(loop, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()))
    assert check_places(yard.url)[task.id][0] == "processing"
    wait_until(lambda: (yard.sweep(), yard.get(task.id).state == "todo")[1])
    claim = taken(yard.claim())
    assert (claim.fence, claim.history[0]["outcome"]) == (3, "crash")


def test_a_killed_script_takes_the_loop_along_that_it_called(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    """In a script that sources the client the loop is a process of its own, which nobody else would end."""
    tools.settle(yard.url, sweep_every=1e8)
    task = yard.add("build", lease=3)
    script, pids = tmp_path / "script.sh", tmp_path / "pids"
    script.write_text(f". \"{CLIENT}\"\nprocess_loop -- sh -c 'sleep 600 & echo $$ $! >{pids}; wait'\n")
    process = subprocess.Popen([*sh.words, str(script)], env=sh.environment())
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    below = [*(descendants(process.pid) or []), *map(int, pids.read_text().split())]
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_alive, below)))
    wait_until(lambda: (yard.sweep(), yard.get(task.id).state == "todo")[1])
    assert yard.report(task.id).history[0]["outcome"] == "crash"


def test_a_command_may_end_its_claim_itself(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    said = sh.script("work() { complete_task; }\nprocess_loop --once work")
    assert (said.code, said.err) == (0, "")
    assert yard.get(task.id).state == "done"
    assert [event["event"] for event in yard.events(task=task.id)] == ["added", "claimed", "done"]


HANDLER = """
. "{client}"
work() {{ sleep 600 & echo $! >"{pids}"; wait; }}
process_loop work
"""


def below(script: int, pid: int) -> int:
    """The loop of a script, which may be a process of its own: the one of its children that this process comes from."""
    while (parent := int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])) != script:
        pid = parent
    return pid


@pytest.mark.parametrize("how", ["told", "killed", "lost"])
def test_what_a_function_has_started_is_stopped_with_it(sh: Shell, yard: Yard, tmp_path: Path, how: str) -> None:
    task = yard.add("build", lease=3)
    script, pids = tmp_path / "script.sh", tmp_path / "pids"
    script.write_text(HANDLER.format(client=CLIENT, pids=pids))
    process = subprocess.Popen([*sh.words, str(script)], env=sh.environment())
    wait_until(lambda: pids.exists() and pids.read_text().strip())
    child = int(pids.read_text())
    if how == "lost":
        yard.cancel(task.id)
    else:
        loop = (descendants(process.pid) or [process.pid])[0]  # the loop is a process of its own
        os.kill(loop if how == "told" else process.pid, signal.SIGTERM if how == "told" else signal.SIGKILL)
        if how == "killed":
            process.wait()
    wait_until(lambda: not is_alive(child))
    process.kill()
    process.wait()


def test_what_a_command_leaves_running_is_stopped(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    task = yard.add("build")
    pids = tmp_path / "pids"
    assert sh.run("process_loop", "--once", "--", "sh", "-c", f"sleep 600 & echo $! >{pids}").code == 0
    assert yard.get(task.id).state == "done"
    wait_until(lambda: not is_alive(int(pids.read_text())))


def test_a_command_that_is_killed_is_told_of_in_the_yard_alone(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", max_attempts=1)
    said = sh.run("process_loop", "--once", "--", "sh", "-c", "kill -s KILL $$")
    assert (said.code, said.err) == (0, "")
    assert yard.get(task.id).error == "killed by signal 9"


def test_a_function_under_set_e_fails_where_it_fails(sh: Shell, yard: Yard) -> None:
    bash = shutil.which("bash")
    for words in [sh.words] + ([[bash]] if bash else []):
        task = yard.add("build", max_attempts=1)
        script = f'set -e; . "{CLIENT}"; build() {{ false; echo reached; }}; process_loop --once build'
        ran = subprocess.run(
            [*words, "-c", script, "script"], env=sh.environment({"PATH": os.environ["PATH"]}), check=False
        )
        assert ran.returncode == 0
        assert yard.get(task.id).state == "failed", words
