"""Combines what several threads request at the same time into one statement.

The first thread is served alone; the next one also serves all requests that have arrived meanwhile. No thread waits for
others to arrive, and every request has a waiting thread: so no task is claimed without a thread that begins it.
"""

from __future__ import annotations

from threading import Lock

from taskyard.core import forks
from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BATCH = 100  # requests in one statement


class _Request:
    """One thread's request, and its answer or error."""

    __slots__ = ("answer", "error", "gate", "leads", "wanted")

    def __init__(self, wanted: Any) -> None:
        self.wanted = wanted
        self.answer: Any = None
        self.error: BaseException | None = None
        self.leads = False
        self.gate = Lock()
        self.gate.acquire()


class Combiner:
    """Serves threads in batches: `serve` takes a list of requests and returns one answer for each."""

    def __init__(self, serve: Callable[[list[Any]], list[Any]]) -> None:
        self._serve = serve
        self.renew()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Forget all requests: in a forked child, the threads that made them do not exist."""
        self._lock = Lock()
        self._queue: list[_Request] = []
        self._busy = False

    def ask(self, wanted: Any) -> Any:
        """Return the answer to this request, which may have been served together with others."""
        with self._lock:
            alone, self._busy = not self._busy, True
            if not alone:
                request = _Request(wanted)
                self._queue.append(request)
        if alone:
            try:
                return self._serve([wanted])[0]
            finally:
                self._pass_on()
        request.gate.acquire()
        if request.leads:
            self._lead()
        if request.error is not None:
            raise request.error
        return request.answer

    def _lead(self) -> None:
        """Serve the waiting requests, this thread's own included."""
        with self._lock:
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
        try:
            for request, answer in zip(batch, self._serve([request.wanted for request in batch]), strict=True):
                request.answer = answer
        except BaseException as error:
            shared = error if isinstance(error, Exception) else Unavailable("it was interrupted", hint="try again")
            for request in batch:
                request.error = error if request.leads else shared
        self._pass_on()
        for request in batch:
            if not request.leads:
                request.gate.release()

    def _pass_on(self) -> None:
        """Let the next waiting thread lead, if there is one."""
        with self._lock:
            self._busy = bool(self._queue)
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].gate.release()
