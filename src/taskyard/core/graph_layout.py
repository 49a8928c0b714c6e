"""Where the boxes and lines of a drawing go: layers, an order with few crossings, and places near one's neighbours.

The layout knows two axes: `along` goes from layer to layer, `across` from box to box within one. A drawing maps them to x
and y, from left to right or from top to bottom, whichever comes nearer to the shape of a screen.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from itertools import pairwise

from taskyard.core import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.core.graph import Edge

    Point = tuple[float, float]

_SWEEPS = 16  # passes over all layers: more change little
_BENDS_MOST = 20_000  # places that lines over several layers take up; with more, lines go straight
_LINE = 10.0  # pixels that such a line takes up across
_STRAIGHT = 3.0  # how much more a bend keeps to its line than a box to its neighbours
_SHAPE = 1.6  # width over height that a drawing should come near


class Drawing:
    """The places of all boxes, and the points of all lines, in pixels."""

    def __init__(self, width: float, height: float, rightward: bool) -> None:
        self.width = width
        self.height = height
        self.rightward = rightward
        """Whether the layers go from left to right; else from top to bottom."""
        self.boxes: dict[str, Point] = {}
        """The left upper corner of each box."""
        self.lines: list[list[Point]] = []
        """For each edge, in their order: where its line leaves a layer and reaches the next, in turn."""

    def misshape(self) -> float:
        """Return how far the drawing is from the shape of a screen; 1 is no difference."""
        shape = max(self.width, 1.0) / max(self.height, 1.0) / _SHAPE
        return max(shape, 1 / shape)


def drawn(ids: Sequence[str], edges: Sequence[Edge], box: Point, gap: Point) -> Drawing:
    """Return a drawing: `box` is the width and height of each box, `gap` the space between layers and within one."""
    tied = {end for edge in edges for end in (edge["from"], edge["to"])}
    order = _Order([id for id in ids if id in tied], edges)
    alone = [id for id in ids if id not in tied]
    drawings = [_placed(order, alone, edges, box, gap, rightward) for rightward in (True, False)]
    return min(drawings, key=Drawing.misshape)


class _Order:
    """The layers of a graph, each in an order with few crossings. Numbers stand for boxes, and then for bends of lines."""

    def __init__(self, ids: Sequence[str], edges: Sequence[Edge]) -> None:
        layer = graph.layers(ids, edges)
        self.ids = ids
        self.number = {id: at for at, id in enumerate(ids)}
        self.layer = [layer[id] for id in ids]
        bends = sum(abs(layer[edge["to"]] - layer[edge["from"]]) for edge in edges)
        self.routes = [self._route(edge, bends <= _BENDS_MOST) for edge in edges]
        self.before: list[list[int]] = [[] for _ in self.layer]
        self.after: list[list[int]] = [[] for _ in self.layer]
        for route in self.routes:
            for one, other in pairwise(route):
                self.after[one].append(other)
                self.before[other].append(one)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        self.place = [0] * len(self.layer)
        for number in self._depth_first():
            self.place[number] = len(self.rows[self.layer[number]])
            self.rows[self.layer[number]].append(number)
        self._untangle()

    def _route(self, edge: Edge, bend: bool) -> list[int]:
        """Return the numbers from the edge's upper to its lower end: one bend in every layer between."""
        one, other = sorted((self.number[edge["from"]], self.number[edge["to"]]), key=self.layer.__getitem__)
        between = range(self.layer[one] + 1, self.layer[other]) if bend else ()
        bends = list(range(len(self.layer), len(self.layer) + len(between)))
        self.layer.extend(between)
        return [one, *bends, other]

    def _depth_first(self) -> list[int]:
        """Return all numbers so that what hangs together stands together."""
        found: dict[int, None] = {}
        for start in sorted(range(len(self.layer)), key=self.layer.__getitem__):
            ahead = [start]
            while ahead:
                number = ahead.pop()
                if number not in found:
                    found[number] = None
                    ahead += reversed(self.after[number])
        return list(found)

    def _untangle(self) -> None:
        """Sort each layer by the mean place of its neighbours, down and up again; keep the order with the fewest crossings."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            others = self.after if sweep % 2 else self.before
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                middle = {number: self._mean_place(others[number], self.place[number]) for number in row}
                row.sort(key=middle.__getitem__)
                for at, number in enumerate(row):
                    self.place[number] = at
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _mean_place(self, others: list[int], own: int) -> float:
        return sum(self.place[other] for other in others) / len(others) if others else own

    def _crossings(self) -> int:
        """Return how many pairs of lines cross between one layer and the next."""
        found = 0
        for row in self.rows:
            seen: list[int] = []
            for number in row:
                ends = sorted(self.place[other] for other in self.after[number])
                found += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return found

    def across(self, size: float, gap: float) -> list[float]:
        """Return the middle of each number across its layer, near the middle of its neighbours and clear of the others."""
        sizes = [size if number < len(self.ids) else _LINE for number in range(len(self.layer))]
        spots = [0.0] * len(self.layer)
        for row in self.rows:
            _spread(row, spots, sizes, gap, [1.0] * len(row), [0.0] * len(row))
        for sweep in range(_SWEEPS):
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                wanted, weights = [], []
                for number in row:
                    others = self.before[number] + self.after[number]
                    if sweep < _SWEEPS // 2:  # at first each way for itself, so that a row can move as a whole
                        others = (self.after if sweep % 2 else self.before)[number] or others
                    wanted.append(sum(spots[other] for other in others) / len(others))
                    weights.append(1.0 if number < len(self.ids) else _STRAIGHT)
                _spread(row, spots, sizes, gap, weights, wanted)
        return spots


def _spread(
    row: list[int], spots: list[float], sizes: list[float], gap: float, weights: list[float], wanted: list[float]
) -> None:
    """Put a row as near to the wanted spots as its order and its sizes allow, by least squares (pool adjacent violators)."""
    offset, offsets = 0.0, []
    for at, number in enumerate(row):
        if at:
            offset += (sizes[row[at - 1]] + sizes[number]) / 2 + gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, own in zip(wanted, weights, offsets, strict=True):
        mean, heavy, many = want - own, weight, 1
        while pools and pools[-1][0] > mean:
            before, more, number = pools.pop()
            mean, heavy, many = (mean * heavy + before * more) / (heavy + more), heavy + more, many + number
        pools.append((mean, heavy, many))
    starts = [mean for mean, _, many in pools for _ in range(many)]
    for number, start, own in zip(row, starts, offsets, strict=True):
        spots[number] = start + own


def _placed(
    order: _Order, alone: Sequence[str], edges: Sequence[Edge], box: Point, gap: Point, rightward: bool
) -> Drawing:
    """Return the drawing in this direction; boxes without lines stand in a block below."""
    long, wide = box if rightward else box[::-1]
    spots = order.across(wide, gap[1])
    edge_of = [wide / 2 if number < len(order.ids) else _LINE / 2 for number in range(len(spots))]
    least = min((spot - half for spot, half in zip(spots, edge_of, strict=True)), default=0.0)
    spots = [spot - least for spot in spots]
    breadth = max((spot + half for spot, half in zip(spots, edge_of, strict=True)), default=0.0)
    between = gap[0] + (min(70.0, breadth * 0.07) if rightward else 0.0)  # lines to many boxes need room to bend
    length = max(0.0, len(order.rows) * (long + between) - between)
    width, height = (length, breadth) if rightward else (breadth, length)
    drawing = Drawing(width, height, rightward)

    def point(along: float, across: float) -> Point:
        return (along, across) if rightward else (across, along)

    starts = [layer * (long + between) for layer in order.layer]
    for id, number in order.number.items():
        drawing.boxes[id] = point(starts[number], spots[number] - wide / 2)
    ports = _ports(order, spots, wide)
    for at, (edge, route) in enumerate(zip(edges, order.routes, strict=True)):
        path: list[Point] = []
        for one, other in pairwise(route):
            path.append(point(starts[one] + long, spots[one] + ports.get((at, one, True), 0.0)))
            path.append(point(starts[other], spots[other] + ports.get((at, other, False), 0.0)))
        drawing.lines.append(path if order.number[edge["from"]] == route[0] else path[::-1])
    _place_alone(drawing, alone, box, gap)
    return drawing


def _ports(order: _Order, spots: list[float], wide: float) -> dict[tuple[int, int, bool], float]:
    """Return where each line leaves and reaches its boxes, beside their middle, so that lines do not lie on one another."""
    sides: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for at, route in enumerate(order.routes):
        sides.setdefault((route[0], True), []).append((spots[route[1]], at))
        sides.setdefault((route[-1], False), []).append((spots[route[-2]], at))
    found: dict[tuple[int, int, bool], float] = {}
    for (number, leaves), lines in sides.items():
        step = min(12.0, wide * 0.7 / len(lines))
        for place, (_, at) in enumerate(sorted(lines)):
            found[at, number, leaves] = (place - (len(lines) - 1) / 2) * step
    return found


def _place_alone(drawing: Drawing, alone: Sequence[str], box: Point, gap: Point) -> None:
    if not alone:
        return
    space = min(gap)
    room = max(drawing.width, min(len(alone), _columns(len(alone), box)) * (box[0] + space) - space)
    columns = max(1, int((room + space) / (box[0] + space)))
    top = drawing.height + max(gap) if drawing.height else 0.0
    for at, id in enumerate(alone):
        drawing.boxes[id] = (at % columns * (box[0] + space), top + at // columns * (box[1] + space))
    drawing.width = max(drawing.width, min(len(alone), columns) * (box[0] + space) - space)
    drawing.height = top + -(-len(alone) // columns) * (box[1] + space) - space


def _columns(number: int, box: Point) -> int:
    """Return how many boxes side by side bring a block of so many near to the shape of a screen."""
    return max(1, round(math.sqrt(number * box[1] / box[0] * _SHAPE)))
