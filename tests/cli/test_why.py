"""`why`, and the reason wherever nothing is ready: the sentence for people, and the same facts as JSON."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


@pytest.fixture
def stuck(ask: Callable[..., Any]) -> tuple[str, str]:
    """The ids of a task that has failed for good, and of one that comes after it."""
    root = ask("add", "build")["task"]["id"]
    ask("fail", ask("claim")["claim"], "--reason", "boom", "--no-retry")
    return root, ask("add", "test", "--after", root)["task"]["id"]


def test_why_says_what_nothing_waits_for(run: Callable[..., Answer], stuck: tuple[str, str]) -> None:
    short = stuck[0][3] + "-" + stuck[0][-4:]
    answer = run("why")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        f"1 task is blocked behind {short}, which failed",
        f"-> 'taskyard retry {short}' tries that one again; 'taskyard show {short}' has its reason",
    ]


def test_why_of_a_task_says_where_it_is_and_what_would_move_it(
    run: Callable[..., Answer], ask: Callable[..., Any], stuck: tuple[str, str]
) -> None:
    root, task = stuck
    facts = ask("why", task)
    assert (facts["state"], facts["task"]["id"]) == ("blocked", task)
    assert [reason["code"] for reason in facts["reasons"]] == ["stuck", "behind"]
    lines = run("why", task).out.splitlines()
    assert "blocked" in lines[0]
    assert lines[1] == f"  {facts['message']}"
    assert lines[-1] == f"-> {facts['next']}"
    assert ask("why", root)["reasons"][0]["reason"] == "boom"


def test_why_of_an_unknown_task_is_exit_6(ask: Callable[..., Any], yard: Path) -> None:
    assert ask("why", "0-zzzz", code=6)["code"] == "not_found"


def test_why_of_a_file_that_was_set_aside_has_its_reason(
    run: Callable[..., Answer], ask: Callable[..., Any], yard: Path
) -> None:
    (yard / "todo" / "torn.json").write_text('{"kind": "no kind!"}')
    ask("janitor")
    facts = ask("why", "torn")
    assert (facts["task"], facts["state"]) == (None, "set_aside")
    assert "'taskyard retry torn'" in facts["next"]
    assert "torn lies aside in failed/" in run("why", "torn").out
    assert "1 dropped file is set aside" in ask("why")["message"]


def test_why_of_what_lies_in_the_drop_box_and_is_no_task(ask: Callable[..., Any], yard: Path) -> None:
    (yard / "todo" / "notes.txt").write_text("x")
    facts = ask("why")
    assert [entry["name"] for entry in facts["not_tasks"]] == ["notes.txt"]
    assert ask("why", "notes.txt")["state"] == "not_a_task"


def test_a_claim_in_vain_has_the_reason(
    run: Callable[..., Answer], ask: Callable[..., Any], stuck: tuple[str, str]
) -> None:
    error = ask("claim", code=3)
    assert error["code"] == "nothing_ready"
    assert error["why"]["blocked"][0]["behind"] == stuck[0]
    assert error["message"] == f"nothing is ready: {error['why']['message']}"
    assert error["hint"] == error["why"]["next"]
    assert run("claim").err.startswith(f"taskyard: {error['message']}\n")
    waited = ask("claim", "--wait", "0.01", code=3)
    assert waited["message"].startswith("nothing was ready within 0.01 s: 1 task is blocked behind")


def test_an_empty_ready_has_the_reason(ask: Callable[..., Any], stuck: tuple[str, str]) -> None:
    found = ask("ready")
    assert found["tasks"] == []
    assert found["why"]["blocked"][0]["behind"] == stuck[0]


def test_work_once_in_vain_has_the_reason(run: Callable[..., Answer], stuck: tuple[str, str]) -> None:
    answer = run("--json", "work", "--once", "--", "true")
    assert (answer.code, answer.error["why"]["blocked"][0]["behind"]) == (3, stuck[0])


def test_a_drain_that_leaves_something_says_what(run: Callable[..., Answer], stuck: tuple[str, str]) -> None:
    answer = run("work", "--drain", "--", "true")
    assert answer.code == 0
    assert "left behind: 1 task is blocked behind" in answer.err
    assert run("--json", "work", "--drain", "--", "true").data["why"]["blocked"][0]["behind"] == stuck[0]


def test_a_drain_that_leaves_nothing_says_nothing(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ask("add", "build")
    answer = run("work", "--drain", "--", "true")
    assert "left behind" not in answer.err
    assert "why" not in run("--json", "work", "--drain", "--", "true").data


def test_a_wait_for_what_can_never_end_is_exit_1_at_once(
    run: Callable[..., Answer], ask: Callable[..., Any], stuck: tuple[str, str]
) -> None:
    verdict = ask("wait", stuck[1], code=1)
    assert [task["state"] for task in verdict["tasks"]] == ["blocked"]
    assert verdict["why"]["task"] == stuck[1]
    assert verdict["why"]["blocked"][0]["behind"] == stuck[0]
    answer = run("wait", stuck[1])
    assert (answer.code, "blocked" in answer.out) == (1, True)
    assert "can never end by itself" in answer.err


def test_a_wait_ends_when_its_task_gets_stuck(ask: Callable[..., Any], yard: Path) -> None:
    with taskyard.open(str(yard), worker="bob") as opened:
        root = opened.add("build")
        task = opened.add("test", after=root.id)
        claim = taken(opened.claim(root.id))
        failing = threading.Timer(0.05, lambda: claim.fail("boom", retry=False))
        failing.start()
        verdict = ask("wait", task.id, "--timeout", "30", code=1)
        failing.join()
    assert verdict["why"]["blocked"][0]["state"] == "failed"


def test_why_names_the_way_on_where_all_that_is_left_has_failed(
    run: Callable[..., Answer], ask: Callable[..., Any], yard: Path
) -> None:
    ask("add", "build")
    ask("fail", ask("claim")["claim"], "--reason", "boom", "--no-retry")
    assert "'taskyard retry ID' tries one again" in run("why").out
