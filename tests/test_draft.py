"""Drafts: what add accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskyard import Invalid
from taskyard.core import draft
from taskyard.core.draft import Draft

NOW = 1_800_000_000_000

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of the code
@given(JSON)
def test_any_json_is_kept_exactly(value: Any) -> None:
    assert draft.kept(value) == value


def test_a_draft_has_the_defaults() -> None:
    made = Draft("build")
    assert (made.kind, made.payload, made.priority, made.delay) == ("build", "null", 5, 0.0)
    assert {made.title, made.max_attempts, made.lease, made.assignee, made.mission, made.not_before} == {None}


def test_an_option_of_none_was_not_given() -> None:
    assert Draft("build", None, dict.fromkeys(draft.OPTIONS)).priority == 5


def test_a_draft_is_made_of_one_object() -> None:
    fields = {"kind": "build", "data": [1], "maxAttempts": 2, "lease": "10m", "title": "Build it"}
    made = Draft.of(fields)
    assert (made.kind, made.payload, made.max_attempts, made.lease, made.title) == (
        "build",
        "[1]",
        2,
        600.0,
        "Build it",
    )
    assert len(fields) == 5


@pytest.mark.parametrize(
    "fields",
    [None, [], "build", {}, {"data": 1}, {"kind": None}, {"kind": "build", "id": "x"}, {"kind": "build", 1: 2}],
)
def test_what_is_no_task_is_invalid(fields: object) -> None:
    with pytest.raises(Invalid):
        Draft.of(fields)


def test_a_draft_is_due_now_or_later() -> None:
    assert Draft("build").due(NOW) is None
    assert Draft("build", None, {"delay": 1.5}).due(NOW) == NOW + 1500
    assert Draft("build", None, {"not_before": "2001-01-01T00:00:00Z"}).due(NOW) is None
    assert Draft("build", None, {"not_before": "2050-01-01T00:00:00Z"}).due(NOW) == 2_524_608_000_000


def test_a_payload_is_compact_and_not_escaped() -> None:
    assert draft.payload({"a": ["é", 1]}, "data") == '{"a":["é",1]}'


@pytest.mark.parametrize(
    ("value", "lease"), [(0.001, 0.001), ("10m", 600.0), (0.0514, 0.051), (30 * 86400, 2_592_000.0)]
)
def test_a_lease_is_kept_to_the_millisecond(value: object, lease: float) -> None:
    assert draft.lease(value) == lease


@pytest.mark.parametrize("value", [0, 0.0001, 30 * 86400 + 1, None, True, "x"])
def test_what_is_no_lease_is_invalid(value: object) -> None:
    with pytest.raises(Invalid):
        draft.lease(value)


@pytest.mark.parametrize(("one", "other"), [("maxAttempts", "max_attempts"), ("notBefore", "not_before")])
def test_two_spellings_of_one_option_are_refused(one: str, other: str) -> None:
    for fields in ({one: None, other: None}, {other: None, one: None}):
        with pytest.raises(Invalid, match="same option"):
            Draft.of({"kind": "k", **fields})


@pytest.mark.parametrize("value", ["2030-01-01", "tomorrow", "2030-01-01T12:00:00"])
def test_what_is_no_deadline_leads_to_the_whole_form_of_a_moment(value: str) -> None:
    with pytest.raises(Invalid) as refused:
        Draft.of({"kind": "k", "expires": value})
    assert "2026-01-31T12:00:00Z" in (refused.value.hint or "")


def test_bounds_are_written_out() -> None:
    with pytest.raises(Invalid, match="and 2592000 seconds"):
        draft.lease(30 * 86400 + 1)
