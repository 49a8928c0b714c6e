"""Commands through a gateway: workers and crews do tasks, and what makes no sense there is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Yard
    from tests.servers.gateway import Running

PROGRAM = [sys.executable, "-m", "taskyard"]


def said(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, check=False, timeout=100, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("named_by", ["option", "environment"])
def test_work_does_a_task_through_a_gateway(near: Yard, gateway: Running, named_by: str) -> None:
    id = near.add("build").id
    command = ["work", "--once", "--kind", "build", "--", "true"]
    run = said("--yard", gateway.url(), *command) if named_by == "option" else said(*command, TASKYARD=gateway.url())
    assert (run.returncode, run.stderr) == (0, "")
    assert near.get(id).state == "done"


def test_a_crew_does_the_tasks_through_a_gateway(near: Yard, gateway: Running, tmp_path: Path) -> None:
    for _ in range(4):
        near.add("build")
    file = tmp_path / "crew.toml"
    file.write_text('[worker.ada]\ncommand = "true"\ncount = 2\n')
    run = said("--yard", gateway.url(), "crew", "--drain", str(file))
    assert run.returncode == 0, run.stderr
    assert near.counts()["done"] == 4


@pytest.mark.parametrize("words", [("serve",), ("serve", "--project", "a=URL")])
def test_a_gateway_in_front_of_a_gateway_is_refused(gateway: Running, words: tuple[str, ...]) -> None:
    named = [word.replace("URL", gateway.url()) for word in words]
    run = said("--json", *(() if "--project" in words else ("--yard", gateway.url())), *named, "--port", "0")
    assert run.returncode == 2
    assert "another gateway" in json.loads(run.stdout)["error"]["message"]


@pytest.mark.parametrize("words", [("fsck",), ("doctor",), ("migrate",), ("copy", "URL", "elsewhere")])
def test_what_needs_the_yard_itself_is_refused(gateway: Running, words: tuple[str, ...]) -> None:
    run = said("--yard", gateway.url(), "--json", *(word.replace("URL", gateway.url()) for word in words))
    assert run.returncode == 2
    assert "gateway" in json.loads(run.stdout)["error"]["message"]
