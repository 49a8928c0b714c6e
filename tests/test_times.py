"""Moments and durations, in and out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard import Invalid
from taskyard.core import times


@given(st.integers(0, 4_102_444_800_000))
def test_a_moment_there_and_back(ms: int) -> None:
    text = times.rfc3339(ms)
    assert times.moment(text, "moment") == ms
    assert len(text) == 24


@given(st.integers(0, 4_102_444_800_000), st.integers(0, 4_102_444_800_000))
def test_moments_sort_as_texts(one: int, other: int) -> None:
    assert (times.rfc3339(one) < times.rfc3339(other)) == (one < other)


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-31T12:00:00+02:00", 1_769_853_600_000),
        (datetime(2026, 1, 31, 10, tzinfo=UTC), 1_769_853_600_000),
        (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), 1_769_853_600_000),
    ],
)
def test_moments_come_as_texts_or_datetimes(value: object, ms: int) -> None:
    assert times.moment(value, "moment") == ms


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "2026-01-31T12:00:00",
        "2026-13-01T00:00:00Z",
        "1960-01-01T00:00:00Z",
        12,
        None,
        datetime(2026, 1, 31),
    ],
)
def test_what_is_no_moment_is_invalid(value: object) -> None:
    with pytest.raises(Invalid, match="not_before"):
        times.moment(value, "not_before")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (1.5, 1.5),
        ("90", 90.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("1e2", 100.0),
    ],
)
def test_durations_come_as_numbers_or_texts(value: object, number: float) -> None:
    assert times.seconds(value, "delay") == number


@pytest.mark.parametrize(
    "value",
    [
        -1,
        float("nan"),
        float("inf"),
        "nan",
        "inf",
        "",
        "s",
        "10 minutes",
        "1w",
        "1_0",
        " 5",
        "\uff15",
        "1\u0660m",
        True,
        None,
        [1],
        10**12,
    ],
)
def test_what_is_no_duration_is_invalid(value: object) -> None:
    with pytest.raises(Invalid, match="delay"):
        times.seconds(value, "delay")


def test_a_duration_has_its_limits() -> None:
    assert times.seconds(5, "lease", least=5, most=5) == 5.0
    for value in (4.9, 5.1):
        with pytest.raises(Invalid):
            times.seconds(value, "lease", least=5, most=5)
