"""stats --prometheus and janitor --alert-above: what a monitor reads, and what is run when workers die."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import open as open_yard
from tests.cli.test_processes import COMMAND, environment
from tests.conftest import crash, wait_until
from tests.test_metrics import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

SPEAK = (
    "import json, os, sys; facts = json.load(sys.stdin); "
    "open(sys.argv[1], 'a').write(json.dumps([facts, {k: v for k, v in os.environ.items() if 'ALERT' in k}]) + '\\n')"
)


def test_stats_prints_metrics_that_a_parser_reads(run: Callable[..., Answer], yard: Path) -> None:
    run("add", "build")
    said = run("stats", "--prometheus")
    assert said.code == 0
    assert read(said.out)["taskyard_tasks"][("kind", "build"), ("state", "todo")] == 1


def test_metrics_take_the_place_of_the_old_file_at_once(run: Callable[..., Answer], yard: Path, place: Path) -> None:
    file = place / "taskyard.prom"
    file.write_text("old")
    with file.open() as kept:  # a reader that has begun goes on with what it opened
        assert run("stats", "--prometheus", "--output", str(file)).out == ""
        assert kept.read() == "old"
    assert "taskyard_backlog_tasks" in read(file.read_text())
    assert sorted(each.name for each in place.iterdir()) == [".taskyard", "taskyard.prom"]
    assert run("stats", "--prometheus", "--output", str(file), "--json").data["output"] == str(file)


def test_metrics_that_cannot_be_written_leave_nothing(run: Callable[..., Answer], yard: Path, place: Path) -> None:
    assert run("stats", "--prometheus", "--output", str(place / "none" / "x.prom")).code == 8
    (place / "folder").mkdir()
    assert run("stats", "--prometheus", "--output", str(place / "folder")).code == 8
    assert sorted(each.name for each in place.iterdir()) == [".taskyard", "folder"]


@pytest.mark.parametrize(
    "argv",
    [
        ("stats", "--output", "x"),
        ("stats", "--prometheus", "--mission", "x"),
        ("janitor", "--alert-above", "3"),
        ("janitor", "--", "true"),
        ("janitor", "--alert-above", "-1", "--", "true"),
    ],
)
def test_half_a_monitor_is_refused(run: Callable[..., Answer], yard: Path, argv: tuple[str, ...]) -> None:
    assert run(*argv).code == 2


def reaped(yard: Path, number: int) -> None:
    with open_yard(str(yard)) as opened:
        for _ in range(number):
            crash(opened, opened.add("build", max_attempts=9).id)


def test_a_janitor_alerts_once_a_minute_about_what_any_process_reaped(yard: Path, place: Path) -> None:
    told = place / "told"
    argv = [*COMMAND, "--json", "janitor", "--every", "0.05", "--alert-above", "2", "--"]
    with subprocess.Popen(
        [*argv, sys.executable, "-c", SPEAK, str(told)], stdout=subprocess.PIPE, env=environment(str(yard))
    ) as janitor:
        assert janitor.stdout is not None
        reaped(yard, 2)  # this process reaps: the janitor reads of it in the log

        def answer() -> Any:
            assert janitor.stdout is not None
            return json.loads(janitor.stdout.readline())["data"]["alert"]

        wait_until(lambda: answer()["reaped"] == 2)
        assert not told.exists()
        reaped(yard, 2)
        wait_until(lambda: answer()["alerted"])
        wait_until(told.exists)
        reaped(yard, 1)
        wait_until(lambda: (last := answer())["reaped"] == 5 and not last["alerted"])
        janitor.terminate()
    assert janitor.returncode == 0
    [(facts, env)] = map(json.loads, told.read_text().splitlines())
    assert facts["above"] == 2
    assert facts["reaped"] > 2
    assert {task["kind"] for task in facts["tasks"]} == {"build"}
    assert env == {
        "TASKYARD_ALERT_REAPED": str(facts["reaped"]),
        "TASKYARD_ALERT_ABOVE": "2",
        "TASKYARD_ALERT_WINDOW": "60",
    }


@pytest.mark.parametrize("command", [["sh", "-c", "echo noise; exit 3"], ["/no/such/command"]])
def test_a_failing_alert_is_a_warning(run: Callable[..., Answer], yard: Path, command: list[str]) -> None:
    reaped(yard, 1)
    said = run("janitor", "--alert-above", "0", "--json", "--", *command)
    assert said.code == 0
    assert said.data["alert"]["alerted"] is True
    assert "warning: the alert's command" in said.err
    assert "alert: 1 tasks" not in said.err


def test_no_shell_reads_the_alert(run: Callable[..., Answer], yard: Path, place: Path) -> None:
    reaped(yard, 1)
    assert run("janitor", "--alert-above", "0", "--", "touch", "; $(touch no) `no`").code == 0
    assert (place / "; $(touch no) `no`").exists()
    assert not (place / "no").exists()


def test_no_alert_below_the_number(run: Callable[..., Answer], yard: Path, place: Path) -> None:
    reaped(yard, 2)
    assert run("janitor", "--alert-above", "2", "--json", "--", "touch", "told").data["alert"]["alerted"] is False
    assert not (place / "told").exists()
