"""Two-way sync of one file: what people write reaches the yard, what workers do reaches the file, and neither overwrites the other."""

from __future__ import annotations

import pytest

from taskyard.core.errors import Conflict
from tests.conftest import taken
from tests.tasksmd.conftest import Plan, codes

TABLE = """# Launch

## M1

| id | status | description | issue | agent | depends_on | notes |
|----|--------|-------------|-------|-------|------------|-------|
| T1 | not-started | Build it   | #1 | — | — | see  |
| T2 | not-started | Ship it    | #2 | — | T1 | |

Prose.
"""
LIST = "# Tasks\r\n\r\n- [ ] Build it  \r\n- [ ] Ship it\r\n\r\nProse.\r\n"
TASKS_MD = """## P0

- [ ] Build it
  - **ID**: build
  - **Details**: with care
## P2

- [ ] Ship it
  - **Blocked by**: build
- [ ] Tell them
  - **Blocked by**: build
"""
BOARD = "## Todo\n\n### Build it\nwith care\n\n### Ship it\n\n## In Progress\n\n## Done\n"


def test_a_table_becomes_tasks_once(plan: Plan) -> None:
    plan.write(TABLE)
    report = plan.sync()
    assert (report.dialect, report.added) == ("mosaic", ["T1", "T2"])
    tasks = plan.tasks()
    assert tasks["Build it"].data == {"issue": "#1", "notes": "see"}
    assert tasks["Ship it"].after == [tasks["Build it"].id]
    assert plan.text == TABLE.replace("| T2 | not-started |", "| T2 | blocked |")
    again = plan.sync()
    assert (again.changed, again.rows, len(plan.tasks())) == (False, 2, 2)


