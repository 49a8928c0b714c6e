"""cancel, retry, release, prune and wait for many tasks: a filter is counted and confirmed first."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer


@pytest.fixture
def builds(ask: Callable[..., Any]) -> list[str]:
    return [ask("add", "build", "--mission", "login")["task"]["id"] for _ in range(3)]


def states(ask: Callable[..., Any]) -> list[str]:
    return [task["state"] for task in ask("list")["tasks"]]


def test_a_filter_without_yes_changes_nothing_off_a_terminal(ask: Callable[..., Any], builds: list[str]) -> None:
    error = ask("cancel", "--kind", "build", code=2)
    assert error["code"] == "invalid"
    assert "3 tasks" in error["message"]
    assert "--yes" in error["hint"]
    assert states(ask) == ["todo"] * 3


def test_yes_cancels_and_retries_what_matches(ask: Callable[..., Any], builds: list[str]) -> None:
    ask("add", "test")
    done = {"count": 3, "changed": 3, "refused": []}
    assert ask("cancel", "--mission", "login", "--reason", "no need", "--yes") == done
    assert ask("show", builds[0])["task"]["error"] == "no need"
    assert ask("retry", "--state", "cancelled", "--yes") == done
    assert states(ask) == ["todo"] * 4


def test_nothing_that_matches_is_no_error(run: Callable[..., Answer], yard: Path) -> None:
    answer = run("cancel", "--kind", "build")
    assert (answer.code, answer.out, answer.err) == (0, "", "no such tasks\n")


def test_several_ids_need_no_yes_and_one_that_cannot_is_exit_1(ask: Callable[..., Any], builds: list[str]) -> None:
    assert ask("cancel", *builds[:2]) == {"count": 2, "changed": 2, "refused": []}
    told = ask("cancel", *builds, code=1)
    assert (told["count"], told["changed"], [entry["id"] for entry in told["refused"]]) == (3, 1, builds[:2])


def test_names_and_filters_are_not_mixed_and_one_of_them_is_needed(ask: Callable[..., Any], builds: list[str]) -> None:
    for argv in (("cancel", builds[0], "--kind", "build"), ("cancel",), ("retry",), ("wait",)):
        assert ask(*argv, code=2)["code"] == "invalid"
    assert states(ask) == ["todo"] * 3


def test_beside_an_id_worker_is_who_asks(ask: Callable[..., Any], builds: list[str]) -> None:
    ask("cancel", builds[0], "--worker", "boss")
    ask("cancel", *builds[1:], "--worker", "boss")
    assert [event["by"] for event in ask("log", "--event", "cancelled")["events"]] == ["boss"] * 3


def test_release_takes_back_what_a_worker_holds(ask: Callable[..., Any], builds: list[str]) -> None:
    mine = ask("claim", "--worker", "ada")["claim"]
    ask("claim", "--worker", "bob")
    assert "1 task" in ask("release", "--worker", "ada", code=2)["message"]
    assert ask("release", "--worker", "ada", "--yes")["changed"] == 1
    assert ask("done", mine, code=4)["code"] == "claim_lost"
    assert sorted(states(ask)) == ["processing", "todo", "todo"]


def test_release_within_a_workers_command_is_of_its_own_claim(
    ask: Callable[..., Any], builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_CLAIM", ask("claim", "--worker", "ada")["claim"])
    assert ask("release", "--worker", "ada")["task"]["state"] == "todo"


def test_wait_and_prune_take_filters(ask: Callable[..., Any], builds: list[str]) -> None:
    assert ask("wait", "--kind", "build", "--timeout", "0", code=5)["code"] == "timed_out"
    ask("cancel", *builds)
    assert ask("wait", "--kind", "build") == {"tasks": []}
    assert len(ask("wait", "--kind", "build", "--state", "cancelled", code=1)["tasks"]) == 3
    assert ask("prune", "--keep", "0", "--state", "done")["tasks"] == 0
    assert ask("prune", "--keep", "1", "--mission", "login", "--apply")["tasks"] == 2


@pytest.mark.parametrize(("said", "code", "left"), [("y", 0, "cancelled"), ("n", 2, "todo"), ("", 2, "todo")])
def test_a_terminal_is_asked(
    ask: Callable[..., Any], builds: list[str], place: Path, said: str, code: int, left: str
) -> None:
    terminal = Terminal(
        [sys.executable, "-m", "taskyard", "cancel", "--kind", "build"],
        env={**os.environ, "TERM": "xterm"},
        cwd=str(place),
    )
    try:
        terminal.until(r"3 tasks\? \[y/N\]")
        assert states(ask) == ["todo"] * 3
        terminal.type(f"{said}\n")
        assert terminal.end() == code
    finally:
        terminal.close()
    assert states(ask) == [left] * 3
