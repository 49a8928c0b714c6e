"""Workers that are killed, stopped, robbed and started again: each task in one pair of hands, and no process left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State
from taskyard.worker.guard import descendants
from tests.conftest import SOON, is_alive, wait_until
from tests.processes import tools
from tests.worker.test_guard import DAEMON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard import Yard

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system has no /proc")
HANDS = (tools.PYTHON, str(Path(__file__).with_name("hands.py")))


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    tools.settle(place, backoff=0.05, backoff_cap=0.1)
    with taskyard.open(place, worker="boss") as opened:
        yield opened


@pytest.fixture
def start(yard: Yard) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts workers, and ends what is left of them."""
    started: list[subprocess.Popen[str]] = []

    def call(*argv: str, yard: str = yard.url) -> subprocess.Popen[str]:
        words = argv if argv[0] == tools.PYTHON else (*tools.COMMAND, "work", *argv)
        started.append(
            subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tools.environment(TASKYARD=yard)
            )
        )
        return started[-1]

    yield call
    for process in started:
        below = descendants(process.pid) or []
        process.kill()
        process.communicate()
        for pid in below:
            wait_until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]


def up(path: Path) -> int:
    """The number that somebody writes into this file."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def works(path: Path, more: str = "exec sleep 600") -> list[str]:
    """A command that writes its number into a file."""
    return ["--", "sh", "-c", f"echo $$ > {path}; {more}"]


def family(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(descendants(pid) or [])]


@pytest.mark.parametrize("turn", range(3))
def test_10_a_killed_workers_task_is_started_by_another_at_once_and_not_before_its_command_is_gone(
    yard: Yard, start: Callable[..., Any], tmp_path: Path, turn: int
) -> None:
    id = yard.add("build").id
    first = start(*works(tmp_path / "one", "trap '' TERM; while :; do sleep 0.01; done"))
    old = up(tmp_path / "one")
    # Whoever comes second writes whether the first was still there when it began.
    second = start(
        "--max-tasks",
        "1",
        "--",
        "sh",
        "-c",
        f"kill -0 {old} 2>/dev/null && echo 1 > {tmp_path}/two || echo 0 > {tmp_path}/two",
    )
    wait_until(lambda: len(list(Path(yard.url, "workers").iterdir())) == 2)
    first.kill()
    assert up(tmp_path / "two") == 0
    second.communicate(timeout=SOON)
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.DONE, 1)


def test_no_process_of_a_killed_worker_is_left(yard: Yard, start: Callable[..., Any], tmp_path: Path) -> None:
    yard.add("build")
    worker = start("--", tools.PYTHON, "-c", DAEMON, str(tmp_path), "stay")
    wait_until((tmp_path / "daemon").exists)
    everybody = family(worker.pid)
    assert int((tmp_path / "daemon").read_text()) in everybody
    worker.kill()
    wait_until(lambda: not any(map(is_alive, everybody)))


def test_while_a_process_of_the_old_attempt_lives_nobody_gets_the_task(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    id = yard.add("build").id
    worker = start(*works(tmp_path / "up", "trap '' TERM; sleep 600; sleep 600"))
    command = up(tmp_path / "up")
    worker.kill()
    claim = None
    while claim is None:
        claim = yard.claim()
        assert claim is None or not is_alive(command)
    assert claim.task.id == id


@pytest.mark.parametrize("victim", ["command", "guard"])
def test_a_task_that_kills_its_command_or_guard_fails_at_its_cap_and_the_worker_goes_on(
    yard: Yard, start: Callable[..., Any], victim: str
) -> None:
    poisoned = yard.add("poison").id
    script = "test {kind} = poison && kill -9 $WHO; exit 0".replace("{kind}", '"$0"').replace(
        "$WHO", "$$" if victim == "command" else "$PPID"
    )
    worker = start("--drain", "--", "sh", "-c", script, "{kind}")
    other = yard.add("build").id
    err = worker.communicate(timeout=SOON)[1]
    assert (worker.returncode, err) == (1, "")  # one has failed for good
    task = yard.get(poisoned)
    assert (task.state, task.attempts, yard.get(other).state) == ("failed", 3, "done")
    outcome = "error" if victim == "command" else "crash"
    assert [entry["outcome"] for entry in yard.report(poisoned).history] == [outcome] * 3


def test_a_poisoned_task_that_kills_its_workers_fails_at_the_cap_and_does_not_take_the_crew_down(
    yard: Yard, start: Callable[..., Any]
) -> None:
    """The command kills the guard's parent, which is the worker."""
    poisoned = yard.add("poison", priority=0).id
    others = yard.add_many([{"kind": "build"}] * 6)
    script = 'test "$0" = poison && kill -9 $(awk "{print \\$4}" /proc/$PPID/stat); sleep 0.05'
    crew = [start("--drain", "--", "sh", "-c", script, "{kind}") for _ in range(4)]
    codes = []
    for member in crew:
        member.communicate(timeout=SOON)
        codes.append(member.returncode)
    assert sorted(codes) == [-9, -9, -9, 0]
    task = yard.get(poisoned)
    assert (task.state, task.attempts) == (State.FAILED, 3)
    assert {entry["outcome"] for entry in yard.report(poisoned).history} == {"crash"}
    assert {yard.get(id).state for id in others} == {"done"}


