"""`mission`, and `--mission` of the other verbs, on the command line."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

SHOWN = {
    "name", "brief", "owner", "state", "reason", "progress", "rates", "counts", "total", "created_at", "started_at", "ended_at", "running",
    "workers", "failed", "blocked", "next",
}  # fmt: skip


@pytest.fixture
def launch(ask: Callable[..., Any], yard: Path) -> list[str]:
    """Three tasks of one mission, and one of another."""
    ids = [ask("add", "build", "--mission", "launch", "--title", f"Step {n}")["task"]["id"] for n in range(3)]
    ask("add", "build", "--mission", "other")
    return ids


def test_show_answers_what_an_agent_asks(ask: Callable[..., Any], launch: list[str]) -> None:
    ask("mission", "new", "launch", "--brief", "Ship it", "--owner", "ada")
    ask("done", ask("claim", launch[0])["claim"])
    handle = ask("claim", launch[1], "--worker", "bob")["claim"]
    ask("heartbeat", handle, "--progress", "0.5")
    shown = ask("mission", "show", "launch")["mission"]
    assert set(shown) == SHOWN
    assert (shown["brief"], shown["owner"], shown["state"], shown["total"]) == ("Ship it", "ada", "running", 3)
    assert shown["progress"] == pytest.approx(1 / 3, abs=1e-3)
    [running] = shown["running"]
    assert set(running) == {"id", "short", "kind", "title", "worker", "lease_until", "progress"}
    assert (running["id"], running["worker"], running["progress"]) == (launch[1], "bob", 0.5)
    assert shown["workers"] == ["bob"]
    assert [task["id"] for task in shown["next"]] == [launch[2]]


def test_show_for_people_has_a_bar_and_the_reasons(
    run: Callable[..., Answer], ask: Callable[..., Any], launch: list[str]
) -> None:
    ask("done", ask("claim", launch[0])["claim"])
    ask("fail", ask("claim", launch[1])["claim"], "--reason", "no luck", "--no-retry")
    text = run("mission", "show", "launch").out
    assert "1 of 3 [########xxxxxxxx........]" in text
    assert "no luck" in text
    assert "Step 2" in text
    listed = run("mission", "list").out.splitlines()
    assert len(listed) == 3
    assert listed[1].split()[:4] == ["launch", "running", "1", "of"]


def test_new_is_idempotent_and_other_words_are_exit_7(run: Callable[..., Answer], yard: Path) -> None:
    (yard.parent / "brief.md").write_text("Ship it\nby Friday\n")
    words = ("mission", "new", "launch", "--brief", "@brief.md", "--owner", "ada", "--json")
    assert run(*words).data["created"] is True
    assert run(*words).data["created"] is False
    assert run(*words).data["mission"]["brief"] == "Ship it\nby Friday"
    assert run("mission", "new", "launch", "--brief", "Something else").code == 7


@pytest.mark.parametrize(
    "argv",
    [
        ("mission",),
        ("mission", "frobnicate"),
        ("mission", "show"),
        ("mission", "new", ""),
        ("mission", "list", "launch"),
        ("mission", "show", "launch", "--brief", "x"),
        ("mission", "cancel", "launch", "--owner", "ada"),
        ("mission", "new", "launch", "--brief", "@missing.md"),
        ("wait",),
        ("wait", "0000", "--mission", "launch"),
        ("claim", "0000", "--mission", "launch"),
    ],
)
def test_what_can_never_be_right_is_exit_2(
    run: Callable[..., Answer], launch: list[str], argv: tuple[str, ...]
) -> None:
    assert launch
    answer = run(*argv)
    assert answer.code == 2
    assert answer.err.startswith("taskyard: ")


@pytest.mark.parametrize(
    "argv", [("mission", "show"), ("mission", "cancel"), ("stats", "--mission"), ("wait", "--mission")]
)
def test_an_unknown_mission_is_exit_6(run: Callable[..., Answer], yard: Path, argv: tuple[str, ...]) -> None:
    assert run(*argv, "nowhere").code == 6


def test_cancel_wants_to_be_sure(run: Callable[..., Answer], ask: Callable[..., Any], launch: list[str]) -> None:
    ask("claim", "--mission", "launch")
    refused = run("mission", "cancel", "launch")
    assert refused.code == 2
    assert "cancel 3 tasks of 'launch', 1 of them running" in refused.err
    assert ask("mission", "show", "launch")["mission"]["counts"]["cancelled"] == 0
    told = run("mission", "cancel", "launch", "--yes", "--reason", "not needed", "--json").data
    assert (told["cancelled"], told["ran"], told["mission"]["state"]) == (3, 1, "cancelled")
    assert ask("show", launch[2])["task"]["error"] == "not needed"
    assert run("mission", "cancel", "launch").code == 0, "there is nothing left to ask about"


class Terminal(io.StringIO):
    """A terminal with a person at it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 2, 3), ("", 2, 3)])
def test_at_a_terminal_cancel_asks(
    run: Callable[..., Answer],
    ask: Callable[..., Any],
    launch: list[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    left: int,
) -> None:
    from taskyard.doors.cli import confirm

    asked = Terminal()
    assert launch
    with monkeypatch.context() as at:
        at.setattr(confirm, "sys", type("Streams", (), {"stdin": Terminal(answer), "stderr": asked}))
        assert run("mission", "cancel", "launch").code == code
    assert "Cancel 3 tasks" in asked.getvalue()
    assert ask("mission", "show", "launch")["mission"]["counts"]["todo"] == left
    assert sys.stdin is not None


def test_the_other_verbs_choose_by_mission(
    run: Callable[..., Answer], ask: Callable[..., Any], launch: list[str]
) -> None:
    assert [task["id"] for task in ask("ready", "--mission", "launch")["tasks"]] == launch
    assert ask("stats", "--mission", "launch")["counts"]["todo"] == 3
    assert [event["task"] for event in ask("log", "--mission", "launch")["events"]] == launch
    assert run("watch", "--mission", "launch", "--timeout", "0").code == 5
    assert run("wait", "--mission", "launch", "--timeout", "0").code == 5
    assert run("work", "--mission", "launch", "--drain", "--", "true").code == 0
    assert [task["id"] for task in ask("wait", "--mission", "launch")["tasks"]] == launch
    assert ask("mission", "show", "launch")["mission"]["state"] == "done"
    assert run("claim", "--mission", "launch").code == 3
    assert ask("stats")["counts"]["todo"] == 1
