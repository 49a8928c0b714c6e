"""`--after` and `--uses`: what the commands answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskyard.core.ids import short

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def add(ask: Callable[..., Any], *argv: str) -> Any:
    return ask("add", *argv)["task"]


def finish(ask: Callable[..., Any], id: str) -> None:
    ask("done", ask("claim", id)["claim"])


def test_a_task_after_others_is_blocked_until_they_are_done(ask: Callable[..., Any]) -> None:
    first, second = add(ask, "build")["id"], add(ask, "build")["id"]
    last = add(ask, "ship", "--after", first[:-1], "--after", second)
    assert (last["state"], last["after"]) == ("blocked", [first, second])
    assert [task["id"] for task in ask("list", "--state", "blocked")["tasks"]] == [last["id"]]
    error = ask("claim", last["id"], code=7)
    assert error["code"] == "conflict"
    assert short(first) in error["hint"]
    assert short(second) in error["hint"]
    assert ask("stats")["counts"]["blocked"] == 1
    finish(ask, first)
    finish(ask, second)
    assert ask("show", last["id"])["task"]["state"] == "todo"
    assert [event["event"] for event in ask("log", "--task", last["id"])["events"]] == ["added", "blocked", "unblocked"]


def test_an_unknown_dependency_exits_6_and_an_ambiguous_one_too(ask: Callable[..., Any]) -> None:
    first, _ = add(ask, "build")["id"], add(ask, "build")
    for bad in ("zzzz", "no-id", "zzzz" + first[4:]):
        assert ask("add", "ship", "--after", bad, code=6)["code"] == "not_found"
    assert ask("add", "ship", "--after", first[:4], code=6)["code"] == "ambiguous"
    assert ask("stats")["counts"]["blocked"] == 0


def test_what_a_task_uses_is_its_own_while_it_runs(ask: Callable[..., Any]) -> None:
    first = add(ask, "migrate", "--uses", "db", "--uses", "port 80")
    second = add(ask, "migrate", "--uses", "db")["id"]
    assert first["uses"] == ["db", "port 80"]
    claim = ask("claim", "--worker", "bob")["claim"]
    assert ask("claim", code=3)["code"] == "nothing_ready"
    error = ask("claim", second, code=7)
    assert "'db'" in error["message"]
    assert "bob" in error["hint"]
    assert ask("ready")["tasks"] == []
    ask("done", claim)
    assert ask("claim")["task"]["id"] == second


def test_lines_have_both(ask: Callable[..., Any]) -> None:
    first = add(ask, "build")["id"]
    lines = [{"kind": "ship", "after": first, "uses": "db"}, {"kind": "ship", "after": [first], "uses": ["db", "x"]}]
    ids = ask("add", "--from", "-", stdin="\n".join(map(json.dumps, lines)))["ids"]
    tasks = [ask("show", id)["task"] for id in ids]
    assert [(task["state"], task["after"], task["uses"]) for task in tasks] == [
        ("blocked", [first], ["db"]),
        ("blocked", [first], ["db", "x"]),
    ]
    assert ask("add", "--from", "-", stdin='{"kind": "a"}\n{"kind": "a", "after": "zzzz"}', code=6)
    assert ask("stats")["counts"]["todo"] == 1


def test_a_page_shows_both(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    first = add(ask, "build")["id"]
    last = add(ask, "ship", "--after", first, "--uses", "db")["id"]
    page = run("show", last).out
    assert f"after    {short(first)} todo\n" in page
    assert "uses     db\n" in page
    assert "waits for" in run("log", "--task", last).out


def test_a_dropped_file_steers_with_both(ask: Callable[..., Any], yard: Path) -> None:
    first = add(ask, "build")["id"]
    (yard / "todo" / "order.json").write_text(json.dumps({"kind": "ship", "after": [first[:-2]], "uses": "db", "n": 1}))
    keyed = {"kind": "ship", "after": first, "taskId": 17, "data": 2, "priority": 6}
    (yard / "todo" / "keyed.json").write_text(json.dumps(keyed))
    ids = [task["id"] for task in ask("list", "--state", "blocked")["tasks"]]
    tasks = {json.dumps(task["data"]): task for task in (ask("show", id)["task"] for id in ids)}
    plain = tasks.pop(json.dumps({"kind": "ship", "after": [first[:-2]], "uses": "db", "n": 1}))
    assert (plain["after"], plain["uses"]) == ([first], ["db"])
    assert (tasks["2"]["after"], tasks["2"]["key"], tasks["2"]["priority"]) == ([first], "17", 6)
    finish(ask, first)
    assert ask("claim", "--kind", "ship")["task"]["uses"] == ["db"]


def test_a_dropped_file_with_a_bad_one_is_set_aside_with_its_reason(ask: Callable[..., Any], yard: Path) -> None:
    first, _ = add(ask, "build")["id"], add(ask, "build")
    bad = {
        "unknown": {"after": "zzzz" + first[4:]},
        "no-id": {"after": "?"},
        "number": {"after": 7},
        "ambiguous": {"after": first[:4]},
        "keyed": {"after": "zzzz" + first[4:], "taskId": "a"},
        "uses": {"uses": "a\nb"},
    }
    for name, fields in bad.items():
        (yard / "todo" / f"{name}.json").write_text(json.dumps(fields))
    ask("janitor")
    assert ask("stats")["set_aside"] == len(bad)
    reasons = {name: (yard / "failed" / f"{name}.reason").read_text() for name in bad}
    assert "no task has the id" in reasons["unknown"]
    assert "no task has the id" in reasons["keyed"]
    assert "starts with" in reasons["ambiguous"]
    assert "uses" in reasons["uses"]
    (yard / "failed" / "keyed.json").write_text(json.dumps({"after": first, "taskId": "a"}))
    ask("retry", "keyed")
    assert ask("stats")["counts"]["blocked"] == 1
