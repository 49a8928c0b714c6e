"""The text for Prometheus: a strict parser reads it, names and labels stay what they are, and nothing is counted that may fall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from taskyard.core.metrics import prometheus
from taskyard.core.task import State
from tests.conftest import crash, taken

if TYPE_CHECKING:
    from taskyard import Yard


def read(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Parse the text; each metric has HELP and TYPE, and no sample comes twice."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        samples = {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
        assert len(samples) == len(family.samples)
        assert family.name not in found
        found[family.name] = samples
    return found


def stats(**changes: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "counts": dict.fromkeys(map(str, State), 0),
        "kinds": {},
        "ages": {"todo": None, "processing": None, "blocked": None},
        "rates": {"minute": {"done": 0}, "hour": {"done": 0}},
        "approximate": [],
        "set_aside": 0,
        "paused": {"yard": False, "kinds": []},
        "dropped": 0,
    }
    return {**nothing, **changes}


def test_an_empty_yard_has_every_metric() -> None:
    text = prometheus(stats())
    assert text.endswith("\n")
    assert read(text)["taskyard_backlog_tasks"] == {(): 0}
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert names == {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}
    assert "taskyard_kind_paused" in names


def test_labels_come_back_exactly() -> None:
    odd = 'a"b\\n\\\\c\nd é'
    found = read(prometheus(stats(kinds={odd: {"todo": 2}}, paused={"yard": True, "kinds": [odd]})))
    assert found["taskyard_tasks"][("kind", odd), ("state", "todo")] == 2
    assert found["taskyard_tasks"][("kind", odd), ("state", "done")] == 0
    assert found["taskyard_kind_paused"] == {(("kind", odd),): 1}
    assert found["taskyard_paused"] == {(): 1}


def test_the_figures_are_those_of_stats(yard: Yard) -> None:
    for _ in range(4):
        yard.add("build")
    taken(yard.claim()).done()
    crash(yard, yard.find(state="todo")[0].id)
    taken(yard.claim())
    stats = yard.stats()
    found = read(prometheus(stats))
    for state, number in stats["counts"].items():
        assert found["taskyard_tasks"].get((("kind", "build"), ("state", state)), 0) == number
    assert found["taskyard_backlog_tasks"] == {(): 3}
    assert found["taskyard_recent_events"][("event", "reaped"), ("window", "minute")] == 1
    assert found["taskyard_oldest_task_age_seconds"][(("state", "todo"),)] == stats["ages"]["todo"]
    assert found["taskyard_oldest_task_age_seconds"][(("state", "blocked"),)] == 0
