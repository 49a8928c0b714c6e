"""The command line as process 1 of a container: signals reach it, orphans are waited for, exit codes pass."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import taskyard
from tests.conftest import wait_until
from tests.processes import tools

_STAND_IN = "import os, sys, time; from taskyard.doors.cli import first_process; first_process.stand_in(); "


def first(*command: str, yard: Path | None = None) -> subprocess.Popen[str]:
    """Start a command as process 1 of its own pid namespace, with a /proc of its own."""
    return subprocess.Popen(
        [*tools.unshared("--pid", "--fork", "--kill-child", "--mount-proc"), *command],
        env=tools.environment(**({} if yard is None else {"TASKYARD": str(yard)})),
        stdout=subprocess.PIPE,
        text=True,
    )


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", _STAND_IN + text)


def process_one(outside: subprocess.Popen[str]) -> int:
    """The pid, as seen from here, of the process that unshare has started."""
    children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
    return int(wait_until(lambda: children.read_text().split())[0])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out = process.communicate(timeout=tools.PATIENCE)[0]
    return process.returncode, out.strip()


def test_the_command_runs_in_a_child_and_its_exit_code_is_passed() -> None:
    assert ended(first(*script("print(os.getppid()); sys.stdout.flush(); os._exit(7)"))) == (7, "1")


def test_a_command_that_dies_by_a_signal_ends_as_shells_say_it() -> None:
    assert ended(first(*script("os.kill(os.getpid(), 9)")))[0] == 128 + signal.SIGKILL


def test_orphans_are_waited_for() -> None:
    watch = (
        "import subprocess; orphan = int(subprocess.check_output(['sh', '-c', 'sleep 0 > /dev/null & echo $!']));"
        "end = time.monotonic() + 60\n"
        "while os.path.exists(f'/proc/{orphan}') and time.monotonic() < end: time.sleep(0.01)\n"
        "print(os.path.exists(f'/proc/{orphan}'))"
    )
    assert ended(first(*script(watch))) == (0, "False")


@pytest.mark.parametrize(
    ("words", "code"),
    [(("work", "--", "true"), 0), (("janitor", "--every", "1"), 0), (("claim", "--wait", "600"), 143)],
    ids=["work", "janitor", "claim"],
)
def test_sigterm_ends_process_one(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    yard = tmp_path / "yard"
    taskyard.init(yard, durability="fast").close()
    process = first(*tools.COMMAND, *words, yard=yard)
    one = process_one(process)
    # Its child is there once it has handlers, or passes on what comes before the child has its own.
    wait_until(lambda: Path(f"/proc/{one}/task/{one}/children").read_text().split())
    os.kill(one, signal.SIGTERM)
    assert ended(process)[0] in (code, 143)  # 143: the signal came before the command's own handler
