"""URLs of yards in PostgreSQL: what they may say, and what is told when there is no such yard."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Invalid, Unavailable, opening
from taskyard.stores.postgres.address import Address
from tests.postgres.test_projects import as_role
from tests.processes import tools
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path


def test_a_url_says_the_project_and_the_rest_is_libpqs() -> None:
    address = Address("postgresql://ann:s%40fe@db:5433/work?project=na%C3%AFve&sslmode=disable&host=/run/x")
    assert address.project == "naïve"
    assert address.conninfo == "postgresql://ann:s%40fe@db:5433/work?sslmode=disable&host=/run/x"
    assert Address("postgres://db/work").project == "default"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@db:5433/work?project=p",
        "postgresql://db/work?user=ann&password=secret&project=p",
        "postgresql://ann:sec%72et@a:1,b:2/work",
    ],
)
def test_no_password_is_in_what_people_read(url: str) -> None:
    address = Address(url)
    assert "sec" not in address.label
    assert "sec" not in address.where
    assert "work" in address.label


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "sslpassword",
        "scram_client_key",
        "scram_server_key",
        "oauth_client_secret",
        "options",
        "of_the_next_release",
    ],
)
def test_a_parameter_that_may_be_a_secret_is_not_shown(name: str) -> None:
    address = Address(f"postgresql://ann@db/work?sslmode=verify-full&{name}=sesame&project=docs")
    assert "sesame" not in address.label + address.where
    assert "sesame" in address.conninfo
    assert address.label == "postgresql://ann@db/work?sslmode=verify-full&project=docs"


def test_every_parameter_of_libpq_that_is_no_secret_is_shown() -> None:
    secrets = {"password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret", "options"}
    for name in (option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()):
        assert (f"{name}=1" in Address(f"postgresql://ann@db/work?{name}=1").label) is (name not in secrets), name


@pytest.mark.parametrize(
    "query",
    [
        "valkey=http://x",
        "valkey=redis://x:y",
        "valkey=redis://",
        "valkey=unix:",
        "valkey=localhost",
        "project=",
        "project=a%0Ab",
        f"project={'x' * 61}",
        "pooler=statement",
        "listen=maybe",
        "nonsense=1",
        "project=%FF",
        "project=a&project=b",
        "connect_timeout=abc",
        "port=x",
        "port=99999",
    ],
)
def test_what_a_url_cannot_say_is_invalid(query: str) -> None:
    with pytest.raises(Invalid) as refused:
        taskyard.open(f"postgresql://ann:secret@localhost/work?{query}")
    assert "secret" not in str(refused.value.message) + str(refused.value.hint)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sec/ret@localhost/work",
        "postgresql://ann:sec?ret@localhost/work?project=p",
        "postgresql://ann:sec@ret@localhost/work",
        "postgresql://ann:sec%ret@localhost/work",
        "postgresql://localhost:sec/work",
    ],
)
def test_a_password_that_is_not_encoded_is_told_of_without_a_word_of_it(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        taskyard.open(url)
    told = str(refused.value.message) + str(refused.value.hint)
    assert "sec" not in told
    assert "ret" not in told
    assert "percent-encoded" in str(refused.value.hint)


@pytest.mark.parametrize(
    "url",
    ["postgresql:work", "postgres:/work", "postgresql:", "postgresql+psycopg://ann:sesame@db/work", "git+ssh://db/x"],
)
def test_a_url_that_no_store_reads_is_no_directory(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid) as refused:
        taskyard.init(url)
    assert "sesame" not in f"{refused.value.message} {refused.value.hint}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("project", ["default", "naïve ☃", "a/b&c=d%41", "../x", "'; DROP SCHEMA taskyard; --"])
def test_projects_of_any_name_are_apart(project: str, database: str) -> None:
    url = postgres.url_in(database, project)
    with taskyard.init(url) as yard, taskyard.init(postgres.url_in(database, "other")) as other:
        id = yard.add("build").id
        assert other.counts()["todo"] == 0
        with pytest.raises(taskyard.NotFound):
            other.get(id)
        with taskyard.open(yard.url) as again:
            assert again.get(id).id == id


def test_a_server_that_is_not_there_is_unavailable_at_once(tmp_path: Path) -> None:
    for act in (taskyard.open, taskyard.init):
        with pytest.raises(Unavailable, match="cannot be reached") as refused:
            act(f"postgresql://ann:secret@/work?host={tmp_path}")
        assert "secret" not in refused.value.message
        assert refused.value.hint


def test_a_database_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        taskyard.init(postgres.url_in("nowhere"))


def test_opening_never_makes_a_schema_nor_a_project(database: str) -> None:
    url = postgres.url_in(database, "one")
    with pytest.raises(Unavailable, match="no yard 'one'") as refused:
        taskyard.open(url)
    assert "init" in str(refused.value.hint)
    taskyard.init(url).close()
    with pytest.raises(Unavailable, match="no yard 'two'"):
        taskyard.open(postgres.url_in(database, "two"))
    taskyard.open(url).close()


def test_without_the_driver_it_is_said_how_to_get_it(url: str) -> None:
    there = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(taskyard.__file__))}
    words = [sys.executable, "-S", "-m", "taskyard", "stats", "--yard", url]  # -S: without what is installed
    done = subprocess.run(words, env=there, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 8
    assert "pip install 'taskyard[postgres]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_default_isolation_of_the_users_own_changes_nothing(url: str) -> None:
    strict = f"{url}&options=-c%20default_transaction_isolation%3Dserializable"
    with taskyard.open(strict, worker="ada") as yard:
        level = yard._store._context.pool.run("SELECT current_setting('transaction_isolation')", {})  # type: ignore[attr-defined]
        assert level == [("read committed",)]
        yard.add("build")
        claim = yard.claim()
        assert claim is not None
        claim.done()


def test_a_role_whose_transactions_are_read_only_can_look_and_is_told_why_it_can_do_no_more(url: str) -> None:
    with taskyard.open(url, worker="ada") as yard:
        id = yard.add("build").id
    with taskyard.open(f"{url}&options=-c%20default_transaction_read_only%3Don", worker="ada") as yard:
        yard.policy.sweep_every = 0.0
        assert yard.counts() == yard.stats()["counts"]
        assert yard.get(id) is not yard.report(id).task
        assert [event["event"] for event in yard.events()] == ["added"]
        for verb in (lambda: yard.add("build"), yard.claim, yard.pause):
            with pytest.raises(Unavailable, match="read-only") as refusal:
                verb()
            assert "default_transaction_read_only" in str(refusal.value.hint)


def test_durability_is_the_commits(url: str) -> None:
    for durability, expected in (("fast", "off"), ("strict", "on")):
        with taskyard.open(url, durability=durability) as yard:
            assert yard._store._context.pool.run("SHOW synchronous_commit", {}) == [(expected,)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", ["stats", "doctor", "torture", "migrate", "init"])
def test_a_role_that_may_not_even_look_is_told_so(verb: str, url: str) -> None:
    role = f"role_blind_{verb}_{url.rpartition('=')[2].replace('-', '_')}"
    with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"CREATE ROLE {role} LOGIN".encode())
    answer = tools.taskyard(as_role(url, role), verb)
    told = answer.out + answer.err
    assert answer.code in (1, 8)
    assert "permission denied for schema taskyard" in told
    assert "unexpected" not in told
    assert "grant" in told


@pytest.mark.parametrize("way", ["init", "migrate", "copy"])
def test_a_schema_of_somebody_else_under_the_same_name_is_told_of_and_stays_as_it_is(
    way: str, database: str, tmp_path: Path
) -> None:
    url = postgres.url_in(database)
    with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
        sql.execute("CREATE SCHEMA taskyard; CREATE TABLE taskyard.project (mine text)")
        with taskyard.init(tmp_path / "yard") as yard:
            yard.pause()
        words = {"init": [url], "migrate": ["--yard", url], "copy": [str(tmp_path / "yard"), url]}[way]
        answer = tools.taskyard(None, way, *words)
        assert (answer.code, answer.error["code"]) == (8, "unavailable")
        assert 'relation "project" already exists' in answer.error["message"]
        assert "another database" in answer.error["hint"]
        tables = "SELECT relname FROM pg_class WHERE relnamespace = 'taskyard'::regnamespace AND relkind IN ('r', 'p')"
        assert sql.execute(tables).fetchall() == [("project",)]


def test_a_database_that_cannot_keep_every_text_is_refused() -> None:
    name = f"{postgres.database()}_latin"
    with psycopg.connect(postgres.url().partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'".encode())
    with pytest.raises(Unavailable, match="LATIN1") as refused:
        taskyard.init(postgres.url_in(name))
    assert "UTF8" in str(refused.value.hint)


def test_an_encoding_of_the_clients_own_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for given in (url, f"{url}&client_encoding=SQL_ASCII"):
        with taskyard.open(given) as yard:
            assert yard.get(yard.add("build", title="☃ naïve").id).title == "☃ naïve"


def test_a_migration_of_a_directory_that_is_no_yard_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no yard"):
        opening.migrate(tmp_path / "nowhere", check=True)
    taskyard.init(tmp_path / "yard").close()
    assert opening.migrate(tmp_path / "yard") == {"version": 1, "known": 1, "applied": []}


def test_the_first_turn_of_a_process_asks_for_no_time_before(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command makes one turn: each statement more is a round trip of every command."""
    asked: list[tuple[str, str]] = []
    with taskyard.open(url) as yard:
        store: Any = yard._store
        run = store._context.run

        def noted(file: str, name: str, *given: Any, **named: Any) -> Any:
            asked.append((file, name))
            return run(file, name, *given, **named)

        monkeypatch.setattr(store._context, "run", noted)
        assert store.upkeep.turn(3600.0), "nobody has swept yet"
        assert not store.upkeep.turn(3600.0)
    assert asked == [("upkeep", "turn")] * 2
