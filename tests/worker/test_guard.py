"""A guard and the worker's side of it: what runs behind it ends as it is told to, and leaves no process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.worker import Job
from taskyard.worker.command import Command
from taskyard.worker.guard import descendants
from taskyard.worker.guard_client import Ended, GuardClient, GuardLost
from taskyard.worker.outcome import Ending
from tests.conftest import is_alive, taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from taskyard import Claim

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system has no /proc")

# A family that holds on: it ignores TERM, and one of them leaves its session and its parents.
DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + "/daemon.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + "/daemon.part", sys.argv[1] + "/daemon")
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1] + "/daemon"):
    time.sleep(0.005)
if sys.argv[2] == "stay":
    time.sleep(600)
"""


def run(guarded: GuardClient, *argv: str, **more: Any) -> Ended:
    """Run a command behind the guard."""
    options = {"environment": {}, "stdin": "", "logs": None, "timeout": None, "grace": 5.0, **more}
    guarded.begin(argv, **options)
    return guarded.end()


def beside(work: Callable[[], Ended]) -> Callable[[], Ended | BaseException]:
    """Have it run beside the test; what is given waits for the end."""
    ended: list[Ended | BaseException] = []

    def call() -> None:
        try:
            ended.append(work())
        except GuardLost as error:
            ended.append(error)

    thread = threading.Thread(target=call)
    thread.start()

    def wait() -> Ended | BaseException:
        thread.join(30)
        return ended[0]

    return wait


def guard_of(guarded: GuardClient) -> int:
    """The guard's number."""
    assert guarded._process is not None
    return guarded._process.pid


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Claim]:
    """A claim of a task."""
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build")
        yield taken(yard.claim())


@pytest.fixture
def guarded() -> Iterator[GuardClient]:
    one = GuardClient(None)
    yield one
    one.close()


def test_a_command_gets_its_input_and_gives_its_output(guarded: GuardClient, tmp_path: Path) -> None:
    ended = run(
        guarded, "sh", "-c", "cat; echo $WHO >&2; exit 3", stdin="hello", logs=str(tmp_path), environment={"WHO": "ada"}
    )
    assert (ended.code, ended.stdout, ended.stderr, ended.error, ended.timed_out) == (3, "hello", "ada\n", None, False)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "stdout.log": "hello",
        "stderr.log": "ada\n",
    }


def test_one_guard_runs_command_after_command(guarded: GuardClient) -> None:
    run(guarded, "true")
    first = guard_of(guarded)
    assert [run(guarded, "sh", "-c", f"exit {code}").code for code in (0, 7, 75)] == [0, 7, 75]
    assert guard_of(guarded) == first
    assert descendants(first) == []


def test_a_command_that_reads_nothing_of_a_large_task_is_not_waited_for(guarded: GuardClient) -> None:
    assert run(guarded, "true", stdin="x" * (1 << 20)).code == 0


def test_a_command_that_writes_much_is_neither_stopped_nor_kept_whole(guarded: GuardClient, tmp_path: Path) -> None:
    ended = run(guarded, "sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end", logs=str(tmp_path))
    assert ended.code == 0
    assert ended.stdout.endswith("x\nend\n")
    assert ended.cut
    assert (tmp_path / "stdout.log").stat().st_size < (1 << 20) + 100


def test_a_command_that_closes_its_output_is_waited_for_all_the_same(guarded: GuardClient, tmp_path: Path) -> None:
    ended = run(guarded, "sh", "-c", f"echo bye; exec >&- 2>&-; sleep 0.1; echo there > {tmp_path}/there; exit 4")
    assert (ended.code, ended.stdout) == (4, "bye\n")
    assert (tmp_path / "there").exists()


