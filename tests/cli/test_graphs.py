"""Graphs on the command line, in a yard that every process can open: refs, policies, inputs, and tasks that add tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=["directory", "postgresql"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a command on a new yard."""
    url = postgres.url() if request.param == "postgresql" else str(tmp_path / "yard")
    taskyard.init(url).close()

    def command(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "taskyard", "--yard", url, *words]
        return subprocess.run(program, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    return command


def data(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)["data"]


def test_ids_are_printed_in_the_order_of_the_lines_and_a_bad_line_is_named(run: Run) -> None:
    lines = '{"kind": "last", "after": ["first:cancel"]}\n\n{"kind": "first", "ref": "first"}\n'
    last, first = run("add", "--from", "-", stdin=lines).stdout.split()
    assert data(run("show", last, "--json"))["dependencies"] == [
        {
            "id": first,
            "short": data(run("show", first, "--json"))["task"]["short"],
            "state": "todo",
            "on_failure": "cancel",
        }
    ]
    bad = run("add", "--from", "-", stdin=lines + '{"kind": "x", "after": {"ref": "nobody"}}\n')
    assert (bad.returncode, "stdin, line 4: no task of this batch has the ref 'nobody'" in bad.stderr) == (6, True)
    assert run("edit", last, "--no-after").stdout.endswith("is edited: todo\n")
    assert run("edit", first, "--after", f"{last}:run").stdout.endswith("is edited: blocked\n")


def test_a_command_gets_inputs_and_what_it_adds_is_a_part_of_its_task(run: Run) -> None:
    first = run("add", "build").stdout.strip()
    last = run("add", "test", "--after", first).stdout.strip()
    handle = run("claim", "--handle").stdout.strip()
    run("done", handle, "--result", '{"path": "a.tar"}')
    program = (
        "import json, subprocess, sys; task = json.load(sys.stdin);"
        "new = subprocess.run([sys.executable, '-m', 'taskyard', 'add', 'part', '--delay', '1h'], capture_output=True, text=True);"
        "print(json.dumps({'inputs': task['inputs'], 'added': new.stdout.strip()}))"
    )
    assert run("work", "--once", "--", sys.executable, "-c", program).returncode == 0
    result = data(run("show", last, "--json"))["task"]["result"]
    assert result["inputs"] == {first: {"path": "a.tar"}}
    part = data(run("show", result["added"], "--json"))["task"]
    assert (part["parent"], part["discovered_from"]) == (last, last)


def test_a_shell_that_keeps_the_handle_of_an_ended_task_adds_no_parts_of_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", "build")
    monkeypatch.setenv("TASKYARD_CLAIM", run("claim", "--handle").stdout.strip())
    part = run("add", "part").stdout.strip()
    assert data(run("show", part, "--json"))["task"]["discovered_from"] is not None
    run("done")
    later = data(run("show", run("add", "later").stdout.strip(), "--json"))["task"]
    assert (later["parent"], later["discovered_from"]) == (None, None)
