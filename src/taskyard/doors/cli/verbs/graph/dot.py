"""The picture as DOT, for Graphviz."""

from __future__ import annotations

from itertools import pairwise

from taskyard.doors.cli.verbs.graph import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STYLES = {"block": "solid", "cancel": "dashed", "run": "dotted"}


def picture(graph: dict[str, Any]) -> str:
    """Return the picture of this graph in the DOT language."""
    place = {node["id"]: f"t{at}" for at, node in enumerate(graph["nodes"])}
    critical = set(graph["critical_path"])
    steps = set(pairwise(graph["critical_path"]))
    lines = [
        "digraph taskyard {",
        '    node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];',
        '    edge [color="#64748b", fontname="sans-serif", fontsize=10];',
    ]
    for node in graph["nodes"]:
        label = labels.Label(node)
        fill, line = label.colours
        border = f'color="{line}"' if node["id"] not in critical else 'color="#111827", penwidth=3'
        lines.append(f'    {place[node["id"]]} [label="{_text(label)}", fillcolor="{fill}", {border}];')
    for edge in graph["edges"]:
        style = f"style={_STYLES[edge['on_failure']]}"
        if (edge["from"], edge["to"]) in steps:
            style += ', penwidth=3, color="#111827"'
        if edge.get("edges", 0) > 1:
            style += f', label="{edge["edges"]}"'
        lines.append(f"    {place[edge['from']]} -> {place[edge['to']]} [{style}];")
    return "\n".join((*lines, "}"))


def _text(label: labels.Label) -> str:
    lines = (f"{label.name}  {label.word}", label.title, label.detail)
    return "\\n".join(_escaped(line) for line in lines if line)


def _escaped(text: str) -> str:
    """Return the text as part of a quoted string: no escape, no end of the string, and no entity is in it."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
