"""A yard for those who live in asyncio: the same verbs, awaited, over every store. No call blocks the event loop.

    async with await aio.open(".taskyard", worker="ada") as yard:
        async with yard.claimed(wait=60) as claim:
            ...

Each call runs in a thread of the yard's own. A claim whose call was cancelled meanwhile is given back.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from taskyard import opening
from taskyard.core.errors import ClaimLost, Conflict, NotFound, Unavailable
from taskyard.yard.claim import BEATS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from taskyard.core.task import State, Task
    from taskyard.port import YardPort
    from taskyard.yard.arguments import Added, Events, Page
    from taskyard.yard.claim import Claim

Answer = TypeVar("Answer")
_THREADS = 64  # calls at once, most of which wait


async def open(url: str | None = None, worker: str | None = None, durability: str | None = None) -> AsyncYard:
    """Open an existing yard, as `taskyard.open` does."""
    return AsyncYard(await asyncio.to_thread(opening.open, url, worker, durability))


class AsyncYard:
    """A yard whose verbs are awaited; `yard` is the yard itself, for all that is not here."""

    def __init__(self, yard: YardPort) -> None:
        self.yard = yard
        self._pool = ThreadPoolExecutor(_THREADS, "taskyard aio")

    async def call(self, verb: Callable[..., Answer], *given: Any, **options: Any) -> Answer:
        """Call any verb of the yard, or of a claim, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(verb, *given, **options))

    async def add(self, kind: str, data: Any = None, **options: Any) -> Task:
        """Add a new task and return it; it is stored safely when this returns."""
        return await self.call(self.yard.add, kind, data, **options)

    async def add_many(self, tasks: list[dict[str, Any]], **options: Any) -> Added:
        """Add many tasks; all are checked before the first is added."""
        return await self.call(self.yard.add_many, tasks, **options)

    async def claim(self, id: str | None = None, **options: Any) -> AsyncClaim | None:
        """Claim the most urgent, then oldest task that fits; return None if nothing is ready within `wait` seconds."""
        work = asyncio.ensure_future(self.call(self.yard.claim, id, **options))
        try:
            claim = await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self._give_back)
            raise
        return None if claim is None else AsyncClaim(self, claim)

    def _give_back(self, work: asyncio.Future[Claim | None]) -> None:
        claim = None if work.cancelled() or work.exception() else work.result()
        if claim is not None:
            self._pool.submit(claim.release)

    @asynccontextmanager
    async def claimed(self, id: str | None = None, **options: Any) -> AsyncIterator[AsyncClaim | None]:
        """Claim a task for a block, which heartbeats and ends it as a claim's own block does; None if nothing is ready."""
        claim = await self.claim(id, **options)
        if claim is None:
            yield None
            return
        async with claim:
            yield claim

    async def get(self, id: str) -> Task:
        """Return the whole task with this id, unique beginning of an id, or short name."""
        return await self.call(self.yard.get, id)

    async def find(self, **filters: Any) -> Page:
        """Return tasks by state, kind, mission and holder, oldest first."""
        return await self.call(self.yard.find, **filters)

    async def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        return await self.call(self.yard.counts)

    async def wait(self, *ids: str, **options: Any) -> list[Task]:
        """Wait until all these tasks have ended, and return them."""
        return await self.call(self.yard.wait, *ids, **options)

    async def events(self, **filters: Any) -> Events:
        """Return events as dicts, oldest first."""
        return await self.call(self.yard.events, **filters)

    async def watch(self, **filters: Any) -> Events:
        """Wait for the first event that matches, and return it."""
        return await self.call(self.yard.watch, **filters)

    async def cancel(self, id: str, reason: str | None = None) -> Task:
        """Cancel a task; a worker that holds it loses its claim."""
        return await self.call(self.yard.cancel, id, reason)

    async def close(self) -> None:
        """Close the yard; claims stay."""
        await self.call(self.yard.close)
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncClaim:
    """A claim whose verbs are awaited; `claim` is the claim itself, for all that is not here."""

    def __init__(self, yard: AsyncYard, claim: Claim) -> None:
        self.claim = claim
        self.lost = False
        """Set by the heartbeat of a block when the claim is lost: the block should stop its work."""
        self._call = yard.call
        self._beat: asyncio.Task[None] | None = None

    @property
    def task(self) -> Task:
        """The task, as it was when it was claimed."""
        return self.claim.task

    @property
    def handle(self) -> str:
        """The name of this claim, for other processes and for later."""
        return self.claim.handle

    @property
    def fence(self) -> int:
        """A number that only rises from claim to claim of this task."""
        return self.claim.fence

    async def heartbeat(self, progress: float | None = None, note: str | None = None) -> str:
        """Start the lease anew, and return its end."""
        return await self._call(self.claim.heartbeat, progress, note)

    async def note(self, text: str) -> None:
        """Leave a note for the next worker on this task."""
        await self._call(self.claim.note, text)

    async def done(self, result: Any = None) -> None:
        """End the task with a result; a repeated call changes nothing."""
        await self._call(self.claim.done, result)

    async def fail(self, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error; return the task's state."""
        return await self._call(self.claim.fail, reason, retry)

    async def release(self, after: float = 0.0, reason: str | None = None) -> None:
        """Give the task back; this counts as no attempt."""
        await self._call(self.claim.release, after, reason)

    async def holds(self) -> bool:
        """Whether this claim still holds its task."""
        return await self._call(self.claim.holds)

    async def __aenter__(self) -> Self:
        lease = await self._call(lambda: self.claim.lease)
        self._beat = asyncio.ensure_future(self._beats(lease / BEATS))
        return self

    async def _beats(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await self.heartbeat()
            except (ClaimLost, NotFound):
                self.lost = not self.claim.is_over
                return
            except Unavailable:
                continue  # the yard may be back before the lease ends

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if not self.claim.is_over:
                await self._end(error)
        finally:
            assert self._beat is not None  # made at the beginning of the block
            self._beat.cancel()

    async def _end(self, error: BaseException | None) -> None:
        if error is None:
            await self.done()
            return
        try:
            if isinstance(error, Exception):
                await self.fail(f"{type(error).__name__}: {error}")
            else:
                await asyncio.shield(self.release())
        except (ClaimLost, Conflict, NotFound):
            return  # the block's own error is more useful, and nothing was published
