"""The picture as Mermaid, which Markdown pages of many forges draw by themselves."""

from __future__ import annotations

from itertools import pairwise

from taskyard.doors.cli.verbs.graph import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ARROWS = {"block": "-->", "cancel": "-.->|cancel|", "run": "-.->|run|"}
_SAFE = frozenset(" ,_")  # beside letters and digits; all other ASCII characters could be Mermaid's own


def picture(graph: dict[str, Any]) -> str:
    """Return the picture of this graph as a Mermaid flowchart."""
    place = {node["id"]: f"t{at}" for at, node in enumerate(graph["nodes"])}
    steps = set(pairwise(graph["critical_path"]))
    boxes = [labels.Label(node) for node in graph["nodes"]]
    lines = ["flowchart TD"]
    for name, label in zip(place.values(), boxes, strict=True):
        lines.append(f'    {name}["{_text(label)}"]:::{label.state or "group"}')
    critical = []
    for number, edge in enumerate(graph["edges"]):
        arrow = _ARROWS[edge["on_failure"]]
        if edge.get("edges", 0) > 1:
            arrow = f"-->|{edge['edges']}|"
        lines.append(f"    {place[edge['from']]} {arrow} {place[edge['to']]}")
        if (edge["from"], edge["to"]) in steps:
            critical.append(str(number))
    if critical:
        lines.append(f"    linkStyle {','.join(critical)} stroke:#111827,stroke-width:4px")
    for name in sorted({label.state or "group" for label in boxes}):
        fill, line = labels.COLOURS.get(name, labels.GROUP)
        lines.append(f"    classDef {name} fill:{fill},stroke:{line},color:#111827")
    on_path = [place[id] for id in dict.fromkeys(graph["critical_path"])]
    if on_path:
        lines.append("    classDef critical stroke:#111827,stroke-width:4px")
        lines.append(f"    class {','.join(on_path)} critical")
    return "\n".join(lines)


def _text(label: labels.Label) -> str:
    lines = (f"{label.name}: {label.word}", label.title, label.detail)
    return "<br/>".join(_escaped(line) for line in lines if line)


def _escaped(text: str) -> str:
    """Return the text with every character that Mermaid, Markdown or HTML could read as its own as an entity code."""
    return "".join(
        letter if letter.isalnum() or letter in _SAFE or not letter.isascii() else f"#{ord(letter)};" for letter in text
    )
