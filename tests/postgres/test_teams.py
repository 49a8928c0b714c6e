"""Teams: quotas that hold over all projects of a team together, on PostgreSQL and through a gateway alike."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Full, Invalid, NotFound
from taskyard.doors.cli import main
from tests.conftest import outlast, taken, wait_until
from tests.postgres.teams import Crew
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Claim


@pytest.fixture(params=["near", "far"])
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    made = Crew(through_gateway=request.param == "far")
    yield made
    made.close()


def test_a_team_is_made_given_projects_and_shown(crew: Crew) -> None:
    found = crew.site.team()
    assert found is not None
    assert (found["name"], found["max_todo"], found["max_running"], found["rate"]) == (crew.name, None, None, None)
    assert found["projects"] == sorted(map(crew.project, ("site", "shop")))
    assert crew.other.team() is None
    crew.site.add("build")
    crew.shop.add_many([{"kind": "build"}] * 2)
    taken(crew.shop.claim())
    [listed] = [team for team in crew.other.teams(fill=True) if team["name"] == crew.name]
    assert listed == {
        **found,
        "fill": {
            "todo": 2,
            "running": 1,
            "claimed": 0,
            "by_project": {
                crew.project("site"): {"todo": 1, "running": 0},
                crew.project("shop"): {"todo": 1, "running": 1},
            },
        },
    }
    assert all("fill" not in team for team in crew.other.teams())


def test_a_team_is_made_once_and_other_words_about_it_are_a_conflict(crew: Crew) -> None:
    name = f"{crew.name}-two"
    assert crew.site.new_team(name, max_todo=5)["created"] is True
    assert crew.site.new_team(name, max_todo=5)["created"] is False
    with pytest.raises(Conflict, match="other quotas"):
        crew.site.new_team(name, max_todo=6)
    assert crew.site.set_team(name, {"max_todo": None, "rate": 7})["rate"] == 7
    assert crew.site.new_team(name, rate=7)["created"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_todo": -1},
        {"max_running": 0},
        {"rate": 0},
        {"rate": 1.5},
        {"rate": True},
        {"rate": "many"},
        {"max": 1},
        {},
    ],
)
def test_quotas_that_can_be_none_are_refused(crew: Crew, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        crew.site.set_team(crew.name, wrong)
    for name in ("", "a/b", "x" * 100):
        with pytest.raises(Invalid):
            crew.site.new_team(name)


def test_a_project_belongs_to_one_team_until_it_is_taken_back(crew: Crew) -> None:
    second = f"{crew.name}-two"
    crew.site.new_team(second)
    with pytest.raises(Conflict, match=f"belongs to the team '{crew.name}'"):
        crew.site.give_team(second, crew.project("shop"))
    crew.site.give_team(crew.name, crew.project("shop"))  # said again, it changes nothing
    assert crew.site.take_team(crew.name, crew.project("shop"))["projects"] == [crew.project("site")]
    assert crew.shop.team() is None
    with pytest.raises(Conflict, match="does not belong"):
        crew.site.take_team(crew.name, crew.project("shop"))
    assert crew.site.give_team(second, crew.project("shop"))["projects"] == [crew.project("shop")]
    with pytest.raises(NotFound, match="no project"):
        crew.site.give_team(second, "nowhere")
    for verb in (crew.site.give_team, crew.site.take_team):
        with pytest.raises(NotFound, match="no team"):
            verb("nobody", crew.project("site"))
    with pytest.raises(NotFound, match="no team"):
        crew.site.set_team("nobody", {"rate": 1})


def test_a_project_that_is_called_for_a_team_is_its_own_for_good(crew: Crew) -> None:
    early, late = (f"{crew.name}-two/{name}" for name in ("early", "late"))
    taskyard.init(postgres.url(early)).close()
    crew.site.new_team(f"{crew.name}-two")
    taskyard.init(postgres.url(late)).close()
    [made] = [team for team in crew.site.teams() if team["name"] == f"{crew.name}-two"]
    assert made["projects"] == [early, late]
    with pytest.raises(Conflict, match="by its name"):
        crew.site.take_team(f"{crew.name}-two", early)
    with pytest.raises(Conflict, match="belongs to the team"):
        crew.site.give_team(crew.name, late)


def test_max_todo_counts_what_waits_in_all_projects_of_the_team(crew: Crew) -> None:
    crew.set(max_todo=3)
    crew.site.add_many([{"kind": "build"}] * 2)
    crew.shop.add("build")
    for yard in (crew.site, crew.shop):
        with pytest.raises(Full, match=f"the team {crew.name} is full: 3 of 3") as refused:
            yard.add("build")
        assert (refused.value.team, refused.value.count, refused.value.most) == (crew.name, 3, 3)
    with pytest.raises(Full, match="2 more do not fit"):
        crew.site.add_many([{"kind": "build"}] * 2)
    with pytest.raises(Full, match="4 tasks at once can never fit"):
        crew.shop.add_many([{"kind": "build"}] * 4)
    crew.other.add_many([{"kind": "build"}] * 5)
    assert crew.site.full() == [{"kind": None, "team": crew.name, "count": 3, "max_todo": 3}]
    assert crew.site.why()["full"] == crew.site.full()
    claim = taken(crew.shop.claim())
    crew.site.add("build")
    with pytest.raises(Full):
        crew.site.add("build")
    claim.release()  # what comes back has its place
    assert crew.shop.counts()["todo"] == 1
    crew.set(max_todo=None)
    crew.site.add_many([{"kind": "build"}] * 10)


def test_a_key_that_is_known_needs_no_room(crew: Crew) -> None:
    crew.set(max_todo=1)
    first = crew.site.add("build", key="once")
    assert crew.site.add("build", key="once").id == first.id
    with pytest.raises(Full):
        crew.shop.add("build", key="twice")


def test_an_add_waits_for_room_that_another_project_makes(crew: Crew) -> None:
    crew.set(max_todo=1)
    crew.site.add("build")
    with pytest.raises(Full):
        crew.shop.add("build", wait=0.1)
    added: list[str] = []
    counted = [crew.counted_at()]
    waiting = threading.Thread(target=lambda: added.append(crew.shop.add("build", wait=60).id))
    waiting.start()
    for _ in range(2):  # once before it waits, and once when it hears of changes in its own project
        wait_until(lambda: crew.counted_at() != counted[-1])
        counted.append(crew.counted_at())
    taken(crew.site.claim())
    waiting.join(10)
    assert added
    waiting.join()


def test_max_running_holds_over_all_projects_of_the_team(crew: Crew) -> None:
    crew.set(max_running=2)
    for yard in (crew.site, crew.shop, crew.other):
        yard.add_many([{"kind": "build"}] * 4)
    first, _ = taken(crew.site.claim()), taken(crew.shop.claim())
    for yard in (crew.site, crew.shop):
        assert yard.claim() is None
        assert yard.claim_many(3) == []
        assert yard.claim(kinds=["build", "test"]) is None
        assert yard.ready() == []
        with pytest.raises(Conflict, match=f"max_running of the team {crew.name} is reached: 2 of 2 are held"):
            yard.claim(yard.find(state="todo")[0].id)
    assert len(crew.other.claim_many(4)) == 4
    first.done()
    assert len(crew.shop.claim_many(3)) == 1
    crew.set(max_running=4)
    assert len(crew.site.claim_many(9)) == 2


@pytest.mark.parametrize("ending", ["done", "fail", "release", "cancel", "lapse"])
def test_whatever_ends_a_claim_makes_room_in_the_other_project(crew: Crew, ending: str) -> None:
    crew.set(max_running=1)
    id = crew.site.add("build").id
    crew.shop.add("build")
    claim = taken(crew.site.claim(lease=0.05 if ending == "lapse" else None))
    assert crew.shop.claim() is None
    if ending == "lapse":
        outlast(claim)
        crew.site.sweep()
    elif ending == "cancel":
        crew.site.cancel(id)
    elif ending == "fail":
        claim.fail("broken", retry=False)
    else:
        getattr(claim, ending)()
    taken(crew.shop.claim())


def test_a_claim_that_ends_wakes_who_waits_in_another_project(crew: Crew) -> None:
    crew.set(max_running=1)
    crew.site.add("build")
    crew.shop.add("build")
    claim = taken(crew.site.claim())
    got: list[Claim | None] = []
    with taskyard.open(crew.urls["shop"], worker="bob") as bob:
        waiting = threading.Thread(target=lambda: got.append(bob.claim(wait=30)))
        waiting.start()
        wait_until(lambda: crew.near["shop"].why()["team"])
        claim.done()
        waiting.join(15)
    assert got
    assert got[0] is not None


def test_quotas_that_are_raised_wake_who_waits(crew: Crew) -> None:
    crew.set(max_running=1)
    crew.site.add_many([{"kind": "build"}] * 2)
    taken(crew.site.claim())
    got: list[Claim | None] = []
    with taskyard.open(crew.urls["site"], worker="bob") as bob:
        waiting = threading.Thread(target=lambda: got.append(bob.claim(wait=30)))
        waiting.start()
        crew.site.set_team(crew.name, {"max_running": 2})
        waiting.join(15)
    assert got
    assert got[0] is not None


def test_a_rate_holds_over_all_projects_of_the_team(crew: Crew) -> None:
    crew.set(rate=5)
    for yard in (crew.site, crew.shop, crew.other):
        yard.add_many([{"kind": "build"}] * 6)
    for claim in crew.site.claim_many(2):
        claim.done()
    assert len(crew.shop.claim_many(6)) == 3
    for yard in (crew.site, crew.shop):
        assert yard.claim() is None
        [fact] = yard.why()["team"]
        assert (fact["team"], fact["limit"], fact["number"]) == (crew.name, "rate", 5)
        assert fact["count"] == len(yard.find(state="todo"))
        assert 0 < fact["in"] <= 61
    assert crew.near["site"].claim() is None
    alarm = crew.near["site"].alarm()
    assert alarm is not None
    assert 0 < alarm <= 61
    assert len(crew.other.claim_many(6)) == 6
    crew.set(rate=6)
    assert len(crew.site.claim_many(6)) == 1


def test_why_names_the_quota_that_holds_a_task_back(crew: Crew) -> None:
    crew.set(max_running=1)
    crew.site.add("build")
    held = crew.shop.add("build").id
    taken(crew.site.claim())
    assert crew.shop.claim() is None
    found = crew.shop.why()
    assert f"the max_running of the team {crew.name} is reached: 1 of 1 are held (1 task waits)" in found["message"]
    assert "taskyard team show" in found["next"]
    [reason] = [reason for reason in crew.shop.why(held)["reasons"] if reason["code"] == "limited_by_team"]
    assert (reason["team"], reason["limit"]) == (crew.name, "max_running")


def test_limits_of_kinds_and_quotas_of_the_team_hold_together(crew: Crew) -> None:
    crew.set(max_running=3)
    crew.site.set_settings({"kinds": {"build": {"concurrency": 1}}})
    crew.site.add_many([{"kind": "build", "priority": 0}] * 3 + [{"kind": "test"}] * 5)
    assert sorted(claim.task.kind for _ in range(3) for claim in crew.site.claim_many(5)) == ["build", "test", "test"]


def test_claims_of_a_mission_and_by_age_heed_the_team(crew: Crew) -> None:
    crew.set(max_running=2)
    crew.site.add_many([{"kind": "build", "mission": "m"}] * 5)
    assert len(crew.site.claim_many(5, mission="m")) == 2
    assert crew.site.claim(mission="m") is None
    crew.shop.set_settings({"ageing": 60})
    crew.shop.add("build")
    assert crew.shop.claim() is None


def test_the_log_of_every_project_that_is_concerned_tells_what_happened_to_the_team(crew: Crew) -> None:
    crew.set(rate=9)
    crew.site.take_team(crew.name, crew.project("shop"))
    logs = {
        name: [event["event"] for event in yard.events() if event["event"].startswith("team_")]
        for name, yard in (("site", crew.site), ("shop", crew.shop), ("other", crew.other))
    }
    assert logs["site"] == ["team_made", "team_given", "team_given", "team_changed", "team_taken"]
    assert logs["shop"] == ["team_given", "team_changed", "team_taken"]
    assert logs["other"] == []
    [changed] = crew.shop.events(event="team_changed")
    assert (changed["team"], changed["changes"], changed["by"]) == (crew.name, {"rate": 9}, "ada")


def test_the_command_line_makes_shows_and_changes_teams(crew: Crew, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> dict[str, Any]:
        status = main(["team", *words, "--json", "--yard", crew.urls["site"]])
        told = json.loads(capsys.readouterr().out)
        assert (status == 0) == told["ok"]
        return dict(told["data"] if told["ok"] else told["error"])

    name = f"{crew.name}-cli"
    made = said("add", name, "--max-todo", "9", "--rate", "60/min")
    assert (made["created"], made["team"]["max_todo"], made["team"]["max_running"], made["team"]["rate"]) == (
        True,
        9,
        None,
        60,
    )
    assert said("set", name, "--rate", "none", "--max-running", "3")["team"]["rate"] is None
    assert said("give", name, crew.project("other"))["team"]["projects"] == [crew.project("other")]
    assert name in [team["name"] for team in said("list")["teams"]]
    assert said("show", name)["team"]["fill"]["running"] == 0
    assert said("show")["team"]["name"] == crew.name
    assert said("take", name, crew.project("other"))["team"]["projects"] == []
    for wrong in (
        ["add"],
        ["list", "x"],
        ["grow", name],
        ["set", name],
        ["give", name],
        ["show", name, "--rate", "1"],
        ["set", name, "--rate", "1/s"],
    ):
        assert said(*wrong)["code"] == "invalid"
    assert said("show", "nobody")["code"] == "not_found"
    for words in (
        ["list"],
        ["show"],
        ["show", name],
        ["set", name, "--rate", "7"],
        ["give", name, crew.project("other")],
    ):
        assert main(["team", *words, "--yard", crew.urls["site"]]) == 0
    told = capsys.readouterr().out
    assert f"{crew.project('other')} belongs to {name}, which has 1 project" in told
    assert f"{name}: max_todo 9, max_running 3, rate 7" in told
    assert re.search(r"^running +0 of 3$", told, re.MULTILINE)
    assert "last minute" not in told, "claims are not counted without a rate"
    assert main(["team", "show", name, "--yard", crew.urls["site"]]) == 0
    assert "last minute  0 of 7 claimed" in capsys.readouterr().out
    crew.set(max_todo=1)
    assert [main(["add", "build", "--yard", crew.urls["site"]]) for _ in range(2)] == [0, 7]
    assert f"the team {crew.name} is full: 1 of 1" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["memory:teams", "directory"])
def test_a_yard_that_shares_its_place_with_no_other_has_no_teams(place: str, tmp_path: Any) -> None:
    with taskyard.init(tmp_path / "yard" if place == "directory" else place) as yard:
        assert yard.team() is None
        for verb in (
            yard.teams,
            lambda: yard.new_team("web"),
            lambda: yard.set_team("web", {"rate": 1}),
            lambda: yard.give_team("web", "site"),
            lambda: yard.take_team("web", "site"),
            lambda: yard.team_tokens("web"),
            lambda: yard.new_team_token("web"),
            lambda: yard.revoke_team_token("web", "x"),
        ):
            with pytest.raises(Invalid, match="has no teams") as refused:
                verb()
            assert "postgresql://" in str(refused.value.hint)


def test_a_copy_has_the_tasks_and_nothing_of_the_team(tmp_path: Any) -> None:
    crew = Crew()
    crew.set(max_todo=5)
    crew.site.add("build")
    crew.site.pause()
    taskyard.opening.copy(crew.urls["site"], tmp_path / "copy")
    with taskyard.open(tmp_path / "copy") as copied:
        assert [event["event"] for event in copied.events()] == ["added"]
        assert copied.team() is None
        assert copied.audit()["verdict"] == "clean"
    again = postgres.url()
    taskyard.opening.copy(crew.urls["site"], again)
    with taskyard.open(again) as other:
        assert other.team() is None
    crew.close()
