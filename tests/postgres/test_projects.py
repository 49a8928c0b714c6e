"""Projects: a role that was given one reaches that one; and a database that was set back begins a new epoch."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import ClaimLost, Invalid, State, Unavailable, opening
from taskyard.doors.cli import main
from taskyard.stores.postgres import schema
from tests.conftest import taken
from tests.contract.test_recurring import far_off, next_of, sweep_at
from tests.servers import postgres
from tests.servers.pooler import Pooler

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Claim, Yard


@pytest.fixture
def role(url: str, sql: Connection[Any]) -> str:
    """A role that was given the project."""
    name = f"role_{url.rpartition('=')[2].replace('-', '_')}"
    sql.execute(f"CREATE ROLE {name} LOGIN".encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (url.rpartition("=")[2], name))
    return name


def as_role(url: str, role: str) -> str:
    return url.replace("taskyard@", f"{role}@")


def test_a_role_does_everything_in_its_own_project(url: str, role: str) -> None:
    with taskyard.open(as_role(url, role), worker="ada") as yard:
        first = yard.add("build", {"n": 1}, key="k", uses="x").id
        last = yard.add("test", after=first).id
        yard.add_many([{"kind": "bulk"}] * 60)
        claim = taken(yard.claim(first))
        claim.note("half way")
        claim.heartbeat()
        claim.done({"ok": True})
        taken(yard.claim(last)).fail("broken", retry=False)
        yard.retry(last)
        yard.edit(last, title="New")
        yard.cancel(last)
        yard.pause("bulk")
        assert yard.claim() is None
        yard.unpause("bulk")
        taken(yard.claim(wait=1)).release()
        assert len(yard.find()) == 62
        assert yard.events()
        yard.sweep()
        assert yard.prune(count=0, apply=True)["tasks"] == 2


def test_a_role_beats_beside_a_lock_and_adds_behind_a_pooler(url: str, role: str, sql: Connection[Any]) -> None:
    with taskyard.open(as_role(url, role), worker="ada") as yard:
        yard.add("build")
        beats_beside_a_lock(taken(yard.claim()), sql)
    with Pooler(postgres.folder(), "transaction") as pooler, taskyard.open(as_role(pooler.url(url), role)) as yard:
        yard.add("test")
        yard.sweep()


def test_a_role_that_was_given_its_project_before_a_migration_has_all_of_it_after(database: str) -> None:
    url, known, role = postgres.url_in(database, "old"), schema.known(), f"role_{database}"
    with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
        with pytest.MonkeyPatch.context() as before:
            before.setattr(schema, "known", lambda: known[:6])
            before.setattr(schema, "CLIENT", 6)
            taskyard.init(url).close()
        sql.execute(f"CREATE ROLE {role} LOGIN".encode())
        sql.execute("SELECT taskyard.give_project('old', %s)", (role,))
        assert main(["migrate", "--yard", url]) == 0
        with taskyard.open(as_role(url, role), worker="ada") as yard:
            yard.add("build")
            beats_beside_a_lock(taken(yard.claim()), sql)


def beats_beside_a_lock(claim: Claim, sql: Connection[Any]) -> None:
    with sql.transaction():
        sql.execute("SELECT FROM taskyard.task WHERE id = %s FOR UPDATE", (claim.task.id,))
        claim.heartbeat()
        assert sql.execute("SELECT FROM taskyard.heartbeat WHERE age = %s", (claim.task.id[4:],)).rowcount == 1


def test_a_role_has_the_schedules_of_its_own_project_and_sees_no_others(url: str, role: str) -> None:
    with taskyard.init(postgres.url()) as other, taskyard.open(as_role(url, role)) as yard:
        other.new_schedule("theirs", "@daily", "build")
        far_off(yard, "@hourly")
        assert sweep_at(yard, next_of(yard)) == 1
        yard.pause_schedule("nightly")
        assert [each["name"] for each in yard.schedules()] == ["nightly"]
        yard.remove_schedule("nightly")
        assert [each["name"] for each in other.schedules()] == ["theirs"]


def test_a_role_finds_its_own_project_made_and_cannot_make_another(url: str, role: str) -> None:
    assert main(["init", "--yard", as_role(url, role)]) == 0
    taskyard.init(as_role(url, role)).close()
    for elsewhere in (postgres.url(), postgres.url(f"{url.rpartition('=')[2]}-new")):
        with pytest.raises(Unavailable, match="cannot make one") as refusal:
            taskyard.init(as_role(elsewhere, role))
        assert "give_project" in str(refusal.value.hint)


def test_a_role_cannot_see_nor_change_another_project(url: str, role: str, sql: Connection[Any]) -> None:
    elsewhere = postgres.url()
    with taskyard.init(elsewhere, worker="eve") as other:
        theirs = other.add("secret").id
        held = taken(other.claim())
        number = other._store._context.project  # type: ignore[attr-defined]
        with pytest.raises(Unavailable, match="no yard"):
            taskyard.open(as_role(elsewhere, role))
        with psycopg.connect(as_role(url, role).partition("&project=")[0], autocommit=True) as mine:
            for table in ("task", "body", "ended", "record", "event", "key", "need", "used"):
                assert mine.execute(
                    f"SELECT count(*) FROM taskyard.{table} WHERE project = {number}".encode()
                ).fetchone() == (0,)
                if table in ("task", "body"):
                    assert mine.execute(f"DELETE FROM taskyard.{table} WHERE project = {number}".encode()).rowcount == 0
            assert mine.execute("SELECT count(*) FROM taskyard.project").fetchone() == (1,)
            for statement in (
                f"INSERT INTO taskyard.used VALUES ({number}, 'x', 'y')",
                "UPDATE taskyard.project SET settings = '{}'",
                "UPDATE taskyard.project SET access = NULL",
                f"GRANT USAGE ON DOMAIN taskyard.access_{number} TO {role}",
                "INSERT INTO taskyard.project (name) VALUES ('mine too')",
                "SELECT * FROM taskyard.ended_other",
                "DROP TABLE taskyard.task",
                "SELECT taskyard.give_project('default', current_user)",
                f"SELECT taskyard.fence('{held.handle}')",
            ):
                with pytest.raises(psycopg.Error):
                    mine.execute(statement.encode())
        with pytest.raises(Unavailable):
            taskyard.init(as_role(postgres.url(), role))
        assert other.get(theirs).state is State.PROCESSING
        held.done()


def test_a_role_that_is_renamed_or_dropped_locks_nobody_else_out(url: str, role: str, sql: Connection[Any]) -> None:
    elsewhere = postgres.url()
    taskyard.init(elsewhere).close()
    sql.execute(f"CREATE ROLE {role}_other LOGIN".encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (elsewhere.rpartition("=")[2], f"{role}_other"))
    with taskyard.open(as_role(url, role)) as before, taskyard.open(as_role(elsewhere, f"{role}_other")) as other:
        id = before.add("build").id
        sql.execute(f"ALTER ROLE {role} RENAME TO {role}_new".encode())
        with taskyard.open(as_role(url, f"{role}_new")) as after:
            assert after.get(id).state is before.get(id).state is State.TODO
        other.add("build")
        sql.execute(f"DROP OWNED BY {role}_other; DROP ROLE {role}_other".encode())
        assert taken(before.claim()).task.id == id
    with taskyard.open(as_role(url, f"{role}_new"), worker="ada") as after:
        after.cancel(id)


def test_a_project_that_is_given_to_another_role_is_that_ones_alone(url: str, role: str, sql: Connection[Any]) -> None:
    sql.execute(f'CREATE ROLE "{role} the second" LOGIN'.encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (url.rpartition("=")[2], f"{role} the second"))
    taskyard.open(as_role(url, f"{role}%20the%20second")).close()
    with pytest.raises(Unavailable, match="no yard"):
        taskyard.open(as_role(url, role))


def test_a_member_of_a_role_reaches_what_the_role_was_given(url: str, role: str, sql: Connection[Any]) -> None:
    sql.execute(f"CREATE ROLE {role}_member LOGIN IN ROLE {role}".encode())
    with taskyard.open(as_role(url, f"{role}_member")) as yard:
        assert yard.add("build").state is State.TODO


def test_roles_keep_their_projects_through_a_migration(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, a project named its role; one whose role was gone locked everybody out."""
    known = schema.known()
    monkeypatch.setattr(schema, "known", lambda: known[:5])
    monkeypatch.setattr(schema, "CLIENT", 5)
    urls = {name: postgres.url_in(database, name) for name in ("mine", "gone", "free")}
    for url in urls.values():
        taskyard.init(url).close()
    role = f"crew_{database}"
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True) as sql:
        for name in ("mine", "gone"):
            sql.execute(f"CREATE ROLE {role}_{name} LOGIN".encode())
            sql.execute("SELECT taskyard.give_project(%s, %s)", (name, f"{role}_{name}"))
        sql.execute(f"DROP OWNED BY {role}_gone; DROP ROLE {role}_gone".encode())
    monkeypatch.undo()
    opening.migrate(urls["mine"])
    with taskyard.open(as_role(urls["mine"], f"{role}_mine")) as yard:
        yard.add("build")
    for name in ("gone", "free"):
        with pytest.raises(Unavailable, match="no yard"):
            taskyard.open(as_role(urls[name], f"{role}_mine"))


