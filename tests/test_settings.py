"""A yard's own settings: one that would make it stand still, or spin, is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard.core import settings
from taskyard.core.errors import Invalid, Unavailable

ODD: list[tuple[str, Any]] = [
    *((name, value) for name in settings.BOUNDS for value in (-1, True, "1", float("nan"), float("inf"), [1])),
    ("lease", 0),
    ("lease", 0.0009),
    ("lease", 30 * 86400 + 1),
    ("sweep_every", 0),
    ("max_attempts", 0),
    ("max_attempts", 2.5),
    ("max_attempts", 1000),
    ("max_crashes", 0),
    ("max_crashes", 1e9),
    ("retention_count", 0.5),
]


@pytest.mark.parametrize(("name", "value"), ODD)
def test_a_setting_out_of_its_bounds_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(Unavailable, match=f"'{name}' in yard.json must be a .*number from"):
        settings.parse({name: value}, "yard.json")


@pytest.mark.parametrize("name", list(settings.BOUNDS))
def test_a_setting_at_its_bounds_counts_and_null_is_as_if_it_were_not_there(name: str) -> None:
    def found(value: float | None) -> float | None:
        given = settings.parse({name: value}, "yard.json")
        if name.startswith("retention_"):
            return float(getattr(given.retention, name.removeprefix("retention_")) or 0)
        if name == "max_todo":
            return None if given.max_todo is None else float(given.max_todo)
        if name == "settle":
            return None if given.settle is None else given.settle / 1000
        number = getattr(given.policy, name)
        return None if number is None else float(number)

    least, most = settings.BOUNDS[name]
    assert (found(least), found(most)) == (least, most)
    assert found(None) not in (least, most) or name.startswith("retention_")


def test_a_whole_number_may_be_written_with_a_point() -> None:
    limit = settings.parse({"max_attempts": 5.0}, "yard.json").policy.max_attempts
    assert (limit, type(limit)) == (5, int)


ODD_KINDS: list[Any] = [
    7,
    [],
    {"build": 2},
    {"build": {"concurrency": 0}},
    {"build": {"concurrency": 1.5}},
    {"build": {"rate": True}},
    {"build": {"rate": 1e9}},
    {"build": {"max_todo": -1}},
]


@pytest.mark.parametrize("kinds", ODD_KINDS)
def test_a_limit_of_a_kind_that_cannot_be_is_refused(kinds: object) -> None:
    with pytest.raises(Unavailable, match=r"yard\.json must be"):
        settings.parse({"kinds": kinds}, "yard.json")
    with pytest.raises(Invalid, match="must be"):
        settings.changed({}, {"kinds": kinds})


def test_limits_of_a_kind_are_changed_one_by_one_and_unknown_settings_are_kept() -> None:
    written = {"later": [1], "kinds": {"a.b": {"rate": 5, "odd": 1}, "c": {"rate": 1}}}
    after = settings.changed(written, {"kinds": {"a.b": {"concurrency": 2}, "c": {"rate": None}}, "lease": 60})
    assert after == {"later": [1], "kinds": {"a.b": {"rate": 5, "odd": 1, "concurrency": 2}}, "lease": 60}
    assert settings.changed(after, {"kinds": {"a.b": None}, "lease": None}) == {"later": [1]}
    assert written["kinds"] == {"a.b": {"rate": 5, "odd": 1}, "c": {"rate": 1}}
    found = settings.parse(after, "here").kinds["a.b"]
    assert (found.concurrency, found.rate, found.max_todo) == (2, 5, None)


@pytest.mark.parametrize(
    "changes",
    [{}, [], {"odd": 1}, {"shared": "group"}, {"kinds": {"a b": {"rate": 1}}}, {"kinds": {"a": {"speed": 1}}}],
)
def test_a_change_that_cannot_be_is_refused(changes: object) -> None:
    with pytest.raises(Invalid):
        settings.changed({}, changes)