def test_a_command_that_cannot_be_started_says_why(guarded: GuardClient, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("echo")
    assert "No such file" in str(run(guarded, "no-such-command-anywhere").error)
    assert "Permission denied" in str(run(guarded, str(tmp_path / "plain")).error)
    assert run(guarded, "true").code == 0


def test_a_command_has_the_signals_and_descriptors_of_a_shell_and_no_other(guarded: GuardClient) -> None:
    """An ignored signal or an open descriptor of ours would be handed on to all that it starts."""
    script = "grep SigIgn /proc/self/status; ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> .*/\\1/p' | sort -n | tr '\\n' ' '"
    ended = run(guarded, "sh", "-c", script)
    ignored, descriptors = ended.stdout.split("\n")
    assert int(ignored.split()[1], 16) & ((1 << 1) | (1 << 12) | (1 << 14) | 1) == 0
    assert descriptors.split() == ["0", "1", "2", "3"], "three streams, and that of ls itself"


def test_a_command_that_takes_too_long_is_stopped(guarded: GuardClient) -> None:
    ended = run(guarded, "sleep", "600", timeout=0.1)
    assert (ended.timed_out, ended.code) == (True, -signal.SIGTERM)


def test_a_command_that_writes_without_end_is_stopped_too(guarded: GuardClient) -> None:
    ended = run(guarded, "sh", "-c", "yes & yes & yes", timeout=0.3, grace=0.2)
    assert ended.timed_out


def test_a_stop_says_term_and_a_command_may_use_its_grace(guarded: GuardClient, tmp_path: Path) -> None:
    script = f"trap 'echo clearing; exit 9' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done"
    wait = beside(lambda: run(guarded, "sh", "-c", script))
    wait_until((tmp_path / "up").exists)
    guarded.stop(20)
    ended = wait()
    assert isinstance(ended, Ended)
    assert (ended.code, ended.stdout) == (9, "clearing\n")


def test_a_stopped_process_hears_of_the_stop(guarded: GuardClient) -> None:
    wait = beside(lambda: run(guarded, "sh", "-c", "kill -STOP $$; exit 0"))
    wait_until(lambda: guarded._process is not None and descendants(guard_of(guarded)))
    guarded.stop(20)
    ended = wait()
    assert isinstance(ended, Ended)
    assert ended.code in (0, -signal.SIGTERM)


def test_a_family_that_ignores_term_is_killed_after_the_grace(guarded: GuardClient, tmp_path: Path) -> None:
    wait = beside(lambda: run(guarded, sys.executable, "-c", DAEMON, str(tmp_path), "stay"))
    wait_until((tmp_path / "daemon").exists)
    guarded.stop(0.1)
    ended = wait()
    assert isinstance(ended, Ended)
    assert ended.code == -signal.SIGKILL
    assert not is_alive(int((tmp_path / "daemon").read_text()))
    assert descendants(guard_of(guarded)) == []


def test_daemons_end_with_the_command_that_left_them(guarded: GuardClient, tmp_path: Path) -> None:
    ended = run(guarded, sys.executable, "-c", DAEMON, str(tmp_path), "go")
    assert ended.code == 0
    assert not is_alive(int((tmp_path / "daemon").read_text()))


def test_a_guard_that_was_killed_is_told_of_and_replaced(guarded: GuardClient, tmp_path: Path) -> None:
    wait = beside(lambda: run(guarded, "sh", "-c", f"echo $$ > {tmp_path}/up; exec sleep 600"))
    wait_until(lambda: (tmp_path / "up").exists() and (tmp_path / "up").read_text().endswith("\n"))
    pid = int((tmp_path / "up").read_text())
    os.kill(guard_of(guarded), signal.SIGKILL)
    assert isinstance(wait(), GuardLost)
    wait_until(lambda: not is_alive(pid))
    assert run(guarded, "true").code == 0


def test_a_guard_that_was_killed_between_commands_is_replaced(guarded: GuardClient) -> None:
    run(guarded, "true")
    os.kill(guard_of(guarded), signal.SIGKILL)
    wait_until(lambda: guarded._process is not None and guarded._process.poll() is not None)
    assert run(guarded, "true").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_guard_does_not_hear_what_is_meant_for_its_worker(guarded: GuardClient, number: signal.Signals) -> None:
    run(guarded, "true")
    first = guard_of(guarded)
    os.kill(first, number)
    assert run(guarded, "sh", "-c", "exit 5").code == 5
    assert guard_of(guarded) == first


def test_a_stop_where_nothing_runs_stops_nothing_later(guarded: GuardClient) -> None:
    guarded.stop(0)
    run(guarded, "true")
    guarded.stop(0)
    assert run(guarded, "sh", "-c", "sleep 0.05; exit 5").code == 5


def test_a_closed_guard_stops_what_runs(tmp_path: Path) -> None:
    one = GuardClient(None)
    wait = beside(lambda: run(one, sys.executable, "-c", DAEMON, str(tmp_path), "stay", grace=0.1))
    wait_until((tmp_path / "daemon").exists)
    pid, socket = guard_of(one), one._socket
    assert socket is not None
    socket.shutdown(2)  # what the kernel does when the worker dies
    assert isinstance(wait(), GuardLost)
    assert not is_alive(pid)
    assert not is_alive(int((tmp_path / "daemon").read_text()))


def test_a_stop_before_the_command_was_begun_stops_it_all_the_same(guarded: GuardClient, held: Claim) -> None:
    """A claim may be lost, or the worker told to stop, at any moment; a lost one is not looked at again."""
    job = Job(held)
    job.stop(5, lost=True)
    Command(["sleep", "600"]).perform(job, guarded)


def test_a_stop_is_told_before_the_next_command_is_begun(held: Claim) -> None:
    """Or it would stop that one, which nobody meant."""
    job, over = Job(held), threading.Event()

    def finish() -> None:
        job.stopped_by(None)
        over.set()

    finisher = threading.Thread(target=finish)

    def stop(grace: float) -> None:
        finisher.start()
        assert not over.wait(0.05)

    job.stopped_by(stop)
    job.stop(5, lost=True)
    finisher.join()


def test_what_a_killed_guard_left_is_killed_wherever_it_went(guarded: GuardClient, held: Claim, tmp_path: Path) -> None:
    job = Job(held)
    command = Command([sys.executable, "-c", DAEMON, str(tmp_path), "stay"])
    thread = threading.Thread(target=lambda: endings.append(command.perform(job, guarded).ending))
    endings: list[Ending] = []
    thread.start()
    wait_until((tmp_path / "daemon").exists)
    os.kill(guard_of(guarded), signal.SIGKILL)
    thread.join(30)
    assert endings == [Ending.CRASHED]
    assert not is_alive(int((tmp_path / "daemon").read_text()))