def test_what_a_worker_does_shows_in_the_file_and_nothing_else_changes(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    claim = taken(plan.yard.claim(worker="bob"))
    plan.sync()
    assert "| T1 | in-progress | Build it   | #1 | bob | — | see  |" in plan.text
    claim.done()
    plan.sync()
    wanted = TABLE.replace("| T1 | not-started | Build it   | #1 | — |", "| T1 | done | Build it   | #1 | bob |")
    assert plan.text == wanted


def test_edited_words_are_edited_in_the_yard(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.replace("Ship it    | #2 | — | T1 |", "Ship all   | #3 | carol | — |")
    report = plan.sync()
    assert report.edited == ["T2"]
    task = plan.tasks()["Ship all"]
    assert (task.assignee, task.after, task.data, str(task.state)) == ("carol", [], {"issue": "#3"}, "todo")


def test_edited_tasks_are_edited_in_the_file(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    tasks = plan.tasks()
    plan.yard.edit(tasks["Ship it"].id, title="Ship | all", after=[], assignee="bob", data={"issue": "#9", "more": 1})
    plan.sync()
    assert "| T2 | not-started | Ship \\| all | #9 | bob | — | |" in plan.text
    assert not plan.sync().changed


def test_a_new_line_becomes_a_task_and_a_new_task_a_line(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    shorts = [task.short for task in plan.yard.find()]
    assert plan.text == (
        f"# Tasks\r\n\r\n- [ ] Build it <!-- id: {shorts[0]} -->  \r\n- [ ] Ship it <!-- id: {shorts[1]} -->\r\n\r\nProse.\r\n"
    )
    new = plan.yard.add("review", title="Look at it")
    plan.replace("Prose.", "- [ ] Tell them\r\n\r\nProse.")
    plan.sync()
    assert f"- [ ] Look at it <!-- id: {plan.yard.get(new.id).short} -->\r\n" in plan.text
    assert set(plan.states()) == {"Build it", "Ship it", "Look at it", "Tell them"}
    assert plan.text.endswith("Prose.\r\n")
    assert "\n" not in plan.text.replace("\r\n", "")
    assert not plan.sync().changed


def test_a_checked_box_is_done_in_the_name_of_the_person(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    plan.replace("[ ] Build", "[x] Build")
    report = plan.sync()
    assert plan.states() == {"Build it": "done", "Ship it": "todo"}
    assert len(report.ended) == 1
    assert plan.yard.report(plan.tasks()["Build it"].id).history[-1]["worker"] == "ada"
    assert not plan.sync().changed


def test_a_box_cannot_end_what_a_worker_holds_or_what_is_blocked(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    claim = taken(plan.yard.claim(worker="bob"))
    plan.sync()
    plan.replace("| T1 | in-progress |", "| T1 | done |")
    plan.replace("| T2 | blocked |", "| T2 | done |")
    report = plan.sync()
    assert codes(report) == ["status", "status"]
    assert "bob works on it" in report.notices[0]["message"]
    assert "| T1 | in-progress |" in plan.text
    assert "| T2 | blocked |" in plan.text
    claim.done()


def test_statuses_that_people_give_are_verbs(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.replace("| T2 | blocked |", "| T2 | cancelled |")
    plan.sync()
    assert plan.states()["Ship it"] == "cancelled"
    taken(plan.yard.claim(worker="bob")).fail("broken", retry=False)
    plan.sync()
    assert "| T1 | failed |" in plan.text
    plan.replace("| T1 | failed |", "| T1 | not-started |")
    plan.sync()
    assert plan.states()["Build it"] == "todo"
    assert "| T1 | not-started | Build it   | #1 | — |" in plan.text
    plan.replace("| T1 | not-started |", "| T1 | in-progress |")
    assert "taskyard claim" in plan.sync().notices[0]["message"]
    assert "| T1 | not-started |" in plan.text


def test_rows_that_are_done_already_come_in_as_done(plan: Plan) -> None:
    plan.write("- [x] Old\n- [ ] New\n")
    plan.sync()
    assert plan.states() == {"Old": "done", "New": "todo"}
    assert "- [x] Old <!-- id: " in plan.text


def test_what_waits_for_review_is_accepted_or_sent_back_in_the_file(plan: Plan) -> None:
    for title in ("One", "Two"):
        plan.yard.add("task", title=title, review=True)
        taken(plan.yard.claim(worker="bob")).done({"ok": True})
    plan.sync()
    assert plan.text.count("| needs-qa |") == 2
    one, two = (line for line in plan.text.splitlines() if "needs-qa" in line)
    plan.replace(one, one.replace("needs-qa", "done"))
    plan.replace(two, two.replace("needs-qa", "not-started"))
    plan.sync()
    assert plan.states() == {"One": "done", "Two": "todo"}


def test_the_same_field_edited_on_both_sides_is_a_conflict_until_the_next_edit(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    id = plan.tasks()["Build it"].id
    plan.yard.edit(id, title="Build with care", data={"issue": "#1", "notes": "new"})
    plan.replace("Build it ", "Build fast ")
    report = plan.sync()
    [conflict] = report.conflicts
    assert (conflict["row"], conflict["field"], conflict["file"], conflict["yard"]) == (
        "T1", "title", "Build fast", "Build with care",
    )  # fmt: skip
    assert 'Build fast <!-- taskyard: conflict, the yard has title "Build with care"' in plan.text
    assert "| new  |" in plan.text, "another field of the same row is no conflict"
    assert plan.yard.get(id).title == "Build with care"
    assert [one["row"] for one in plan.status().conflicts] == ["T1"]
    assert (plan.sync().changed, len(plan.sync().conflicts)) == (False, 1)
    plan.replace("Build fast <", "Build both <")
    assert plan.sync().conflicts == []
    assert plan.yard.get(id).title == "Build both"
    assert "taskyard:" not in plan.text


def test_a_conflict_is_settled_by_an_edit_in_the_yard_or_by_taking_the_remark_out(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    id = plan.tasks()["Build it"].id
    for number, settle in enumerate(("yard", "remark")):
        plan.yard.edit(id, title=f"Yard {number}")
        line = next(line for line in plan.text.splitlines() if "| T1 |" in line)
        plan.replace(line.split("|")[3], f" File {number} ")
        assert len(plan.sync().conflicts) == 1
        if settle == "yard":
            plan.yard.edit(id, title="Yard wins")
        else:
            line = next(line for line in plan.text.splitlines() if "taskyard:" in line)
            plan.replace(line[line.index(" <!-- taskyard") : line.index("-->") + 3], "")
        assert plan.sync().conflicts == []
        assert plan.yard.get(id).title == ("Yard wins" if settle == "yard" else "File 1")
        assert f"| {plan.yard.get(id).title}" in plan.text
        assert "taskyard:" not in plan.text


def test_the_same_edit_on_both_sides_is_no_conflict(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.yard.edit(plan.tasks()["Build it"].id, title="Build all")
    plan.replace("Build it", "Build all")
    report = plan.sync()
    assert (report.conflicts, report.changed) == ([], False)


def test_an_edit_of_what_a_worker_holds_stays_in_the_file_until_it_can_be_made(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    claim = taken(plan.yard.claim(worker="bob"))
    plan.replace("Build it", "Build all")
    report = plan.sync()
    assert codes(report) == ["held"]
    assert "Build all" in plan.text
    claim.release()
    plan.sync()
    assert plan.yard.get(claim.task.id).title == "Build all"
    assert not plan.sync().changed


def test_a_deleted_line_cancels_with_a_notice(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.delete("| T2 |")
    report = plan.sync()
    assert (codes(report), report.removed) == (["removed"], ["T2"])
    assert plan.states() == {"Build it": "todo", "Ship it": "cancelled"}
    assert "T2" not in plan.text


def test_a_deleted_line_comes_back_if_the_task_has_changed_or_is_held(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.delete("Build it")
    claim = taken(plan.yard.claim(worker="bob"))
    report = plan.sync()
    assert codes(report) == ["back"]
    assert (
        "| T1 | in-progress | Build it | #1 | bob |" not in plan.text
    )  # columns of people's own are in the yard's data
    assert "| T1 | in-progress | Build it |" in plan.text
    plan.delete("Build it")
    assert codes(plan.sync()) == ["back"]
    claim.done()


def test_in_tasks_md_completed_tasks_are_deleted_both_ways(plan: Plan) -> None:
    plan.write(TASKS_MD)
    plan.sync()
    tasks = plan.tasks()
    assert [(task.priority, str(task.state)) for task in tasks.values()] == [
        (0, "todo"),
        (2, "blocked"),
        (2, "blocked"),
    ]
    assert tasks["Build it"].data == {"details": "with care"}
    claim = taken(plan.yard.claim(worker="bob"))
    plan.sync()
    assert "- [ ] Build it (@bob)\n" in plan.text
    claim.done()
    plan.sync()
    assert "Build it" not in plan.text
    assert "with care" not in plan.text
    text = plan.text
    plan.write(text[: text.index("- [ ] Ship it")] + text[text.index("- [ ] Tell them") :])
    report = plan.sync()
    assert "which means completed" in report.notices[0]["message"]
    assert plan.states() == {"Build it": "done", "Ship it": "done", "Tell them": "todo"}


def test_a_priority_is_a_section(plan: Plan) -> None:
    plan.write(TASKS_MD)
    plan.sync()
    ship = plan.tasks()["Ship it"]
    plan.yard.edit(ship.id, priority=1)
    plan.sync()
    assert "## P1\n\n- [ ] Ship it\n" in plan.text
    block = "- [ ] Build it\n  - **ID**: build\n  - **Details**: with care\n"
    plan.write(plan.text.replace(block, "") + f"## P3\n\n{block}")
    plan.sync()
    assert plan.tasks()["Build it"].priority == 3
    assert not plan.sync().changed


def test_a_board_moves_tasks_between_its_sections(plan: Plan) -> None:
    plan.write(BOARD)
    plan.sync()
    claim = taken(plan.yard.claim(worker="bob"))
    assert claim.task.data == {"details": "with care"}
    plan.sync()
    assert "## In Progress\n\n### Build it\n<!-- id: " in plan.text
    claim.done()
    plan.sync()
    assert plan.text.index("## Done") < plan.text.index("### Build it") < plan.text.index("with care")
    ship = plan.text[plan.text.index("### Ship it") : plan.text.index("## In Progress")]
    plan.write(plan.text.replace(ship, "") + ship)
    plan.sync()
    assert plan.states() == {"Build it": "done", "Ship it": "done"}
    assert not plan.sync().changed


def test_a_task_cancelled_in_the_yard_leaves_a_check_list_and_stays_in_a_table(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    plan.yard.cancel(plan.tasks()["Ship it"].id)
    report = plan.sync()
    assert codes(report) == ["ended"]
    assert "Ship it" not in plan.text
    assert not plan.sync().changed


def test_a_file_that_is_not_there_is_made_and_one_that_has_gone_is_missed(plan: Plan) -> None:
    plan.yard.add("build", title="One")
    plan.sync(dialect="checklist")
    assert plan.text.startswith("- [ ] One <!-- id: ")
    plan.path.unlink()
    with pytest.raises(Conflict, match="is gone, and had 1 tasks"):
        plan.sync()
    plan.write(" \n")
    with pytest.raises(Conflict, match="is empty"):
        plan.sync()
    assert plan.states() == {"One": "todo"}


def test_a_file_has_the_tasks_of_its_mission_alone(plan: Plan) -> None:
    plan.yard.add("build", title="Other", mission="other")
    plan.yard.add("build", title="None")
    plan.mission = "launch"
    plan.write("- [ ] Mine\n")
    plan.sync()
    assert plan.tasks()["Mine"].mission == "launch"
    assert "Other" not in plan.text
    assert "None" not in plan.text
    plan.mission = None
    assert not plan.sync().changed, "the mission is known by now"
    plan.mission = "other"
    with pytest.raises(Conflict, match="the mission launch"):
        plan.sync()


def test_status_changes_nothing(plan: Plan) -> None:
    plan.write(TABLE)
    report = plan.status()
    assert (report.added, report.written) == (["T1", "T2"], False)
    assert plan.states() == {}
    assert [path.name for path in plan.path.parent.iterdir() if "TASKS" in path.name] == ["TASKS.md"]
    plan.sync()
    plan.replace("Build it", "Build all")
    plan.delete("| T2 |")
    report = plan.status()
    assert (report.edited, report.removed) == (["T1"], ["T2"])
    assert plan.states() == {"Build it": "todo", "Ship it": "blocked"}


def test_the_yard_lists_a_conflict_until_it_is_settled(plan: Plan) -> None:
    def needed() -> list[tuple[str, str, str]]:
        entries = plan.yard.overview()["needs"]["file_conflicts"]["entries"]
        assert all(entry["file"].endswith(str(plan.path)) for entry in entries)
        return [(entry["row"], entry["in_file"], entry["in_yard"]) for entry in entries]

    plan.write(TABLE)
    plan.sync()
    id = plan.tasks()["Build it"].id
    plan.yard.edit(id, title="Build with care")
    plan.replace("Build it ", "Build fast ")
    assert plan.status().conflicts
    assert needed() == [], "a look changes nothing"
    plan.sync()
    assert needed() == [("T1", "Build fast", "Build with care")]
    before = plan.yard.log_end()
    plan.write(f"A line above\n{plan.text}")
    plan.sync()
    assert list(plan.yard.events(cursor=before)) == []
    plan.replace("Build fast <", "Build both <")
    plan.sync()
    assert needed() == []


def test_a_file_whose_notes_are_lost_takes_its_conflicts_off_the_list(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.yard.edit(plan.tasks()["Build it"].id, title="Build with care")
    plan.replace("Build it ", "Build fast ")
    plan.sync()
    plan.path.with_name(".TASKS.md.taskyard").unlink()
    line = next(line for line in plan.text.splitlines() if "| T1 |" in line)
    plan.replace(line, "| T1 | not-started | Build with care | #1 | — | — | see  |")
    plan.sync()
    assert plan.yard.overview()["needs"]["file_conflicts"]["count"] == 0


@pytest.mark.parametrize("text", [TABLE, LIST, TASKS_MD, BOARD], ids=["mosaic", "checklist", "tasks.md", "board"])
def test_a_line_that_the_yard_has_moved_is_reported(plan: Plan, text: str) -> None:
    plan.write(text)
    plan.sync()
    taken(plan.yard.claim(worker="bob")).done()
    before = plan.text
    report = plan.sync()
    assert plan.text != before
    assert len(report.shown) >= 1


def test_a_task_of_another_priority_is_reported_where_sections_are_priorities(plan: Plan) -> None:
    plan.write(TASKS_MD)
    plan.sync()
    plan.yard.edit(plan.tasks()["Build it"].id, priority=2)
    assert plan.sync().shown == ["build"]
    assert plan.text.index("## P2") < plan.text.index("Build it")


def test_a_look_counts_new_lines_that_have_ended_already_as_the_sync_does(plan: Plan) -> None:
    plan.write("- [ ] Build it\n- [x] Ship it\n")
    assert plan.status().ended == ["Ship it"]
    assert len(plan.sync().ended) == 1
