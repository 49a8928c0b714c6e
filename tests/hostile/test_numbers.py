"""Files of other clients that hold what JSON allows and Python cannot write out again: every answer is still one JSON value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import taskyard
from tests.conftest import taken
from tests.processes import tools

ODD = (
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    '"\\ud800"',
    '"\\uDFFF x"',
    '{"\\udc00\\ud800": 1}',
    "[1.5, 1" + "0" * 400 + ".0]",
)
VERBS = (("list",), ("ready",), ("log",), ("stats",), ("claim", "--kind", "other"))


def strictly(text: str) -> Any:
    """The one value, as anybody else's parser takes it."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    value = json.loads(text, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()  # no half of a character
    return value


def answers(place: str, *more: tuple[str, ...]) -> None:
    for words in (*more, *VERBS):
        said = tools.taskyard(place, *words)
        strictly(said.out)
        assert "Traceback" not in said.err
        assert said.code in (0, 3, 5, 6, 7), (words, said.out)


@pytest.mark.parametrize("odd", ODD)
def test_a_tasks_file(place: str, odd: str) -> None:
    with taskyard.open(place) as yard:
        task = yard.add("build", "data")
        other = yard.add("build", "data", priority=9)
    (file,) = Path(place, "todo", "5-build").rglob("*.json")
    file.write_text(file.read_text().replace('"data":"data"', f'"data":{odd}'))
    answers(place, ("show", task.id))
    said = tools.taskyard(place, "claim", "--kind", "build")
    assert strictly(said.out)["data"]["task"]["id"] == other.id, (
        "the broken one is failed, and keeps nobody from the next"
    )
    shown = strictly(tools.taskyard(place, "show", task.id).out)
    assert shown["data"]["task"]["state"] == "failed"
    answers(place, ("show", task.id))


@pytest.mark.parametrize("odd", ODD)
def test_a_record_a_note_and_an_event(place: str, odd: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        task = yard.add("build")
        claim = taken(yard.claim())
        claim.note("hello")
        claim.done({"r": "result"})
    (record,) = Path(place, "results").rglob("*.json")
    record.write_text(record.read_text().replace('"result"}', f"{odd}}}"))
    (notes,) = Path(place, "attempts").rglob("notes.jsonl")
    notes.write_text(notes.read_text() + notes.read_text().replace('"text"', f'"more": {odd}, "text"'))
    (log,) = Path(place, "events").glob("*.jsonl")
    log.write_text(log.read_text() + log.read_text().replace('"by"', f'"more":{odd},"by"'))
    answers(place, ("show", task.id))
    assert strictly(tools.taskyard(place, "show", task.id).out)["data"]["task"]["state"] == "done"
    assert len(tools.taskyard(place, "log").data["events"]) == 4


@pytest.mark.parametrize("odd", ODD)
def test_a_dropped_file(place: str, odd: str) -> None:
    tools.settle(place, settle=0)
    Path(place, "todo", "order.json").write_text(f'{{"kind": "build", "data": {odd}}}')
    Path(place, "todo", "right.json").write_text('{"kind": "build"}')
    answers(place)
    assert strictly(tools.taskyard(place, "claim").out)["data"]["task"]["kind"] == "build"
    assert Path(place, "failed", "order.json").exists()
