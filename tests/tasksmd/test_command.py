"""`taskyard sync`, as it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cli.conftest import ask, place, run, yard  # noqa: F401  fixtures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_sync_answers_what_it_did(ask: Callable[..., Any], place: Path) -> None:  # noqa: F811
    (place / "TASKS.md").write_text("- [ ] One\n- [x] Two\n")
    told = ask("sync", "TASKS.md")
    assert (told["dialect"], told["rows"], len(told["added"]), len(told["ended"])) == ("checklist", 2, 2, 1)
    assert {task["title"]: task["state"] for task in ask("list")["tasks"]} == {"One": "todo", "Two": "done"}
    assert ask("sync", "TASKS.md", "--status")["added"] == []


def test_a_name_that_was_not_there_is_told_of_as_a_new_file(
    ask: Callable[..., Any],  # noqa: F811
    run: Callable[..., Any],  # noqa: F811
    place: Path,  # noqa: F811
) -> None:
    (place / "TASKS.md").write_text("- [ ] One\n")
    assert run("sync", "TASKS.md").out.startswith("TASKS.md: 1 task, ")
    assert run("sync", "TAKS.md", "--status").out.startswith("TAKS.md: a new file, ")
    assert not (place / "TAKS.md").exists()
    assert run("sync", "TAKS.md").out.startswith("TAKS.md: a new file, 1 task, ")
    assert [ask("sync", name)["made"] for name in ("TASKS.md", "TAKS.md", "more.md")] == [False, False, True]


def test_exit_codes_of_a_sync(ask: Callable[..., Any], run: Callable[..., Any], place: Path) -> None:  # noqa: F811
    file = place / "TASKS.md"
    file.write_text("| id | status | title |\n|---|---|---|\n| A | not-started | One |\n")
    ask("sync", "TASKS.md", "--kind", "plan", "--mission", "launch")
    [task] = ask("list", "--mission", "launch")["tasks"]
    assert (task["kind"], task["title"]) == ("plan", "One")
    file.write_text(file.read_text().replace("One", "Here"))
    ask("edit", task["id"], "--title", "There")
    assert ask("sync", "TASKS.md", "--status", code=1)["conflicts"][0]["yard"] == "There"
    assert "conflict in line 3, A" in run("sync", "TASKS.md").out
    file.write_text("<<<<<<< HEAD\n")
    assert ask("sync", "TASKS.md", code=7)["code"] == "conflict"
    assert ask("sync", "TASKS.md", "--watch", "--status", code=2)["message"].startswith("--status looks once")
    assert ask("sync", "TASKS2.md", "--dialect", "org", code=2)["message"] == "there is no dialect 'org'"
    assert ask("sync", "missing/TASKS.md", code=8)["code"] == "unavailable"


def test_a_sync_speaks_for_the_worker_that_is_named(ask: Callable[..., Any], place: Path) -> None:  # noqa: F811
    (place / "TASKS.md").write_text("- [x] Done\n")
    ask("sync", "TASKS.md", "--worker", "carol")
    [task] = ask("list")["tasks"]
    assert task["worker"] == "carol"
