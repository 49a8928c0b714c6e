"""Waking: the database rings while somebody listens, and only then; whoever cannot hear looks by itself."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.stores import wakeup
from taskyard.stores.postgres import listener as lines
from tests.conftest import sized, taken, wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from typing import LiteralString

    from psycopg import Connection

    from taskyard import Yard


def listeners(sql: Connection[Any], yard: Yard) -> int:
    project = yard._store._context.project  # type: ignore[attr-defined]
    query = """
        SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database AND datname = current_database()
        WHERE locktype = 'advisory' AND classid = 747159 AND objid = %s AND granted
    """
    found = sql.execute(query, (project,)).fetchone()
    assert found is not None
    return int(found[0])


def waiting(yard: Yard) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(yard.claim(wait=30)), daemon=True)
    thread.start()
    return thread, answers


def rings(sql: Connection[Any], yard: Yard) -> int:
    """How often others rang since this was last asked, on a connection that they need not ring for."""
    sql.execute(f"LISTEN taskyard_{yard._store._context.project}".encode())  # type: ignore[attr-defined]
    return sum(1 for _ in sql.notifies(timeout=0.05))


def test_nobody_is_rung_for_unless_somebody_sleeps(yard: Yard, url: str, sql: Connection[Any]) -> None:
    yard.add("build")
    taken(yard.claim()).done()
    assert listeners(sql, yard) == 0
    thread, answers = waiting(yard)
    wait_until(lambda: listeners(sql, yard) == 1)
    with taskyard.open(url) as other:
        other.add("build")
    thread.join(10)
    assert answers[0] is not None
    assert listeners(sql, yard) == 0
    line: Any = yard._store._listener  # type: ignore[attr-defined]
    assert line._connection is not None, "kept for the next wait"
    assert rings(sql, yard) == 0
    answers[0].done()
    yard.add("build")
    assert rings(sql, yard) == 0
    line._used_at = 0.0  # a while ago
    yard._store.upkeep.turn(5)
    assert line._connection is None


def test_in_a_busy_yard_nobody_sleeps_and_nobody_rings(yard: Yard, url: str, sql: Connection[Any]) -> None:
    with taskyard.open(url, worker="bob") as other:
        thread = threading.Thread(target=lambda: other.claim(kinds="rare", wait=30), daemon=True)
        thread.start()
        wait_until(lambda: listeners(sql, yard) == 1)
        assert rings(sql, yard) == 0
        for _ in range(300):
            yard.add("common")
            taken(yard.claim(kinds="common")).done()
        assert rings(sql, yard) < 300, "of 900 moves"
        yard.add("rare")
        thread.join(10)
        assert not thread.is_alive()


def test_a_move_that_was_under_way_when_somebody_fell_asleep_wakes_it(
    yard: Yard, url: str, sql: Connection[Any]
) -> None:
    """It asked whether somebody sleeps, found nobody, and commits when somebody does."""
    id = yard.add("build", not_before="2100-01-01T00:00:00Z").id
    project = yard._store._context.project  # type: ignore[attr-defined]
    for under_way in ("when its row is known", "before it has written anything"):
        thread = None
        with sql.transaction():
            sql.execute("SELECT taskyard.ring(%s)", (project,))
            if under_way == "before it has written anything":
                thread, answers = waiting(yard)
                wait_until(lambda: listeners(sql, yard) == 1)
            sql.execute("UPDATE taskyard.task SET state = 'todo', due = NULL WHERE id = %s", (id,))
            sql.execute(
                "INSERT INTO taskyard.event (project, event, task, kind, fence, by) VALUES (%s, 'due', %s, 'build', 0, 'x')",
                (project, id),
            )
            if thread is None:
                thread, answers = waiting(yard)
                wait_until(lambda: listeners(sql, yard) == 1)
        assert rings(sql, yard) == 0
        begin = time.monotonic()
        thread.join(15)
        assert not thread.is_alive()
        assert time.monotonic() - begin < 5
        answers[0].fail("later", retry=True)
        sql.execute("UPDATE taskyard.task SET state = 'waiting', due = 4102444800000 WHERE id = %s", (id,))


@pytest.mark.parametrize("who", ["a role of its own", "a role with other habits"])
def test_a_sleeper_that_may_see_its_own_project_only_is_woken(
    yard: Yard, url: str, sql: Connection[Any], who: str
) -> None:
    role = f"sleeper_{url.rpartition('=')[2].replace('-', '_')}"
    sql.execute(f"CREATE ROLE {role} LOGIN".encode())
    if who == "a role with other habits":
        sql.execute(f"ALTER ROLE {role} SET default_transaction_isolation = 'serializable'".encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (url.rpartition("=")[2], role))
    with taskyard.open(url.replace("taskyard@", f"{role}@"), worker="bob") as other:
        for _ in range(3):
            thread, answers = waiting(other)
            wait_until(lambda: listeners(sql, yard) == 1)
            yard.add("build")
            thread.join(10)
            answers[0].done()


def test_a_pause_that_ends_between_the_look_and_the_sleep_is_not_missed(
    yard: Yard, url: str, sql: Connection[Any]
) -> None:
    yard.pause()
    yard.add("build")
    bell: Any = yard._store.wakeup
    heard = bell.listen()
    assert yard.claim() is None
    with taskyard.open(url) as other:
        other.unpause()
    assert bell.wait(30, heard) != heard
    assert yard.claim() is not None


def test_a_bell_that_was_closed_while_others_waited_serves_again(yard: Yard, url: str, sql: Connection[Any]) -> None:
    bell: Any = yard._store.wakeup
    for _ in range(2):
        thread, _ = waiting(yard)
        wait_until(lambda: listeners(sql, yard) == 1)
        bell.close()
        wait_until(lambda: listeners(sql, yard) == 1)  # it looks, and sleeps again
        with taskyard.open(url) as other:
            other.add("build")
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("option", ["listen=off", "pooler=transaction"])
def test_who_cannot_listen_looks(url: str, sql: Connection[Any], option: str) -> None:
    with taskyard.open(f"{url}&{option}", worker="ada") as yard, taskyard.open(url) as other:
        thread, answers = waiting(yard)
        time.sleep(0.2)
        assert listeners(sql, yard) == 0
        other.add("build")
        thread.join(10)
        assert answers[0] is not None


def test_a_listener_may_have_a_url_of_its_own(url: str, sql: Connection[Any]) -> None:
    from urllib.parse import quote

    direct = quote(url.partition("&project=")[0], safe="")
    with taskyard.open(f"{url}&pooler=transaction&listen={direct}", worker="ada") as yard, taskyard.open(url) as other:
        thread, answers = waiting(yard)
        wait_until(lambda: listeners(sql, yard) == 1)
        other.add("build")
        thread.join(10)
        assert answers[0] is not None


def test_a_listener_whose_line_is_cut_listens_again(yard: Yard, url: str, sql: Connection[Any]) -> None:
    thread, answers = waiting(yard)
    wait_until(lambda: listeners(sql, yard) == 1)
    line = yard._store._listener._connection  # type: ignore[attr-defined]
    sql.execute("SELECT pg_terminate_backend(%s, 5000)", (line.reported_pid,))
    with taskyard.open(url) as other:
        other.add("build")
    thread.join(10)
    assert answers[0] is not None


def test_a_line_that_does_not_hear_any_more_is_given_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    bell: Any = yard._store.wakeup
    own = bell.source
    heard = bell.listen()
    line = own._connection
    assert line is not None
    line.execute("UNLISTEN *")  # as a pooler does between two who share a connection
    assert bell.wait(30, heard) != heard, "it must look again: something may have rung"
    assert own._connection is None
    assert line.closed
    bell.listen()
    assert own._connection is None, "the next one would be as deaf; meanwhile it looks by itself"
    monkeypatch.setattr(lines, "_RETRY_EVERY", 0.0)
    bell.listen()
    assert own._connection is not None


def test_an_idle_waiter_keeps_its_line(yard: Yard, sql: Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "FLOOR", 1.5)
    monkeypatch.setattr(lines, "_IDLE_AFTER", 1.0)
    store: Any = yard._store
    looks: list[object] = []
    thread, answers = waiting(yard)
    wait_until(lambda: listeners(sql, yard) == 1)
    line = store._listener._connection
    overdue = store.upkeep.overdue

    def counted(limit: int) -> Any:
        looks.append(limit)
        return overdue(limit)

    monkeypatch.setattr(store.upkeep, "overdue", counted)
    wait_until(lambda: len(looks) > 1)
    assert store._listener._connection is line
    yard.add("build")
    thread.join(10)
    assert answers[0] is not None


CROWD = """
import sys, threading, taskyard
from taskyard.stores import wakeup
wakeup.FLOOR = float(sys.argv[3])
def wait(name):
    with taskyard.open(sys.argv[1], worker=name) as yard:
        yard.claim(wait=3600)
