"""A server that says nothing: nobody waits for it for ever, what is slow is waited for, and what was lost is not done later."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable
from taskyard.stores.postgres import driver, pool, silence
from tests.conftest import taken, wait_until
from tests.postgres.conftest import BOTH_DRIVERS
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard

pytestmark = BOTH_DRIVERS


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that waits does so for a shorter time."""
    monkeypatch.setattr(silence, "SILENCE", 0.3)
    monkeypatch.setattr(pool, "PATIENCE", 1.0)
    monkeypatch.setattr(driver, "CONNECT_TIMEOUT", 2)  # the shortest that libpq knows


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def test_a_frozen_server_is_unavailable_and_the_claim_holds_when_it_goes_on(hasty: None, server: Server) -> None:
    with taskyard.init(server.url(), worker="ada") as yard:
        yard.add("build")
        claim = taken(yard.claim(lease=60))
        server.freeze()
        began = time.monotonic()
        with pytest.raises(Unavailable):
            claim.heartbeat()
        assert time.monotonic() - began < 10
        server.thaw()
        claim.heartbeat()
        claim.done("after all")


def test_what_takes_long_is_waited_for(hasty: None, yard: Yard) -> None:
    store: Any = yard._store
    assert store._context.pool.run("SELECT pg_sleep(1.5), 7", {})[0][1] == 7


def test_a_lock_that_is_held_for_long_is_waited_for(hasty: None, yard: Yard, sql: Connection[Any]) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    sql.autocommit = False
    sql.execute("SELECT FROM taskyard.task WHERE id = %s FOR UPDATE", (id,))
    waiter = threading.Thread(target=claim.done)
    waiter.start()
    time.sleep(1.0)  # several times as long as a server may be silent; whether the waiter was in time does not matter
    assert waiter.is_alive()
    sql.rollback()
    waiter.join()
    assert yard.get(id).state == "done"


@pytest.mark.parametrize("verb", ["claim", "add"])
def test_what_was_said_to_a_frozen_server_is_not_done_behind_the_back_of_whoever_says_it_again(
    hasty: None, server: Server, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 30.0)
    with taskyard.init(server.url(), worker="ada") as yard:
        yard.add_many([{"kind": "build"}] * 20)
        asked: Any = yard._store._context.pool._waiting_since  # type: ignore[attr-defined]
        for _ in range(3):
            server.freeze()
            said = threading.Thread(target=yard.claim if verb == "claim" else lambda: yard.add("build"))
            said.start()
            wait_until(lambda: asked)
            wait_until(lambda: not asked, 20)  # given up
            server.thaw()
            said.join()
        counts = yard.counts()
        assert (counts["processing"], counts["todo"]) == ((3, 17) if verb == "claim" else (0, 23))


def test_a_connection_that_breaks_while_it_is_set_up_is_no_error_of_the_driver(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_: Any = yard._store._context.pool  # type: ignore[attr-defined]
    pool_._durability = "fast"
    whole = driver.opener

    def broken(*given: Any, **options: Any) -> Any:
        line = whole(brief=False)(*given, **options)
        line.close()
        return line

    monkeypatch.setattr(driver, "opener", lambda **_: broken)
    pool_.drain()
    with pytest.raises(Unavailable, match="cannot be reached"):
        yard.counts()


def test_an_add_that_waits_for_a_standby_when_its_connection_breaks_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 1.0)
    with (
        Server(synchronous_commit="on") as server,
        taskyard.init(server.url(), worker="ada") as yard,
        psycopg.connect(server.url().partition("&project=")[0], autocommit=True) as sql,
    ):
        store: Any = yard._store
        [line] = store._context.pool.checkout.idle
        sql.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        sql.execute("SELECT pg_reload_conf()")
        does_wait = threading.Event()
        probing = threading.Thread(target=write_until_one_waits, args=[server, does_wait])
        probing.start()
        wait_until(lambda: sql.execute("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchall())
        does_wait.set()
        refused: list[Unavailable] = []

        def add() -> None:
            with pytest.raises(Unavailable, match="standby") as raised:
                yard.add("build")
            refused.append(raised.value)

        adding = threading.Thread(target=add)
        adding.start()
        waiting = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
        wait_until(lambda: sql.execute(waiting, (line.pid,)).fetchall())
        with socket.socket(fileno=os.dup(line.fileno())) as wire:
            wire.shutdown(socket.SHUT_RDWR)
        adding.join()
        sql.execute("ALTER SYSTEM RESET synchronous_standby_names")
        sql.execute("SELECT pg_reload_conf()")
        probing.join()
        assert len(refused) == 1
        wait_until(lambda: yard.counts()["todo"])
        assert yard.counts()["todo"] == 1


def write_until_one_waits(server: Server, does_wait: threading.Event) -> None:
    """Write until a write waits for a standby: a server heeds its new settings some moments after it was told of them."""
    with psycopg.connect(server.url().partition("&project=")[0], autocommit=True) as own:
        for number in itertools.count():
            if does_wait.is_set():
                return
            own.execute(f"CREATE TABLE probe_{number} ()".encode())