def test_a_stopped_worker_loses_its_claim_and_continued_it_stops_its_command_and_publishes_nothing(
    place: str, start: Callable[..., Any], tmp_path: Path
) -> None:
    tools.settle(place, lease=0.6)
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build").id
        worker = start(
            "--max-tasks",
            "1",
            *works(tmp_path / "up", "trap 'echo stopped; exit 0' TERM; while :; do sleep 0.01; done"),
        )
        command = up(tmp_path / "up")
        worker.send_signal(signal.SIGSTOP)
        claim = wait_until(yard.claim)
        claim.heartbeat()
        worker.send_signal(signal.SIGCONT)
        wait_until(lambda: not is_alive(command))
        assert "lost" in worker.communicate(timeout=SOON)[0]
        claim.done("mine")
        report = yard.report(id)
        assert (report.task.state, report.task.result, report.stale_results) == (State.DONE, "mine", [])


def test_a_worker_that_is_killed_in_its_container_gives_its_task_back_at_once_to_another(
    yard: Yard, tmp_path: Path
) -> None:
    """Two containers on one volume: other pids, other hosts, one kernel. The lease is a minute, and nobody waits for it."""

    def started(host: str, script: str) -> subprocess.Popen[bytes]:
        words = [*tools.container(host), *tools.COMMAND, "work", "--once", "--", "sh", "-c", script]
        return subprocess.Popen(words, env=tools.environment(TASKYARD=yard.url), stdout=subprocess.DEVNULL)

    id = yard.add("build").id
    first = started("one", f"echo 1 > {tmp_path}/up; exec sleep 600")
    up(tmp_path / "up")
    assert started("two", "true").wait() == 3, "it lives, and keeps its task"
    first.kill()
    first.wait()
    wait_until(lambda: started("two", "true").wait() == 0)
    report = yard.report(id)
    assert report.task.state is State.DONE
    assert [entry["outcome"] for entry in report.history] == ["crash", "done"]


def test_the_command_of_a_stopped_worker_is_stopped_before_another_begins(
    place: str, start: Callable[..., Any], tmp_path: Path
) -> None:
    """Its guard sees that it stands still: two agents must not work on one task, and nobody may continue the first."""
    tools.settle(place, lease=6)
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build").id
        worker = start("--max-tasks", "1", *works(tmp_path / "up"))
        command = up(tmp_path / "up")
        worker.send_signal(signal.SIGSTOP)
        try:
            claim = wait_until(yard.claim)
            assert not is_alive(command)
            claim.done("mine")
        finally:
            worker.send_signal(signal.SIGCONT)
        assert "lost" in worker.communicate(timeout=SOON)[0]
        assert yard.get(id).result == "mine"


