"""The schedule verb: make, list, show, pause, unpause and remove; what is wrong is said."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_processes import environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_a_schedule_from_its_beginning_to_its_end(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    made = ask(
        "schedule", "add", "nightly", "30 2 * * *", "build", "--tz", "Europe/Berlin", "--data", "[1]", "--priority", "2"
    )
    assert made["created"] is True
    assert made["schedule"]["task"] == {"kind": "build", "data": [1], "priority": 2}
    again = run(
        "schedule", "add", "nightly", "30 2 * * *", "build", "--tz", "Europe/Berlin", "--data", "[1]", "--priority", "2"
    )
    assert again.out.startswith("nightly is a schedule already; next at 20")
    assert run("schedule", "add", "nightly", "30 3 * * *", "build").code == 7
    assert ask("schedule", "list")["schedules"] == [made["schedule"]]
    assert "nightly" in run("schedule", "list").out
    assert len(ask("schedule", "show", "nightly")["schedule"]["upcoming"]) == 5
    assert "Europe/Berlin" in run("schedule", "show", "nightly").out
    assert ask("schedule", "pause", "nightly")["schedule"]["next_at"] is None
    assert "paused" in run("schedule", "list").out
    assert ask("schedule", "unpause", "nightly")["schedule"]["next_at"] == made["schedule"]["next_at"]
    assert run("schedule", "remove", "nightly").out == "nightly is removed; its tasks stay\n"
    assert ask("schedule", "list") == {"schedules": []}
    assert run("schedule", "show", "nightly").code == 6


@pytest.mark.parametrize(
    "argv",
    [
        ("schedule",),
        ("schedule", "run"),
        ("schedule", "add", "x"),
        ("schedule", "add", "x", "30", "2", "build"),
        ("schedule", "add", "x", "30 2 * *", "build"),
        ("schedule", "add", "x", "@daily", "build", "--tz", "Nowhere"),
        ("schedule", "add", "x", "@daily", "build", "--missed", "two"),
        ("schedule", "add", "x", "@daily", "build", "--key", "mine"),
        ("schedule", "list", "x"),
        ("schedule", "pause"),
        ("schedule", "show", "x", "--tz", "UTC"),
    ],
)
def test_what_is_no_schedule_is_said(run: Callable[..., Answer], yard: Path, argv: tuple[str, ...]) -> None:
    assert run(*argv).code == 2


WITHOUT = "import sys; sys.modules['cronsim'] = None; from taskyard.doors.cli import main; sys.exit(main(sys.argv[1:]))"


def test_without_the_library_the_pip_command_is_named_and_a_janitor_leaves_ticks_to_others(
    run: Callable[..., Answer], ask: Callable[..., Any], yard: Path
) -> None:
    def without(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT, *argv]
        return subprocess.run(
            command, env=environment(str(yard)), capture_output=True, text=True, timeout=60, check=False
        )

    refused = without("schedule", "add", "nightly", "@daily", "build")
    assert refused.returncode == 8, "as for every library that is missing"
    assert "pip install 'taskyard[schedules]'" in refused.stderr
    ask("schedule", "add", "nightly", "* * * * * *", "build")
    assert without("schedule", "list").returncode == 0
    while not (swept := without("janitor")).stderr:  # until its next tick is due
        assert swept.returncode == 0
    assert "leaves their tasks to others" in swept.stderr
    assert swept.stderr.count("warning") == 1


def test_commands_that_need_no_schedule_load_no_library(yard: Path) -> None:
    program = "import sys; from taskyard.doors.cli import main; main(['claim']); print('cronsim' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(str(yard)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "False"
