"""A cycle that an earlier version has left in a yard: whoever asks why is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.tasks.edges import Edges
from taskyard.yard import dependencies

if TYPE_CHECKING:
    from taskyard import Yard


@pytest.fixture
def tied(place: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """A yard with two tasks that come after one another, and one that comes after the first."""
    with taskyard.open(place) as yard:
        one, two, three = yard.add_many([{"kind": "step"}] * 3)
        with monkeypatch.context() as patch:
            patch.setattr(Edges, "crosses", lambda *_: False)
            patch.setattr(dependencies, "standing_cycle", lambda *_: None)
            yard.edit(one, after=two)
            patch.setattr(dependencies, "_refuse_cycle", lambda _, __, after, states: states.update(_todo(yard, after)))
            yard.edit(two, after=one)
        yard.edit(three, after=one)
    return place, [one, two, three]


def _todo(yard: Yard, after: list[str]) -> dict[str, taskyard.State]:
    return {id: yard.get(id).state for id in after}


def test_why_names_a_cycle_and_how_to_end_it(tied: tuple[str, list[str]]) -> None:
    place, (one, two, _) = tied
    with taskyard.open(place) as yard:
        told = yard.why(one)
        [reason] = told["reasons"]
        assert (reason["code"], reason["tasks"]) == ("cycle", [one, two, one])
        assert "can never start" in told["message"]
        assert "--no-after" in told["next"]
        yard.edit(one, after=None)
        assert (yard.get(one).state, yard.why(two)["reasons"][0]["code"]) == ("todo", "behind")
