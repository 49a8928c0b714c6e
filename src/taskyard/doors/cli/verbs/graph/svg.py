"""The picture as SVG: one file that needs no other, drawn without any library."""

from __future__ import annotations

from itertools import pairwise

from taskyard.core import graph_layout
from taskyard.doors.cli import output
from taskyard.doors.cli.verbs.graph import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.graph import Edge
    from taskyard.core.graph_layout import Drawing, Point

_BOX = (204.0, 62.0)
_GAP = (56.0, 18.0)
_MARGIN = 24.0
_ROW = 20.0  # pixels of one line of the legend
_LETTER = 6.5  # pixels of one column of text at 12 pixels, on average
_DASHES = {"block": "", "cancel": ' stroke-dasharray="7 5"', "run": ' stroke-dasharray="2 5" stroke-linecap="round"'}
_USUAL, _CRITICAL = "#64748b", "#111827"
_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;font-size:12px;fill:#111827}"
    ".name{font-weight:600}.word{font-weight:600;font-size:11px}.detail,.legend{fill:#4b5563;font-size:11px}"
)


def picture(graph: dict[str, Any]) -> str:
    """Return the picture of this graph as the text of an SVG file."""
    nodes, edges = graph["nodes"], graph["edges"]
    drawing = graph_layout.drawn([node["id"] for node in nodes], edges, _BOX, _GAP)
    legend, wide, high = _legend(graph, drawing.height + _MARGIN)
    width, height = max(drawing.width, wide) + 2 * _MARGIN, drawing.height + high + 3 * _MARGIN
    left = -_MARGIN - max(0.0, wide - drawing.width) / 2
    critical = set(graph["critical_path"])
    steps = set(pairwise(graph["critical_path"]))
    frame = f"{left:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="{frame}" role="img">',
        f"<title>{_escaped(labels.summary(graph))}</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_arrow('usual', _USUAL, 9)}{_arrow('critical', _CRITICAL, 13)}</defs>",
        f'<rect x="{left:.0f}" y="{-_MARGIN:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" fill="#ffffff"/>',
        *_lines(drawing, edges, steps),
        *(_box(node, drawing.boxes[node["id"]], node["id"] in critical) for node in nodes),
        f'<g transform="translate({left + _MARGIN:.0f} 0)">',
        *legend,
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts)


def _arrow(name: str, colour: str, size: int) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="{size}" markerHeight="{size}" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1L9 5L0 9z" fill="{colour}"/></marker>'
    )


