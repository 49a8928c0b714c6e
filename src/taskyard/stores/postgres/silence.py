"""A connection that nobody waits on for ever: a server that says nothing for a while is asked after on another one.

A statement may take long, because it does much or waits for a lock, and then its server says so. A server that is frozen, or
behind a network that was cut, says nothing at all: neither a broken socket nor a time limit of its own would ever tell.
Imported with the driver, and not before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psycopg

from taskyard.stores.postgres import queries

if TYPE_CHECKING:
    from collections.abc import Generator

SILENCE = 5.0  # seconds without a word, after which it is asked whether the server is at work on what was said
_RARELY = 60.0  # seconds between two such questions, at the most, while it is


class Line(psycopg.Connection[Any]):
    """A connection to PostgreSQL."""

    again: tuple[str, dict[str, Any]] | None = None
    """How to connect once more to ask after this one; None for one that only asks."""
    pooled = False
    pid = 0
    """The process that serves this connection, there."""

    def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
        """What the driver's own gives; `OperationalError` where nobody is there any more to give it."""
        return super().wait(self._watched(gen), *given, **named)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        pause = SILENCE
        due = time.monotonic() + pause
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    pause = SILENCE
                    due = time.monotonic() + pause
                elif time.monotonic() >= due:
                    if not self._is_served():
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"the server has said nothing for {SILENCE:g} s")
                    pause = min(2 * pause, _RARELY)
                    due = time.monotonic() + pause
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _is_served(self) -> bool:
        """Whether the server answers others, and has a process for this connection."""
        if self.again is None:
            return False
        target, options = self.again
        try:
            with type(self).connect(target, autocommit=True, **options) as other:
                if self.pooled:
                    return other.execute("SELECT 1").fetchone() is not None
                if (other.info.host, other.info.port) != (self.info.host, self.info.port):
                    return False  # another server has taken over
                return (
                    other.execute(queries.load("outages")["served"].encode(), {"pid": self.pid}).fetchone() is not None
                )
        except psycopg.OperationalError as error:
            return "FATAL:" in str(error)  # too many connections, say: it is there, and may be at work
