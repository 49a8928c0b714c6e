"""Files as they come: merged, copied, cut off, out of date, and large."""

from __future__ import annotations

import pytest

from taskyard.core.errors import Conflict, Invalid
from taskyard.doors.tasksmd import file
from taskyard.doors.tasksmd.sync import Run
from tests.conftest import taken
from tests.tasksmd.conftest import Plan, codes

LIST = "# Tasks\n\n- [ ] One\n- [ ] Two\n- [ ] Three\n"
TABLE = """| id | status | description |
|---|---|---|
| A | not-started | One |
| B | not-started | Two |
| C | not-started | Three |
"""


def test_conflict_markers_stop_a_sync_and_nothing_is_changed(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    taken(plan.yard.claim(worker="bob"))
    text = plan.text.replace("- [ ] Two", "<<<<<<< HEAD\n- [x] Two") + "=======\n>>>>>>> main\n"
    plan.write(text)
    before = plan.states()
    with pytest.raises(Conflict, match="line 4 is a conflict marker"):
        plan.sync()
    assert (plan.text, plan.states()) == (text, before)


def test_check_boxes_in_a_code_fence_are_no_tasks(plan: Plan) -> None:
    plan.write("- [ ] One\n\n```md\n- [ ] Not a task\n| id | status | title |\n|---|---|---|\n| X | done | no |\n```\n")
    plan.sync()
    assert set(plan.states()) == {"One"}


def test_a_line_that_is_put_into_a_fence_is_not_taken_for_deleted(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    line = next(line for line in plan.text.splitlines() if "Two" in line)
    plan.replace(line, f"```\n{line}\n```")
    text = plan.text
    report = plan.sync()
    assert codes(report) == ["hidden"]
    assert (plan.states()["Two"], plan.text) == ("todo", text)


def test_a_fence_that_is_never_closed_stops_a_sync(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    plan.replace("- [ ] Two", "```\n- [ ] Two")
    with pytest.raises(Conflict, match="never closed"):
        plan.sync()
    assert set(plan.states().values()) == {"todo"}


def test_a_table_whose_head_is_broken_loses_no_task(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.replace("| id | status |", "| id | stat |")
    with pytest.raises(Conflict, match="3 of 3 open tasks are gone"):
        plan.sync()
    assert set(plan.states().values()) == {"todo"}


def test_a_copied_line_with_its_id_gets_one_of_its_own(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    line = next(line for line in plan.text.splitlines() if "Two" in line)
    plan.replace(line, f"{line.replace('Two', 'Two again')}\n{line}\n{line}")
    report = plan.sync()
    assert codes(report) == ["copy", "copy"]
    assert len(report.added) == 2
    ids = [line[line.index("<!--") :] for line in plan.text.splitlines() if "<!--" in line]
    assert len(ids) == len(set(ids)) == 5
    assert line in plan.text, "the original keeps its id"
    assert sorted(task.title or "" for task in plan.yard.find()) == ["One", "Three", "Two", "Two", "Two again"]
    assert not plan.sync().changed


def test_a_copied_row_of_a_table_gets_an_id_of_its_own(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    plan.replace("| B | not-started | Two |\n", "| B | not-started | Two |\n| B | not-started | Two, again |\n")
    assert codes(plan.sync()) == ["copy"]
    assert "| B | not-started | Two |" in plan.text
    assert plan.text.count("| B |") == 1
    assert set(plan.states()) == {"One", "Two", "Two, again", "Three"}


def test_identical_lines_are_as_many_tasks(plan: Plan) -> None:
    plan.write("- [ ] Same\n- [x] Same\n- [ ] Same\n")
    plan.sync()
    assert sorted(str(task.state) for task in plan.yard.find()) == ["done", "todo", "todo"]
    assert not plan.sync().changed
    plan.write(plan.text + "- [ ] Same\n")
    plan.sync()
    assert len(plan.yard.find()) == 4
    first = plan.text.splitlines()[0]
    plan.replace(first, first.replace("[ ]", "[x]"))
    plan.sync()
    assert sorted(str(task.state) for task in plan.yard.find()) == ["done", "done", "todo", "todo"]


def test_a_line_that_comes_again_after_it_was_done_is_a_new_task(plan: Plan) -> None:
    plan.write("- [x] Water the plants\n- [ ] Other\n")
    plan.sync()
    plan.delete("Water")
    plan.sync()
    plan.write(plan.text + "- [ ] Water the plants\n")
    plan.sync()
    assert sorted(str(task.state) for task in plan.yard.find()) == ["done", "todo", "todo"]


def test_sync_conflict_copies_beside_it_are_ignored(plan: Plan) -> None:
    plan.write(LIST)
    for name in ("TASKS.sync-conflict-20260101-120000-ABC.md", "TASKS (conflicted copy).md", "TASKS.md.orig"):
        (plan.path.parent / name).write_text("- [ ] Copy\n")
    plan.sync()
    assert set(plan.states()) == {"One", "Two", "Three"}


def test_an_editor_that_saves_an_older_buffer_undoes_nothing(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    old = plan.text
    plan.yard.add("task", title="From the yard")
    plan.yard.edit(plan.tasks()["One"].id, title="One, better")
    taken(plan.yard.claim(plan.tasks()["Two"].id, worker="bob")).done()
    plan.sync()
    newest = plan.text
    plan.write(old.replace("Three", "Three, edited"))
    report = plan.sync()
    assert codes(report)[0] == "older"
    assert plan.states() == {"One, better": "todo", "Two": "done", "Three, edited": "todo", "From the yard": "todo"}
    assert plan.text == newest.replace("Three", "Three, edited")
    assert not plan.sync().changed


def test_an_older_buffer_without_ids_makes_no_second_tasks(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    synced = plan.text
    plan.write(LIST)
    plan.sync()
    assert plan.text == synced
    plan.write(LIST + "- [ ] Four\n")
    plan.sync()
    assert plan.text.startswith(synced)
    assert set(plan.states()) == {"One", "Two", "Three", "Four"}


def test_an_older_checkout_cancels_nothing(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    old = plan.text
    plan.yard.add_many([{"kind": "task", "title": f"New {number}"} for number in range(3)])
    plan.sync()
    newest = plan.text
    plan.write(old)
    assert codes(plan.sync()) == ["older"]
    assert plan.text == newest
    assert set(plan.states().values()) == {"todo"}


def test_an_edit_of_an_older_buffer_that_meets_a_newer_one_is_a_conflict(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    old = plan.text
    plan.yard.edit(plan.tasks()["One"].id, title="One, by the yard")
    plan.yard.edit(plan.tasks()["Two"].id, title="Two, by the yard")
    plan.sync()
    plan.write(old.replace("| C | not-started | Three", "| C | not-started | Three, here"))
    plan.sync()
    assert set(plan.states()) == {"One, by the yard", "Two, by the yard", "Three, here"}


def test_a_file_that_is_just_what_it_was_before_a_line_came_loses_no_task(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    old = plan.text
    plan.yard.add("task", title="From the yard")
    plan.sync()
    newest = plan.text
    for _ in range(3):  # as an editor does that saves its buffer by itself
        plan.write(old)
        report = plan.sync()
        assert codes(report) == ["kept"]
        assert "taskyard cancel" in report.notices[0]["message"]
        assert (plan.text, set(plan.states().values())) == (newest, {"todo"})


def test_a_line_that_came_last_is_deleted_if_a_person_says_so_or_a_later_one_is_there(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    plan.yard.add("task", title="Fourth")
    plan.sync()
    plan.delete("Fourth")
    assert codes(plan.sync(removals=True)) == ["removed"]
    assert plan.states()["Fourth"] == "cancelled"
    for title in ("Fifth", "Sixth"):
        plan.yard.add("task", title=title)
        plan.sync()
    plan.delete("Fifth")
    assert codes(plan.sync()) == ["removed"]
    assert plan.states()["Fifth"] == "cancelled"
    assert plan.states()["Sixth"] == "todo"


def test_an_older_buffer_ends_nothing_that_was_retried_since(plan: Plan) -> None:
    plan.write(TABLE)
    plan.sync()
    id = plan.tasks()["One"].id
    plan.yard.cancel(id)
    plan.sync()
    old = plan.text
    assert "| A | cancelled |" in old
    plan.yard.retry(id)
    plan.sync()
    plan.write(old)
    assert codes(plan.sync()) == ["older"]
    assert plan.states()["One"] == "todo"
    assert "| A | not-started |" in plan.text


def test_an_older_buffer_is_recognised_after_a_killed_sync(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.write(LIST)
    plan.sync()
    old = plan.text
    plan.yard.add_many([{"kind": "task", "title": f"New {number}"} for number in range(2)])
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_publish", _killed)  # the file is written, and nothing is noted after it
        with pytest.raises(KeyboardInterrupt):
            plan.sync()
    newest = plan.text
    assert "New 1" in newest
    plan.sync()
    plan.write(old.replace("Three", "Three, edited"))
    plan.sync()
    assert set(plan.states().values()) == {"todo"}
    assert plan.text == newest.replace("Three", "Three, edited")


def test_a_line_typed_in_the_place_of_one_without_an_id_is_a_task_of_its_own(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write(LIST)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_keep", _killed)  # the tasks are added, and their ids not written
        with pytest.raises(KeyboardInterrupt):
            plan.sync()
    plan.replace("- [ ] Two", "- [ ] Water the plants")
    plan.sync()
    assert set(plan.states()) == {"One", "Two", "Three", "Water the plants"}
    assert all(title in plan.text for title in plan.states())
    assert not plan.sync().changed


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_cut_off_in_the_middle_changes_nothing(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    whole, before = plan.text, plan.states()
    for end in range(1, len(whole)):
        if whole[end] == "\n" or whole[end - 1] == "\n":
            continue
        plan.write(whole[:end])
        with pytest.raises(Conflict, match=r"cut off|gone"):
            plan.sync()
        assert plan.text == whole[:end]
    assert plan.states() == before
    plan.write(whole)
    assert not plan.sync().changed


def test_most_lines_gone_needs_a_word_more(plan: Plan) -> None:
    plan.write("".join(f"- [ ] Task {number}\n" for number in range(12)))
    plan.sync()
    text = plan.text
    plan.write("".join(text.splitlines(True)[:6]))
    with pytest.raises(Conflict, match="6 of 12 open tasks are gone"):
        plan.sync()
    assert set(plan.states().values()) == {"todo"}
    report = plan.sync(removals=True)
    assert len(report.removed) == 6
    assert sorted(plan.states().values()) == ["cancelled"] * 6 + ["todo"] * 6


def test_a_file_that_is_no_utf8_is_refused(plan: Plan) -> None:
    plan.path.write_bytes(b"- [ ] caf\xe9\n")
    with pytest.raises(Invalid, match="not UTF-8: byte 9"):
        plan.sync()


def test_a_line_that_can_be_no_task_is_named_and_left_alone(plan: Plan) -> None:
    plan.write(f"- [ ] {'x' * 501}\n- [ ] Fine\n")
    text = plan.text
    report = plan.sync()
    assert codes(report) == ["refused"]
    assert "line 1 cannot be a task" in report.notices[0]["message"]
    assert plan.text.splitlines()[0] == text.splitlines()[0]
    assert set(plan.states()) == {"Fine"}


def test_needs_in_a_circle_are_named_and_the_tasks_are_kept(plan: Plan) -> None:
    plan.write(
        "| id | status | title | depends_on |\n|---|---|---|---|\n| A | not-started | One | B |\n| B | not-started | Two | A, X |\n"
    )
    report = plan.sync()
    assert set(codes(report)) == {"after"}
    assert set(plan.states()) == {"One", "Two"}


def test_hostile_titles_stay_in_their_rows(plan: Plan) -> None:
    plan.write(LIST)
    plan.sync()
    evil = (
        "x <!-- id: 0-aaaa -->",
        "-->",
        "<!-- open",
        "| a | b |",
        "- [x] y",
        "```",
        "## P0",
        "(@bob)",
        "\\",
        "# T",
        "&lt;!--",
    )
    plan.yard.add_many([{"kind": "task", "title": title} for title in evil])
    plan.sync()
    assert not plan.sync().changed
    assert set(plan.states().values()) == {"todo"}
    assert set(plan.states()) == {"One", "Two", "Three", *evil}


def test_a_file_that_belongs_to_another_yard_is_refused(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> None:
    import taskyard

    plan.write(LIST)
    plan.sync()
    with taskyard.init(str(tmp_path_factory.mktemp("other") / "yard"), worker="ada") as other:
        text = plan.text
        with pytest.raises(Conflict, match="was synced with another yard"):
            Plan(other, plan.path).sync()
        assert plan.text == text
        assert list(other.find()) == []


def test_a_byte_order_mark_stays_and_hides_no_task(plan: Plan) -> None:
    plan.write("\ufeff- [ ] One\r\n- [ ] Two")
    plan.sync()
    assert set(plan.states()) == {"One", "Two"}
    assert plan.text.startswith("\ufeff- [ ] One <!-- id: ")
    assert not plan.sync().changed


def test_boxes_in_front_matter_and_in_indented_code_are_no_tasks(plan: Plan) -> None:
    text = "---\ntasks:\n- [ ] Matter\n---\n\nSo:\n\n    - [ ] Code\n    - [ ] More code\n\n    - [ ] Still code\n\n- [ ] One\n\n    - [ ] Part\n\n\t- [ ] Tab\n"
    plan.write(text)
    plan.sync()
    assert set(plan.states()) == {"One", "Part", "Tab"}
    assert plan.text.startswith(text[: text.index("- [ ] One")])
    assert not plan.sync().changed


def test_a_rule_at_the_beginning_is_no_front_matter(plan: Plan) -> None:
    plan.write("---\n\n- [ ] One\n")
    plan.sync()
    assert set(plan.states()) == {"One"}


@pytest.mark.parametrize("fence", ["```", "~~~~", "   ```", "> ```"])
def test_boxes_in_any_fence_are_no_tasks(plan: Plan, fence: str) -> None:
    plan.write(f"- [ ] One\n\n{fence} md\n- [ ] No\n~~~\n{fence}\n")
    plan.sync()
    assert set(plan.states()) == {"One"}


def test_a_row_of_a_cancelled_task_that_an_older_buffer_brings_back_revives_nothing(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write("| id | status | title |\n|---|---|---|\n| | not-started | One |\n| | not-started | Two |\n")
    plan.sync()
    old = plan.text
    plan.delete("One")
    plan.sync()
    assert plan.states()["One"] == "cancelled"
    plan.write(old)
    replace = file.replace

    def met_by_a_save(path: str, before: str | None, text: str) -> None:
        monkeypatch.setattr(file, "replace", replace)
        plan.write(plan.text + "\nProse\n")
        replace(path, before, text)

    monkeypatch.setattr(file, "replace", met_by_a_save)
    plan.sync()
    assert plan.states() == {"One": "cancelled", "Two": "todo"}
    assert "| cancelled | One |" in plan.text