def test_a_dump_brings_back_who_was_given_what(database: str) -> None:
    role, copy = f"crew_{database}", postgres.database()
    with taskyard.init(postgres.url_in(database, "mine")) as yard:
        id = yard.add("build").id
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"CREATE ROLE {role} LOGIN".encode())
        sql.execute("SELECT taskyard.give_project('mine', %s)", (role,))
    place = ["-h", postgres.folder(), "-U", "taskyard"]
    dump = subprocess.run(
        [f"{postgres.binaries()}/pg_dump", *place, "-n", "taskyard", database], check=True, capture_output=True
    )
    words = [f"{postgres.binaries()}/psql", *place, "-q", "-v", "ON_ERROR_STOP=1", copy]
    subprocess.run(words, input=dump.stdout, check=True, capture_output=True)
    with taskyard.open(as_role(postgres.url_in(copy, "mine"), role)) as yard:
        assert yard.get(id).state is State.TODO


def test_a_new_epoch_shuts_out_every_handle_from_before(database: str) -> None:
    url = postgres.url_in(database)
    with taskyard.init(url, worker="ada") as yard:
        held, failed, done, todo = yard.add_many([{"kind": "build", "uses": ["x"]}, *[{"kind": "build"}] * 3])
        claim = taken(yard.claim(held))
        lost = taken(yard.claim(failed))
        lost.fail("broken", retry=False)
        winner = taken(yard.claim(done))
        winner.done("kept")
        fences = {id: yard.get(id).fence for id in (held, failed, todo)}
        cursor = yard.events().cursor
    assert main(["migrate", "--new-epoch", "--yard", url]) == 0
    with taskyard.open(url, worker="ada") as yard:
        late = yard.held(claim.handle)
        with pytest.raises(ClaimLost):
            late.heartbeat()
        with pytest.raises(ClaimLost):
            late.done("late")
        assert (yard.get(held).state, yard.get(held).attempts) == (State.TODO, 0)
        assert all(yard.get(id).fence >= fence + 1_000_000 for id, fence in fences.items())
        assert taken(yard.claim(held)).fence > claim.fence + 1_000_000
        yard.held(winner.handle).done("kept")
        assert yard.get(done).result == "kept"
        with pytest.raises(Invalid, match="another time"):
            yard.events(cursor=cursor)


def test_a_new_epoch_is_told(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = postgres.url_in(database)
    assert main(["migrate", "--new-epoch", "--yard", url]) == 0
    assert "0001_yard" in (out := capsys.readouterr().out)
    assert "a new epoch has begun" in out
    assert main(["migrate", "--new-epoch", "--yard", url]) == 0
    assert "a new epoch has begun" in (out := capsys.readouterr().out)
    assert "nothing to do" not in out
    assert main(["migrate", "--new-epoch", "--json", "--yard", url]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["new_epoch"] is True
    assert main(["migrate", "--yard", url]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_only_a_database_has_epochs(yard: Yard, tmp_path: Any) -> None:
    taskyard.init(tmp_path / "yard").close()
    assert main(["migrate", "--new-epoch", "--yard", str(tmp_path / "yard")]) == 2
    assert main(["migrate", "--new-epoch", "--check", "--yard", yard.url]) == 2
