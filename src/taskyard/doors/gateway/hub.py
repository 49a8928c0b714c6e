"""Waiting in the gateway: any number of requests wait for changes of one yard, and one thread listens for all of them.

A claim that waits stands in line with those that want the same. When something changes, the first of each line try; the
others try only if that one got a task. A task may be meant for one worker alone: so each claim in line also gets a try of its
own from time to time. That costs a small share of a core.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from taskyard.core import ids

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from concurrent.futures import Executor

    from taskyard.doors.gateway.threads import Share
    from taskyard.port import YardPort


class Grant(Protocol):
    """What an attempt gets: a claim, or something that has one."""

    @property
    def release(self) -> Callable[[], object]:
        """Gives the task back."""


Found = TypeVar("Found")
Got = TypeVar("Got", bound=Grant)
_SHARE = 30  # a pause is this many times as long as the look in vain before it: 3 % of a core
_PAUSE = 0.25  # seconds, at most
_REST = 0.001  # seconds between two rounds of tries: the few changes that one task makes are one round
_PATROL = 5  # the same for tries of those that are not first in line: a fifth of a core for all of them
_SOONEST = 0.01  # seconds: an alarm that is overdue must not spin
_NAP = 5.0  # seconds after which the thread that listens shows that it is alive
DEAF = 20.0  # seconds without that
_ABREAST = 4  # claims of one line that are tried at once


class Place:
    """A claim's place in line: how to try it, and where its answer goes."""

    __slots__ = ("answer", "attempt", "busy", "tried")

    def __init__(self, attempt: Callable[[], Grant | None], answer: asyncio.Future[Any]) -> None:
        self.attempt = attempt
        self.answer = answer
        self.tried = -1
        """The number of changes at the last try."""
        self.busy = False
        """Whether it is being tried."""

    def is_open(self) -> bool:
        """Whether it can be tried now."""
        return not self.busy and not self.answer.done()


