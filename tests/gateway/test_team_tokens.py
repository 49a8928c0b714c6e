"""Tokens of a team: good for every project of the team and no other, by the table of routes itself."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Denied, Invalid, NotFound
from taskyard.core import tokens
from taskyard.doors.cli import main
from taskyard.remote import routes
from tests.conftest import taken, wait_until
from tests.postgres.teams import Crew
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.remote.routes import Route

SCOPES = ("read", "work", "manage")


class Guarded:
    """A gateway in front of two projects of a team with tokens, of one of another team, and of one with tokens of its own."""

    def __init__(self) -> None:
        self.crew = Crew()
        self.theirs = Crew()
        near = self.crew.near["site"]
        self.secrets = {scope: near.new_team_token(self.crew.name, scope, scope=scope)["token"] for scope in SCOPES}
        self.secrets["theirs"] = self.theirs.near["site"].new_team_token(self.theirs.name, scope="manage")["token"]
        self.secrets["own"] = self.crew.near["shop"].new_token("own", scope="manage")["token"]
        self.secrets["other"] = self.crew.near["other"].new_token("other", scope="manage")["token"]
        self.secrets["root"] = near.new_token("root", scope="teams")["token"]
        self.secrets["revoked"] = near.new_team_token(self.crew.name, "old", scope="manage")["token"]
        near.revoke_team_token(self.crew.name, "old")
        self.running = Running({**self.crew.near, "theirs": self.theirs.near["site"]})
        self._line = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=50)

    def url(self, project: str) -> str:
        return f"http://127.0.0.1:{self.running.port}/{project}"

    def try_route(self, project: str, route: Route, token: str) -> tuple[int, Any]:
        """Ask with arguments that are wrong on every route: whoever is admitted gets 400, and nothing happens."""
        path = "/".join(["", project, *("x" if part.startswith("{") else part for part in route.parts())])
        body, query = (None, "?nonsense=1") if route.method == "GET" else (b"[]", "")
        headers = {"Authorization": f"Bearer {self.secrets[token]}"}
        self._line.request(route.method, path + query, body, headers)
        answer = self._line.getresponse()
        return answer.status, json.loads(answer.read())

    def stop(self) -> None:
        self._line.close()
        self.running.stop()
        self.crew.close()
        self.theirs.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    made = Guarded()
    yield made
    made.stop()


@pytest.mark.parametrize("project", ["site", "shop"])
@pytest.mark.parametrize("scope", SCOPES)
def test_every_route_of_every_project_of_the_team_admits_its_scope_alone(
    guarded: Guarded, project: str, scope: str
) -> None:
    for route in routes.ROUTES:
        status, told = guarded.try_route(project, route, scope)
        allowed = tokens.SCOPES.index(scope) >= tokens.SCOPES.index(route.scope)
        assert (status, told["error"]["code"]) == ((400, "invalid") if allowed else (403, "denied")), route.path


@pytest.mark.parametrize(
    ("project", "token"),
    [
        ("other", "manage"), ("theirs", "manage"), ("site", "theirs"), ("site", "revoked"), ("site", "own"), ("site", "other"),
        ("theirs", "root"), ("other", "root"),
    ],
)  # fmt: skip
def test_every_route_refuses_a_token_that_reaches_other_projects(guarded: Guarded, project: str, token: str) -> None:
    for route in routes.ROUTES:
        status, told = guarded.try_route(project, route, token)
        assert (status, told["error"]["code"]) == (401, "denied"), route.path


def test_a_token_of_one_project_and_one_of_its_team_are_both_good(guarded: Guarded) -> None:
    for token in ("own", "manage"):
        assert guarded.try_route("shop", routes.BY_VERB["counts"], token)[0] == 400


def test_a_project_is_open_to_the_tokens_while_it_is_the_teams(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets["work"])
    crew = guarded.crew

    def opens() -> bool:
        try:
            with taskyard.open(guarded.url("other")) as far:
                return bool(far.counts())
        except Denied:
            return False

    assert not opens()
    crew.near["site"].give_team(crew.name, crew.project("other"))
    wait_until(opens)
    crew.near["site"].take_team(crew.name, crew.project("other"))
    wait_until(lambda: not opens())


def test_the_log_names_the_team_and_its_token(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets["work"])
    with taskyard.open(guarded.url("shop"), worker="bob") as far:
        id = far.add("build").id
        taken(far.claim(id)).done()
    by = {(event["event"], event["by"]) for event in guarded.crew.near["shop"].events(task=id)}
    assert by == {(event, f"{guarded.crew.name}/work") for event in ("added", "claimed", "done")}


def test_a_token_of_the_team_closes_a_project_that_has_none_of_its_own(guarded: Guarded) -> None:
    near = guarded.theirs.near["shop"]
    assert near.tokens() == []
    assert [*(near.token_digests() or ())] == [
        f"{guarded.theirs.name}/{name['name']}" for name in near.team_tokens(guarded.theirs.name)
    ]
    guarded.running.serve("shop-of-theirs", near)
    with pytest.raises(Denied), taskyard.open(guarded.url("shop-of-theirs")) as far:
        far.counts()
    guarded.running.drop("shop-of-theirs")


def test_only_the_scope_teams_changes_teams_and_it_is_made_beside_the_database(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = guarded.crew
    for token in ("manage", "root"):
        monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets[token])
        with taskyard.open(guarded.url("site")) as far:
            with pytest.raises(Denied, match="not made through a gateway"):
                far.new_token(scope="teams")
            team = far.team()
            assert team is not None
            assert team["name"] == crew.name
            if token == "manage":
                for verb in (far.teams, lambda: far.set_team(crew.name, {"rate": 1})):
                    with pytest.raises(Denied, match="needs 'teams'"):
                        verb()
            else:
                assert far.set_team(crew.name, {"rate": 1000})["rate"] == 1000
                assert {team["name"] for team in far.teams()} >= {crew.name, guarded.theirs.name}
                made = far.new_team_token(crew.name, "late")
                assert made["token"].startswith("ty_")
                assert far.revoke_team_token(crew.name, "late")["team"] == crew.name
    with pytest.raises(Invalid, match="cannot change teams"):
        crew.near["site"].new_team_token(crew.name, scope="teams")
    for unknown in (crew.near["site"].team_tokens, crew.near["site"].new_team_token):
        with pytest.raises(NotFound, match="no team"):
            unknown("nobody")
    told = crew.near["shop"].events(event=("token_made", "token_revoked"))
    assert [(event["event"], event["token"]) for event in told if event.get("team")][-2:] == [
        ("token_made", "late"),
        ("token_revoked", "late"),
    ]


def test_the_command_line_makes_lists_and_revokes_tokens_of_a_team(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    crew = guarded.crew
    rest = ["--team", crew.name, "--yard", crew.near["site"].url]
    assert main(["token", "new", "--name", "ci", *rest]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("ty_")
    assert f"in every project of the team {crew.name}" in told.err
    assert main(["token", "list", *rest]) == 0
    assert f"those of {crew.name}" in capsys.readouterr().out
    assert main(["token", "revoke", "ci", "--json", *rest]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["token"]["team"] == crew.name
    assert main(["token", "new", "--project", "site", *rest]) == 2


def test_a_token_of_a_team_that_is_asked_for_again_under_its_key_is_the_same(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets["root"])
    crew = guarded.crew
    with taskyard.open(guarded.url("site")) as far:
        made = [yard.new_team_token(crew.name, "again", key="k1") for yard in (far, far)]
        assert made[0] == made[1]
        with pytest.raises(Conflict):
            far.new_team_token(crew.name, "again", key="k2")
        far.revoke_team_token(crew.name, "again")
    told = crew.near["site"].events(event="token_made")
    assert [event["token"] for event in told].count("again") == 1
