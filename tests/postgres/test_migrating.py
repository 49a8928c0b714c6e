"""Migrations beside those who work: nobody queues behind one, and it finds its moment."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable, opening
from taskyard.stores.postgres import schema
from tests.conftest import taken, wait_until
from tests.postgres.test_listener import waiting
from tests.servers import postgres

if TYPE_CHECKING:
    from psycopg import Connection

LATER = schema.CLIENT + 1
WIDER = f"-- min_client: {schema.CLIENT}\nALTER TABLE taskyard.task ADD COLUMN colour text; ALTER TABLE taskyard.project ADD COLUMN colour text"


@pytest.fixture
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration to come, which needs the hottest tables for itself."""
    known = [*schema.known(), schema.Migration(f"{LATER:04}_colours", WIDER)]
    monkeypatch.setattr(schema, "known", lambda: known)


def connection_to(database: str) -> Connection[Any]:
    return psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True)


def ledger(sql: Connection[Any]) -> list[int]:
    return [row[0] for row in sql.execute("SELECT version FROM taskyard.migration ORDER BY version")]


def test_a_migration_does_not_wait_for_those_who_sleep(database: str) -> None:
    """The first project of a database has the number 1, by which nothing else may be locked."""
    url = postgres.url_in(database)
    with taskyard.init(url, worker="ada") as yard, ThreadPoolExecutor(1) as crew:
        assert yard._store._context.project == 1  # type: ignore[attr-defined]
        thread, _ = waiting(yard)
        wait_until(lambda: yard._store._listener._asleep)  # type: ignore[attr-defined]
        assert crew.submit(opening.migrate, url).result(10)["applied"] == []
        yard.add("build")
        thread.join(10)


@pytest.mark.usefixtures("_later")
def test_eight_who_migrate_at_once_do_it_once(database: str) -> None:
    url = postgres.url_in(database)
    taskyard.init(url).close()
    with connection_to(database) as sql:
        sql.execute("ALTER TABLE taskyard.task DROP COLUMN colour; ALTER TABLE taskyard.project DROP COLUMN colour")
        sql.execute("DELETE FROM taskyard.migration WHERE version = %s", (LATER,))
        with ThreadPoolExecutor(8) as crew:
            told = list(crew.map(opening.migrate, [url] * 8))
        assert sorted(len(one["applied"]) for one in told) == [0] * 7 + [1]
        assert ledger(sql) == list(range(1, LATER + 1))


def test_a_crew_goes_on_while_a_migration_waits_for_a_table_that_is_in_use(
    database: str, request: pytest.FixtureRequest
) -> None:
    url = postgres.url_in(database)
    taskyard.init(url).close()
    request.getfixturevalue("_later")
    over = threading.Event()
    slowest: list[float] = []

    def work(number: int) -> int:
        done, longest = 0, 0.0
        with taskyard.open(url, worker=f"w{number}") as yard:
            while not over.is_set():
                begin = time.monotonic()
                yard.add("build")
                taken(yard.claim()).done()
                longest = max(longest, time.monotonic() - begin)
                done += 1
        slowest.append(longest)
        return done

    with connection_to(database) as holder, connection_to(database) as sql, ThreadPoolExecutor(4) as crew:
        with holder.transaction():
            holder.execute("SELECT count(*) FROM taskyard.task")  # read, and left open
            hands = [crew.submit(work, number) for number in range(3)]
            migrator = crew.submit(opening.migrate, url)
            wait_until(lambda: _waits_for_a_lock(sql))
            time.sleep(2 * schema._PAUSE)  # several tries in vain, beside the crew
            assert not migrator.done()
        assert migrator.result(30)["applied"] == [f"{LATER:04}_colours"]
        over.set()
        assert sum(hand.result(30) for hand in hands) > 0
        assert ledger(sql)[-1] == LATER
    assert max(slowest) < 3.0, "who came behind it waited for its lock and for no more"


@pytest.mark.usefixtures("_later")
def test_a_migration_that_finds_no_moment_changes_nothing_and_says_so(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_PATIENCE", 0.5)
    url = postgres.url_in(database)
    with connection_to(database) as sql, connection_to(database) as holder:
        with monkeypatch.context() as before:
            before.setattr(schema, "known", lambda: [one for one in _known() if one.version < LATER])
            taskyard.init(url).close()
        with holder.transaction():
            holder.execute("SELECT count(*) FROM taskyard.project")
            with pytest.raises(Unavailable, match="in use") as refused:
                opening.migrate(url)
        assert "nothing was changed" in str(refused.value.hint)
        assert ledger(sql) == list(range(1, LATER))


_known = schema.known


def _waits_for_a_lock(sql: Connection[Any]) -> bool:
    found = sql.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'").fetchone()
    return found is not None and found[0] > 0


def test_a_copy_does_not_wait_for_those_who_sleep(database: str) -> None:
    urls = [postgres.url_in(database, name) for name in ("one", "two", "three")]
    with taskyard.init(urls[0]) as first, taskyard.init(urls[1], worker="ada") as second, ThreadPoolExecutor(1) as crew:
        first.add("build")
        first.pause()
        assert second._store._context.project == 2  # type: ignore[attr-defined]
        thread, _ = waiting(second)
        wait_until(lambda: second._store._listener._asleep)  # type: ignore[attr-defined]
        assert crew.submit(opening.copy, urls[0], urls[2]).result(15).tasks == 1
        second.add("build")
        thread.join(10)


def test_a_lock_that_any_role_can_take_holds_a_migration_up_no_longer_than_it_says(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_PATIENCE", 0.5)
    url = postgres.url_in(database)
    taskyard.init(url).close()
    with connection_to(database) as sql:
        sql.execute("SELECT pg_advisory_lock(747159, -1)")
        with ThreadPoolExecutor(1) as crew, pytest.raises(Unavailable, match="in use"):
            crew.submit(opening.migrate, url).result(15)
    assert opening.migrate(url)["applied"] == []
