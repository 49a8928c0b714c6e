"""`taskyard copy`: exit codes, the envelope, and what people read."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.cli.verbs.upkeep import copy
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_a_copy_is_told_in_one_envelope(ask: Callable[..., Any], yard: Path) -> None:
    task = ask("add", "build", "--data", '"ž"')["task"]
    ask("pause")
    told = ask("copy", str(yard), "other")
    assert told == {
        "tasks": 1,
        "segments": 1,
        "events": 1,
        "files": 0,
        "passes": 2,
        "left_behind": {},
        "warnings": [],
        "was_complete": False,
        "source": str(yard),
        "target": os.path.abspath("other"),
    }
    assert ask("show", task["id"], "--yard", "other")["task"] == ask("show", task["id"])["task"]
    assert ask("copy", str(yard), "other")["was_complete"] is True


def test_people_read_what_to_do_next(run: Callable[..., Answer], yard: Path) -> None:
    run("add", "build")
    run("pause")
    answer = run("copy", str(yard), "an other")
    assert (answer.code, answer.err) == (0, "")
    assert "1 task and 1 event were copied" in answer.out
    assert f"taskyard unpause --yard '{os.path.abspath('an other')}'" in answer.out


def test_a_password_is_never_said(run: Callable[..., Answer], yard: Path) -> None:
    run("add", "build")
    run("pause")
    url = postgres.url().replace("taskyard@", "taskyard:s3cret@")
    first, again = run("copy", str(yard), url), run("copy", str(yard), url, "--json")
    assert (first.code, again.code) == (0, 0)
    assert "s3cret" not in first.out + first.err + again.out + again.err


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("copy", ".taskyard"), 2, "invalid"),
        (("copy", ".taskyard", "a", "b"), 2, "invalid"),
        (("copy", ".taskyard", "other"), 7, "conflict"),
        (("copy", ".taskyard", "memory:x"), 7, "conflict"),
        (("copy", "memory:x", "other"), 2, "invalid"),
        (("copy", "nowhere", "other"), 8, "unavailable"),
        (("copy", "postgresql://nobody@127.0.0.1:1/x", "other"), 8, "unavailable"),
        (("copy", "gopher://x", "other"), 2, "invalid"),
    ],
)
def test_what_is_refused_has_its_exit_code_and_makes_no_yard(
    words: tuple[str, ...], code: int, error: str, ask: Callable[..., Any], place: Path
) -> None:
    ask("add", "build")
    refused = ask(*words, code=code)
    assert refused["code"] == error
    assert refused["hint"]
    assert not (place / "other").exists()


def test_warnings_go_to_stderr(run: Callable[..., Answer], yard: Path) -> None:
    (yard / "todo" / "bad.json").write_text('{"priority": 99}')
    run("list")
    run("pause")
    answer = run("copy", str(yard), postgres.url(), "--json")
    assert answer.data["left_behind"] == {"failed": 2}
    assert "keeps no files" in answer.err


class Screen(io.StringIO):
    """A terminal, as far as a ticker can tell."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_terminal_is_told_how_far_it_is_and_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.setattr(copy, "_EVERY", 0.0)
    ticker = copy.Ticker()
    ticker("copying tasks", 5, 20)
    ticker("copying events", 10_000, 0)
    ticker.clear()
    lines = screen.getvalue().split("\r")
    assert [line.strip() for line in lines] == ["", "copying tasks: 25%", "copying events: 10000", "", ""]


def test_a_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    ticker = copy.Ticker()
    ticker("copying tasks", 5, 20)
    ticker.clear()
    assert pipe.getvalue() == ""
