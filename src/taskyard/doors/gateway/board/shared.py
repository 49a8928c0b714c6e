"""Answers that all boards share: however many ask at once, the yard is read once, and for a small share of a core."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from taskyard.doors.gateway.threads import SLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.doors.gateway.board.questions import Answer
    from taskyard.doors.gateway.threads import Share

_FRESH_LEAST, _FRESH_MOST = 0.8, 20.0  # seconds for which an answer counts
_SHARE = 20  # and this many times as long as it took: 5 % of a core for each question
_KEPT = 64  # questions


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
    """The last answer to each question, and the one that is being looked for.

    `look` answers a question in the thread that calls it.
    """

    def __init__(self, share: Share, look: Callable[[str, dict[str, Any]], Answer]) -> None:
        self._share = share
        self._look = look
        self._answers: dict[str, tuple[float, Answer]] = {}
        self._looks: dict[str, Look] = {}

    async def alone(self, question: str, given: dict[str, Any], share: Share | None = None) -> Answer:
        """Return the answer to a question of one asker."""
        return await (share or self._share).read(partial(self._look, question, given), SLOW)

    async def answer(
        self, question: str, given: dict[str, Any], *, share: Share | None = None, anew: bool = False
    ) -> Answer:
        """Return the answer to this question: a recent one, or what a look finds; `anew` only takes one that begins now.

        A look takes a thread of the asker's `share`, so that one with many questions leaves some for others.
        """
        key = json.dumps([question, given], sort_keys=True)
        known = self._answers.get(key)
        if known is not None and not anew and time.monotonic() < known[0]:
            return known[1]
        look = self._looks.get(key)
        if look is not None and anew:
            await asyncio.wait([look.task])  # it may have looked before what the asker has just done
            look = self._looks.get(key)
        if look is None:
            looking = asyncio.ensure_future(self._looked(key, question, given, share))
            look = self._looks[key] = Look(looking)
        return await look.found()

    async def _looked(self, key: str, question: str, given: dict[str, Any], share: Share | None) -> Answer:
        began = time.monotonic()
        try:
            found = await self.alone(question, given, share)
            took = time.monotonic() - began
            fresh = min(max(_FRESH_LEAST, took * _SHARE), _FRESH_MOST)
            self._answers.pop(key, None)
            self._answers[key] = (time.monotonic() + fresh, found)
            if len(self._answers) > _KEPT:
                del self._answers[next(iter(self._answers))]
            return found
        finally:
            del self._looks[key]
