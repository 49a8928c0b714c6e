"""The threads that call yards. Each asker has a share of them, and what only reads ends when its asker is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from taskyard.core.abandonment import Abandonment
from taskyard.doors.gateway.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")
QUICK, SLOW, CHECKS = "quick", "slow", "checks"
"""Threads for verbs of milliseconds, for those that may take seconds, and for endings that may run a command."""
SIZE = 16  # threads of each sort
SHARE = 12  # of them that one asker has at a time: however much it asks for, others find one that is free


class Threads:
    """All threads of a gateway."""

    def __init__(self) -> None:
        self.pools = {sort: Pool(SIZE, sort) for sort in (QUICK, SLOW, CHECKS)}
        self._turns: dict[tuple[str, str], Turns] = {}

    def of(self, asker: str) -> Share:
        """Return the threads as this asker may use them."""
        return Share(self, asker)

    async def run(self, sort: str, asker: str, act: Callable[[], Found], reads: bool) -> Found:
        """Call `act` in a thread when it is the asker's turn; if the caller is cancelled, the work is given up."""
        turns = self._turns.setdefault((sort, asker), Turns())
        turns.users += 1
        try:
            await turns.free.acquire()
        except asyncio.CancelledError:
            self._leave(sort, asker)
            raise
        loop, work = asyncio.get_running_loop(), Abandonment(reads)
        running = self.pools[sort].submit(work.run, act)

        def ended(_: object) -> None:
            try:
                loop.call_soon_threadsafe(self._end, sort, asker)
            except RuntimeError:
                return  # the loop is closed: the server has ended

        try:
            found: Found = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancel():
                loop.run_in_executor(None, work.abandon)  # a cancel may take its time to reach a database
            running.add_done_callback(ended)  # not now: the thread may go on
            raise
        except BaseException:
            self._end(sort, asker)
            raise
        self._end(sort, asker)
        return found

    def _end(self, sort: str, asker: str) -> None:
        self._turns[sort, asker].free.release()
        self._leave(sort, asker)

    def _leave(self, sort: str, asker: str) -> None:
        turns = self._turns[sort, asker]
        turns.users -= 1
        if not turns.users:
            del self._turns[sort, asker]

    def close(self) -> None:
        """End the threads once they are idle."""
        for pool in self.pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


class Turns:
    """How much of one sort of threads one asker uses."""

    __slots__ = ("free", "users")

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(SHARE)
        self.users = 0


class Share:
    """The threads as one asker may use them."""

    __slots__ = ("_asker", "_threads")

    def __init__(self, threads: Threads, asker: str) -> None:
        self._threads = threads
        self._asker = asker

    async def run(self, act: Callable[[], Found], sort: str = QUICK) -> Found:
        """Call what may change something."""
        return await self._threads.run(sort, self._asker, act, reads=False)

    async def read(self, act: Callable[[], Found], sort: str = QUICK) -> Found:
        """Call what only reads: it ends when the caller is cancelled."""
        return await self._threads.run(sort, self._asker, act, reads=True)


async def unless_gone(gone: Any, work: Any) -> Any:
    """Return what the work returns; if `gone` comes first, cancel the work and return None."""
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(gone)
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None
    finally:
        left.cancel()
        if not task.done():
            task.cancel()
