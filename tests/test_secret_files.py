"""A yard's URL and a token may stand in files, which $TASKYARD_FILE and $TASKYARD_TOKEN_FILE name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import opening
from taskyard.core import secret_files

if TYPE_CHECKING:
    from pathlib import Path


def written(place: Path, content: bytes) -> dict[str, str]:
    file = place / "the yard's secret"
    file.write_bytes(content)
    return {"TASKYARD_FILE": str(file)}


def command(place: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TASKYARD", "AGENT_ID"))}
    return subprocess.run(
        [sys.executable, "-m", "taskyard", *words],
        cwd=place,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("content", [b"/srv/yard", b"/srv/yard\n", b"/srv/yard\r\n", b"\n  /srv/yard \n\n"])
def test_the_file_holds_the_yard_whatever_is_around_it(content: bytes, tmp_path: Path) -> None:
    assert opening.locate(written(tmp_path, content)) == "/srv/yard"


def test_the_variable_wins_over_the_file(tmp_path: Path) -> None:
    assert opening.locate({**written(tmp_path, b"/from/file"), "TASKYARD": "/named"}) == "/named"


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert opening.locate({**written(tmp_path, b"/from/file"), "TASKYARD": ""}) == "/from/file"
    assert secret_files.given("TASKYARD", {"TASKYARD_FILE": ""}) is None


@pytest.mark.parametrize(
    "content",
    [b"", b" \n", b"postgresql://u:hunter2@h/d\npassword", b"\xffhunter2", b"hunter2\0x", b"hunter2" * 10_000],
    ids=["empty", "blank", "two lines", "no text", "a NUL", "too long"],
)
def test_a_file_without_one_line_of_text_is_refused_and_never_shown(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(taskyard.Invalid, match=r"TASKYARD_FILE names .* one line of text") as refused:
        opening.locate(written(tmp_path, content))
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


def test_a_file_that_is_missing_is_an_unavailable_yard(tmp_path: Path) -> None:
    told = command(tmp_path, {"TASKYARD_FILE": str(tmp_path / "none")}, "stats")
    assert told.returncode == 8
    assert "TASKYARD_FILE names" in told.stderr
    assert "No such file" in told.stderr
    assert command(tmp_path, {"TASKYARD_FILE": str(tmp_path)}, "stats").returncode == 8  # a directory


def test_commands_and_their_children_find_the_yard_of_the_file(tmp_path: Path) -> None:
    environment = written(tmp_path, f"{tmp_path / 'far yard'}\n".encode())
    assert command(tmp_path, environment, "init").returncode == 0
    assert (tmp_path / "far yard" / "yard.json").exists()
    assert command(tmp_path, environment, "add", "build").returncode == 0
    # The worker gives its command $TASKYARD, and the command passes over the file, even a broken one.
    inner = [sys.executable, "-m", "taskyard", "note", "seen"]
    worked = command(tmp_path, environment, "work", "--once", "--", *inner)
    assert (worked.returncode, "done" in worked.stdout) == (0, True), worked.stderr
    assert "seen" in command(tmp_path, environment, "log", "--json").stdout


def test_a_yard_that_is_named_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_FILE", str(tmp_path / "none"))
    with taskyard.init(tmp_path / "yard") as yard:
        assert yard.counts()["todo"] == 0
