"""`export`: JSON Lines, Markdown and the log, to stdout and to a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import taskyard
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

    Ask = Callable[..., Any]
    Run = Callable[..., Answer]


def fill(yard: Path) -> dict[str, str]:
    """A few tasks, by title."""
    with taskyard.open(yard, worker="ada") as opened:
        plan = opened.add("plan", {"n": 1}, title="Plan [it] <b>", mission="launch")
        build = opened.add("build", title="Build", after=[plan.id], priority=2)
        claim = opened.claim(plan.id)
        assert claim is not None
        claim.done({"path": "plan.md"})
        claim = opened.claim(build.id)
        assert claim is not None
        claim.fail("no *compiler*", retry=False)
        test = opened.add("test", title="Test", after=[build.id])
        held = opened.add("test", title="Held")
        opened.claim(held.id)
    return {"plan": plan.id, "build": build.id, "test": test.id, "held": held.id}


def test_json_lines_have_a_head_tasks_events_and_an_end(run: Run, yard: Path) -> None:
    ids = fill(yard)
    lines = [json.loads(line) for line in run("export").out.splitlines()]
    assert lines[0]["taskyard"] == "export"
    tasks = {line["task"]["id"]: line["task"] for line in lines if "task" in line}
    assert set(tasks) == set(ids.values())
    assert (tasks[ids["plan"]]["data"], tasks[ids["plan"]]["result"]) == ({"n": 1}, {"path": "plan.md"})
    assert "result" not in tasks[ids["test"]]
    assert lines[-1]["end"] == {"tasks": 4, "events": sum("event" in line for line in lines), "files": 0, "exact": True}


def test_filters_choose_tasks_and_such_a_part_cannot_be_imported(run: Run, yard: Path) -> None:
    ids = fill(yard)
    for words, names in (
        (("--state", "failed"), ["build"]),
        (("--kind", "test"), ["test", "held"]),
        (("--mission", "launch"), ["plan"]),
        (("--state", "open", "--kind", "test"), ["test", "held"]),
    ):
        lines = [json.loads(line) for line in run("export", *words).out.splitlines()]
        assert {line["task"]["id"] for line in lines[1:-1]} == {ids[name] for name in names}
        assert lines[0]["whole"] is False
    run("export", "part.jsonl", "--state", "failed")
    answer = run("import", "taskyard", "part.jsonl", "--yard", "elsewhere")
    assert (answer.code, "a part of a yard" in answer.err) == (2, True)


def test_markdown_is_a_check_list_in_which_no_word_of_a_task_is_a_mark(run: Run, yard: Path) -> None:
    ids = fill(yard)
    text = run("export", "--format", "markdown").out
    assert f"- [x] Plan \\[it\\] \\<b\\> <!-- id: {ids['plan']} -->" in text
    assert f"- [/] Held \\(@ada\\) <!-- id: {ids['held']} -->" in text
    assert "  - **Error**: no \\*compiler\\*" in text
    assert f"  - **Blocked by**: {ids['build']}" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## processing", "## blocked", "## failed", "## done",
    ]  # fmt: skip
    assert "## done" not in run("export", "--format", "markdown", "--state", "open").out


def test_exported_markdown_can_be_imported_as_a_check_list(ask: Ask, run: Run, yard: Path, place: Path) -> None:
    ids = fill(yard)
    run("export", "--format", "markdown", "list.md")
    run("init", "other")
    told = ask("import", "checklist", "list.md", "--yard", "other")
    rows = {row["from"]: row for row in told["tasks"]}
    assert rows[ids["plan"]]["title"] == "Plan [it] <b>"
    assert {id: row["state"] for id, row in rows.items()} == {
        ids["plan"]: "done", ids["build"]: "todo", ids["test"]: "blocked", ids["held"]: "todo",
    }  # fmt: skip


def test_events_are_the_log_one_a_line(run: Run, ask: Ask, yard: Path) -> None:
    fill(yard)
    events = [json.loads(line) for line in run("export", "--format", "events").out.splitlines()]
    assert events == ask("log", "--limit", "1000")["events"]
    only = [json.loads(line) for line in run("export", "--format", "events", "--kind", "plan").out.splitlines()]
    assert [event["event"] for event in only] == ["added", "claimed", "done"]
    assert ask("export", "x", "--format", "events", "--state", "done", code=2)["code"] == "invalid"


def test_a_file_appears_whole_or_not_at_all(ask: Ask, run: Run, yard: Path, place: Path) -> None:
    fill(yard)
    (place / "yard.jsonl").write_text("old", encoding="utf-8")
    assert ask("export", "yard.jsonl", "--format", "events", "--kind", "a b", code=2)
    assert (place / "yard.jsonl").read_text(encoding="utf-8") == "old"
    assert ask("export", "yard.jsonl")["tasks"] == 4
    assert len((place / "yard.jsonl").read_text(encoding="utf-8").splitlines()) > 5
    assert ask("export", "nowhere/yard.jsonl", code=8)["code"] == "unavailable"
    assert sorted(path.name for path in place.iterdir()) == [".taskyard", "yard.jsonl"]


def test_one_value_and_many_lines_exclude_each_other(ask: Ask, yard: Path) -> None:
    assert "name a FILE" in ask("export", code=2)["hint"]
    assert "jsonl" in ask("export", "x", "--format", "yaml", code=2)["hint"]


def test_an_import_of_an_export_says_what_it_would_do_and_takes_no_other_options(ask: Ask, yard: Path) -> None:
    fill(yard)
    ask("export", "yard.jsonl")
    assert ask("import", "taskyard", "yard.jsonl", "--dry-run")["tasks"] == 4
    assert "--kind" in ask("import", "taskyard", "yard.jsonl", "--kind", "x", code=2)["message"]
    assert "stdin" in ask("import", "taskyard", "-", code=2)["message"]


def test_through_a_gateway_people_read_and_parcels_are_refused(run: Run, yard: Path) -> None:
    ids = fill(yard)
    with taskyard.open(yard, worker="gateway") as near:
        gateway = Running({"default": near})
        try:
            far = ("--yard", gateway.url())
            assert ids["plan"] in run("export", "--format", "markdown", *far).out
            assert '"event": "claimed"' in run("export", "--format", "events", *far).out
            answer = run("export", *far)
            assert (answer.code, "beside the gateway" in answer.err) == (2, True)
        finally:
            gateway.stop()
