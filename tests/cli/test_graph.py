"""graph: the pictures are well-formed whatever the tasks are called."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

HOSTILE = [
    '"]-->x', "<script>alert(1)</script>", "' \" ` \\ \\N", "&lt; #quot; %% end", "\U0001f98a \U0001f469\u200d\U0001f4bb",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627", "\u202eback", "1. list", "```", "]]>", "a" * 200, "\u6f22" * 80,
]  # fmt: skip


@pytest.fixture
def hostile(ask: Callable[..., Any]) -> list[str]:
    ids: list[str] = []
    for title in HOSTILE:
        after = ("--after", ids[-1]) if ids else ()
        ids.append(ask("add", "build", "--title", title, *after)["task"]["id"])
    return ids


def test_the_svg_is_xml_without_a_script(run: Callable[..., Answer], hostile: list[str]) -> None:
    answer = run("graph", "--format", "svg")
    root = ET.fromstring(answer.out)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg", "title", "style", "defs", "marker", "path", "rect", "g", "text",
    }  # fmt: skip
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {'"]-->x', "<script>alert(1)</script>", "\\u202eback"} <= set(texts)
    assert len([text for text in texts if text and text.startswith("0-")]) == len(hostile)


def test_mermaid_and_dot_have_one_line_for_each_task_and_need(run: Callable[..., Answer], hostile: list[str]) -> None:
    mermaid = run("graph", "--format", "mermaid").out.splitlines()
    assert mermaid[0] == "flowchart TD"
    boxes = [line for line in mermaid if '["' in line]
    assert len(boxes) == len(hostile)
    assert all(line.count('"') == 2 and line.endswith(('"]:::todo', '"]:::blocked')) for line in boxes)
    assert sum(" --> " in line for line in mermaid) == len(hostile) - 1
    dot = run("graph", "--format", "dot").out.splitlines()
    assert (dot[0], dot[-1]) == ("digraph taskyard {", "}")
    assert sum(" -> " in line and "label=" not in line for line in dot) == len(hostile) - 1


def test_the_text_marks_the_critical_path_and_has_no_control_characters(
    run: Callable[..., Answer], hostile: list[str]
) -> None:
    lines = run("graph").out.splitlines()
    assert sum(line.startswith("* ") for line in lines) == len(hostile)
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    assert lines[-1] == f"{len(hostile)} tasks; critical path: {len(hostile)} tasks (* marks it)"


def test_a_branch_is_drawn_as_a_tree_with_what_else_a_task_comes_after(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    top = ask("add", "build")["task"]["short"]
    left, right = (ask("add", "build", "--after", top)["task"]["short"] for _ in range(2))
    end = ask("add", "deploy", "--after", left, "--after", right)["task"]["short"]
    lines = run("graph", top).out.splitlines()
    assert lines[1].startswith(f"* {top} ")
    assert lines[2].startswith(f"* \u251c\u2500 {left} ")
    assert lines[3].startswith(f"* \u2502  \u2193 {end} ")
    assert lines[3].endswith(f"also after {right}")
    assert lines[4].startswith(f"  \u2514\u2500 {right} ")


def test_many_tasks_are_folded_unless_a_program_reads_them(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    lines = "\n".join(json.dumps({"kind": "build", "mission": f"m{n % 3}"}) for n in range(90))
    ask("add", "--from", "-", stdin=lines)
    assert [line.split()[:2] for line in run("graph").out.splitlines()[:2]] == [["MISSION", "TASKS"], ["m0", "30"]]
    assert len(ask("graph")["nodes"]) == 90
    assert len(ask("graph", "--fold", "kind")["nodes"]) == 1
    assert len(json.loads(run("graph", "--format", "json").out)["nodes"]) == 90


def test_a_picture_goes_into_a_file_as_its_name_ends(
    run: Callable[..., Answer], ask: Callable[..., Any], hostile: list[str], place: Path
) -> None:
    assert run("graph", "--output", "plan.svg").out == f"{len(hostile)} tasks drawn into plan.svg\n"
    assert (place / "plan.svg").read_text().startswith("<svg ")
    alone = ask("add", "build")["task"]["id"]
    assert run("graph", alone, "--output", "one.svg").out == "1 task drawn into one.svg\n"
    assert ask("graph", "--format", "dot")["picture"].startswith("digraph")
    assert ask("graph", "--output", "no/such/plan.svg", code=8)["code"] == "unavailable"
    assert ask("graph", "--output", "plan.foo", code=2)["message"] == "no format has files that end in '.foo'"
    assert not (place / "plan.foo").exists()
    assert run("graph", "--output", "plan.foo", "--format", "dot").code == 0
    assert ask("graph", "--format", "png", code=2)["code"] == "invalid"
    assert ask("graph", "--fold", "colour", code=2)["code"] == "invalid"


def test_an_empty_yard_has_no_picture(run: Callable[..., Answer], yard: Path) -> None:
    answer = run("graph")
    assert (answer.code, answer.out, answer.err) == (0, "", "no such tasks\n")
    ET.fromstring(run("graph", "--format", "svg").out)
