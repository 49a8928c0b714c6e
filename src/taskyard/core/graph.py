"""A graph of tasks: its layers, its critical path, and its folding into groups. Pure functions over plain dicts.

A node has at least `id`, `state`, `kind` and `mission`; an edge goes `from` the needed task `to` the one that comes after.
"""

from __future__ import annotations

from collections import Counter, deque

from taskyard.core import needs
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Node = dict[str, Any]
    Edge = dict[str, Any]

FOLD_FROM = 60  # tasks that one picture shows; more are folded
FOLDS = ("mission", "kind", "none")
_GROUPS_MOST = 60  # groups that one picture shows; the smallest beyond that are one


def ordered(ids: Sequence[str], edges: Iterable[Edge]) -> list[str]:
    """Return the ids in topological order: each behind those that it comes after. A cycle is cut before its first id."""
    after = _followers(ids, edges)
    waits = Counter(to for some in after.values() for to in some)
    ready = deque(id for id in ids if not waits[id])
    found: list[str] = []
    rest, seen = iter(ids), set(ready)
    while len(found) < len(ids):
        if not ready:
            cut = next(id for id in rest if id not in seen)
            ready.append(cut)
            seen.add(cut)
        found.append(ready.popleft())
        for to in after[found[-1]]:
            waits[to] -= 1
            if not waits[to] and to not in seen:
                ready.append(to)
                seen.add(to)
    return found


def layers(ids: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each id: 0 if it comes after nothing, else one more than the last that it comes after.

    A task that comes after nothing stands right before the first that comes after it.
    """
    order = ordered(ids, edges)
    place = {id: at for at, id in enumerate(order)}
    after, before = _followers(ids, edges), _needed(ids, edges)
    layer: dict[str, int] = {}
    for id in order:
        layer[id] = 1 + max((layer[other] for other in before[id] if place[other] < place[id]), default=-1)
    for id in ids:
        later = [layer[to] for to in after[id] if place[to] > place[id]]
        if not before[id] and later:
            layer[id] = min(later) - 1
    return layer


def critical_path(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[str]:
    """Return the longest chain of tasks that have not ended, first to last; each counts 1, as no task says how long it takes.

    It is empty if no task that has not ended comes after another such task.
    """
    open_ids = [node["id"] for node in nodes if not State(node["state"]).ended]
    known = set(open_ids)
    inner = [edge for edge in edges if edge["from"] in known and edge["to"] in known]
    before = _needed(open_ids, inner)
    length: dict[str, int] = {}
    came_from: dict[str, str | None] = {}
    for id in ordered(open_ids, inner):
        best = max((other for other in before[id] if other in length), key=length.__getitem__, default=None)
        length[id], came_from[id] = (1, None) if best is None else (length[best] + 1, best)
    last = max(length, key=length.__getitem__, default=None)
    if last is None or length[last] < 2:
        return []
    path: list[str] = []
    while last is not None:
        path.append(last)
        last = came_from[last]
    return path[::-1]


def fold_by(nodes: Sequence[Node], fold: str | None) -> str | None:
    """Return what these tasks are folded by: `mission` or `kind`, or None if each is shown.

    Without a `fold`, more than `FOLD_FROM` tasks are folded: by mission if they have several, else by kind.
    """
    if fold is not None:
        return None if fold == "none" else fold
    if len(nodes) <= FOLD_FROM:
        return None
    return "mission" if len({node["mission"] for node in nodes}) > 1 else "kind"


def folded(nodes: Sequence[Node], edges: Sequence[Edge], by: str, path: Sequence[str] = ()) -> dict[str, Any]:
    """Return groups in place of tasks: how many are in each state, the longest chain still to do, and edges between groups."""
    sizes = Counter(node[by] for node in nodes)
    shown = [name for name, _ in sizes.most_common(_GROUPS_MOST)]
    rank = {name: _name(by, at) for at, name in enumerate(shown)}
    group_of = {node["id"]: rank.get(node[by], "others") for node in nodes}
    groups = {rank[name]: _group(rank[name], by, name) for name in shown}
    if len(sizes) > len(shown):
        groups["others"] = {**_group("others", by, None), "title": f"{len(sizes) - len(shown)} smaller {by}s"}
    inside: dict[str, list[Node]] = {id: [] for id in groups}
    for node in nodes:
        inside[group_of[node["id"]]].append(node)
    own, between = _split(edges, group_of)
    for id, some in inside.items():
        states = Counter(node["state"] for node in some)
        groups[id]["tasks"] = len(some)
        groups[id]["states"] = {str(state): states[state] for state in State if states[state]}
        groups[id]["chain"] = len(critical_path(some, own.get(id, ())))
    steps = [group_of[id] for id in path]
    return {
        "nodes": list(groups.values()),
        "edges": between,
        "critical_path": [id for at, id in enumerate(steps) if at == 0 or steps[at - 1] != id],
        "folded": {"by": by, "tasks": len(nodes), "edges": len(edges)},
    }


def _name(by: str, at: int) -> str:
    return f"{by}-{at + 1}"


def _group(id: str, by: str, name: str | None) -> Node:
    return {"id": id, by: name, "title": f"no {by}" if name is None else name}


def _split(edges: Iterable[Edge], group_of: Mapping[str, str]) -> tuple[dict[str, list[Edge]], list[Edge]]:
    """Return the edges within each group, and one edge for all that go from one group to another."""
    own: dict[str, list[Edge]] = {}
    between: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        ends = group_of[edge["from"]], group_of[edge["to"]]
        if ends[0] == ends[1]:
            own.setdefault(ends[0], []).append(edge)
            continue
        one = between.setdefault(ends, {"from": ends[0], "to": ends[1], "on_failure": edge["on_failure"], "edges": 0})
        one["edges"] += 1
        if one["on_failure"] != edge["on_failure"]:
            one["on_failure"] = needs.BLOCK
    return own, list(between.values())


def _followers(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {id: [] for id in ids}
    for edge in edges:
        found[edge["from"]].append(edge["to"])
    return found


def _needed(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {id: [] for id in ids}
    for edge in edges:
        found[edge["to"]].append(edge["from"])
    return found
