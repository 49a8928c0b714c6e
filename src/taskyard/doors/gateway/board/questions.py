"""What boards ask of a yard: each question reads, and its answer is encoded where it was read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from taskyard.doors.gateway import actions
from taskyard.remote import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.port import YardPort

VERBS = frozenset(("overview", "lanes", "agents", "series", "missions", "mission", "paused"))
"""The verbs of the API whose answers all boards share."""
_EVENTS = 150  # events of one tick, the newest; the others are only counted
_PAGE = 2000  # events of one read


class Answer(NamedTuple):
    """What a look has found: a few facts for the gateway, and the body that boards get."""

    facts: dict[str, Any]
    body: bytes


def answer(yard: YardPort, question: str, given: dict[str, Any]) -> Answer:
    """Look at the yard, and return what a question asks for."""
    return _QUESTIONS[question](yard, **given)


def _encoded(data: dict[str, Any]) -> bytes:
    return json.dumps(wire.good(data)).encode()


def _verb(name: str) -> Callable[..., Answer]:
    return lambda yard, **given: Answer({}, _encoded(actions.CALLS[name](yard, **given)))


def _overview(yard: YardPort) -> Answer:
    """Return what needs a person; its facts are how much that is, and the counts."""
    data = actions.CALLS["overview"](yard)
    overview = data["overview"]
    facts = {
        "needs": overview["count"],
        "sorts": {name: part["count"] for name, part in overview["needs"].items()},
        "counts": overview["counts"],
        "paused": overview["paused"],
    }
    return Answer(facts, _encoded(data))


def _tick(yard: YardPort, cursor: str) -> Answer:
    """Return what happened since `cursor` as the data of one event of the stream; empty if nothing did."""
    names: dict[str, int] = {}
    newest: list[dict[str, Any]] = []
    while True:
        page = actions.events(yard, cursor=cursor, limit=_PAGE)
        cursor = page["cursor"]
        for event in page["events"]:
            names[event["event"]] = names.get(event["event"], 0) + 1
        newest = (newest + page["events"])[-_EVENTS:]
        if len(page["events"]) < _PAGE:
            break
    left_out = sum(names.values()) - len(newest)
    tick = {"events": newest, "names": names, "left_out": left_out, "cursor": cursor}
    return Answer({"cursor": cursor}, json.dumps(tick).encode() if names else b"")


def _drawing(yard: YardPort, **given: Any) -> Answer:
    from taskyard.doors.gateway.board import drawing

    return Answer({}, _encoded(drawing.drawn(yard, **given)))


def _bulk_count(yard: YardPort, given: dict[str, Any]) -> Answer:
    from taskyard.doors.gateway.board import bulk

    return Answer({}, _encoded(bulk.count(yard, given)))


_QUESTIONS: dict[str, Callable[..., Answer]] = {
    **{name: _verb(name) for name in VERBS},
    "overview": _overview,
    "tick": _tick,
    "drawing": _drawing,
    "bulk_count": _bulk_count,
}
