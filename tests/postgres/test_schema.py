"""The schema: made once however many make it, brought up to date on demand, and left alone by whoever does not know it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable, opening
from taskyard.doors.cli import main
from taskyard.stores.postgres import queries, schema
from tests.servers import postgres

if TYPE_CHECKING:
    from psycopg import Connection


def connection_to(database: str) -> Connection[Any]:
    return psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True)


def test_twenty_who_make_it_at_once_make_one(database: str) -> None:
    url = postgres.url_in(database, "one")

    def make(_: int) -> bool:
        with taskyard.init(url) as yard:
            yard.add("build")
            return yard.created

    with ThreadPoolExecutor(20) as crew:
        made = list(crew.map(make, range(20)))
    assert made.count(True) == 1
    with taskyard.open(url) as yard:
        assert yard.counts()["todo"] == 20


def test_a_check_tells_what_is_pending_and_changes_nothing(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = postgres.url_in(database)
    names = [one.name for one in schema.known()]
    assert opening.migrate(url, check=True) == {"version": 0, "known": schema.CLIENT, "pending": names}
    assert main(["migrate", "--check", "--yard", url]) == 1
    assert main(["migrate", "--yard", url]) == 0
    assert main(["migrate", "--check", "--yard", url]) == 0
    assert opening.migrate(url) == {"version": schema.CLIENT, "known": schema.CLIENT, "applied": []}
    assert names[0] in capsys.readouterr().out


def test_a_yard_without_a_schema_is_up_to_date(tmp_path: Any) -> None:
    taskyard.init(tmp_path / "yard").close()
    assert main(["migrate", "--check", "--yard", str(tmp_path / "yard")]) == 0


def test_migrations_are_numbered_without_a_gap_and_the_last_is_the_clients() -> None:
    assert [one.version for one in schema.known()] == list(range(1, schema.CLIENT + 1))


# What databases in use were made by. A change of one of these would reach new databases only: it belongs into the next migration.
IN_USE = {
    "0001_yard.sql": "19961f403a10025f",
    "0002_hand_out.sql": "3831f0ca00ec5ec4",
    "0003_bell.sql": "f8df7c0c95180a23",
    "0004_outages.sql": "0fb1e110e27ec07c",
}


@pytest.mark.parametrize("name", IN_USE)
def test_a_migration_that_is_in_use_is_never_changed(name: str) -> None:
    content = Path(schema.__file__).with_name("migrations").joinpath(name).read_bytes()
    assert sha256(content).hexdigest()[:16] == IN_USE[name]


@pytest.mark.parametrize(("oldest", "good"), [(schema.CLIENT, True), (schema.CLIENT + 1, False)])
def test_a_newer_schema_is_used_only_if_it_says_that_it_may_be(
    database: str, oldest: int, good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.url_in(database, "one")
    taskyard.init(url).close()
    with connection_to(database) as sql:
        sql.execute(
            "INSERT INTO taskyard.migration (version, name, min_client) VALUES (%s, 'later', %s)",
            (schema.CLIENT + 1, oldest),
        )
    for words in (["add", "build"], ["ready"], ["init"], ["migrate", "--check"], ["migrate"]):
        assert main([*words, "--yard", url]) == (0 if good else 8), words
        told = capsys.readouterr()
        if not good:
            assert f"number {schema.CLIENT + 1}" in told.err
            assert "newer Taskyard" in told.err
    if not good:
        assert main(["init", "--yard", postgres.url_in(database, "two")]) == 8
        with connection_to(database) as sql:
            assert sql.execute("SELECT count(*) FROM taskyard.project").fetchone() == (1,), "and nothing was made"


def test_an_older_schema_is_refused_with_the_way_on(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    url, known = postgres.url_in(database), schema.known()
    with pytest.MonkeyPatch.context() as before:
        before.setattr(schema, "known", lambda: known[:-1])
        before.setattr(schema, "CLIENT", schema.CLIENT - 1)
        taskyard.init(url).close()
    for words in (["add", "build"], ["ready"], ["init"]):
        assert main([*words, "--yard", url]) == 8
        assert "taskyard migrate" in capsys.readouterr().err
    assert main(["migrate", "--check", "--yard", url]) == 1
    assert main(["migrate", "--yard", url]) == 0
    assert main(["migrate", "--check", "--yard", url]) == 0
    assert main(["ready", "--yard", url]) == 0


def test_every_statement_has_a_name_and_no_two_in_a_file_are_the_same() -> None:
    for file in ("add", "claims", "read", "moves", "schema", "upkeep"):
        found = queries.load(file)
        assert found
        assert all(name.isidentifier() and text for name, text in found.items())


def test_settings_of_a_project_are_its_own_and_have_the_sweep_prune(database: str) -> None:
    with taskyard.init(postgres.url_in(database, "one")), taskyard.init(postgres.url_in(database, "two")) as two:
        with connection_to(database) as sql:
            settings = '{"max_attempts": 7, "retention_count": 1, "checks": {"tests": ["make", "test"]}}'
            sql.execute("UPDATE taskyard.project SET settings = %s WHERE name = 'one'", (settings,))
        with taskyard.open(postgres.url_in(database, "one"), worker="ada") as one:
            assert (one.policy.max_attempts, two.policy.max_attempts) == (7, 3)
            assert one.checks == {"tests": ["make", "test"]}
            ids = one.add_many([{"kind": "build"}] * 3)
            for id in ids:
                one.cancel(id)
            one._store.upkeep._mend_at = 0.0  # type: ignore[attr-defined]
            assert one.sweep().mended == 2
            assert [task.id for task in one.find()] == ids[2:]
        with connection_to(database) as sql:
            sql.execute("UPDATE taskyard.project SET settings = %s WHERE name = 'one'", ('{"lease": "long"}',))
        with pytest.raises(Unavailable, match="lease"):
            taskyard.open(postgres.url_in(database, "one"))
