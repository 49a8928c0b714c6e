"""`import` on the command line: the mapping, what is said about it, and what is done when it is said again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard
from tests.importers.samples import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

    Ask = Callable[..., Any]
    Run = Callable[..., Answer]

ISSUES = (
    '{"id": "bd-1", "title": "Plan", "status": "closed", "close_reason": "agreed"}\n'
    '{"id": "bd-2", "title": "Build", "assignee": "bert", "priority": 0, "issue_type": "feature",'
    ' "dependencies": [{"depends_on_id": "bd-1", "type": "blocks"}]}\n'
)


def test_a_dry_run_needs_no_yard_and_prints_the_mapping_row_by_row(run: Run, place: Path) -> None:
    answer = run("import", "beads", "-", "--dry-run", stdin=ISSUES)
    assert answer.code == 0
    rows = [line.split() for line in answer.out.splitlines()]
    assert rows[1:] == [
        ["bd-1", "new", "done", "5", "task", "Plan"],
        ["bd-2", "new", "todo", "0", "feature", "Build", "after", "bd-1"],
    ]
    assert "2 tasks would be imported (1 done)" in answer.err
    assert not list(place.iterdir())


def test_a_dry_run_changes_nothing_and_says_what_is_known(ask: Ask) -> None:
    told = ask("import", "beads", "-", "--dry-run", stdin=ISSUES)
    assert (told["dry_run"], told["created"], told["known"], told["ids"]) == (True, 2, 0, [None, None])
    assert sum(ask("stats")["counts"].values()) == 0
    ids = ask("import", "beads", "-", stdin=ISSUES)["ids"]
    told = ask("import", "beads", "-", "--dry-run", stdin=ISSUES)
    assert (told["created"], told["known"], told["ids"]) == (0, 2, ids)


def test_an_import_said_again_says_that_all_is_known(run: Run, yard: Path) -> None:
    assert "2 tasks imported (1 done)" in run("import", "beads", "-", stdin=ISSUES).err
    answer = run("import", "beads", "-", stdin=ISSUES)
    assert (answer.code, "0 tasks imported, 2 known already" in answer.err) == (0, True)
    answer = run("import", "beads", "-", stdin=ISSUES.replace("Build", "Construct"))
    assert "1 of which differ from the file and are left as they are" in answer.err


def test_options_choose_kind_mission_assignee_and_prefix(ask: Ask) -> None:
    ask(
        "import", "beads", "-", "--kind", "issue", "--mission", "launch", "--keep-assignee", "--prefix", "web", stdin=ISSUES
    )  # fmt: skip
    [line] = ask("list", "--state", "todo")["tasks"]
    task = ask("show", line["id"])["task"]
    assert (task["kind"], task["mission"], task["assignee"], task["key"]) == (
        "issue",
        "launch",
        "bert",
        "beads:web/bd-2",
    )
    assert ask("import", "beads", "-", stdin=ISSUES)["created"] == 2, "without the prefix these are others"


def test_only_what_is_open_is_imported_if_that_is_asked_for(ask: Ask) -> None:
    [task] = ask("import", "beads", "-", "--open-only", stdin=ISSUES)["tasks"]
    assert (task["from"], task["state"], task["after"]) == ("bd-2", "todo", [])


def test_the_history_of_a_done_task_says_who_ended_it_here(ask: Ask) -> None:
    first, _ = ask("import", "beads", "-", stdin=ISSUES)["ids"]
    told = ask("show", first)
    assert (told["task"]["state"], told["task"]["result"], told["task"]["worker"]) == ("done", "agreed", "import")
    assert [event["event"] for event in ask("log", "--task", first)["events"]] == ["added", "claimed", "done"]


def test_titles_that_are_no_line_are_made_one_and_kept_whole_as_data(ask: Ask) -> None:
    title = "a\\nb\\tc " + "x" * 600
    [task] = ask("import", "beads", "-", stdin=f'{{"id": "a", "title": "{title}"}}')["tasks"]
    assert (task["title"][:6], len(task["title"])) == ("a b c ", 500)
    assert ask("show", task["id"])["task"]["data"]["imported"]["title"].startswith("a\nb\tc ")
    [nameless] = ask("import", "beads", "-", stdin='{"id": "b", "title": ""}')["tasks"]
    assert nameless["title"] == "b"


def test_a_folder_of_taskmaster_is_searched_for_its_file(ask: Ask, place: Path) -> None:
    folder = place / ".taskmaster" / "tasks"
    folder.mkdir(parents=True)
    (folder / "tasks.json").write_bytes(SAMPLES["taskmaster"].read_bytes())
    assert ask("import", "taskmaster", ".")["created"] == 11


def test_a_yard_that_is_full_takes_all_or_nothing(ask: Ask, yard: Path) -> None:
    with taskyard.open(yard) as opened:
        opened.set_settings({"max_todo": 1})
    assert ask("import", "taskmaster", str(SAMPLES["taskmaster"]), code=7)["code"] == "full"
    assert sum(ask("stats")["counts"].values()) == 0