def _lines(drawing: Drawing, edges: list[Edge], steps: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines; those of the critical path come last, and so lie above the others."""
    later = []
    for edge, points in zip(edges, drawing.lines, strict=True):
        critical = (edge["from"], edge["to"]) in steps
        line = _line(_curve(points, drawing.rightward), edge["on_failure"], critical)
        if edge.get("edges", 0) > 1:
            line += _count(points, edge["edges"])
        if critical:
            later.append(line)
        else:
            yield line
    yield from later


def _line(curve: str, on_failure: str, critical: bool) -> str:
    colour, thick, name = (_CRITICAL, 3, "critical") if critical else (_USUAL, 1.4, "usual")
    return (
        f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="{thick}"{_DASHES[on_failure]} '
        f'marker-end="url(#{name})"/>'
    )


def _curve(points: list[Point], rightward: bool) -> str:
    """Return a path: a curve from layer to layer, and a straight line past the boxes of a layer."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for at in range(0, len(points), 2):
        (x1, y1), (x2, y2) = points[at : at + 2]
        if at:
            parts.append(f"L{x1:.1f} {y1:.1f}")
        half = ((x2 - x1) / 2, 0.0) if rightward else (0.0, (y2 - y1) / 2)
        parts.append(f"C{x1 + half[0]:.1f} {y1 + half[1]:.1f} {x2 - half[0]:.1f} {y2 - half[1]:.1f} {x2:.1f} {y2:.1f}")
    return "".join(parts)


def _count(points: list[Point], number: int) -> str:
    """Return the number of connections that one line between groups stands for, on its middle."""
    at = len(points) // 4 * 2
    x, y = (points[at][0] + points[at + 1][0]) / 2, (points[at][1] + points[at + 1][1]) / 2
    wide = 8 + 6.5 * len(str(number))
    return (
        f'<rect x="{x - wide / 2:.1f}" y="{y - 8:.1f}" width="{wide:.1f}" height="15" rx="7" fill="#ffffff"/>'
        f'<text class="legend" x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle">{number}</text>'
    )


def _box(node: dict[str, Any], corner: Point, critical: bool) -> str:
    label = labels.Label(node)
    fill, line = label.colours
    width, height = _BOX
    room = int((width - 20) / _LETTER)
    name = output.cut(label.name, room - output.width(label.word) - 2)
    border = f'stroke="{_CRITICAL}" stroke-width="3"' if critical else f'stroke="{line}" stroke-width="1.2"'
    texts = [
        f'<text class="name" x="10" y="18">{_escaped(name)}</text>',
        f'<text class="word" x="{width - 10:.0f}" y="18" text-anchor="end" style="fill:{line}">{_escaped(label.word)}</text>',
    ]
    if label.states:
        texts.append(_bar(label.states, width - 20))
    else:
        texts.append(f'<text x="10" y="35">{_escaped(output.cut(label.title, room))}</text>')
    texts.append(f'<text class="detail" x="10" y="52">{_escaped(output.cut(label.detail, room + 2))}</text>')
    whole = " ".join(filter(None, (label.name, label.word, label.title, label.detail)))
    return (
        f'<g transform="translate({corner[0]:.1f} {corner[1]:.1f})"><title>{_escaped(whole)}</title>'
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="9" fill="{fill}" {border}/>{"".join(texts)}</g>'
    )


def _bar(states: dict[str, int], width: float) -> str:
    """Return a bar with the share of each state."""
    parts, left, all_of_them = [], 10.0, sum(states.values())
    for state, many in states.items():
        share = width * many / all_of_them
        fill, line = labels.COLOURS[state]
        parts.append(
            f'<rect x="{left:.1f}" y="27" width="{share:.1f}" height="11" fill="{fill}" stroke="{line}" stroke-width="0.8">'
            f"<title>{many} {state}</title></rect>"
        )
        left += share
    return "".join(parts)


def _legend(graph: dict[str, Any], top: float) -> tuple[list[str], float, float]:
    """Return the legend, with its width and height: the states and lines that the picture has, and what it is of."""
    nodes = graph["nodes"]
    states = {node.get("state") for node in nodes} | {state for node in nodes for state in node.get("states", ())}
    policies = {edge["on_failure"] for edge in graph["edges"]}
    lines = [policy for policy in labels.MEANING if policy in policies] + ["critical"] * bool(graph["critical_path"])
    parts, left, wide = [], 0.0, 0.0
    for state in filter(states.__contains__, labels.COLOURS):
        fill, line = labels.COLOURS[state]
        parts.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="14" height="11" rx="3" fill="{fill}" stroke="{line}"/>'
        )
        parts.append(_words(left + 19, top, state))
        left += 36 + _length(state)
    wide, left = left, 0.0
    top += _ROW
    for policy in lines:
        critical = policy == "critical"
        meaning = "critical path" if critical else labels.MEANING[policy]
        parts.append(_line(f"M{left:.0f} {top + 6:.0f}h30", "block" if critical else policy, critical))
        parts.append(_words(left + 36, top, meaning))
        left += 56 + _length(meaning)
    top += _ROW if lines else 0.0
    text = labels.summary(graph)
    parts.append(_words(0, top, text))
    return parts, max(wide, left, _length(text)), _ROW * (2.0 if lines else 1.0) + 12


def _words(left: float, top: float, text: str) -> str:
    return f'<text class="legend" x="{left:.0f}" y="{top + 10:.0f}">{_escaped(text)}</text>'


def _length(text: str) -> float:
    return len(text) * 5.8


def _escaped(text: str) -> str:
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        text = text.replace(letter, entity)
    return text
