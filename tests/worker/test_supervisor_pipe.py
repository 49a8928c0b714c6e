"""A worker that somebody looks after ends with whoever does, also when that is killed without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.worker import supervisor_pipe
from tests.conftest import is_alive, is_listening, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path

SUPERVISOR = """
import os, subprocess, sys, time
held, line = os.pipe()
worker = subprocess.Popen(sys.argv[1:], pass_fds=[held], env={**os.environ, "TASKYARD_LIFELINE": str(held)})
print(worker.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_a_worker_ends_when_its_supervisor_is_killed_even_if_it_stands_still(tmp_path: Path, stopped: bool) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place, durability="fast").close()
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, *tools.COMMAND, "--yard", place, "work", "--", "true"],
        stdout=subprocess.PIPE,
        text=True,
        env=tools.environment(),
    )
    assert supervisor.stdout is not None
    worker = int(supervisor.stdout.readline())
    supervisor.stdout.close()
    wait_until(lambda: is_listening(worker))
    if stopped:
        os.kill(worker, signal.SIGSTOP)
    supervisor.kill()
    supervisor.wait()
    wait_until(lambda: not is_alive(worker))


@pytest.mark.parametrize("named", ["", "x", "-1", "999999", "0x1"])
def test_what_names_no_pipe_is_no_lifeline_and_goes_no_further(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supervisor_pipe.VARIABLE, named)
    assert not supervisor_pipe.hold(lambda: None)
    assert supervisor_pipe.VARIABLE not in os.environ


def test_the_environment_of_a_compose_file_and_a_yard_are_all_that_a_worker_needs(tmp_path: Path) -> None:
    """Each container has its AGENT_ID, and the shared volume; TASKYARD is the only thing to add."""
    place = tmp_path / "shared"
    with taskyard.init(place, durability="fast") as yard:
        (place / "todo" / "task_123.json").write_text(
            '{"taskId": "123-abc-789", "operation": "sharpen", "parameters": {"amount": 0.85}}'
        )
        environment = {"PATH": os.environ["PATH"], "AGENT_ID": "agent-1", "TASKYARD": str(place)}
        tell = 'echo "{\\"agent\\": \\"$AGENT_ID\\", \\"worker\\": \\"$TASKYARD_WORKER\\"}"'
        subprocess.run(
            [*tools.COMMAND, "work", "--drain", "--", "sh", "-c", tell], env=environment, check=True, timeout=60
        )
        (task,) = yard.find(state="done")
        whole = yard.get(task.id)
    assert (whole.kind, whole.key, whole.worker) == ("sharpen", "123-abc-789", "agent-1")
    assert whole.result == {"agent": "agent-1", "worker": "agent-1"}
