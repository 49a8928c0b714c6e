"""Each importer on a realistic sample: ids, states, priorities, edges, data, and what it says about the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken
from tests.importers.samples import SAMPLES, after, bring, states, tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture
def yard() -> Iterator[Yard]:
    with taskyard.init("memory:", worker="ada") as opened:
        yield opened


def test_beads_issues_keep_their_ids_states_priorities_and_edges(yard: Yard) -> None:
    imported = bring(yard, "beads", SAMPLES["beads"])
    assert states(yard, imported) == {
        "shop-a1f": "blocked",
        "shop-a1f.1": "done",
        "shop-a1f.2": "todo",
        "shop-9zz": "blocked",
        "shop-c07": "blocked",
        "shop-d11": "waiting",
        "shop-e20": "waiting",
    }
    found = tasks(yard, imported)
    assert {id: task.priority for id, task in found.items()} == {
        "shop-a1f": 2, "shop-a1f.1": 2, "shop-a1f.2": 0, "shop-9zz": 5, "shop-c07": 7, "shop-d11": 9, "shop-e20": 2,
    }  # fmt: skip
    assert [task.kind for task in found.values()] == ["epic", "task", "feature", "bug", "chore", "task", "task"]
    assert found["shop-9zz"].key == "beads:shop-9zz"
    assert after(yard, imported, "shop-a1f.2") == ["shop-a1f.1"]
    assert after(yard, imported, "shop-9zz") == ["shop-a1f.2"]
    assert after(yard, imported, "shop-a1f") == ["shop-a1f.2"], "an epic comes after those of its parts that are open"
    assert after(yard, imported, "shop-c07") == ["shop-a1f"]
    assert str(found["shop-e20"].not_before).startswith("2026-12-01T08:00:00")


def test_what_beads_says_beside_that_is_data_and_a_close_reason_is_the_result(yard: Yard) -> None:
    imported = bring(yard, "beads", SAMPLES["beads"])
    found = tasks(yard, imported)
    assert found["shop-a1f.1"].result == "merged as 4f1e2c"
    data = found["shop-a1f.2"].data
    assert data["comments"][0]["text"] == "Half way."
    assert data["imported"] == {
        "from": "beads", "id": "shop-a1f.2", "status": "in_progress", "assignee": "bert", "parent": "shop-a1f",
        "kind": "feature",
    }  # fmt: skip
    assert found["shop-a1f.2"].assignee is None, "any worker may take it"
    assert found["shop-9zz"].data["links"] == [{"type": "discovered-from", "id": "shop-a1f.1"}]
    assert found["shop-c07"].data["depends_on"] == ["shop-gone"]
    notes = "\n".join(imported.notes)
    for words in (
        "shop-a1f.2 was being worked on by bert",
        "comes after shop-gone, which is not in the file",
        "shop-d11 is held back until 'taskyard retry'",
        "shop-old was deleted there",
        "shop-m1 is a message",
    ):
        assert words in notes


def test_a_task_that_was_deferred_is_handed_out_once_it_is_retried(yard: Yard) -> None:
    imported = bring(yard, "beads", SAMPLES["beads"])
    id = tasks(yard, imported)["shop-d11"].id
    with pytest.raises(taskyard.Conflict):
        yard.claim(id)
    yard.retry(id)
    assert taken(yard.claim(id)).task.title == "Try a new font"


def test_taskmaster_tags_are_missions_and_subtasks_are_tasks_of_their_own(yard: Yard) -> None:
    imported = bring(yard, "taskmaster", SAMPLES["taskmaster"])
    assert states(yard, imported) == {
        "1": "done",
        "2": "blocked",
        "2.1": "done",
        "2.2": "todo",
        "2.3": "blocked",
        "3": "blocked",
        "4": "blocked",
        "5": "cancelled",
        "6": "todo",
        "new-search/1": "todo",
        "new-search/2": "blocked",
    }
    found = tasks(yard, imported)
    assert after(yard, imported, "2") == ["1", "2.2", "2.3"]
    assert after(yard, imported, "2.2") == ["2.1", "1"], "a part comes after what the whole comes after"
    assert sorted(after(yard, imported, "2.3")) == ["1", "2.1", "2.2"]
    assert after(yard, imported, "new-search/2") == ["new-search/1"]
    assert {id: task.priority for id, task in found.items()} == {
        "1": 2, "2": 2, "2.1": 2, "2.2": 2, "2.3": 2, "3": 5, "4": 8, "5": 8, "6": 5, "new-search/1": 2, "new-search/2": 8,
    }  # fmt: skip
    assert (found["new-search/1"].mission, found["1"].mission) == ("new-search", None)
    assert yard.mission("new-search")["brief"] == "Search that finds what people mean"
    assert found["2"].data["metadata"] == {"sprint": "Q1-S3"}
    assert found["1"].data["testStrategy"] == "CI is green on an empty commit."
    assert found["6"].review == "wanted"
    assert found["6"].needs_review


def test_a_taskmaster_file_without_tags_is_read_too(yard: Yard, tmp_path: object) -> None:
    file = f"{tmp_path}/tasks.json"
    with open(file, "w", encoding="utf-8") as stream:
        stream.write('{"meta": {}, "tasks": [{"id": 7, "title": "Old", "status": "pending", "dependencies": []}]}')
    imported = bring(yard, "taskmaster", file)
    assert [task.key for task in tasks(yard, imported).values()] == ["taskmaster:7"]


def test_claude_tasks_are_read_from_their_folder_with_both_ends_of_each_edge(yard: Yard) -> None:
    imported = bring(yard, "claude", SAMPLES["claude"])
    assert states(yard, imported) == {
        "web-crew/1": "done",
        "web-crew/2": "todo",
        "web-crew/10": "blocked",
        "web-crew/11": "blocked",
    }
    assert after(yard, imported, "web-crew/11") == ["web-crew/10"], "only the other end has this edge"
    found = tasks(yard, imported)
    assert found["web-crew/2"].key == "claude:web-crew/2"
    assert found["web-crew/2"].title == "Write the migration"
    assert found["web-crew/2"].data["metadata"] == {"files": ["db/0007.sql"]}
    assert found["web-crew/2"].data["imported"]["assignee"] == "backend"
    again = bring(yard, "claude", SAMPLES["claude"].parent)
    assert again.created == 0, "a folder of lists has the same tasks"


def test_a_labs_queue_is_imported_with_its_claims_and_the_events_beside_it(yard: Yard) -> None:
    imported = bring(yard, "lab", SAMPLES["lab"])
    assert states(yard, imported) == {
        "inspect-docs": "done",
        "run-validation": "todo",
        "publish-summary": "waiting",
        "spell-check": "todo",
    }
    found = tasks(yard, imported)
    assert found["inspect-docs"].result == {"completed_by": "docs-1", "completed_at": "2026-03-01T10:04:30Z"}
    assert found["run-validation"].kind == "validation"
    assert found["run-validation"].data["imported"]["assignee"] == "validator-1"
    assert taken(yard.claim(kinds="validation")).task.title == "run-validation"


def test_backlog_files_are_read_with_their_front_matter_and_sections(yard: Yard) -> None:
    imported = bring(yard, "backlog", SAMPLES["backlog"])
    assert states(yard, imported) == {
        "BACK-12": "blocked",
        "BACK-12.1": "todo",
        "BACK-13": "blocked",
        "BACK-11": "done",
    }
    found = tasks(yard, imported)
    assert sorted(after(yard, imported, "BACK-12")) == ["BACK-11", "BACK-12.1"], "ids are the same in any letters"
    assert after(yard, imported, "BACK-12.1") == ["BACK-11"]
    assert found["BACK-11"].result == "Every report has a table now."
    task = found["BACK-12"]
    assert (task.title, task.priority, task.mission) == ("Export: as CSV, with a header", 2, "M2 - Reports")
    assert task.data["imported"]["assignee"] == "carol"
    assert task.data["labels"] == ["export", "cli"]
    assert task.data["description"].endswith("## This heading is part of the description")
    assert task.data["acceptance_criteria"] == [
        {"text": "Commas in cells are quoted", "done": True},
        {"text": "The first line has the names of the columns", "done": False},
    ]
    assert "## Not a heading" in task.data["implementation_plan"]
    assert task.data["references"] == [
        "docs/formats/a-very-long-name-of-a-file-that-the-other-program-has folded-over-two-lines.md"
    ]
    assert (found["BACK-13"].kind, found["BACK-13"].data["assignees"]) == ("feature-request", ["@dora", "@carol"])
    notes = "\n".join(imported.notes)
    assert "README.md has no front matter" in notes
    assert "drafts is left out" in notes
    folder = SAMPLES["backlog"] / "backlog" / "drafts"
    assert states(yard, bring(yard, "backlog", folder)) == {"DRAFT-1": "waiting"}


def test_a_mosaic_project_brings_its_mission_its_queue_and_its_tables(yard: Yard) -> None:
    imported = bring(yard, "mosaic", SAMPLES["mosaic"])
    assert states(yard, imported) == {
        "RP-01": "done", "RP-02": "todo", "RP-03": "blocked", "RP-04": "todo", "RP-05": "waiting",
        "Q-1": "done", "Q-2": "failed", "Q-3": "blocked", "Q-4": "waiting",
    }  # fmt: skip
    found = tasks(yard, imported)
    assert {task.mission for task in found.values()} == {"Reports"}
    assert yard.mission("Reports")["brief"] == "Reports that people can read without us."
    assert after(yard, imported, "RP-03") == ["RP-01", "RP-02"]
    assert after(yard, imported, "Q-3") == ["RP-02"], "a queue and a table of one mission know each other"
    assert found["RP-01"].title == "Write the `totals` view | and its test."
    assert found["RP-01"].data == {
        "issue": "#12", "branch": "feat/totals", "estimate": "5K", "notes": "Keep it small.",
        "section": "Milestone 1 \u2014 Model",
        "imported": {"from": "mosaic", "id": "RP-01", "status": "done", "assignee": "sonnet"},
    }  # fmt: skip
    assert (found["Q-2"].timeout, found["Q-2"].max_attempts, found["Q-1"].max_attempts) == (600, 1, 2)
    assert str(found["Q-2"].error) == "failed before it was imported: gate lint failed"
    assert found["Q-1"].data["command"] == "make measure; rm -rf build", "a command of a task is data"
    assert found["Q-3"].needs_review


def test_mosaic_files_are_imported_one_by_one_too(yard: Yard, tmp_path: Path) -> None:
    root = SAMPLES["mosaic"]
    queue = bring(yard, "mosaic", root / ".mosaic" / "orchestrator" / "tasks.json")
    assert [row.item.id for row in queue.rows] == ["Q-1", "Q-2", "Q-3", "Q-4"]
    table = bring(yard, "mosaic", root / "docs" / "TASKS.md")
    assert tasks(yard, table)["RP-02"].mission == "reports-20260301"
    mission = tmp_path / "mission.json"
    mission.write_bytes((root / ".mosaic" / "orchestrator" / "mission.json").read_bytes())
    alone = bring(yard, "mosaic", mission)
    assert states(yard, alone) == {"phase-1": "done", "phase-2": "todo"}, "without tasks, the milestones are the plan"


def test_a_check_list_is_a_task_for_each_box_outside_of_code(yard: Yard) -> None:
    imported = bring(yard, "checklist", SAMPLES["checklist"])
    found = tasks(yard, imported)
    assert [(task.title, str(task.state), task.priority) for task in found.values()] == [
        ("Fix the login", "todo", 0),
        ("Rotate the keys", "done", 0),
        ("Write the notes", "blocked", 5),
        ("Collect the changes", "done", 5),
        ("Translate them", "todo", 5),
        ("Print a poster", "cancelled", 5),
        ("Check it", "todo", 5),
        ("Check it", "todo", 5),
    ]
    login = found["fix-login"]
    assert (login.key, after(yard, imported, "fix-login")) == ("checklist:fix-login", ["rotate-keys"])
    assert login.data == {
        "section": "Release 2.0 / P0",
        "tags": ["auth", "urgent"],
        "details": "Users are thrown out after a minute.",
        "imported": {"from": "checklist", "id": "fix-login", "assignee": "bert"},
    }
    translate = list(found.values())[4]
    assert translate.data["description"] == "into three languages\nand one more"
    again = bring(yard, "checklist", SAMPLES["checklist"])
    assert again.created == 0, "identical lines are two tasks, and the same two again"


@pytest.mark.parametrize("tool", SAMPLES)
def test_no_worker_is_ever_handed_what_was_done_elsewhere(yard: Yard, tool: str) -> None:
    imported = bring(yard, tool, SAMPLES[tool])
    done = {row.id for row in imported.rows if row.state == "done"}
    claimed = set()
    while (claim := yard.claim()) is not None:
        claimed.add(claim.task.id)
        claim.done()
    assert done
    assert not done & claimed
    assert {str(task.state) for task in yard.find(limit=100)} <= {"done", "failed", "waiting", "blocked", "cancelled"}
