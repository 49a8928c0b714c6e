"""What is of another type than a verb takes is `Invalid`, as everything else that no verb can mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        (lambda yard: yard.add_many(None), "tasks must be a list, not NoneType"),
        (lambda yard: yard.add_many(5), "tasks must be a list, not int"),
        (lambda yard: yard.find(state=5), "state must be a list, not int"),
        (lambda yard: yard.find(kind=5), "kind must be a list, not int"),
        (lambda yard: yard.claim(kinds=5), "must be a list, not int"),
        (lambda yard: yard.claim_many(2, kinds=5), "must be a list, not int"),
        (lambda yard: yard.events(event=5), "event must be a list, not int"),
        (lambda yard: yard.events(event=[["done"]]), "not an event|event must be a text"),
    ],
    ids=["none", "tasks", "state", "kind", "claim", "claim_many", "event", "events"],
)
def test_what_is_no_list_is_invalid(yard: Yard, verb: Callable[[Any], object], what: str) -> None:
    with pytest.raises(Invalid, match=what):
        verb(yard)


@pytest.mark.parametrize("enter", [taskyard.open, taskyard.init])
@pytest.mark.parametrize("url", [5, b"yard"])
def test_what_is_no_path_is_invalid(enter: Callable[[Any], object], url: object) -> None:
    with pytest.raises(Invalid, match="must be a text or a path"):
        enter(url)
