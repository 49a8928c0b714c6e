"""A closed yard refuses every verb, and what was in it stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_a_closed_yard_refuses_every_verb_and_may_be_closed_again(yard: Yard, yard_url: str) -> None:
    with taskyard.open(yard_url) as other:
        id = other.add("k").id
        held = taken(other.claim())
        other.close()
        for verb in (
            lambda: other.add("k"),
            other.claim,
            lambda: other.get(id),
            other.counts,
            other.events,
            other.sweep,
            lambda: other.retry(id),
            held.heartbeat,
            held.done,
        ):
            with pytest.raises(taskyard.Unavailable, match="closed"):
                verb()
        assert other.url == yard.url
    assert yard.get(id).state == "processing"
    yard.held(held.handle).done()
    assert yard.get(id).state == "done"
