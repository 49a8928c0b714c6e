"""A yard in asyncio: the same verbs, awaited, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, aio
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from taskyard import Yard

    Scene = Callable[[aio.AsyncYard], Awaitable[None]]


def play(url: str, scene: Scene) -> None:
    async def whole() -> None:
        async with await aio.open(url, worker="ada") as yard:
            await scene(yard)

    asyncio.run(whole())


def test_a_task_is_added_claimed_noted_and_done(near: Yard, yard_url: str) -> None:
    async def scene(yard: aio.AsyncYard) -> None:
        task = await yard.add("build", {"n": 1})
        claim = await yard.claim()
        assert claim is not None
        assert (claim.task.id, claim.fence, claim.task.data) == (task.id, 1, {"n": 1})
        await claim.note("half way")
        await claim.heartbeat(progress=0.5)
        await claim.done([1])
        assert not await claim.holds()
        [ended] = await yard.wait(task.id, timeout=50)
        assert ended.result == [1]

    play(yard_url, scene)


def test_the_loop_goes_on_while_a_claim_waits(near: Yard, yard_url: str) -> None:
    async def scene(yard: aio.AsyncYard) -> None:
        waiting = [asyncio.ensure_future(yard.claim(kinds="build", wait=50)) for _ in range(5)]
        await asyncio.sleep(0)  # the loop is free: this line is reached though five claims wait
        await yard.add_many([{"kind": "build"}] * 5)
        claims = await asyncio.gather(*waiting)
        assert len({claim.handle for claim in claims if claim is not None}) == 5

    play(yard_url, scene)


def test_a_block_ends_its_task_as_it_ends_itself(near: Yard, yard_url: str) -> None:
    good, bad = near.add("build").id, near.add("build", max_attempts=1).id

    async def scene(yard: aio.AsyncYard) -> None:
        async with yard.claimed(good) as claim:
            assert claim is not None
        with pytest.raises(ValueError, match="broken"):
            async with yard.claimed(bad):
                raise ValueError("broken")
        async with yard.claimed(kinds="nothing") as none:
            assert none is None

    play(yard_url, scene)
    assert (near.get(good).state, near.get(bad).error) == ("done", "ValueError: broken")


def test_a_block_heartbeats_and_knows_when_its_claim_is_lost(near: Yard, yard_url: str) -> None:
    id = near.add("build").id

    async def hold(yard: aio.AsyncYard) -> None:
        async with yard.claimed(id, lease=3) as claim:
            assert claim is not None
            first = str(claim.claim.lease_until)
            while str(near.get(id).lease_until) <= first:
                await asyncio.sleep(0.01)  # until a heartbeat
            near.cancel(id)
            while not claim.lost:
                await asyncio.sleep(0.01)

    async def scene(yard: aio.AsyncYard) -> None:
        with pytest.raises(ClaimLost):
            await hold(yard)

    play(yard_url, scene)


def test_a_claim_that_nobody_awaits_any_more_is_given_back(near: Yard, yard_url: str) -> None:
    async def scene(yard: aio.AsyncYard) -> None:
        waiting = asyncio.ensure_future(yard.claim(kinds="build", wait=50))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        id = near.add("build").id
        await asyncio.to_thread(wait_until, lambda: near.get(id).fence == 2)
        assert taken(near.claim(id)).fence == 3

    play(yard_url, scene)
