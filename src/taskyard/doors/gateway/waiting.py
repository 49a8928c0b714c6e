"""The verbs that wait, or take several steps: those that wait look again when something changes, and hold no thread between."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any

from taskyard.core import times
from taskyard.core.backlog import TEAM_LOOK
from taskyard.core.errors import Full, TimedOut
from taskyard.doors.gateway import actions
from taskyard.doors.gateway.threads import CHECKS, QUICK, SLOW
from taskyard.remote.wire import LONGEST_POLL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard.doors.gateway.hub import Hub
    from taskyard.doors.gateway.threads import Share
    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

    Given = dict[str, Any]


class Ask:
    """One request of a verb: the yard as its worker uses it, its hub, the asker's threads, and the request's key."""

    __slots__ = ("again", "hub", "key", "share", "still_admitted", "yard")

    def __init__(
        self,
        yard: YardPort,
        hub: Hub,
        share: Share,
        key: str | None,
        again: bool,
        still_admitted: Callable[[], Awaitable[bool]],
    ) -> None:
        self.yard = yard
        self.hub = hub
        self.share = share
        self.key = key
        self.again = again
        self.still_admitted = still_admitted
        """Whether the token of the request is good still."""


def _seconds(value: Any, name: str) -> float:
    """Return for how long one request waits."""
    return min(times.seconds(value, name), LONGEST_POLL) if value else 0.0


async def add(ask: Ask, given: Given, verb: str = "add") -> Given:
    """Add a task, or many, and wait for room if asked to."""
    seconds = _seconds(given.pop("wait", None), "wait")
    full: list[Full] = []

    def look() -> Given | None:
        try:
            return actions.KEYED[verb](ask.yard, ask.key, dict(given))
        except Full as error:
            if error.wanted > error.most:
                raise
            full[:] = [error]
            return None

    sort = SLOW if verb == "add_many" else QUICK

    def every() -> float:
        return inf if full[0].team is None else TEAM_LOOK

    added = await ask.hub.until(lambda: ask.share.run(look, sort), seconds, every)
    if added is None:
        raise full[0]
    return added


async def add_many(ask: Ask, given: Given) -> Given:
    """Add many tasks."""
    return await add(ask, given, "add_many")


async def claim(ask: Ask, given: Given) -> Given:
    """Claim one task, and wait for one if asked to."""
    seconds = _seconds(given.pop("wait", None), "wait")
    kinds = given.get("kinds")
    sort = (given.get("id"), None if kinds is None else frozenset(kinds), given.get("mission"))
    got = await _once(ask, lambda: ask.hub.claim(sort, lambda: _first(ask, given), seconds, ask.share))
    return {"claim": None if got is None else got.answer}


class Granted:
    """A claim with its answer, read in the thread that claimed: another thread for it would cost as much as the claim."""

    __slots__ = ("answer", "release")

    def __init__(self, claim: Claim) -> None:
        self.release = claim.release
        self.answer = actions.claim(claim)


def _first(ask: Ask, given: Given) -> Granted | None:
    held = ask.yard.granted(given.get("worker")) if ask.again else []
    ask.again = False  # looked for once: later tries of this request are new
    claim = held[0] if held else ask.yard.claim(**given)
    return None if claim is None else Granted(claim)


async def claim_many(ask: Ask, given: Given) -> Given:
    """Claim several tasks at once."""

    def attempt() -> list[Granted]:
        return [
            *map(Granted, (ask.yard.granted(given.get("worker")) if ask.again else []) or ask.yard.claim_many(**given))
        ]

    got = await _once(ask, lambda: ask.hub.run_claim(attempt, ask.share))
    return {"claims": [one.answer for one in got]}


async def resume(ask: Ask, given: Given) -> Given:
    """Take a worker's claims again. If the client is gone by then they stay the worker's, as they were before it asked."""
    got = await _once(ask, lambda: ask.share.run(lambda: [*map(Granted, ask.yard.resume(**given))]), gives_back=False)
    return {"claims": [one.answer for one in got]}


async def done(ask: Ask, given: Given) -> Given:
    """End a task. One that names a check, or is refused, takes a thread of its own sort: a command may run for minutes."""
    ended = [(given["claim"], given.get("result"))]
    if given.get("verified") or not (await ask.share.run(lambda: ask.yard.done_many(ended)))[0]:
        await ask.share.run(lambda: ask.yard.done(**given), CHECKS)
    return {}


async def _once(ask: Ask, work: Callable[[], Awaitable[Any]], *, gives_back: bool = True) -> Any:
    """Do this once for all requests of one key that are under way: a repetition shares the first one's work.

    What no client waits for any more is cancelled, and gives back what it gets; else it goes on, for a repetition to find.
    """
    if ask.key is None:
        return await work()
    name = (ask.yard.worker, ask.key)
    shared = ask.hub.under_way.get(name)
    if shared is None:
        shared = ask.hub.under_way[name] = Shared(asyncio.ensure_future(work()))
    shared.users += 1
    try:
        return await asyncio.shield(shared.work)
    except asyncio.CancelledError:
        if shared.users == 1 and gives_back:
            shared.work.cancel()
            ask.hub.give_back_if_granted(shared.work)
        raise
    finally:
        shared.users -= 1
        if not shared.users and (gives_back or shared.work.done()):
            ask.hub.under_way.pop(name, None)
        elif not shared.users:
            shared.work.add_done_callback(lambda _: shared.users or ask.hub.under_way.pop(name, None))


class Shared:
    """Work that several requests wait for."""

    __slots__ = ("users", "work")

    def __init__(self, work: asyncio.Future[Any]) -> None:
        self.work = work
        self.users = 0


async def wait(ask: Ask, given: Given) -> Given:
    """Wait until tasks have ended."""
    seconds = _seconds(given.pop("timeout", LONGEST_POLL), "timeout")
    ids, filters = given.pop("ids", None) or [], given
    found = await ask.share.read(lambda: actions.ended(ask.yard, ids, filters))
    if isinstance(found, TimedOut) and seconds:
        if found.ids:  # a filter chooses once, when the wait begins
            ids, filters = found.ids, {}
        last = found

        def look() -> list[Given] | None:
            nonlocal last
            now = actions.ended(ask.yard, ids, filters)
            if isinstance(now, TimedOut):
                last = now
                return None
            return now

        found = await ask.hub.until(lambda: ask.share.read(look), seconds) or last
    if isinstance(found, TimedOut):
        raise found
    return {"tasks": found}


async def watch(ask: Ask, given: Given) -> Given:
    """Wait for the first event that matches."""
    seconds = _seconds(given.pop("timeout", LONGEST_POLL), "timeout")
    if given.get("cursor") is None:
        given["cursor"] = await ask.share.read(ask.yard.log_end)

    def look() -> Given | None:
        page = actions.events(ask.yard, **given, limit=1)
        return page if page["events"] else None

    found = await ask.hub.until(lambda: ask.share.read(look), seconds)
    if found is None:
        raise TimedOut(f"nothing of the kind happened in {seconds:.10g} s", hint="ask again with the same cursor")
    return found


async def changes(ask: Ask, given: Given) -> Given:
    """Wait until something may have changed."""
    return {"seen": await ask.hub.change(given.get("seen"), _seconds(given.get("seconds"), "seconds"))}


WAITING = {
    "add": add,
    "add_many": add_many,
    "claim": claim,
    "claim_many": claim_many,
    "resume": resume,
    "done": done,
    "wait": wait,
    "watch": watch,
    "changes": changes,
}
