"""A yard's own settings: one that would make it stand still, or spin, is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard.core import settings
from taskyard.core.errors import Unavailable

ODD: list[tuple[str, Any]] = [
    *((name, value) for name in settings.BOUNDS for value in (-1, True, "1", float("nan"), float("inf"), [1])),
    ("lease", 0),
    ("lease", 0.0009),
    ("lease", 30 * 86400 + 1),
    ("sweep_every", 0),
    ("max_attempts", 0),
    ("max_attempts", 2.5),
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
        if name == "settle":
            return None if given.settle is None else given.settle / 1000
        return float(getattr(given.policy, name))

    least, most = settings.BOUNDS[name]
    assert (found(least), found(most)) == (least, most)
    assert found(None) not in (least, most) or name.startswith("retention_")


def test_a_whole_number_may_be_written_with_a_point() -> None:
    limit = settings.parse({"max_attempts": 5.0}, "yard.json").policy.max_attempts
    assert (limit, type(limit)) == (5, int)
