"""add and add_many: what goes in comes back, and what can never be right is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Invalid, State
from taskyard.core import ids
from taskyard.core.draft import PAYLOAD_MOST

if TYPE_CHECKING:
    from taskyard import Yard

CONTROL = ["\n", "\t", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800"]


def test_a_new_task_is_in_todo_with_the_defaults(yard: Yard) -> None:
    task = yard.add("build")
    assert (task.kind, task.state, task.priority, task.data) == ("build", State.TODO, 5, None)
    assert (task.fence, task.attempts, task.max_attempts) == (0, 0, 3)
    empty = (
        task.title,
        task.not_before,
        task.key,
        task.mission,
        task.assignee,
        task.parent,
        task.worker,
        task.lease_until,
        task.progress,
    )
    assert set(empty) == {None}
    assert (task.result, task.error, list(task.after), list(task.uses)) == (None, None, [], [])
    assert task.created


def test_what_add_gives_is_what_get_gives(yard: Yard) -> None:
    task = yard.add("build", {"n": 1}, title="Build it", priority=2, mission="ship", assignee="bob", max_attempts=7)
    assert yard.get(task.id).as_dict() == task.as_dict()


def test_every_option_comes_back(yard: Yard) -> None:
    task = yard.get(
        yard.add("build", title="Build it", priority=0, mission="ship", assignee="bob", max_attempts=7, delay=60).id
    )
    assert (task.title, task.priority, task.mission, task.assignee, task.max_attempts) == (
        "Build it",
        0,
        "ship",
        "bob",
        7,
    )
    assert task.state is State.WAITING


def test_camel_case_is_accepted_in_objects(yard: Yard) -> None:
    [id] = yard.add_many([{"kind": "build", "maxAttempts": 4, "notBefore": "2050-01-01T00:00:00Z"}])
    task = yard.get(id)
    assert (task.max_attempts, task.not_before) == (4, "2050-01-01T00:00:00.000Z")


def test_an_id_has_the_one_shape_and_tells_when_the_task_was_made(yard: Yard) -> None:
    task = yard.add("build")
    assert ids.is_id(task.id)
    made = datetime.fromisoformat(task.created_at)
    assert abs(datetime.now(UTC) - made) < timedelta(minutes=1)
    assert task.created_at.endswith("Z")


def test_a_task_is_there_for_whoever_opens_the_yard(yard: Yard, yard_url: str) -> None:
    task = yard.add("build", {"n": 1})
    with taskyard.open(yard_url) as other:
        assert other.get(task.id).data == {"n": 1}


@pytest.mark.parametrize(
    "data",
    [
        None,
        True,
        0,
        -1.5e300,
        10**40,
        "",
        "naïve ☃ \U0001f680",
        'quotes " and \\ and / and \u2028 and \0 and \n',
        [],
        {},
        [[], [None, {"": ""}]],
        {"ключ": {"深": ["い", 1, 2.5, False]}},
        {"kind": "other", "id": "mine", "state": "done"},
        "$(rm -rf /); `x` ${HOME} %41",
    ],
)
def test_data_comes_back_exactly(yard: Yard, data: Any) -> None:
    task = yard.add("build", data)
    assert task.data == data
    assert yard.get(task.id).data == data
    claim = yard.claim()
    assert claim is not None
    assert claim.task.data == data


@pytest.mark.parametrize(
    "kind",
    [
        "k",
        "0",
        "übung",
        "任务",
        "a.b:c-d_e",
        "build:linux.x86",
        "a..b",
        "A",
        "a",
        "\u0131",
        "é" * 10,
        "x" * 60,
        "a" + "." * 19,
    ],
)
def test_odd_kinds_come_back_exactly(yard: Yard, kind: str) -> None:
    id = yard.add(kind).id
    assert yard.get(id).kind == kind
    assert [task.kind for task in yard.find(kind=kind)] == [kind]
    claim = yard.claim(kinds=kind)
    assert claim is not None
    assert claim.task.kind == kind
    assert yard.stats()["kinds"] == {kind: {"processing": 1}}


@pytest.mark.parametrize(
    "kind",
    [
        "",
        ".hidden",
        "-x",
        ":",
        "_x",
        "a b",
        "a/b",
        "../up",
        "a%b",
        "a\\b",
        "☃",
        "x" * 61,
        "é" * 11,
        "a" + "." * 20,
        "a\n",
    ],
)
def test_kinds_that_no_yard_could_keep_are_refused(yard: Yard, kind: str) -> None:
    with pytest.raises(Invalid):
        yard.add(kind)
    assert sum(yard.counts().values()) == 0


@pytest.mark.parametrize(
    "name",
    [
        "host/agent 1",
        "../../etc/passwd",
        ".",
        "..",
        "-x",
        "日本",
        "a%2Fb",
        "%41",
        "a'\"b",
        "~",
        "a.b",
        "*",
        "é" * 10,
        " ",
    ],
)
def test_odd_assignees_come_back_exactly_and_are_served(yard: Yard, name: str) -> None:
    id = yard.add("build", assignee=name).id
    assert yard.get(id).assignee == name
    claim = yard.claim(worker=name)
    assert claim is not None
    assert claim.task.assignee == name
    assert yard.get(id).worker == name


@pytest.mark.parametrize("text", ["a", "m" * 256, "☃" * 256, "a/b.c:d %41", "..", "mit Leerzeichen", "\U0001f680"])
def test_odd_missions_and_titles_come_back_exactly(yard: Yard, text: str) -> None:
    task = yard.get(yard.add("build", mission=text, title=text).id)
    assert (task.mission, task.title) == (text, text)
    assert [found.id for found in yard.find(mission=text)] == [task.id]


@pytest.mark.parametrize("letter", CONTROL)
@pytest.mark.parametrize("option", ["assignee", "mission", "title"])
def test_control_characters_are_refused(yard: Yard, option: str, letter: str) -> None:
    with pytest.raises(Invalid):
        yard.add("build", **{option: f"a{letter}b"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"priority": -1},
        {"priority": 10},
        {"priority": True},
        {"priority": "5"},
        {"priority": 1.0},
        {"max_attempts": 0},
        {"max_attempts": 1000},
        {"lease": 0},
        {"lease": -1},
        {"lease": float("nan")},
        {"lease": 31 * 86400},
        {"lease": "soon"},
        {"delay": -1},
        {"delay": float("inf")},
        {"delay": "later"},
        {"not_before": "tomorrow"},
        {"not_before": "2050-01-01T00:00:00"},
        {"not_before": 12},
        {"delay": 1, "not_before": "2050-01-01T00:00:00Z"},
        {"assignee": ""},
        {"assignee": "w" * 61},
        {"assignee": 7},
        {"mission": ""},
        {"mission": "m" * 257},
        {"title": "t" * 501},
        {"state": "done"},
        {"colour": "red"},
    ],
    ids=str,
)
def test_options_that_can_never_be_right_are_refused(yard: Yard, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        yard.add("build", **options)
    assert sum(yard.counts().values()) == 0


@pytest.mark.parametrize(
    "data", [float("nan"), float("inf"), {1, 2}, object, b"bytes", "\ud800", {"\udfff": 1}], ids=repr
)
def test_data_that_is_not_json_is_refused(yard: Yard, data: Any) -> None:
    with pytest.raises(Invalid):
        yard.add("build", data)


def test_data_nested_beyond_reason_is_refused(yard: Yard) -> None:
    data: list[Any] = []
    for _ in range(100_000):
        data = [data]
    with pytest.raises(Invalid):
        yard.add("build", data)


def test_a_payload_of_one_mebibyte_is_taken_and_one_byte_more_is_refused(yard: Yard) -> None:
    most = "x" * (PAYLOAD_MOST - 2)
    assert yard.get(yard.add("build", most).id).data == most
    with pytest.raises(Invalid):
        yard.add("build", most + "x")


def test_a_payload_is_measured_in_bytes_not_characters(yard: Yard) -> None:
    with pytest.raises(Invalid):
        yard.add("build", "☃" * (PAYLOAD_MOST // 3 + 1))


def test_nobody_can_reach_into_the_yard_through_what_was_handed_over(yard: Yard) -> None:
    data = {"list": [1]}
    task = yard.add("build", data)
    data["list"].append(2)
    task.data["list"].append(3)
    yard.get(task.id).data["list"].append(4)
    claim = yard.claim()
    assert claim is not None
    claim.task.data["list"].append(5)
    assert yard.get(task.id).data == {"list": [1]}


def test_many_are_added_in_their_order(yard: Yard) -> None:
    made = yard.add_many({"kind": "build", "data": n} for n in range(50))
    assert [yard.get(id).data for id in made] == list(range(50))
    assert [task.id for task in yard.find()] == made
    assert len(set(made)) == 50


def test_adding_none_is_fine(yard: Yard) -> None:
    assert yard.add_many([]) == []


@pytest.mark.parametrize(
    "bad",
    [{"kind": "?"}, {"data": 1}, {"kind": "a", "colour": 1}, "build", None, {"kind": "a", "data": float("nan")}],
    ids=str,
)
def test_one_bad_task_among_many_keeps_all_out_and_is_named(yard: Yard, bad: Any) -> None:
    with pytest.raises(Invalid, match="task 2"):
        yard.add_many([{"kind": "build"}, bad, {"kind": "build"}])
    assert sum(yard.counts().values()) == 0


def test_the_default_durability_and_the_others_are_accepted_and_no_other_word(yard_url: str) -> None:
    for durability in ("fast", "durable", "strict"):
        with taskyard.open(yard_url, durability=durability) as yard:
            yard.add("build")
    with pytest.raises(Invalid):
        taskyard.open(yard_url, durability="eternal")
