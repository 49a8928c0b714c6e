"""URLs of yards in PostgreSQL: what they may say, and what is told when there is no such yard."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Invalid, Unavailable
from taskyard.stores.postgres.address import Address
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
    "query",
    [
        "valkey=redis://x",
        "project=",
        "project=a%0Ab",
        f"project={'x' * 61}",
        "pooler=session",
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


@pytest.mark.parametrize("url", ["postgresql:work", "postgres:/work", "postgresql:"])
def test_a_url_that_lacks_its_slashes_is_no_directory(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid):
        taskyard.init(url)
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
    program = f"import sys; sys.modules['psycopg'] = None\nfrom taskyard.doors.cli import main\nsys.exit(main(['stats', '--yard', {url!r}]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 8
    assert "pip install 'taskyard[postgres]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_default_isolation_of_the_users_own_changes_nothing(url: str) -> None:
    strict = f"{url}&options=-c%20default_transaction_isolation%3Dserializable"
    with taskyard.open(strict, worker="ada") as yard:
        level = yard._store._ground.pool.run("SELECT current_setting('transaction_isolation')", {})  # type: ignore[attr-defined]
        assert level == [("read committed",)]
        yard.add("build")
        claim = yard.claim()
        assert claim is not None
        claim.done()


def test_durability_is_the_commits(url: str) -> None:
    for durability, expected in (("fast", "off"), ("strict", "on")):
        with taskyard.open(url, durability=durability) as yard:
            assert yard._store._ground.pool.run("SHOW synchronous_commit", {}) == [(expected,)]  # type: ignore[attr-defined]
