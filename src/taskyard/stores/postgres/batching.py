"""What several threads ask for at once, asked for together.

Whoever comes first goes alone, and whoever is next takes along all who have come meanwhile. Nobody waits for others to
come, and nothing is asked for that nobody waits for: so no task is ever held that nobody has begun.
"""

from __future__ import annotations

from threading import Lock

from taskyard.core import forks
from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BATCH = 100  # in one statement


class _Ticket:
    """One thread's wish, and what came of it."""

    __slots__ = ("answer", "error", "gate", "leads", "wish")

    def __init__(self, wish: Any) -> None:
        self.wish = wish
        self.answer: Any = None
        self.error: BaseException | None = None
        self.leads = False
        self.gate = Lock()
        self.gate.acquire()


class Combiner:
    """Threads that each have one wish, served in batches by `serve`, which gives one answer for each."""

    def __init__(self, serve: Callable[[list[Any]], list[Any]]) -> None:
        self._serve = serve
        self.renew()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Nobody waits: whoever did, in the process that this one was forked off from, is not here."""
        self._lock = Lock()
        self._queue: list[_Ticket] = []
        self._busy = False

    def ask(self, wish: Any) -> Any:
        """The answer to this wish, which may have been served with others."""
        with self._lock:
            alone, self._busy = not self._busy, True
            if not alone:
                ticket = _Ticket(wish)
                self._queue.append(ticket)
        if alone:
            try:
                return self._serve([wish])[0]
            finally:
                self._pass_on()
        ticket.gate.acquire()
        if ticket.leads:
            self._lead()
        if ticket.error is not None:
            raise ticket.error
        return ticket.answer

    def _lead(self) -> None:
        """Serve those who wait, this thread among them."""
        with self._lock:
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
        try:
            for ticket, answer in zip(batch, self._serve([ticket.wish for ticket in batch]), strict=True):
                ticket.answer = answer
        except BaseException as error:
            shared = error if isinstance(error, Exception) else Unavailable("it was interrupted", hint="try again")
            for ticket in batch:
                ticket.error = error if ticket.leads else shared
        self._pass_on()
        for ticket in batch:
            if not ticket.leads:
                ticket.gate.release()

    def _pass_on(self) -> None:
        """Let the next one lead, if somebody has come."""
        with self._lock:
            self._busy = bool(self._queue)
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].gate.release()
