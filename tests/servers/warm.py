"""Connections to the run's PostgreSQL that outlive a test: the next one gets them as they were when they were new.

For each new connection the server compiles the functions and reads its catalogues again. That took it 40 ms a test, where
all else took 15. Nothing stays of what a test did on a connection, but the statements that were prepared: a worker has them too.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Self

from psycopg import pq

import taskyard
from taskyard.stores.postgres import watched_connection
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

_AS_NEW = b"RESET ALL; UNLISTEN *; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP"
_SPARE = 4  # of one sort: few tests use more at a time
_kept: dict[tuple[Any, ...], list[tuple[pq.abc.PGconn, Any]]] = {}


class Warm(WatchedConnection):
    """Is closed like any other for whoever closes it; the server does not hear of it."""

    _sort: tuple[Any, ...] | None = None

    @classmethod
    def connect(cls, conninfo: str = "", *, autocommit: bool = False, **options: Any) -> Self:
        lasting = tuple(sorted((name, value) for name, value in options.items() if name != "connect_timeout"))
        sort = (os.getpid(), conninfo, lasting)
        try:
            wire, prepared = _kept.get(sort, []).pop()
        except IndexError:
            opened = super().connect(conninfo, autocommit=autocommit, **options)
        else:
            opened = cls(wire)
            opened._prepared, opened._autocommit = prepared, autocommit
        opened._sort = sort
        return opened

    def close(self) -> None:
        wire, spare = self.pgconn, _kept.setdefault(self._sort or (), [])
        is_idle = wire.transaction_status == pq.TransactionStatus.IDLE  # nobody uses it, and it works
        if is_idle and self.pid is not None and len(spare) < _SPARE:
            self._closed, self.pgconn = True, _closed()
            if wire.exec_(_AS_NEW).status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
                while wire.notifies():
                    pass
                spare.append((wire, self._prepared))
            else:
                wire.finish()
        else:
            super().close()


def _closed() -> pq.abc.PGconn:
    wire = pq.PGconn.connect_start(b"no such words")
    wire.finish()
    return wire


@contextlib.contextmanager
def connections() -> Iterator[None]:
    """Use them for all that is opened in this block."""
    usual = watched_connection.WatchedConnection
    watched_connection.WatchedConnection = Warm  # type: ignore[misc]
    try:
        yield
    finally:
        watched_connection.WatchedConnection = usual  # type: ignore[misc]


def project() -> str:
    """The URL of a new project, that is there."""
    url = postgres.url()
    with connections():
        taskyard.init(url).close()
    return url
