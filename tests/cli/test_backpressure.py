"""add to a full yard: exit 7, code `full`, or a wait for room."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_a_full_yard_is_exit_7_and_says_how_full(run: Callable[..., Answer], yard: Path) -> None:
    assert run("settings", "max_todo=1").code == 0
    assert run("add", "build").code == 0
    refused = run("--json", "add", "build", "--wait", "0.1")
    assert (refused.code, refused.error["code"]) == (7, "full")
    assert "1 of 1" in refused.error["message"]
    (yard.parent / "many.jsonl").write_text('{"kind": "build"}\n' * 2)
    many = run("add", "--from", str(yard.parent / "many.jsonl"), "--wait", "100")
    assert (many.code, "can never fit" in many.err) == (7, True)
    assert "the yard is full (1 of 1)" in run("stats").out
    assert "the yard is full (1 of 1)" in run("janitor").out
