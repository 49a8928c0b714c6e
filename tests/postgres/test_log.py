"""The log by snapshots: a transaction that commits late is never missed, and nothing is told twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from taskyard import Invalid

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard


def late(url: str, project: int, kind: str) -> Connection[Any]:
    """An event in a transaction that is still open."""
    connection: Connection[Any] = psycopg.connect(url.partition("&project=")[0])
    connection.execute(
        "INSERT INTO taskyard.event (project, event, task, kind, fence, by) VALUES (%s, 'added', 'x', %s, 0, 'late')",
        (project, kind),
    )
    return connection


def kinds(events: Any) -> list[str]:
    return [event["kind"] for event in events]


def test_who_reads_on_sees_what_was_committed_late(yard: Yard, url: str) -> None:
    project = yard._store._context.project  # type: ignore[attr-defined]
    yard.add("one")
    first = late(url, project, "late")
    yard.add("two")
    page = yard.events()
    assert kinds(page) == ["one", "two"]
    latest = yard.log_end()
    first.commit()
    first.close()
    yard.add("three")
    assert kinds(yard.events(cursor=page.cursor)) == ["late", "three"]
    assert kinds(yard.events(cursor=latest)) == ["late", "three"]
    assert kinds(yard.events()) == ["one", "late", "two", "three"]


def test_pages_of_one_reading_are_of_one_moment_and_the_next_has_the_rest(yard: Yard, url: str) -> None:
    project = yard._store._context.project  # type: ignore[attr-defined]
    first = late(url, project, "late")
    yard.add_many([{"kind": f"k{n}"} for n in range(5)])
    read, cursor = [], None
    page = yard.events(limit=2)
    read += kinds(page)
    first.commit()
    first.close()
    yard.add("last")
    for _ in range(6):
        cursor = page.cursor
        page = yard.events(cursor=cursor, limit=2)
        read += kinds(page)
    assert sorted(read) == sorted(["k0", "k1", "k2", "k3", "k4", "late", "last"])
    assert list(page) == []


def test_another_projects_long_transaction_holds_nothing_up(yard: Yard, url: str) -> None:
    other = late(url, 0, "elsewhere")
    try:
        yard.add("one")
        assert kinds(yard.events()) == ["one"]
    finally:
        other.close()


@pytest.mark.parametrize("cursor", ["1/2:3", "9/1:1:", "0/1:1:/1:1:", "0/a:b:c", "0", "0/1:1:/1:1:/1/x"])
def test_what_is_no_cursor_of_this_yard_is_refused(yard: Yard, cursor: str) -> None:
    with pytest.raises(Invalid):
        yard.events(cursor=cursor)
