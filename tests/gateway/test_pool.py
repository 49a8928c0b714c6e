"""The threads of a gateway: few for short calls, more when calls have to wait."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.gateway import pool
from taskyard.doors.gateway.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Coroutine


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 50))


async def call(calls: Pool, *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(calls, *given)


class Door:
    """Calls stand in it until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.lock = threading.Lock()
        self.inside = 0

    def enter(self) -> str:
        with self.lock:
            self.inside += 1
        assert self.opened.wait(50)
        return threading.current_thread().name


async def wait_until_inside(door: Door, count: int) -> None:
    while door.inside < count:
        await asyncio.sleep(0.001)


def test_short_calls_are_made_by_one_thread_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 50)
    calls, made = Pool(16, "test"), list[tuple[int, str]]()

    def make(number: int) -> None:
        made.append((number, threading.current_thread().name))

    async def scene() -> None:
        await asyncio.gather(*(call(calls, make, number) for number in range(200)))
        assert [number for number, _ in made] == [*range(200)]
        assert len({name for _, name in made}) == 1

    run(scene())
    calls.shutdown()


def test_a_call_behind_slow_ones_gets_a_thread_of_its_own() -> None:
    calls, door = Pool(3, "test"), Door()

    async def scene() -> None:
        slow = [asyncio.ensure_future(call(calls, door.enter)) for _ in range(2)]
        await wait_until_inside(door, 2)
        assert await call(calls, lambda: "quick") == "quick"
        slow.append(asyncio.ensure_future(call(calls, door.enter)))
        await wait_until_inside(door, 3)
        door.opened.set()
        assert len({await one for one in slow}) == 3

    run(scene())
    calls.shutdown()


def test_no_more_calls_than_threads_are_made_at_once() -> None:
    calls, door = Pool(2, "test"), Door()

    async def scene() -> None:
        slow = [asyncio.ensure_future(call(calls, door.enter)) for _ in range(20)]
        await wait_until_inside(door, 2)
        await asyncio.sleep(10 * pool.PATIENCE)
        assert door.inside == 2
        door.opened.set()
        assert len({*await asyncio.gather(*slow)}) <= 2

    run(scene())
    calls.shutdown()


def test_a_pool_that_was_idle_begins_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 50)
    calls = Pool(2, "test")

    async def scene() -> None:
        for number in range(100):
            assert await call(calls, str, number) == str(number)

    run(scene())
    calls.shutdown()


def test_a_call_that_is_cancelled_before_its_turn_is_not_made() -> None:
    calls, door, made = Pool(1, "test"), Door(), list[str]()

    async def scene() -> None:
        slow = asyncio.ensure_future(call(calls, door.enter))
        await wait_until_inside(door, 1)
        given_up, kept = calls.submit(made.append, "given up"), calls.submit(made.append, "kept")
        assert given_up.cancel()
        door.opened.set()
        await asyncio.gather(slow, asyncio.wrap_future(kept))
        assert made == ["kept"]

    run(scene())
    calls.shutdown()


def test_what_a_call_raises_reaches_its_asker_and_the_next_call_is_made() -> None:
    calls = Pool(1, "test")

    async def scene() -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await call(calls, int, "seven")
        assert await call(calls, int, "7") == 7

    run(scene())
    calls.shutdown()


def test_a_pool_that_is_closed_ends_its_calls_and_cancels_those_that_wait() -> None:
    calls, door = Pool(1, "test"), Door()

    async def scene() -> None:
        slow = asyncio.ensure_future(call(calls, door.enter))
        await wait_until_inside(door, 1)
        waits = calls.submit(str, 1)
        calls.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(CancelledError):
            waits.result(50)
        with pytest.raises(RuntimeError, match="closed"):
            calls.submit(str, 2)
        await asyncio.sleep(2 * pool.PATIENCE)  # the look at what waited finds the pool closed
        door.opened.set()
        assert await slow

    run(scene())
    calls.shutdown()
