"""A connection on libpq: transactions, silence, interrupts, addresses."""

from __future__ import annotations

import _socket
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable, opening
from taskyard.core.errors import Away
from taskyard.stores.postgres import driver, silence
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.libpq import connecting
from taskyard.stores.postgres.libpq.connection import LibpqConnection
from taskyard.stores.postgres.libpq.errors import Error
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.conftest import wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_block_is_committed_or_rolled_back_and_within_another_too(brief: LibpqConnection) -> None:
    brief.rows("CREATE TEMPORARY TABLE kept (n int)", {})
    with brief.transaction():
        brief.rows("INSERT INTO kept VALUES (1)", {})
        with pytest.raises(Error), brief.transaction():
            brief.rows("WITH made AS (INSERT INTO kept VALUES (2)) SELECT 1/0", {})
        with brief.transaction(), brief.transaction():
            brief.rows("INSERT INTO kept VALUES (3)", {})
        assert brief.rows("SELECT current_setting('transaction_isolation')", {}) == [("read committed",)]
    with pytest.raises(KeyError), brief.transaction():
        raise KeyError(brief.rows("INSERT INTO kept VALUES (4)", {}))
    assert brief.is_idle
    assert brief.rows("SELECT n FROM kept ORDER BY n", {}) == [(1,), (3,)]


def test_notices_of_the_server_are_not_printed(brief: LibpqConnection, capfd: pytest.CaptureFixture[str]) -> None:
    brief.rows("DO $$ BEGIN RAISE WARNING 'loud'; END $$", {})
    assert capfd.readouterr().err == ""


def test_notifications_are_received(brief: LibpqConnection, lasting: WatchedConnection) -> None:
    brief.exchange("LISTEN here", 5.0)
    lasting.rows("SELECT pg_notify('here', ''), pg_notify('there', '')", {})
    assert driver.is_ready(brief.fileno(), 20.0)
    assert brief.notified() == ["here"]


def test_an_interrupt_cancels_the_statement_on_the_server(brief: LibpqConnection, lasting: WatchedConnection) -> None:
    """The connection can be used after it, and nothing is executed later."""

    def interrupt() -> None:
        wait_until(
            lambda: lasting.rows(
                "SELECT 1 FROM pg_stat_activity WHERE pid = %(pid)s AND wait_event = 'PgSleep'", {"pid": brief.pid}
            )
        )
        os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        brief.rows("SELECT pg_sleep(60)", {})
    thread.join()
    assert time.monotonic() - began < 40
    assert brief.is_idle
    assert brief.rows("SELECT 1", {}) == [(1,)]


def test_a_server_that_works_is_waited_for_and_one_that_is_frozen_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENCE", 0.2)
    monkeypatch.setattr(silence, "CHECK_TIMEOUT", 0.5)
    monkeypatch.setattr(driver, "CONNECT_TIMEOUT", 2)
    with postgres.Server() as server:
        connection = driver.connect_briefly(Address(server.url()))
        assert connection.rows("SELECT 'slept' FROM pg_sleep(1.2)", {}) == [("slept",)]
        server.freeze()
        try:
            with pytest.raises(Error, match="has said nothing for"):
                connection.rows("SELECT 1", {})
        finally:
            server.thaw()
        assert connection.closed
        assert connection.broken


def test_a_connection_that_the_server_ends_is_broken(brief: LibpqConnection, lasting: WatchedConnection) -> None:
    lasting.rows("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": brief.pid})
    with pytest.raises(Error) as error:
        brief.rows("SELECT 1", {})
    assert isinstance(driver.meaning(error.value, brief, Address("postgresql:///x")), driver.Lost)
    assert (str(error.value), error.value.sqlstate) == (
        "terminating connection due to administrator command",
        "57P01",
    )
    assert brief.broken
    brief.close()
    with pytest.raises(Error, match="closed"):
        brief.rows("SELECT 1", {})


def test_a_connection_that_was_closed_refuses_everything_and_reads_nothing_that_libpq_has_freed(
    brief: LibpqConnection,
) -> None:
    brief.close()
    brief.close()
    for use in (
        lambda: brief.rows("SELECT 1", {}),
        lambda: brief.execute("SELECT 1"),
        lambda: brief.exchange("SELECT 1", 5.0),
        lambda: brief.copy("COPY kept FROM STDIN", []),
        brief.notified,
        brief.fileno,
        brief.cancel,
        lambda: brief.server,
    ):
        with pytest.raises(Error, match="closed"):
            use()
    assert (brief.closed, brief.broken, brief.is_idle) == (True, False, False)
    assert (brief.parameter("server_encoding"), brief.server_version) == (None, 0)


