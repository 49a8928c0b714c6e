"""What a role or a database has set for itself changes nothing of what Taskyard's statements mean."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import taskyard
from taskyard import State
from taskyard.doors.cli import main
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.conftest import taken
from tests.servers import postgres

SETTINGS = [
    "standard_conforming_strings = off",
    "array_nulls = off",
    "transform_null_equals = on",
    "search_path = odd, pg_catalog",
    "search_path = odd",
    "plpgsql.extra_errors = 'all'",
    "row_security = off",
    "timezone = 'Asia/Kathmandu'",
    "datestyle = 'German, DMY'",
    "extra_float_digits = -10",
    "default_transaction_isolation = 'repeatable read'",
    "idle_in_transaction_session_timeout = 1000",
    "client_min_messages = debug5",
]
# What has the name of a function that is called, and fits better than that, or comes before it.
TRAPS = [
    "CREATE FUNCTION odd.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS $$ SELECT 'trap' $$",
    "CREATE FUNCTION odd.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '1999-01-01'::timestamptz $$",
    "CREATE FUNCTION odd.pg_current_xact_id() RETURNS bigint LANGUAGE sql AS $$ SELECT 7::bigint $$",
    "CREATE TABLE odd.task (id int)",
]


@pytest.fixture(params=SETTINGS)
def odd(request: pytest.FixtureRequest) -> str:
    """The URL of a project that is not there yet, for the owner of a database who has an odd setting."""
    database = postgres.database()
    owner = f"owner_{database}"
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"CREATE ROLE {owner} LOGIN".encode())
        sql.execute(f"ALTER DATABASE {database} OWNER TO {owner}".encode())
        sql.execute(f"CREATE SCHEMA odd AUTHORIZATION {owner}".encode())
        for trap in TRAPS:
            sql.execute(trap.encode())
        sql.execute(f"ALTER ROLE {owner} SET {request.param}".encode())
    return postgres.url_in(database).replace("taskyard@", f"{owner}@")


def test_a_setting_of_the_roles_own_changes_nothing(odd: str) -> None:
    said: dict[str, Any] = {"text": 'it\'s \\ 100 % "so" {}', "none": None}
    with taskyard.init(odd, worker="ada") as yard:
        first = yard.add(
            "build", said, title="a \\' b", key="k\\'", uses=["gpu,{a}", 'q"\\', "NULL"], mission="NULL"
        ).id
        after = yard.add("late", after=first).id
        many = yard.add_many([{"kind": "bulk", "title": "NULL" if number % 2 else None} for number in range(40)])
        claim = taken(yard.claim(kinds=["build"]))
        assert (claim.task.data, claim.task.title, claim.task.mission) == (said, "a \\' b", "NULL")
        claim.note("half \\ way")
        claim.heartbeat(progress=1 / 3)
        assert yard.get(first).progress == 1 / 3
        claim.done({"said": said})
        assert yard.get(first).result == {"said": said}
        assert yard.get(after).state == State.TODO
        claims = yard.claim_many(20, kinds=["bulk"])
        assert [one.task.title for one in claims] == [None, "NULL"] * 10
        claims[0].fail("it broke: \\")
        claims[1].release()
        for one in claims[2:]:
            one.done()
        assert yard.get(claims[2].task.id).result is None
        yard.retry(claims[0].task.id)
        yard.edit(many[30], title="New")
        yard.cancel(many[31], reason="not needed")
        yard.sweep()
        [due] = [event for event in yard.events(task=claims[0].task.id) if event["event"] == "failed"]
        assert due["due"].startswith("20")
        assert yard.counts()[State.DONE] == 19


@pytest.mark.parametrize(
    "words", [["init"], ["migrate"], ["migrate", "--new-epoch"], ["doctor"], ["torture", "--tasks", "3"]]
)
def test_a_connection_that_the_server_ends_in_between_is_told_as_unavailable(
    words: list[str], url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ending(say: Any) -> Any:
        def ended(line: WatchedConnection, statement: Any, *given: Any, **named: Any) -> Any:
            if isinstance(statement, str):
                with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
                    sql.execute("SELECT pg_terminate_backend(%s, 5000)", (line.pid,))
            return say(line, statement, *given, **named)

        return ended

    monkeypatch.setattr(WatchedConnection, "execute", ending(WatchedConnection.execute))
    monkeypatch.setattr(WatchedConnection, "rows", ending(WatchedConnection.rows))
    assert main([*words, "--yard", url]) == 8
    assert "once more" in capsys.readouterr().err


def test_strings_that_are_read_the_old_way_on_the_callers_connection_change_nothing(url: str) -> None:
    with taskyard.open(url, worker="ada") as yard, psycopg.connect(url.partition("&project=")[0]) as mine:
        mine.execute("SET standard_conforming_strings = off")
        said = {"text": "a \\ b"}
        added = yard.add("build", said, conn=mine).id
        mine.commit()
        assert yard.get(added).data == said
        claim = taken(yard.claim(yard.add("test").id))
        [(fence,)] = mine.execute("SELECT taskyard.fence(%s)", (claim.handle,)).fetchall()
        assert fence == claim.fence
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="not a claim's handle"):
            mine.execute("SELECT taskyard.fence(%s)", (claim.handle.replace(".", "-"),))
