"""edit, pause, resume, keys and files that were set aside, from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskyard import Task
from taskyard.core.ids import short

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from .conftest import Answer


def test_edit_changes_what_is_named_and_gives_the_task(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    id = ask("add", "build", "--title", "Docs", "--data", "1", "--assignee", "bob")["task"]["id"]
    task = ask("edit", id, "--title", "Documents", "--data", '{"n": 2}', "--priority", "0", "--max-attempts", "7")[
        "task"
    ]
    assert set(task) == set(Task.FIELDS)
    assert (task["title"], task["data"], task["priority"], task["max_attempts"], task["assignee"]) == (
        "Documents",
        {"n": 2},
        0,
        7,
        "bob",
    )
    assert ask("show", id)["task"] == task
    assert run("edit", id[:8], "--title", "New").out == f"{short(id)} is edited: todo\n"


def test_an_empty_text_takes_title_and_assignee_away(ask: Callable[..., Any]) -> None:
    id = ask("add", "build", "--title", "Docs", "--assignee", "bob")["task"]["id"]
    task = ask("edit", id, "--title", "", "--assignee=")["task"]
    assert (task["title"], task["assignee"]) == (None, None)


def test_edit_puts_off_and_makes_due(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("edit", id, "--delay", "10m")["task"]["state"] == "waiting"
    later = ask("edit", id, "--not-before", "2050-01-01T00:00:00Z")["task"]
    assert (later["state"], later["not_before"]) == ("waiting", "2050-01-01T00:00:00.000Z")
    assert ask("edit", id, "--delay", "0")["task"]["state"] == "todo"
    assert ask("claim")["task"]["id"] == id


def test_edit_reads_data_from_a_file_and_from_stdin(ask: Callable[..., Any], place: Path) -> None:
    id = ask("add", "build")["task"]["id"]
    (place / "data.json").write_text('{"from": "file"}')
    assert ask("edit", id, "--data", "@data.json")["task"]["data"] == {"from": "file"}
    assert ask("edit", id, "--data", "-", stdin='"stdin"')["task"]["data"] == "stdin"
    assert ask("edit", id, "--data", "null")["task"]["data"] is None


def test_an_edit_that_is_not_allowed_exits_7_and_one_of_nothing_2(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("edit", id, code=2)["code"] == "invalid"
    assert ask("edit", id, "--priority", "10", code=2)["code"] == "invalid"
    assert ask("edit", "zzzz00000000", "--title", "x", code=6)["code"] == "not_found"
    ask("claim")
    error = ask("edit", id, "--title", "x", code=7)
    assert error["code"] == "conflict"
    assert error["hint"]


def test_a_key_adds_once(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    first = ask("add", "build", "--data", '{"n": 1}', "--key", "k")
    again = ask("add", "build", "--data", '{"n": 1}', "--key", "k")
    assert (first["created"], again["created"]) == (True, False)
    assert first["task"]["id"] == again["task"]["id"]
    assert first["task"]["key"] == "k"
    error = ask("add", "build", "--data", '{"n": 2}', "--key", "k", code=7)
    assert error["code"] == "conflict"
    assert error["hint"]
    assert run("add", "build", "--data", '{"n": 1}', "--key", "k").out == f"{first['task']['id']}\n"
    assert ask("add", "build", "--key", "", code=2)["code"] == "invalid"


def test_keys_in_lines_are_counted_apart(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    lines = '{"kind": "a", "key": "k"}\n{"kind": "a"}\n{"kind": "a", "key": "k"}\n'
    data = ask("add", "--from", "-", stdin=lines)
    assert (len(data["ids"]), data["ids"][0], data["created"]) == (3, data["ids"][2], 2)
    assert ask("add", "--from", "-", stdin=lines)["created"] == 1
    assert run("add", "--from", "-", stdin=lines).err == "1 task added, 2 known already\n"
    assert ask("add", "--from", "-", code=7, stdin='{"kind": "b", "key": "k"}')["code"] == "conflict"


def test_pause_and_unpause_tell_what_is_paused(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("pause", "build") == {"paused": {"yard": False, "kinds": ["build"]}}
    assert ask("ready")["tasks"] == []
    assert ask("claim", code=3)["code"] == "nothing_ready"
    error = ask("claim", id, code=7)
    assert (error["code"], "unpause" in error["hint"]) == ("conflict", True)
    assert ask("pause") == {"paused": {"yard": True, "kinds": ["build"]}}
    assert ask("stats")["paused"] == {"yard": True, "kinds": ["build"]}
    assert run("stats").out.splitlines()[-1] == "paused: the whole yard, and build"
    assert run("unpause").out == "paused: build\n"
    assert run("unpause", "build").out == "nothing is paused\n"
    assert "paused" not in run("stats").out
    assert ask("claim")["task"]["id"] == id
    assert ask("pause", "a b", code=2)["code"] == "invalid"


def test_resume_gives_this_workers_claims_anew(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 3)
    old = [ask("claim", "--worker", "ada") for _ in range(2)]
    ask("claim", "--worker", "bob")
    claims = ask("resume", "--worker", "ada")["claims"]
    assert [claim["task"]["id"] for claim in claims] == [claim["task"]["id"] for claim in old]
    for before, claim in zip(old, claims, strict=True):
        assert set(claim) == set(before)
        assert claim["fence"] > before["fence"]
        assert [entry["outcome"] for entry in claim["history"]] == ["resumed"]
        assert claim["workdir"]
        assert ask("done", before["claim"], code=4)["code"] == "claim_lost"
    text = run("resume", "--worker", "ada").out
    assert text.count("claim  ") == 2
    assert "taskyard done " in text
    handle = ask("resume", "--worker", "ada")["claims"][0]["claim"]
    assert ask("done", handle)["task"]["state"] == "done"


def test_resume_of_nothing_is_fine_and_without_a_name_is_not(
    ask: Callable[..., Any], run: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask("resume", "--worker", "ada") == {"claims": []}
    nothing = run("resume", "--worker", "ada")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "ada holds nothing\n")
    error = ask("resume", code=2)
    assert (error["code"], "--worker" in error["hint"]) == ("invalid", True)
    monkeypatch.setenv("AGENT_ID", "agent")
    assert ask("resume") == {"claims": []}
    ask("add", "build")
    ask("claim")
    monkeypatch.setenv("TASKYARD_WORKER", "worker")
    assert ask("resume") == {"claims": []}
    monkeypatch.delenv("TASKYARD_WORKER")
    assert [claim["task"]["worker"] for claim in ask("resume")["claims"]] == ["agent"]


def test_files_that_were_set_aside_are_listed_counted_and_given_back(
    ask: Callable[..., Any], run: Callable[..., Answer], yard: Path
) -> None:
    assert ask("list")["set_aside"] == []
    (yard / "todo" / "good.json").write_text('{"kind": "build", "data": 1}')
    (yard / "todo" / "order 17.json").write_text('{"kind": "no kind"}')
    assert ask("janitor")["taken"] == 1
    data = ask("list")
    assert [task["kind"] for task in data["tasks"]] == ["build"]
    (entry,) = data["set_aside"]
    assert set(entry) == {"name", "reason", "at"}
    assert entry["name"] == "order 17"
    assert "kind" in entry["reason"]
    assert ask("list", "--state", "failed", "--state", "done")["set_aside"] == [entry]
    assert "set_aside" not in ask("list", "--state", "todo")
    assert "set_aside" not in ask("ready")
    assert ask("stats")["set_aside"] == 1
    assert "set aside: 1 file " in run("stats").out

    text = run("list").out
    table, block = text.split("\n\n")
    assert "build" in table
    assert block.splitlines()[0].startswith("Set aside")
    assert block.splitlines()[1].split()[:2] == ["order", "17"]
    assert entry["reason"] in block
    alone = run("list", "--state", "failed")
    assert (alone.out.splitlines()[0].split()[:2], alone.err) == (["Set", "aside"], "")
    assert run("list", "--state", "done").err == "no such tasks\n"

    assert ask("retry", "order 17", code=7)["message"].startswith("order 17 was set aside again: ")
    (yard / "failed" / "order 17.json").write_text('{"kind": "sharpen"}')
    assert ask("retry", "order 17") == {"task": None, "given_back": "order 17"}
    assert ask("list")["set_aside"] == []
    assert [task["kind"] for task in ask("list")["tasks"]] == ["build", "sharpen"]
    assert ask("retry", "order 17", code=7)["code"] == "conflict"  # it names the task that the file became


def test_a_set_aside_name_that_looks_like_an_id_is_given_back_too(ask: Callable[..., Any], yard: Path) -> None:
    (yard / "todo" / "0000.json").write_text("[]")
    (yard / "todo" / "abcd.json").write_text('{"priority": "high"}')
    ask("janitor")
    names = [entry["name"] for entry in ask("list")["set_aside"]]
    assert "abcd" in names
    (yard / "failed" / "abcd.json").write_text("{}")
    assert ask("retry", "abcd")["given_back"] == "abcd"
    assert [task["kind"] for task in ask("list")["tasks"]] == ["default"]


def test_a_set_aside_name_that_is_not_utf_8_is_shown_in_a_way_that_retry_understands(
    ask: Callable[..., Any], run: Callable[..., Answer], yard: Path
) -> None:
    (yard / "todo" / "100% caf\udce9.json").write_text('{"kind": "no kind"}')
    ask("janitor")
    (entry,) = ask("list")["set_aside"]
    assert entry["name"] == "100%25 caf%E9"
    assert entry["name"] in run("list").out
    assert ask("log")["events"][-1]["task"] == entry["name"]
    assert "set aside again" in ask("retry", entry["name"], code=7)["message"]
    (yard / "failed" / "100% caf\udce9.json").write_text('{"kind": "build"}')
    assert ask("retry", entry["name"])["given_back"] == entry["name"]
    assert [task["kind"] for task in ask("list")["tasks"]] == ["build"]


def test_a_pause_is_told_wherever_nothing_comes(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ask("add", "deploy")
    ask("pause")
    error = ask("claim", code=3)
    assert (error["code"], error["why"]["paused"]) == ("nothing_ready", {"yard": True, "kinds": []})
    assert error["message"] == "nothing is ready: paused: the whole yard"
    assert error["hint"] == "'taskyard unpause' ends the pause"
    assert "paused: the whole yard" in run("work", "--once", "--", "true").err
    assert ask("ready") == {"tasks": [], "next": None, "why": error["why"]}
    assert run("ready").err.splitlines() == [
        "nothing is ready: paused: the whole yard",
        "  'taskyard unpause' ends the pause",
    ]
    waited = run("claim", "--wait", "0.01")
    assert (waited.code, waited.err.splitlines()[0]) == (
        3,
        "taskyard: warning: paused: the whole yard; waiting all the same",
    )


def test_a_paused_kind_is_told_to_whom_it_concerns(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ask("add", "deploy")
    ask("pause", "deploy")
    assert ask("claim", code=3)["why"]["paused"] == {"yard": False, "kinds": ["deploy"]}
    assert ask("claim", "--kind", "deploy", code=3)["hint"] == "'taskyard unpause deploy' ends the pause"
    assert "paused" not in ask("claim", "--kind", "build", code=3)["why"]
    assert "paused" not in ask("ready", "--kind", "build")["why"]
    ask("add", "build")
    assert len(ask("ready")["tasks"]) == 1
    assert "paused: deploy" in run("ready").err


def test_a_dropped_file_has_one_spelling_of_each_key(ask: Callable[..., Any], yard: Path) -> None:
    (yard / "todo" / "a.json").write_text('{"task_id": "a", "n": 1}')
    (yard / "todo" / "b.json").write_text('{"taskId": "a", "n": 2}')
    (yard / "todo" / "c.json").write_text('{"taskId": "c", "task_id": "d"}')
    (yard / "todo" / "d.json").write_text('{"notBefore": "2026-01-31T12:00:00Z", "not_before": "2027-01-31T12:00:00Z"}')
    assert ask("janitor")["taken"] == 1
    aside = {entry["name"] for entry in ask("list")["set_aside"]}
    assert aside in ({"a", "c", "d"}, {"b", "c", "d"}), "of two files of one taskId one is the task"


def test_the_janitor_says_what_it_took_in(run: Callable[..., Answer], yard: Path) -> None:
    for number in range(3):
        (yard / "todo" / f"{number}.json").write_text(json.dumps({"taskId": f"t{number}", "operation": "sharpen"}))
    assert run("janitor").out.startswith("taken in 3, reaped 0, woken 0")
