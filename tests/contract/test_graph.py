"""The graph: what is connected with a task, up and down, on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Invalid, NotFound
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard


def titles(graph: dict[str, Any]) -> list[str]:
    return [node["title"] for node in graph["nodes"]]


def diamond(yard: Yard) -> list[str]:
    top = yard.add("build", title="top").id
    left = yard.add("test", title="left", after=[f"{top}:run"], mission="m").id
    right = yard.add("test", title="right", after=[top]).id
    end = yard.add("deploy", title="end", after=[f"{left}:cancel", right]).id
    yard.add("lint", title="alone")
    return [top, left, right, end]


def test_without_a_name_all_that_has_not_ended_is_drawn_with_its_needs(yard: Yard) -> None:
    top, left, right, end = diamond(yard)
    taken(yard.claim(top)).done()
    graph = yard.graph()
    assert titles(graph) == ["top", "left", "right", "end", "alone"]
    assert [node["state"] for node in graph["nodes"]] == ["done", "todo", "todo", "blocked", "todo"]
    assert sorted((edge["from"], edge["to"], edge["on_failure"]) for edge in graph["edges"]) == sorted(
        [(top, left, "run"), (top, right, "block"), (left, end, "cancel"), (right, end, "block")]
    )
    assert graph["critical_path"] in ([left, end], [right, end])
    assert (graph["folded"], graph["left_out"]) == (None, 0)


def test_a_named_task_is_drawn_with_all_above_and_below_it(yard: Yard) -> None:
    top, left, _, _ = diamond(yard)
    after = yard.add("later", title="after", after=[yard.graph(left)["nodes"][-1]["id"]]).id
    assert titles(yard.graph(yard.shorten([left])[0])) == ["top", "left", "right", "end", "after"]
    assert titles(yard.graph([after])) == ["top", "left", "right", "end", "after"]
    taken(yard.claim(top)).done()
    taken(yard.claim(left)).done()
    assert titles(yard.graph(top)) == ["top", "left", "right", "end", "after"]


def test_a_filter_draws_what_matches_and_what_that_comes_after(yard: Yard) -> None:
    diamond(yard)
    assert titles(yard.graph(kind="deploy")) == ["left", "right", "end"]
    assert titles(yard.graph(mission="m")) == ["top", "left"]
    assert titles(yard.graph(state=["done"])) == []


def test_what_does_not_fit_is_counted(yard: Yard) -> None:
    yard.add_many({"kind": "build", "mission": "m"} for _ in range(5))
    assert yard.graph(limit=2)["left_out"] >= 0
    assert len(yard.graph(limit=2)["nodes"]) <= 5


def test_a_graph_can_be_folded(yard: Yard) -> None:
    diamond(yard)
    graph = yard.graph(fold="kind")
    assert {node["kind"]: node["tasks"] for node in graph["nodes"]} == {"build": 1, "test": 2, "deploy": 1, "lint": 1}
    assert graph["folded"]["by"] == "kind"


def test_a_graph_of_an_unknown_task_or_of_names_and_filters_is_refused(yard: Yard) -> None:
    id = yard.add("build").id
    with pytest.raises(Invalid):
        yard.graph(id, kind="build")
    with pytest.raises(Invalid):
        yard.graph(fold="colour")
    with pytest.raises(NotFound):
        yard.graph("0" * 21)