class Hub:
    """Everything that waits on one yard."""

    def __init__(self, yard: YardPort, pool: Executor) -> None:
        self._yard = yard
        self._pool = pool
        self._boot = ids.base32(ids.chance(40), 8)
        self.generation = 0
        self._waiting = 0
        self._bell: asyncio.Future[None] | None = None
        self._thread: threading.Thread | None = None
        self._listens: asyncio.Future[None] | None = None
        self._lines: dict[Hashable, deque[Place]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._serving = self._again = self._patrolling = False
        self._closed = self._draining = False
        self._beat_at = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self.under_way: dict[tuple[str, str], Any] = {}
        """What requests with a key are at work on."""

    async def run(self, act: Callable[[], Found]) -> Found:
        """Call the yard in a thread, on behalf of all that wait."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, act)

    # Changes

    def seen(self) -> str:
        """Return what stands for all changes so far."""
        return f"{self._boot}{self.generation}"

    async def change(self, seen: str | None, seconds: float) -> str:
        """Return when something may have changed since `seen`, or after `seconds`."""
        async with self.listening():
            if seen is not None and seen == self.seen() and seconds > 0 and not self._draining:
                self._set_alarm()
                await self.ring(seconds)
            return self.seen()

    async def until(
        self, look: Callable[[], Awaitable[Found | None]], seconds: float, every: Callable[[], float] = lambda: inf
    ) -> Found | None:
        """Return what the first look finds that finds something; None after `seconds`.

        `every` is asked after each look in vain how long to wait for a change at the most.
        """
        found = await look()
        if found is not None or seconds <= 0:
            return found
        end = time.monotonic() + seconds
        async with self.listening():
            while True:
                last = (began := time.monotonic()) >= end or self._draining
                before = self.generation
                found = await look()
                if found is not None or last:
                    return found
                self._set_alarm()
                pause = min((time.monotonic() - began) * _SHARE, _PAUSE) * (0.5 + ids.chance(8) / 256)
                if before == self.generation:
                    await self.ring(min(every(), end - time.monotonic()))
                await asyncio.sleep(max(0.0, min(pause, end - time.monotonic())))

    def listening(self) -> Listening:
        """Return a block in which every change is noticed."""
        return Listening(self)

    async def ring(self, seconds: float) -> None:
        """Wait for the next change, for at most `seconds`."""
        if self._draining:
            return
        if self._bell is None:
            self._bell = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._bell], timeout=max(0.0, seconds))

    def _changed(self) -> None:
        self.generation += 1
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.set_result(None)
        if self._lines:
            self._serve_soon()

    def _set_alarm(self) -> None:
        """After a look in vain: look again when the next task is due or the next lease ends, as that look saw it."""
        seconds = self._yard.alarm()
        if seconds is None:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + max(_SOONEST, seconds)
        if self._alarm is None or due < self._alarm.when():
            self._stop_alarm()
            self._alarm = loop.call_at(due, self._rang)

    def _rang(self) -> None:
        self._alarm = None
        self._changed()

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    # The thread that listens

    async def enter(self) -> None:
        """Begin to listen, unless another waiter has; every change after this is noticed."""
        self._waiting += 1
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._listens = loop.create_future()
            self._beat_at = time.monotonic()
            self._thread = threading.Thread(
                target=self._listen, args=(loop, self._listens), name="taskyard changes", daemon=True
            )
            self._thread.start()
        assert self._listens is not None  # made with the thread
        await asyncio.shield(self._listens)

    def leave(self) -> None:
        """End a wait; the last one ends the listening."""
        self._waiting -= 1
        if not self._waiting and self._thread is not None:
            self._thread, self._listens = None, None
            self._stop_alarm()
            self._yard.wake()

    def _listen(self, loop: asyncio.AbstractEventLoop, begun: asyncio.Future[None]) -> None:
        me = threading.current_thread()
        waiter, failed = None, False
        while self._thread is me and not self._closed:
            try:
                if waiter is None:
                    waiter = self._yard.waiter(None, lambda: self._thread is not me)
                    if failed:
                        _call(loop, self._changed)  # of what came since the last look it knows nothing
                _call(loop, _resolve, begun)
                waiter.nap(_NAP)
                self._yard.tend()
                self._beat_at = time.monotonic()
            except Exception:
                waiter, failed = None, True
                _call(
                    loop, _resolve, begun
                )  # a yard that is away: those that wait look themselves, and raise what is wrong
                time.sleep(_PAUSE)
            _call(loop, self._changed)
        _call(loop, _resolve, begun)

    # Claims

    def in_line(self) -> int:
        """Return how many claims wait."""
        return sum(map(len, self._lines.values()))

    async def claim(
        self, sort: Hashable, attempt: Callable[[], Got | None], seconds: float, share: Share
    ) -> Got | None:
        """Return the first claim that an attempt gets; None after `seconds`. Those of one `sort` stand in one line."""
        got = await self.run_claim(attempt, share)
        if got is not None or seconds <= 0 or self._draining:
            return got
        async with self.listening():
            place = Place(attempt, asyncio.get_running_loop().create_future())
            line = self._lines.setdefault(sort, deque())
            line.append(place)
            self._serve_soon()  # something may have changed before the listening began
            try:
                await asyncio.wait([place.answer], timeout=seconds)
                granted: Got | None = place.answer.result() if place.answer.done() else None
                return granted
            except asyncio.CancelledError:
                self.give_back_if_granted(place.answer)
                raise
            finally:
                place.answer.cancel()  # a claim that comes after this is given back
                self._leave_line(sort, place)

    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    async def run_claim(self, attempt: Callable[[], Found], share: Share) -> Found:
        """Try a claim in a thread; if the client is gone before it ends, give back what it gets."""
        work = asyncio.ensure_future(share.run(attempt))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self.give_back_if_granted)
            raise

    def give_back_if_granted(self, answer: asyncio.Future[Any]) -> None:
        """Give back the claims of an answer whose client is gone."""
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            self.start(self.run(lambda: give_back(answer.result())))

    def _leave_line(self, sort: Hashable, place: Place) -> None:
        line = self._lines.get(sort)
        if line is not None and place in line:
            line.remove(place)
        if line is not None and not line:
            del self._lines[sort]

    def _serve_soon(self) -> None:
        self._again = True
        if not self._serving:
            self._serving = True
            self.start(self._serve())
        if not self._patrolling:
            self._patrolling = True
            self.start(self._patrol())

    def start(self, work: Any) -> None:
        """Do this beside all else."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)  # the loop itself would forget it
        task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        """Hand out what there is to those that are first in line, until nothing is left."""
        try:
            while self._again:
                self._again = False
                await asyncio.gather(*(self._serve_line(line) for line in list(self._lines.values())))
                await asyncio.sleep(_REST)
        finally:
            self._serving = False

    async def _serve_line(self, line: deque[Place]) -> None:
        served, abreast = True, 1  # most changes bring one task or none: more are tried at once after one was there
        while line and served:
            first = [line.popleft() for _ in range(min(abreast, len(line)))]
            waiting = [place for place in first if not place.answer.done()]
            line.extend(waiting)  # to the end: others come first next time
            results = await asyncio.gather(*(self._try(place) for place in waiting if place.is_open()))
            served = all(results) and len(results) == len(waiting)
            abreast = min(2 * abreast, _ABREAST)

    async def _try(self, place: Place) -> bool:
        """Try one claim; return whether there may be more to hand out."""
        place.tried, place.busy = self.generation, True
        try:
            claim = await self.run(place.attempt)
        except Exception as error:
            if not place.answer.done():
                place.answer.set_exception(error)
            return True
        finally:
            place.busy = False
        if claim is None:
            self._set_alarm()
            if self._draining and not place.answer.done():
                place.answer.set_result(None)  # `drain` leaves those alone that are being tried
            return False
        if place.answer.done():
            await self.run(lambda: give_back(claim))  # the client is gone
        else:
            place.answer.set_result(claim)
        return True

    async def _patrol(self) -> None:
        """Give everybody in line a try of its own now and then: a task may be assigned to one worker."""
        try:
            while any(len(line) > 1 for line in self._lines.values()):
                places = [place for line in self._lines.values() for place in line]
                due = [place for place in places if place.tried != self.generation and place.is_open()]
                for place in due:
                    began = time.monotonic()
                    if place.is_open():
                        await self._try(place)
                    await asyncio.sleep(max(0.002, (time.monotonic() - began) * _PATROL))
                if not due:
                    await self.ring(_PAUSE)
        finally:
            self._patrolling = False

    def is_deaf(self) -> bool:
        """Whether something waits, and the thread that listens for it has heard nothing, or found no yard, for too long."""
        return bool(self._waiting) and time.monotonic() - self._beat_at > DEAF

    def is_draining(self) -> bool:
        """Whether the server is about to end."""
        return self._draining

    def drain(self) -> None:
        """End every wait now, as if its time were up: the server is about to end."""
        self._draining = True
        for line in self._lines.values():
            for place in line:
                if place.is_open():
                    place.answer.set_result(None)
        self._changed()

    def close(self) -> None:
        """End the thread that listens."""
        self._closed = True
        self._thread = None
        self._yard.wake()


class Listening:
    """A block in which every change is noticed."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __aenter__(self) -> None:
        try:
            await self._hub.enter()
        except BaseException:
            self._hub.leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._hub.leave()


def give_back(granted: Grant | list[Grant] | None) -> None:
    """Release claims whose asker is gone; if that fails, their leases end them."""
    for claim in granted if isinstance(granted, list) else [granted]:
        try:
            if claim is not None:
                claim.release()
        except Exception:  # noqa: S112
            continue


def _call(loop: asyncio.AbstractEventLoop, act: Callable[..., object], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(act, *arguments)
    except RuntimeError:
        return  # the loop is closed: the server has ended


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
