"""The files for clusters, run as a scheduler, systemd and cron would run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cronsim import CronSim

import taskyard
from taskyard import State
from taskyard.doors.cli import parser, verbs
from tests.conftest import wait_until
from tests.processes import tools

DEPLOY = Path(__file__).parents[2] / "deploy"
ARRAY = DEPLOY / "cluster" / "array.sbatch"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CRONTAB = (DEPLOY / "cron" / "taskyard.crontab").read_text(encoding="utf-8")
PATH = f"{sysconfig.get_path('scripts')}:/usr/local/bin:/usr/bin:/bin"
# The first slot ends in the middle of each task; in the next one a task takes no time.
AGENT = """#!/bin/sh
echo "$TASKYARD_TASK" >> begun
test -e second-slot || exec sleep 1000
"""


def options() -> dict[str, str]:
    """What the script asks of the scheduler."""
    return dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", ARRAY.read_text(encoding="utf-8"), re.MULTILINE))


class Scheduler:
    """Stands in for Slurm: starts one process for each number of the array, and ends its slot as `--signal` asks."""

    def __init__(self, place: Path, yard: Path) -> None:
        assert options()["signal"].startswith("B:TERM@"), "the signal goes to the script's own process"
        first, last = map(int, options()["array"].split("-"))
        assert (first, last) == (1, 20)
        self.jobs = [
            self._start(place, yard, number) for number in range(first, first + 3)
        ]  # twenty are no other than three

    @staticmethod
    def _start(place: Path, yard: Path, number: int) -> subprocess.Popen[bytes]:
        given = {
            "SLURM_ARRAY_JOB_ID": "77",
            "SLURM_ARRAY_TASK_ID": str(number),
            "SLURM_CPUS_PER_TASK": options()["cpus-per-task"],
            "TASKYARD": str(yard),
            "GRACE": "0.1",  # the tests' tasks do not end by themselves
            "PATH": PATH,
        }
        return subprocess.Popen(
            ["sh", str(ARRAY)], cwd=place, env=tools.environment(**given), stdout=subprocess.DEVNULL
        )

    def end_the_slot(self) -> list[int]:
        """Send what the script asked for; who is still there at the end of the slot is killed, which no test may need."""
        for job in self.jobs:
            job.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> list[int]:
        return [job.wait(tools.PATIENCE) for job in self.jobs]


def test_what_runs_at_the_end_of_a_slot_is_handed_back_uncounted_and_done_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    tasks = 24
    with taskyard.init(tmp_path / "yard", durability="fast", shared=True) as yard:
        ids = yard.add_many([{"kind": "simulate", "max_attempts": 1} for _ in range(tasks)])
        slot = Scheduler(tmp_path, tmp_path / "yard")
        slots = 3 * int(options()["cpus-per-task"])
        begun = tmp_path / "begun"
        wait_until(lambda: begun.exists() and len(begun.read_text().split()) == slots, timeout=tools.PATIENCE)
        assert set(slot.end_the_slot()) == {0}
        assert yard.counts()["todo"] == tasks
        assert {yard.get(id).attempts for id in ids} == {0}
        assert len(yard.events(event="released")) == slots

        (tmp_path / "second-slot").touch()
        assert set(Scheduler(tmp_path, tmp_path / "yard").wait()) == {0}  # ends by itself when nothing is left
        assert {yard.get(id).state for id in ids} == {State.DONE}
        workers = {str(event["worker"]) for event in yard.events(event="done")}
        assert workers <= {f"array-77-{number}" for number in (1, 2, 3)}


def test_a_yard_for_a_group_is_the_group_s_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    (tmp_path / "agent.sh").chmod(0o755)
    (tmp_path / "second-slot").touch()
    before = os.umask(0o077)
    try:
        with taskyard.init(tmp_path / "yard", durability="fast", group=str(os.getgid())) as yard:
            yard.add("simulate")
            Scheduler(tmp_path, tmp_path / "yard").wait()
            assert yard.counts()["done"] == 1
    finally:
        os.umask(before)
    for path in (tmp_path / "yard").rglob("*"):
        private = path.name == "yard.json"  # which may name commands
        mode = path.stat().st_mode
        assert path.stat().st_gid == os.getgid(), path
        assert private or not path.is_dir() or mode & 0o2070 == 0o2070, path


def commands(text: str) -> list[list[str]]:
    """The words of Taskyard's commands in a unit or a crontab."""
    lines = [shlex.split(line) for line in text.splitlines() if "taskyard " in line and not line.startswith("#")]
    starts = [next(n for n, word in enumerate(words) if word.endswith("taskyard")) for words in lines]
    return [words[start + 1 :] for words, start in zip(lines, starts, strict=True)]


@pytest.mark.parametrize("text", [*(unit.read_text(encoding="utf-8") for unit in UNITS), CRONTAB])
def test_units_and_crontab_call_verbs_and_options_that_exist(text: str) -> None:
    found = commands(text.replace("ExecStart=", "ExecStart= "))
    assert found
    for words in found:
        before, verb, after = parser.split(words)
        assert verb is not None
        parser.parse(verbs.called(verb), verbs.command(verb), [*before, *after])


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        tools.lacking("no systemd-analyze")
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/usr/local/bin/taskyard", sys.executable)
        (tmp_path / unit.name.replace("@", "@1")).write_text(text)
    told = subprocess.run(
        [str(analyze), "verify", "--man=no", "--recursive-errors=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_the_worker_of_the_unit_has_time_for_its_grace() -> None:
    unit = (DEPLOY / "systemd" / "taskyard-worker@.service").read_text(encoding="utf-8")
    grace, stop = re.search(r"--grace (\d+)", unit), re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert grace is not None
    assert stop is not None
    assert int(stop[1]) > int(grace[1])
    assert "\nKillMode=mixed\n" in unit


def test_cron_can_run_every_line(tmp_path: Path) -> None:
    lines = [line for line in CRONTAB.splitlines() if line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    jobs = [line.split(None, 5) for line in lines if not re.match(r"\w+=", line)]
    assert variables["TASKYARD"] == "/srv/yard"
    assert len(jobs) == 3
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho '{\"ran\": true}'\n")
    agent.chmod(0o755)
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        task = yard.add("nightly")
        for *fields, command in jobs:
            assert next(CronSim(" ".join(fields), datetime.now(UTC))) > datetime.now(UTC)
            assert "%" not in command, "cron takes it for the end of the line"
            words = command.replace("/usr/local/lib/taskyard/agent", shlex.quote(str(agent)))
            given = {**variables, "PATH": PATH, "TASKYARD": str(tmp_path / "yard"), "HOME": str(tmp_path)}
            told = subprocess.run(["sh", "-c", words], env=given, capture_output=True, text=True, check=False)
            assert told.returncode == 0, told.stderr
        assert yard.get(task.id).result == {"ran": True}
