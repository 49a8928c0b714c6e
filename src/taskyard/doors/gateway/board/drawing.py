"""A graph of tasks as the board draws it: boxes and lines with their places, so that the page only has to paint them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from taskyard.core import graph_layout

if TYPE_CHECKING:
    from taskyard.port import YardPort

_BOX = (190.0, 54.0)
_GAP = (52.0, 16.0)
_MOST = 400  # tasks of one drawing; more are folded into groups


def drawn(yard: YardPort, mission: str | None = None, task: str | None = None) -> dict[str, Any]:
    """Return the graph of a mission, or of all around one task, with the places of its boxes and lines."""
    graph = (
        yard.graph(mission=mission, limit=_MOST, fold=None)
        if task is None
        else yard.graph(task, limit=_MOST, fold=None)
    )
    nodes, edges = graph["nodes"], graph["edges"]
    places = graph_layout.drawn([node["id"] for node in nodes], edges, _BOX, _GAP)
    steps = set(pairwise(graph["critical_path"]))
    critical = set(graph["critical_path"])
    return {
        "width": places.width,
        "height": places.height,
        "rightward": places.rightward,
        "box": _BOX,
        "nodes": [{**node, "at": places.boxes[node["id"]], "critical": node["id"] in critical} for node in nodes],
        "edges": [
            {**edge, "points": points, "critical": (edge["from"], edge["to"]) in steps}
            for edge, points in zip(edges, places.lines, strict=True)
        ],
        "folded": graph["folded"],
        "left_out": graph["left_out"],
    }
