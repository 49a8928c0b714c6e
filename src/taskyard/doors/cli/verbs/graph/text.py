"""The picture for a terminal: a tree in which every task stands once, below the last of those that it comes after.

A chain goes straight down, so that depth grows only where the work branches. What else a task comes after is said beside it.
"""

from __future__ import annotations

import sys

from taskyard.core import graph as graphs
from taskyard.core import needs
from taskyard.doors.cli import output
from taskyard.doors.cli.verbs.graph import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from taskyard.core.graph import Edge, Node

_LINES = ("├─ ", "└─ ", "│  ", "↓ ")
_ASCII = ("|- ", "`- ", "|  ", "v ")
_MARK = "*"
_NAMED = 3  # other tasks that a line names
_WORKER, _TITLE, _NOTE = 3, 4, 5  # columns
_MOST = 60  # columns of a title, as in any picture: 'taskyard show' prints all of it
_LEAST = 8  # columns of the screen that a title or a note keeps at least
_NOTES = {needs.CANCEL: "cancelled if {} fails", needs.RUN: "runs even if {} fails"}


def picture(graph: dict[str, Any]) -> str:
    """Return the picture of this graph as lines of text, in colours if stdout is a terminal."""
    if not graph["nodes"]:
        return ""
    table = _groups(graph) if graph["folded"] else _tasks(graph)
    mark = f" ({_MARK} marks it)" if graph["critical_path"] and not graph["folded"] else ""
    return f"{table}\n\n{labels.summary(graph)}{mark}"


def _tasks(graph: dict[str, Any]) -> str:
    nodes = {node["id"]: node for node in graph["nodes"]}
    tree = _Tree(graph)
    critical = set(graph["critical_path"])
    rows = []
    for id, lines in tree.walk():
        node, label = nodes[id], labels.Label(nodes[id])
        name = f"{_MARK if id in critical else ' '} {lines}{label.name}"
        title = output.cut(label.title, _MOST) if node["title"] else "-"
        rows.append([name, label.word, node["kind"], node["worker"] or "-", title, "; ".join(tree.notes(id, nodes))])
    heads = ("  ID", "STATE", "KIND", "WORKER", "TITLE", "")
    shown = [column for column in range(len(heads)) if column != _WORKER or any(row[_WORKER] != "-" for row in rows)]
    _fit(rows, shown)
    return output.table(
        [heads[column] for column in shown], [[row[column] for column in shown] for row in rows], states=1
    )


def _fit(rows: list[list[str]], shown: list[int]) -> None:
    """Cut titles and notes so that a line fits the terminal, if it can; notes get at most half of what is left."""
    room = output.columns()
    if room is None:
        return
    widths = [max(output.width(row[column]) for row in rows) for column in range(_NOTE + 1)]
    left = room - sum(widths[column] + len(output.GAP) for column in shown if column < _TITLE) - len(output.GAP)
    note = max(_LEAST, min(widths[_NOTE], left - min(widths[_TITLE], left // 2)))
    for row in rows:
        row[_NOTE] = output.cut(row[_NOTE], note)
        row[_TITLE] = output.cut(row[_TITLE], max(_LEAST, left - min(widths[_NOTE], note)))


class _Tree:
    """Which task is drawn below which: each below the need that comes last, the critical path first."""

    def __init__(self, graph: dict[str, Any]) -> None:
        ids = [node["id"] for node in graph["nodes"]]
        path = {id: at for at, id in enumerate(graph["critical_path"])}
        layer = graphs.layers(ids, graph["edges"])
        place = {id: at for at, id in enumerate(graphs.ordered(ids, graph["edges"]))}
        self.into: dict[str, list[Edge]] = {id: [] for id in ids}
        self.below: dict[str, list[str]] = {id: [] for id in ids}
        self.above: dict[str, str] = {}
        for edge in graph["edges"]:
            self.into[edge["to"]].append(edge)
        for id in ids:
            earlier = [edge["from"] for edge in self.into[id] if place[edge["from"]] < place[id]]
            if earlier:
                on_path = path.get(id, 0) - 1
                self.above[id] = max(
                    earlier, key=lambda other: (path.get(other) == on_path, layer[other], -place[other])
                )
                self.below[self.above[id]].append(id)
        for some in self.below.values():
            some.sort(key=lambda child: (child not in path, place[child]))
        roots = [id for id in ids if id not in self.above]
        self.roots = sorted(roots, key=lambda root: (not self.below[root], root not in path, place[root]))
        self.lines = _LINES if _can_be_printed("".join(_LINES)) else _ASCII

    def walk(self) -> Iterator[tuple[str, str]]:
        """Yield each task with the lines before its name, from the top down."""
        branch, last, trunk, down = self.lines
        ahead = [(root, "", "") for root in reversed(self.roots)]  # id, lines before it, lines before what is below
        while ahead:
            id, lines, left = ahead.pop()
            yield id, lines
            below = self.below[id]
            if len(below) == 1:
                ahead.append((below[0], lines if lines.endswith(down) else left + down, left))
                continue
            inner = left + " " * len(down) if lines.endswith(down) else left
            for at, child in reversed(list(enumerate(below))):
                end = at == len(below) - 1
                ahead.append((child, inner + (last if end else branch), inner + (" " * len(trunk) if end else trunk)))

    def notes(self, id: str, nodes: dict[str, Node]) -> Iterator[str]:
        """Yield what the place in the tree does not tell: what else the task comes after, and what a failure means to it."""
        others = [edge["from"] for edge in self.into[id] if edge["from"] != self.above.get(id)]
        if others:
            yield f"also after {_names(others, nodes, 'and')}"
        for policy, note in _NOTES.items():
            some = [edge["from"] for edge in self.into[id] if edge["on_failure"] == policy]
            if some:
                yield note.format(_names(some, nodes, "or"))


def _names(ids: Sequence[str], nodes: dict[str, Node], word: str) -> str:
    names = [nodes[id]["short"] for id in ids[:_NAMED]]
    if len(ids) > _NAMED:
        names.append(f"{len(ids) - _NAMED} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _groups(graph: dict[str, Any]) -> str:
    """Return the groups as a table: how many tasks, in which states, and what they come after."""
    order = graphs.ordered([node["id"] for node in graph["nodes"]], graph["edges"])
    nodes = {node["id"]: node for node in graph["nodes"]}
    titles = {id: output.cut(labels.Label(node).name, _MOST // 2) for id, node in nodes.items()}
    states = [state for state in labels.COLOURS if any(node["states"].get(state) for node in graph["nodes"])]
    rows = []
    for id in order:
        before = [f"{titles[edge['from']]} ({edge['edges']})" for edge in graph["edges"] if edge["to"] == id]
        counts = [str(nodes[id]["states"].get(state, "-")) for state in states]
        rows.append(
            (
                titles[id],
                str(nodes[id]["tasks"]),
                *counts,
                str(nodes[id]["chain"] or "-"),
                ", ".join(before) or "-",
            )
        )
    heads = (graph["folded"]["by"].upper(), "TASKS", *map(str.upper, states), "CHAIN", "AFTER")
    numbers = frozenset(range(1, len(heads) - 1))
    return output.table(heads, rows, shrink=len(heads) - 1, right=numbers)


def _can_be_printed(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
