"""A role that has one project of a team: the team's quotas hold for it, and it can neither change them nor touch other teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Full, Unavailable
from tests.conftest import taken
from tests.postgres.teams import Crew
from tests.postgres.test_projects import as_role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

    from taskyard import Yard


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.close()


@pytest.fixture
def role(crew: Crew) -> str:
    """A role that was given the project `site`."""
    name = f"role_{crew.name}".replace("-", "_")
    with psycopg.connect(crew.urls["site"].partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"CREATE ROLE {name} LOGIN".encode())
        sql.execute("SELECT taskyard.give_project(%s, %s)", (crew.project("site"), name))
    return name


@pytest.fixture
def own(crew: Crew, role: str) -> Iterator[Yard]:
    """The project `site`, as the role opens it."""
    with taskyard.open(as_role(crew.urls["site"], role), worker="eve") as yard:
        yield yard


@pytest.fixture
def raw(crew: Crew, role: str) -> Iterator[Connection[Any]]:
    """The role's own connection, for what no client of ours would say."""
    with psycopg.connect(as_role(crew.urls["site"], role).partition("&project=")[0], autocommit=True) as connection:
        yield connection


def number(yard: Yard) -> int:
    return yard._store._context.project  # type: ignore[attr-defined, no-any-return]


def test_the_quotas_count_projects_that_the_role_cannot_see(crew: Crew, own: Yard) -> None:
    crew.set(max_todo=3, max_running=1, rate=100)
    own.tend()
    own._store.upkeep.turn(0.0)
    crew.shop.add_many([{"kind": "build"}] * 2)
    own.add("build")
    with pytest.raises(Full, match="3 of 3"):
        own.add("build")
    held = taken(crew.shop.claim())
    assert own.claim() is None
    assert [fact["limit"] for fact in own.why()["team"]] == ["max_running"]
    held.done()
    taken(own.claim()).done()
    team = own.team()
    assert team is not None
    assert (team["fill"]["todo"], team["fill"]["claimed"]) == (1, 2)
    assert team["projects"] == [crew.project("site")]  # the names of others are theirs


def test_the_role_changes_no_team(crew: Crew, own: Yard, raw: Connection[Any]) -> None:
    verbs: list[Callable[[], object]] = [
        lambda: own.new_team("mine"),
        lambda: own.set_team(crew.name, {"max_running": 1000}),
        lambda: own.take_team(crew.name, crew.project("site")),
        lambda: own.new_team_token(crew.name),
    ]
    for verb in verbs:
        with pytest.raises(Unavailable, match="permission denied"):
            verb()
    for statement in (
        "UPDATE taskyard.team SET rate = NULL",
        "INSERT INTO taskyard.team (name) VALUES ('mine')",
        "UPDATE taskyard.project SET team = NULL",
        "DELETE FROM taskyard.team_pace",
        "UPDATE taskyard.team_backlog SET added = 0",
        "DELETE FROM taskyard.team_count",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute(statement.encode())


def test_the_role_uses_up_nothing_of_another_team_and_learns_nothing_about_it(
    crew: Crew, own: Yard, raw: Connection[Any]
) -> None:
    theirs = Crew()
    try:
        theirs.set(max_todo=5, max_running=5, rate=5)
        other, secret = number(theirs.near["site"]), theirs.name
        assert secret not in [team["name"] for team in own.teams()]
        assert raw.execute("SELECT * FROM taskyard.team_fill(%s)", (other,)).fetchall() == []
        assert raw.execute("SELECT * FROM taskyard.team_reached(%s)", (other,)).fetchall() == []
        for statement in ("count_team_claims(%s, 5)", "take_team_places(%s, 5, true, true)", "ring_team(%s)"):
            raw.execute(f"SELECT taskyard.{statement}".encode(), (other,))
        fill = theirs.near["site"].team()
        assert fill is not None
        assert fill["fill"]["claimed"] == 0
        theirs.site.add_many([{"kind": "build"}] * 5)
        assert len(theirs.site.claim_many(5)) == 5
    finally:
        theirs.close()


def test_no_number_makes_room_that_is_not_there(crew: Crew, own: Yard, raw: Connection[Any]) -> None:
    crew.set(max_todo=2, rate=2)
    crew.shop.add_many([{"kind": "build"}] * 2)
    raw.execute("SELECT taskyard.take_team_places(%s, -1000, true, true)", (number(own),))
    raw.execute("SELECT taskyard.count_team_claims(%s, -1000)", (number(own),))
    with pytest.raises(Full):
        crew.shop.add("build")
    assert len(crew.shop.claim_many(2)) == 2
    assert [fact.limit for fact in own._store.teams.reached()] == ["rate"]  # type: ignore[union-attr]


def test_a_role_that_another_takes_on_is_asked_for_its_own_right(crew: Crew, role: str, raw: Connection[Any]) -> None:
    crew.set(max_running=1)
    crew.shop.add("build")
    taken(crew.shop.claim())
    seen = "SELECT name FROM taskyard.team_reached(%s)"
    assert raw.execute(seen, (number(crew.near["site"]),)).fetchall() == [("max_running",)]
    assert raw.execute(seen, (number(crew.near["shop"]),)).fetchall() == []
    with psycopg.connect(crew.urls["site"].partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"SET ROLE {role}".encode())
        assert sql.execute(seen, (number(crew.near["site"]),)).fetchall() == [("max_running",)]
        assert sql.execute(seen, (number(crew.near["shop"]),)).fetchall() == []
