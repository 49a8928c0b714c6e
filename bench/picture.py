"""Draw a run over time as SVG: one strip for each series, all over the same seconds."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _STRIP, _LEFT, _RIGHT, _TOP, _GAP, _BOTTOM = 860, 130, 74, 16, 48, 40, 44
_INK, _PALE, _SHADE, _LINE = "#24292f", "#8c959f", "#fff3cd", "#0969da"
_STEPS = (1, 2, 5, 10)


class Series:
    """One figure for each second; None for a second without one."""

    def __init__(self, label: str, figures: Sequence[float | None]) -> None:
        self.label = label
        self.figures = figures


def plot(title: str, shaded: tuple[float, float], strips: Sequence[Series]) -> str:
    """Return the SVG text; the time between the two moments of `shaded` is shaded."""
    seconds = max(len(strip.figures) for strip in strips)
    height = _TOP + len(strips) * (_STRIP + _GAP) - _GAP + _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" fill="{_INK}" font-size="13">{escape(title)}</text>',
    ]
    for number, strip in enumerate(strips):
        lines += _strip(strip, _TOP + number * (_STRIP + _GAP), seconds, shaded)
    bottom = height - _BOTTOM
    for second in range(0, seconds + 1, _step(seconds, 8)):
        lines.append(
            f'<text x="{_across(second, seconds):.1f}" y="{bottom + 16}" fill="{_INK}" text-anchor="middle">{second}</text>'
        )
    lines.append(f'<text x="{_WIDTH / 2:.0f}" y="{bottom + 34}" fill="{_INK}" text-anchor="middle">seconds</text>')
    return "\n".join([*lines, "</svg>\n"])


def _strip(strip: Series, top: int, seconds: int, shaded: tuple[float, float]) -> list[str]:
    known = [figure for figure in strip.figures if figure is not None]
    step = _step(max(known, default=1) or 1, 4)
    most = step * -(-max(known, default=1) // step) or step
    low, high = (_across(moment, seconds) for moment in shaded)
    lines = [
        f'<rect x="{low:.1f}" y="{top}" width="{high - low:.1f}" height="{_STRIP}" fill="{_SHADE}"/>',
        f'<text x="{_LEFT}" y="{top - 6}" fill="{_INK}" font-weight="bold">{escape(strip.label)}</text>',
    ]
    mark = 0.0
    while mark <= most:
        height = top + _STRIP - mark / most * _STRIP
        lines.append(f'<path d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}" stroke="{_PALE}" stroke-width="0.5"/>')
        lines.append(f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" fill="{_INK}" text-anchor="end">{mark:,.0f}</text>')
        mark += step
    points = [
        f"{_across(second + 0.5, seconds):.1f},{top + _STRIP - figure / most * _STRIP:.1f}"
        for second, figure in enumerate(strip.figures)
        if figure is not None
    ]
    lines.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>')
    return lines


def _across(second: float, seconds: int) -> float:
    return _LEFT + second / seconds * (_WIDTH - _LEFT - _RIGHT)


def _step(most: float, marks: int) -> int:
    """Return the smallest round distance that puts at most `marks` marks between 0 and `most`."""
    size = 1
    while True:
        for step in _STEPS:
            if most / (step * size) <= marks:
                return step * size
        size *= 10