for n in range(int(sys.argv[2])):
    threading.Thread(target=wait, args=(str(n),), daemon=True).start()
sys.stdin.read()
"""


@sized("each", 15, 30)
def test_a_look_of_one_idle_waiter_wakes_no_other(each: int) -> None:
    """A notification makes the server process of every listener run a transaction: if each look sent one, they grew by the square."""
    floor, seconds, processes = 1.0, 4.0, 3
    with postgres.Server() as server:
        url = server.url()
        taskyard.init(url).close()
        script = [sys.executable, "-c", CROWD, url, str(each), str(floor)]
        crowd = [subprocess.Popen(script, stdin=subprocess.PIPE) for _ in range(processes)]
        try:
            with psycopg.connect(url.partition("&project=")[0], autocommit=True) as own:
                wait_until(lambda: number(own, CONNECTIONS) > 2 * each * processes, 60)  # two each, and this one
                before, at = number(own, TRANSACTIONS), time.monotonic()
                time.sleep(seconds)
                made, took = number(own, TRANSACTIONS) - before, time.monotonic() - at
        finally:
            for process in crowd:
                process.kill()
                process.communicate()
    looks = each * processes * (took / (0.75 * floor) + 1)
    assert 0 < made < each * looks, f"{made} transactions in {took:.1f} s, and at most {looks:.0f} looks"


CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"


def number(connection: Connection[Any], query: LiteralString) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])
