"""The figures of `stats` in the text format 0.0.4, which Prometheus and node exporters read. No I/O."""

from __future__ import annotations

from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Sample = tuple[dict[str, str], float]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of the text, for a door that serves it."""


def prometheus(stats: Mapping[str, Any]) -> str:
    """Return the answer of `yard.stats()` as metrics named `taskyard_*`; each is a gauge, read at one moment.

    No counters: the log forgets, and so a number of all claims ever would fall.
    """
    counts = stats["counts"]
    return "".join(
        (
            _gauge("tasks", "Tasks by kind and state.", _by_kind(stats["kinds"])),
            _gauge(
                "backlog_tasks",
                "Tasks in todo and processing: what keeps workers busy, for autoscalers.",
                [({}, counts[State.TODO] + counts[State.PROCESSING])],
            ),
            _gauge(
                "oldest_task_age_seconds",
                "Seconds since the oldest task in each state was added, 0 if there is none; todo is ready.",
                [({"state": state}, age or 0) for state, age in stats["ages"].items()],
            ),
            _gauge("recent_events", "Events of the last minute and the last hour.", _by_window(stats["rates"])),
            _gauge("dropped_files", "Files in the drop box that no sweep has taken in.", [({}, stats["dropped"])]),
            _gauge("set_aside_files", "Dropped files that can be no tasks.", [({}, stats["set_aside"])]),
            _gauge("paused", "1 if the whole yard is paused.", [({}, stats["paused"]["yard"])]),
            _gauge(
                "kind_paused",
                "1 for each kind that is paused.",
                [({"kind": kind}, 1) for kind in stats["paused"]["kinds"]],
            ),
            _gauge(
                "estimated",
                "1 for each group of figures that is an estimate.",
                [({"figure": figure}, 1) for figure in stats["approximate"]],
            ),
        )
    )


def _by_kind(kinds: Mapping[str, Mapping[str, int]]) -> Iterable[Sample]:
    """Yield a sample for each kind and state, also for those that are 0: a series must not vanish between two looks."""
    for kind, row in kinds.items():
        for state in State:
            yield {"kind": kind, "state": str(state)}, row.get(state, 0)


def _by_window(rates: Mapping[str, Mapping[str, int]]) -> Iterable[Sample]:
    for window, numbers in rates.items():
        for event, number in numbers.items():
            yield {"event": event, "window": window}, number


def _gauge(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP taskyard_{name} {about}", f"# TYPE taskyard_{name} gauge"]
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"taskyard_{name}{'{' + inside + '}' if inside else ''} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    """Return a label's value with the three characters escaped that the format has a meaning for."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
