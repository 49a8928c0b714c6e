"""The pure functions of a graph: order, layers, the critical path, and folding."""

from __future__ import annotations

from typing import Any

from taskyard.core import graph


def node(id: str, state: str = "todo", kind: str = "build", mission: str | None = None) -> dict[str, Any]:
    return {"id": id, "state": state, "kind": kind, "mission": mission}


def edges(*pairs: str) -> list[dict[str, Any]]:
    return [{"from": pair[0], "to": pair[1], "on_failure": "block"} for pair in pairs]


def test_each_task_stands_behind_what_it_comes_after() -> None:
    assert graph.ordered("dcba", edges("ab", "bd", "ac", "cd")) == ["a", "b", "c", "d"]


def test_a_cycle_is_cut_and_ends() -> None:
    assert sorted(graph.ordered("abc", edges("ab", "bc", "ca"))) == ["a", "b", "c"]
    assert set(graph.layers("abc", edges("ab", "bc", "ca"))) == {"a", "b", "c"}


def test_a_layer_is_one_more_than_the_last_need_and_sources_stand_near() -> None:
    assert graph.layers("abcde", edges("ab", "bc", "cd", "ed")) == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 2}


def test_the_critical_path_is_the_longest_chain_that_has_not_ended() -> None:
    nodes = [node("a", "done"), node("b"), node("c", "blocked"), node("d", "blocked"), node("e")]
    assert graph.critical_path(nodes, edges("ab", "bc", "cd", "ed")) == ["b", "c", "d"]
    assert graph.critical_path(nodes[:2], edges("ab")) == []


def test_many_tasks_are_folded_by_mission_or_else_by_kind() -> None:
    assert graph.fold_by([node("a")] * graph.FOLD_FROM, None) is None
    assert graph.fold_by([node("a")] * 61, None) == "kind"
    assert graph.fold_by([*[node("a")] * 60, node("b", mission="m")], None) == "mission"
    assert graph.fold_by([node("a")] * 61, "none") is None


def test_groups_count_states_and_the_edges_between_them() -> None:
    nodes = [node("a", "done"), node("b", kind="test"), node("c", "blocked", kind="test"), node("d", "blocked")]
    folded = graph.folded(nodes, edges("ab", "ac", "bc", "cd"), "kind", ["b", "c", "d"])
    build, test = folded["nodes"]
    assert (build["kind"], build["tasks"], build["states"], build["chain"]) == (
        "build",
        2,
        {"blocked": 1, "done": 1},
        0,
    )
    assert (test["tasks"], test["chain"]) == (2, 2)
    assert [(edge["from"], edge["to"], edge["edges"]) for edge in folded["edges"]] == [
        (build["id"], test["id"], 2),
        (test["id"], build["id"], 1),
    ]
    assert folded["critical_path"] == [test["id"], build["id"]]
    assert folded["folded"] == {"by": "kind", "tasks": 4, "edges": 4}


def test_the_smallest_of_very_many_groups_are_one() -> None:
    folded = graph.folded([node(str(n), kind=f"k{n}") for n in range(100)], [], "kind")
    assert len(folded["nodes"]) == 61
    assert (folded["nodes"][-1]["title"], folded["nodes"][-1]["tasks"]) == ("40 smaller kinds", 40)
