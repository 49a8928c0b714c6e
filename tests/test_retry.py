"""How soon a task is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core import retry
from taskyard.core.retry import Policy

POLICY = Policy()


def middle() -> float:
    return 0.5


@pytest.mark.parametrize(("errors", "delay"), [(1, 5.0), (2, 10.0), (3, 20.0), (7, 320.0), (8, 600.0), (998, 600.0)])
def test_an_errors_delay_doubles_up_to_the_cap(errors: int, delay: float) -> None:
    assert retry.after_error(POLICY, errors, 999, middle) == delay


@pytest.mark.parametrize(("errors", "most"), [(1, 1), (3, 3), (4, 3)])
def test_the_last_error_has_no_delay_but_an_end(errors: int, most: int) -> None:
    assert retry.after_error(POLICY, errors, most, middle) is None


def test_the_first_crash_costs_nothing_the_second_a_little_and_the_third_is_the_end() -> None:
    assert [retry.after_crash(POLICY, crashes, middle) for crashes in (1, 2, 3, 4)] == [0.0, 5.0, None, None]


def test_a_yard_may_have_its_own_settings() -> None:
    policy = Policy(max_crashes=5, backoff=1.0, backoff_cap=3.0)
    assert [retry.after_crash(policy, crashes, middle) for crashes in (1, 2, 3, 4, 5)] == [0.0, 1.0, 2.0, 3.0, None]


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_nothing_never_beyond_the_cap_and_within_a_quarter(turn: int, chance: float) -> None:
    delay = retry.backoff(POLICY, turn, lambda: chance)
    whole = min(600.0, 5.0 * 2.0 ** min(turn, 30))
    assert 0.75 * whole <= delay <= min(600.0, 1.25 * whole)


def test_chance_spreads_the_delays() -> None:
    assert len({retry.backoff(POLICY, 0) for _ in range(20)}) > 1
