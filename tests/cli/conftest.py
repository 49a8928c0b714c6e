"""Commands run in this process by `run` and `ask`, in an empty directory, with nothing of the tester's own environment."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OWN = ("TASKYARD", "TASKYARD_WORKER", "TASKYARD_CLAIM", "TASKYARD_DEBUG", "AGENT_ID", "NO_COLOR", "COLUMNS")


class Answer:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def envelope(self) -> Any:
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1, "stdout must hold exactly one line of JSON"
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        assert self.envelope["ok"] is True, self.out
        assert set(self.envelope) == {"v", "ok", "data"}
        assert self.envelope["v"] == 1
        return self.envelope["data"]

    @property
    def error(self) -> Any:
        assert self.envelope["ok"] is False, self.out
        assert set(self.envelope) == {"v", "ok", "error"}
        assert set(self.envelope["error"]) - {"why"} == {"code", "message", "hint"}
        return self.envelope["error"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, without a yard."""
    for name in OWN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Run a command, as `run("add", "build")`; `stdin` is what it reads."""

    def call(*argv: str, stdin: str | bytes = b"") -> Answer:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        code = main(argv)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def yard(run: Callable[..., Answer], place: Path) -> Path:
    """A yard in the working directory."""
    assert run("init", "--durability", "fast").code == 0
    return place / ".taskyard"


@pytest.fixture
def ask(run: Callable[..., Answer], yard: Path) -> Callable[..., Any]:
    """Run a command with --json in a yard; its data if it ended well, its error if not."""

    def call(*argv: str, code: int = 0, stdin: str | bytes = b"") -> Any:
        answer = run(*argv, "--json", stdin=stdin)
        assert answer.code == code, (argv, answer.out, answer.err)
        return answer.data if answer.envelope["ok"] else answer.error

    return call
