"""What a synced file and the yard disagree about is listed among what needs a person, on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Invalid

if TYPE_CHECKING:
    from taskyard import Yard


def conflict(task: str, number: int = 1, **more: Any) -> dict[str, Any]:
    return {"task": task, "row": "T1", "line": 3, "field": "title", "file": f"File {number}", "yard": "Yard", **more}


def listed(yard: Yard) -> dict[str, Any]:
    return dict(yard.overview()["needs"]["file_conflicts"])


def test_conflicts_of_a_file_are_listed_until_they_are_settled(yard: Yard) -> None:
    task = yard.add("build", title="Yard").id
    assert listed(yard) == {"count": 0, "entries": []}
    yard.set_file_conflicts("laptop:/plan/TASKS.md", [conflict(task)])
    [entry] = listed(yard)["entries"]
    assert (entry["id"], entry["short"], entry["file"]) == (task, yard.get(task).short, "laptop:/plan/TASKS.md")
    assert (entry["row"], entry["line"], entry["field"]) == ("T1", 3, "title")
    assert (entry["in_file"], entry["in_yard"]) == ("File 1", "Yard")
    assert entry["at"] >= yard.get(task).created_at[:19]
    assert yard.overview()["count"] >= 1
    yard.set_file_conflicts("laptop:/plan/TASKS.md", [conflict(task, 2, field="notes")])
    assert [(one["field"], one["in_file"]) for one in listed(yard)["entries"]] == [("notes", "File 2")]
    yard.set_file_conflicts("laptop:/plan/TASKS.md", [])
    assert listed(yard) == {"count": 0, "entries": []}


def test_each_file_has_its_own_conflicts_and_other_settings_stay(yard: Yard, yard_url: str) -> None:
    one, other = yard.add("build").id, yard.add("build").id
    before = yard.set_settings({"max_attempts": 7})
    yard.set_file_conflicts("a", [conflict(one)])
    with taskyard.open(yard_url) as second:
        second.set_file_conflicts("b", [conflict(other), conflict(other, 2)])
    assert sorted((entry["file"], entry["id"]) for entry in listed(yard)["entries"]) == sorted(
        [("a", one), ("b", other), ("b", other)]
    )
    yard.set_file_conflicts("b", [])
    assert [entry["file"] for entry in listed(yard)["entries"]] == ["a"]
    assert yard.settings() == before
    with pytest.raises(Invalid):
        yard.set_settings({"file_conflicts": None})


def test_a_task_that_has_ended_or_is_gone_needs_nobody(yard: Yard) -> None:
    ended = yard.add("build").id
    gone = ended[:-1] + ("1" if ended[-1] == "0" else "0")
    yard.set_file_conflicts("a", [conflict(ended), conflict(gone)])
    assert listed(yard)["count"] == 1
    yard.cancel(ended)
    assert listed(yard) == {"count": 0, "entries": []}


def test_of_many_conflicts_some_are_shown_and_all_counted(yard: Yard) -> None:
    task = yard.add("build").id
    yard.set_file_conflicts("a", [conflict(task, number, yard="y" * 9000) for number in range(300)])
    found = listed(yard)
    assert (found["count"], len(found["entries"])) == (300, 20)
    assert len(found["entries"][0]["in_yard"]) < 1000
    for number in range(60):
        yard.set_file_conflicts(f"file {number}", [conflict(task)])
    assert listed(yard)["entries"][0]["file"] == "file 59"
    assert listed(yard)["count"] <= 50 + 300


def test_the_same_conflicts_again_change_nothing(yard: Yard) -> None:
    task = yard.add("build").id
    before = yard.log_end()
    for _ in range(2):
        yard.set_file_conflicts("never", [])
        yard.set_file_conflicts("a", [conflict(task)])
    assert [(event["event"], event["file"], event["count"]) for event in yard.events(cursor=before)] == [
        ("file_conflicts", "a", 1)
    ]


@pytest.mark.parametrize("wrong", [
    {"task": "T1"}, {"task": None}, {"line": "3"}, {"field": 5}, {"yard": None},
])  # fmt: skip
def test_what_is_no_conflict_is_refused(yard: Yard, wrong: dict[str, Any]) -> None:
    task = yard.add("build").id
    with pytest.raises(Invalid):
        yard.set_file_conflicts("a", [{**conflict(task), **wrong}])
    with pytest.raises(Invalid):
        yard.set_file_conflicts("", [conflict(task)])
    assert listed(yard)["count"] == 0
