"""Waking: the database rings while somebody listens, and only then; whoever cannot hear looks by itself."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.postgres import line as lines
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard


def listeners(sql: Connection[Any], yard: Yard) -> int:
    project = yard._store._ground.project  # type: ignore[attr-defined]
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


def test_nobody_listens_unless_somebody_waits(yard: Yard, url: str, sql: Connection[Any]) -> None:
    yard.add("build")
    taken(yard.claim()).done()
    assert listeners(sql, yard) == 0
    thread, answers = waiting(yard)
    wait_until(lambda: listeners(sql, yard) == 1)
    with taskyard.open(url) as other:
        other.add("build")
    thread.join(10)
    assert answers[0] is not None
    yard._store._line._proved_at = 0.0  # type: ignore[attr-defined]  # a while ago
    yard._store.turn(5)
    wait_until(lambda: listeners(sql, yard) == 0)


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
    line = yard._store._line._line  # type: ignore[attr-defined]
    sql.execute("SELECT pg_terminate_backend(%s, 5000)", (line.info.backend_pid,))
    with taskyard.open(url) as other:
        other.add("build")
    thread.join(10)
    assert answers[0] is not None


def test_a_line_that_does_not_hear_any_more_is_given_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    bell: Any = yard._store._bell  # type: ignore[attr-defined]
    own = bell.ear
    bell.listen()
    line = own._line
    assert line is not None
    monkeypatch.setattr(lines, "_PROBE_EVERY", 0.0)
    line.execute("UNLISTEN *")  # as a pooler does between two who share a connection
    with monkeypatch.context() as hasty:
        hasty.setattr(lines, "_PROBE_PATIENCE", 0.1)
        hasty.setattr(lines, "_RETRY_EVERY", 0.0)
        bell.listen()
    assert own._line is None
    assert line.closed
    monkeypatch.setattr(lines, "_RETRY_EVERY", 0.0)
    bell.listen()
    assert own._line is not None