def test_a_connection_that_is_given_up_within_a_copy_ends_it_with_that_error(
    brief: LibpqConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief.rows("CREATE TEMPORARY TABLE kept (n int)", {})

    def give_up(data: bytes) -> None:
        brief.close()
        raise Error(f"the server has said nothing for {len(data)} s")

    monkeypatch.setattr(brief, "_put", give_up)
    with pytest.raises(Error, match="has said nothing"):
        brief.copy("COPY kept FROM STDIN", [[1]])
    assert brief.closed


def test_a_url_that_is_none_and_a_server_that_is_not_there_are_told_as_by_psycopg() -> None:
    for url, sort in (
        ("postgresql://@/postgres?host=/tmp/nowhere-at-all", Away),
        ("postgresql://@127.0.0.1:1/postgres", Away),
        ("postgresql://@name.invalid/postgres", Away),
        ("postgresql://@/postgres?nonsense=1", taskyard.Invalid),
    ):
        said = []
        for connect in (driver.connect, driver.connect_briefly):
            with pytest.raises(sort) as error:
                connect(Address(url))
            said.append((str(error.value), error.value.hint))
        assert said[0] == said[1]


def test_a_role_that_is_not_let_in_is_no_server_that_is_away() -> None:
    url = postgres.url().replace("taskyard@", "nobody_of_this_name@")
    with pytest.raises(Unavailable, match="does not exist") as error:
        driver.connect_briefly(Address(url))
    assert not isinstance(error.value, Away)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port at which connections are accepted, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_server_that_accepts_and_is_silent_takes_no_longer_than_the_timeout(silent: int) -> None:
    began = time.monotonic()
    with pytest.raises(Away, match="timeout expired"):
        driver.connect_briefly(Address(f"postgresql://x@127.0.0.1:{silent}/x?connect_timeout=2"))
    assert 1.9 < time.monotonic() - began < 20


def test_every_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch, silent: int) -> None:
    tried: list[str] = []
    real = _socket.getaddrinfo

    def two(host: str, port: str, **more: Any) -> Any:
        return [place for name in ("127.0.0.2", "127.0.0.1") for place in real(name, port, **more)]

    def one(_library: Any, parameters: dict[str, str], _timeout: float) -> Any:
        tried.append(parameters["hostaddr"])
        raise Error("no")

    monkeypatch.setattr(_socket, "getaddrinfo", two)
    monkeypatch.setattr(connecting, "_one", one)
    with pytest.raises(Away):
        driver.connect_briefly(Address("postgresql://x@db.example/x"))
    assert tried == ["127.0.0.2", "127.0.0.1"]


@pytest.mark.parametrize("more", ["host=/tmp/none,{folder}", "service=none"])
def test_what_needs_psycopg_is_connected_by_psycopg(more: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "services").write_text(f"[none]\nhost={postgres.folder()}\nuser=taskyard\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    base = "" if "service" in more else "taskyard@/postgres"
    connection = driver.connect_briefly(Address(f"postgresql://{base}?{more.format(folder=postgres.folder())}"))
    assert isinstance(connection, WatchedConnection)
    connection.close()


def test_a_child_that_is_forked_off_leaves_the_parents_session_alone(tmp_path: Any) -> None:
    url = postgres.url()
    taskyard.init(url).close()
    with opening.open_for_command(url, "ada") as yard:
        [line] = yard._store._context.pool.checkout.idle  # type: ignore[attr-defined]
        assert isinstance(line, LibpqConnection)
        child = os.fork()
        if child == 0:
            try:
                yard.add("build")
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        yard.add("build")
        assert yard._store._context.pool.checkout.idle == [line]  # type: ignore[attr-defined]
        assert yard.counts()["todo"] == 2


def test_the_callers_own_connection_works_beside_it() -> None:
    url = postgres.url()
    taskyard.init(url).close()
    with opening.open_for_command(url, "ada") as yard, psycopg.connect(url.partition("&project=")[0]) as mine:
        yard.add("build", conn=mine)
        mine.rollback()
        yard.add("ship", conn=mine)
        mine.commit()
        assert [task.kind for task in yard.find()] == ["ship"]