def test_a_worker_that_is_stopped_for_a_moment_goes_on_as_if_nothing_had_been(
    place: str, start: Callable[..., Any], tmp_path: Path
) -> None:
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build", lease=4).id
        worker = start(
            "--max-tasks", "1", *works(tmp_path / "up", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
        )
        up(tmp_path / "up")
        worker.send_signal(signal.SIGSTOP)
        time.sleep(1.2)  # more than one look of the guard, less than its patience
        worker.send_signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        assert worker.communicate(timeout=SOON)[0].splitlines()[-1] == "1 done"
        assert yard.get(id).attempts == 0


def test_a_handler_that_holds_the_interpreter_for_longer_than_its_lease_keeps_its_claim(
    place: str, start: Callable[..., Any]
) -> None:
    tools.settle(place, lease=0.5)
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build").id
        worker = start(*HANDS, "hold_the_interpreter", place, "2")
        wait_until(lambda: yard.get(id).state is State.PROCESSING)
        while worker.poll() is None:
            yard.sweep()
            assert yard.get(id).fence == 1
            time.sleep(0.02)
        task = yard.get(id)
        assert (task.state, task.fence) == (State.DONE, 1)
        assert task.result > 1


def companion_of(worker: subprocess.Popen[str]) -> int:
    """The process that beats for a worker with handlers in Python."""

    def find() -> int | None:
        for pid in descendants(worker.pid) or ():
            with contextlib.suppress(OSError):
                if b"heartbeat_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None

    return wait_until(find)


def test_a_stopped_worker_with_handlers_loses_its_claim_too(
    place: str, start: Callable[..., Any], tmp_path: Path
) -> None:
    """Its companion could go on beating; it looks whether the worker runs."""
    tools.settle(place, lease=0.6)
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build").id
        worker = start(*HANDS, "wait_for_file", place, str(tmp_path / "go"))
        wait_until(lambda: yard.get(id).state is State.PROCESSING)
        companion_of(worker)
        worker.send_signal(signal.SIGSTOP)
        claim = wait_until(yard.claim)
        claim.done("mine")
        (tmp_path / "go").touch()
        worker.send_signal(signal.SIGCONT)
        worker.communicate(timeout=SOON)
        assert yard.get(id).result == "mine"


def test_a_companion_that_was_killed_is_replaced(place: str, start: Callable[..., Any], tmp_path: Path) -> None:
    tools.settle(place, lease=6)
    with taskyard.open(place, worker="boss") as yard:
        id = yard.add("build").id
        worker = start(*HANDS, "wait_for_file", place, str(tmp_path / "go"))
        for _ in range(2):
            companion = companion_of(worker)
            os.kill(companion, signal.SIGKILL)
            wait_until(lambda companion=companion: companion_of(worker) != companion)  # type: ignore[misc]
        [held] = (Path(place) / "processing").iterdir()
        before = held.stat().st_mtime_ns
        wait_until(lambda: held.stat().st_mtime_ns > before)  # the new companion beats
        assert yard.get(id).fence == 1
        (tmp_path / "go").touch()
        worker.communicate(timeout=SOON)
        assert yard.get(id).state is State.DONE


def test_a_killed_worker_with_handlers_leaves_no_companion_and_its_task_is_free_at_once(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    id = yard.add("build").id
    worker = start(*HANDS, "wait_for_file", yard.url, str(tmp_path / "go"))
    companion = companion_of(worker)
    worker.kill()
    wait_until(lambda: not is_alive(companion))
    claim = wait_until(yard.claim)
    assert (claim.task.id, claim.task.attempts) == (id, 1)


def test_a_worker_started_again_under_its_name_takes_over_what_its_dead_incarnation_held(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    yard.add_many([{"kind": "build", "priority": 0}] * 3)
    first = start("--worker", "ada", *works(tmp_path / "up"))
    up(tmp_path / "up")
    id = yard.find(state="processing")[0].id
    below = family(first.pid)
    first.kill()
    wait_until(lambda: not any(map(is_alive, below)))
    second = start("--worker", "ada", "--max-tasks", "1", "--", "true")
    second.communicate(timeout=SOON)
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.DONE, 1), "its own task first, and the crash is counted"


def test_two_living_workers_of_one_name_never_rob_each_other(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    id = yard.add("build").id
    first = start(
        "--worker",
        "ada",
        "--max-tasks",
        "1",
        *works(tmp_path / "up", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"),
    )
    up(tmp_path / "up")
    assert (
        start("--worker", "ada", "--idle-exit", "0.3", "--", "true").communicate(timeout=SOON)[0] == "nothing to do\n"
    )
    (tmp_path / "go").touch()
    first.communicate(timeout=SOON)
    task = yard.get(id)
    assert (task.state, task.fence, task.attempts) == (State.DONE, 1, 0)


def test_a_worker_whose_yard_is_moved_away_keeps_its_result_and_stores_it_when_it_is_back(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    ids = yard.add_many([{"kind": "build"}] * 2)
    worker = start(
        "--drain", *works(tmp_path / "up", f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo '{{\"ok\": 1}}'")
    )
    up(tmp_path / "up")
    os.rename(yard.url, tmp_path / "away")
    (tmp_path / "go").touch()
    assert worker.stderr is not None
    assert "trying again until it is back" in worker.stderr.readline()
    os.rename(tmp_path / "away", yard.url)
    out, err = worker.communicate(timeout=SOON)
    assert worker.returncode == 0
    assert out.splitlines()[-1] == "2 done"
    assert err == "taskyard: warning: the yard is back\n"
    assert [(yard.get(id).state, yard.get(id).result, yard.get(id).attempts) for id in ids] == [
        ("done", {"ok": 1}, 0)
    ] * 2


def test_an_idle_worker_whose_yard_is_away_says_so_once_and_goes_on_when_it_is_back(
    yard: Yard, start: Callable[..., Any], tmp_path: Path
) -> None:
    worker = start("--max-tasks", "1", "--", "true")
    wait_until(lambda: list(Path(yard.url, "workers").iterdir()))
    os.rename(yard.url, tmp_path / "away")
    assert worker.stderr is not None
    assert "trying again" in worker.stderr.readline()
    os.rename(tmp_path / "away", yard.url)
    yard.add("build")
    out, err = worker.communicate(timeout=SOON)
    assert (worker.returncode, out.splitlines()[-1]) == (0, "1 done")
    assert err.count("\n") == 1


def test_a_stop_while_the_yard_is_away_ends_the_worker(yard: Yard, start: Callable[..., Any], tmp_path: Path) -> None:
    worker = start("--", "true")
    wait_until(lambda: list(Path(yard.url, "workers").iterdir()))
    os.rename(yard.url, tmp_path / "away")
    assert worker.stderr is not None
    worker.stderr.readline()
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=SOON)
    assert worker.returncode == 0
    os.rename(tmp_path / "away", yard.url)


def test_processes_that_are_killed_are_replaced_and_the_task_that_kills_them_fails(
    yard: Yard, start: Callable[..., Any]
) -> None:
    poisoned = yard.add("poison", "die").id
    others = yard.add_many([{"kind": "build"}] * 6)
    worker = start(*HANDS, "processes", yard.url, "2", "drain")
    out, err = worker.communicate(timeout=SOON)
    assert (worker.returncode, err) == (0, "")
    assert "tally [('done', 6)]" in out
    assert yard.get(poisoned).state is State.FAILED
    assert {yard.get(id).state for id in others} == {"done"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_their_parent_and_hand_back_what_they_held(
    yard: Yard, start: Callable[..., Any], number: signal.Signals
) -> None:
    ids = yard.add_many([{"kind": "build", "data": "hold"}] * 2)
    worker = start(*HANDS, "processes", yard.url, "2")
    assert worker.stdout is not None
    pids = [int(worker.stdout.readline().split()[1]) for _ in ids]
    everybody = family(worker.pid)
    assert set(pids) <= set(everybody)
    worker.send_signal(number)
    wait_until(lambda: not any(map(is_alive, everybody)))
    yard.sweep()
    assert {yard.get(id).state for id in ids} <= {"todo", "done"}
    assert yard.counts()["processing"] == 0


def test_processes_that_are_told_to_stop_while_they_start_do_stop(yard: Yard, start: Callable[..., Any]) -> None:
    for wait in (0.0, 0.02, 0.05):
        worker = start(*HANDS, "processes", yard.url, "3")
        wait_until(lambda worker=worker: len(descendants(worker.pid) or ()) >= 2)  # type: ignore[misc]
        time.sleep(wait)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=SOON)
        assert worker.returncode == 0


@pytest.mark.parametrize("with_functions", [False, True], ids=["commands", "functions"])
def test_a_killed_workers_task_comes_back_while_all_others_are_busy(
    yard: Yard, start: Callable[..., subprocess.Popen[str]], with_functions: bool
) -> None:
    never = f"{yard.url}/never"
    how = (*HANDS, "wait_for_file", yard.url, never) if with_functions else ("--worker",)
    rest = () if with_functions else ("--", "sleep", "600")
    tools.settle(yard.url, sweep_every=0.2)
    lost, kept = (yard.add("build", lease=3600).id for _ in range(2))  # a heartbeat every 20 minutes, which sweeps too
    killed, busy = (start(*how, name, *rest) for name in ("ada", "bob"))
    folder = Path(yard.url) / "processing"
    wait_until(lambda: len(os.listdir(folder)) == 2)
    holder = "ada" if any(name.startswith(lost) and ".ada-" in name for name in os.listdir(folder)) else "bob"
    (killed if holder == "ada" else busy).kill()
    wait_until(lambda: not any(name.startswith(lost) for name in os.listdir(folder)))
    assert [name[:21] for name in os.listdir(folder)] == [kept]


def test_a_command_that_says_done_keeps_its_folder_until_it_ends(tmp_path: Path) -> None:
    place = str(tmp_path / "yard")
    script = f'{tools.IN_SHELL} done; echo later > "$TASKYARD_WORKDIR/kept.txt"'
    with taskyard.init(place, worker="ada", durability="fast") as yard:
        id = yard.add("build").id
        worker = taskyard.Worker(yard)
        worker.command(["sh", "-c", script])
        worker.run(once=True)
        assert yard.get(id).state == "done"
        kept = [path.read_text() for path in Path(place).glob("attempts/*/*/*/kept.txt")]
        assert kept == ["later\n"]
