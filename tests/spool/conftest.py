"""A PostgreSQL of the test's own, which may be stopped, and a spool of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.processes import tools
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ask = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def url(server: Server, folder: Path) -> str:
    """A yard on this server, with the spool of this test in `folder`."""
    assert not folder.exists()
    url = server.url()
    taskyard.init(url).close()
    return url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the spool is."""
    monkeypatch.setenv("TASKYARD_SPOOL", str(tmp_path / "the spool"))
    return tmp_path / "the spool"


@pytest.fixture
def ask(url: str, folder: Path) -> Ask:
    """Run a command as a process, with --json; its data if it ended well, its error if not."""

    def call(*argv: str, code: int = 0, stdin: str = "", spool: str = str(folder)) -> Any:
        words = [sys.executable, "-m", "taskyard", *argv, "--json"]
        environment = {**tools.environment(), "TASKYARD": url, "TASKYARD_SPOOL": spool}
        done = subprocess.run(words, input=stdin, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, (argv, done.stdout, done.stderr)
        told = json.loads(done.stdout)
        return told["data"] if told["ok"] else told["error"]

    return call


def files(folder: Path, state: str = "todo") -> list[Path]:
    """The entries of the one spool in this folder."""
    return sorted(folder.glob(f"*/{state}/*.json"))
