"""Few threads for short calls of a yard: another one takes part only when calls have to wait for it.

A call of a directory makes dozens of system calls, and gives up the interpreter at each. With a thread for each request they
take it from one another all the time: that cost an eighth of the processor time of a task, and doubled what came late.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 0.002  # seconds that a call waits for the threads at work: most calls take less


class Pool(Executor):
    """Makes calls in the order in which an event loop submits them."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._threads = ThreadPoolExecutor(size, f"taskyard {name}")
        self._lock = threading.Lock()
        self._calls: deque[tuple[float, Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._working = 0
        """Threads that take calls from the queue."""
        self._watches = False
        """Whether the loop is about to look how long calls have waited."""
        self._closed = False

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Queue a call; begin with it at once if no thread is at work."""
        assert not named
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._calls.append((time.monotonic(), future, call, arguments))
            if not self._working:
                self._begin()
            has_more = self._working < self._size
        if has_more and not self._watches:
            self._watch()
        return future

    def _watch(self) -> None:
        self._watches = True
        asyncio.get_running_loop().call_later(PATIENCE, self._look)

    def _look(self) -> None:
        """Begin with one more thread if a call has waited for too long."""
        self._watches = False
        with self._lock:
            if not self._calls or self._closed:
                return
            if self._working < self._size and time.monotonic() - self._calls[0][0] >= PATIENCE:
                self._begin()
            has_more = self._working < self._size
        if has_more:
            self._watch()

    def _begin(self) -> None:
        self._working += 1
        self._threads.submit(self._work)

    def _work(self) -> None:
        """Make calls until none is left."""
        while True:
            with self._lock:
                if not self._calls:
                    self._working -= 1
                    return
                _, future, call, arguments = self._calls.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    answer = call(*arguments)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(answer)
            del future, call, arguments  # while this thread waits for its turn, nothing holds what a request had

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; end the threads once they are idle."""
        with self._lock:
            self._closed = True
            given_up = [*self._calls] if cancel_futures else []
            if cancel_futures:
                self._calls.clear()
        for _, future, _, _ in given_up:
            future.cancel()
        self._threads.shutdown(wait)
