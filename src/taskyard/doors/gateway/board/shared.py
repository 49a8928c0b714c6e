"""Answers that all boards share: however many ask at once, the yard is read once, and for a small share of a core."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from taskyard.doors.gateway.threads import SLOW
from taskyard.remote import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.doors.gateway.threads import Share

VERBS = frozenset(("overview", "lanes", "agents", "series", "missions", "mission", "paused"))
"""The verbs whose answers are shared."""
_FRESH_LEAST, _FRESH_MOST = 0.8, 20.0  # seconds for which an answer counts
_SHARE = 20  # and this many times as long as it took: 5 % of a core for each question
_KEPT = 64  # questions


class Answer(NamedTuple):
    """What a look has found, and the body that all boards get: it was encoded in the thread that looked."""

    data: Any
    body: bytes


class Look:
    """One look at the yard, and how many wait for what it finds; when all of them have gone away, it is given up."""

    def __init__(self, task: asyncio.Future[Any]) -> None:
        self.task = task
        self._waiting = 0

    async def found(self) -> Answer:
        """Return what the look finds."""
        self._waiting += 1
        try:
            found: Answer = await asyncio.shield(self.task)  # one that goes away must not end the look of the others
            return found
        finally:
            self._waiting -= 1
            if not self._waiting and not self.task.done():
                self.task.cancel()


class Shared:
    """The last answer to each question, and the one that is being looked for."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._answers: dict[str, tuple[float, Answer]] = {}
        self._looks: dict[str, Look] = {}

    async def answer(
        self,
        verb: str,
        given: dict[str, Any],
        call: Callable[[], Any],
        *,
        share: Share | None = None,
        anew: bool = False,
    ) -> Answer:
        """Return the answer to this question: a recent one, or what `call` returns; `anew` only takes one that begins now.

        A look takes a thread of the asker's `share`, so that one with many questions leaves some for others.
        """
        question = json.dumps([verb, given], sort_keys=True)
        known = self._answers.get(question)
        if known is not None and not anew and time.monotonic() < known[0]:
            return known[1]
        look = self._looks.get(question)
        if look is not None and anew:
            await asyncio.wait([look.task])  # it may have looked before what the asker has just done
            look = self._looks.get(question)
        if look is None:
            look = self._looks[question] = Look(
                asyncio.ensure_future(self._looked(question, call, share or self._share))
            )
        return await look.found()

    async def _looked(self, question: str, call: Callable[[], Any], share: Share) -> Answer:
        def look() -> Answer:
            data = call()
            return Answer(data, json.dumps(wire.good(data)).encode())

        began = time.monotonic()
        try:
            found = await share.read(look, SLOW)
            took = time.monotonic() - began
            fresh = min(max(_FRESH_LEAST, took * _SHARE), _FRESH_MOST)
            self._answers.pop(question, None)
            self._answers[question] = (time.monotonic() + fresh, found)
            if len(self._answers) > _KEPT:
                del self._answers[next(iter(self._answers))]
            return found
        finally:
            del self._looks[question]
