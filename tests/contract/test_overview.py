"""What a board shows: what waits for a person, the lanes, the workers and the last hour; the same on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard import ClaimLost, Invalid
from tests.conftest import crash, taken

if TYPE_CHECKING:
    from taskyard import Yard


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["id"] for entry in entries]


def test_an_empty_yard_needs_nobody(yard: Yard) -> None:
    overview = yard.overview()
    assert overview["count"] == 0
    assert all(part == {"count": 0, "entries": []} for part in overview["needs"].values())
    assert overview["paused"] == {"yard": False, "kinds": []}
    assert yard.agents()["agents"] == []
    assert sum(yard.series()["counts"]["added"]) == 0


def test_everything_that_waits_for_a_person_is_named(yard: Yard) -> None:
    reviewed = yard.add("write", title="Chapter <1>", review=True).id
    taken(yard.claim(reviewed, worker="ada")).done({"pages": 3})
    failed = yard.add("build").id
    after = yard.add("ship", after=[failed]).id
    taken(yard.claim(failed)).fail("no compiler", retry=False)
    late = crash(yard, yard.add("test").id)
    with pytest.raises(ClaimLost):
        late.done({"late": True})
    yard.add("nobody-serves-this")
    yard.pause("rest")
    overview = yard.overview()
    needs = overview["needs"]
    assert ids(needs["reviews"]["entries"]) == [reviewed]
    assert needs["reviews"]["entries"][0]["by"] == "ada"
    assert ids(needs["failed"]["entries"]) == [failed]
    assert needs["failed"]["entries"][0]["error"] == "no compiler"
    assert ids(needs["stuck"]["entries"]) == [failed]
    assert needs["stuck"]["entries"][0]["blocked"] == 1
    assert ids(needs["conflicts"]["entries"]) == [late.task.id]
    assert needs["paused"]["entries"] == [{"kind": "rest"}]
    assert overview["counts"]["blocked"] == 1
    assert overview["count"] == sum(part["count"] for part in needs.values()) >= 5
    assert yard.get(after).state == "blocked"


def test_a_kind_that_no_claim_asked_for_is_unserved_until_one_does(yard: Yard) -> None:
    yard.add_many({"kind": "lonely"} for _ in range(3))
    assert yard.overview()["needs"]["unserved"]["entries"] == [{"kind": "lonely", "count": 3, "since": None}]
    yard.pause()
    assert yard.overview()["needs"]["unserved"]["count"] == 0
    assert yard.overview()["needs"]["paused"]["entries"] == [{"kind": None}]
    yard.unpause()
    taken(yard.claim(kinds="lonely")).done()
    assert yard.overview()["needs"]["unserved"]["count"] == 0


def test_lanes_show_each_state_with_its_count_and_cards(yard: Yard) -> None:
    made = yard.add_many({"kind": "build", "title": f"Part {n}"} for n in range(7))
    claim = taken(yard.claim(made[0], worker="ada"))
    claim.heartbeat(progress=0.25)
    for id in made[1:4]:
        taken(yard.claim(id)).done()
    lanes = yard.lanes(limit=2)["lanes"]
    assert {state: lane["count"] for state, lane in lanes.items()} == {
        "waiting": 0, "blocked": 0, "todo": 3, "processing": 1, "done": 3, "failed": 0, "cancelled": 0,
    }  # fmt: skip
    [card] = lanes["processing"]["tasks"]
    assert (card["worker"], card["progress"], card["title"]) == ("ada", 0.25, "Part 0")
    assert card["lease"] > 0
    assert card["heartbeat_at"] < card["lease_until"]
    assert card["since"] is not None
    assert ids(lanes["todo"]["tasks"]) == made[4:6]
    assert ids(lanes["done"]["tasks"]) == [made[3], made[2]], "what ended last comes first"
    more = yard.lanes(state="todo", limit=2, cursor=lanes["todo"]["next"])["lanes"]
    assert ids(more["todo"]["tasks"]) == made[6:]
    assert more["todo"]["next"] is None


def test_lanes_are_filtered_by_kind_mission_worker_assignee_text_and_name(yard: Yard) -> None:
    one = yard.add("build", title="Fix the Roof", mission="house")
    two = yard.add("test", title="Look at the roof", assignee="bob")
    three = yard.add("build", title="Paint")
    held = yard.add("build", title="Door")
    taken(yard.claim(held.id, worker="ada"))

    def found(**filters: Any) -> list[str]:
        return sorted(id for lane in yard.lanes(**filters)["lanes"].values() for id in ids(lane["tasks"]))

    assert found(kind="test") == [two.id]
    assert found(mission="house") == [one.id]
    assert found(worker="ada") == [held.id]
    assert found(assignee="bob") == [two.id]
    assert found(text="ROOF") == sorted([one.id, two.id])
    assert found(text="roof", kind="build") == [one.id]
    assert found(text=three.id[:12]) == sorted(
        id for id in (one.id, two.id, three.id, held.id) if id[:12] == three.id[:12]
    )
    assert found(text=yard.get(three.id).short) == [three.id]
    assert found(text="no such thing") == []
    assert yard.lanes(mission="house")["lanes"]["todo"]["count"] == 1
    with pytest.raises(Invalid):
        yard.lanes(state="no state")


def test_a_text_is_looked_for_on_every_page(yard: Yard) -> None:
    made = yard.add_many({"kind": "build", "title": f"Number {n % 10}"} for n in range(60))
    seen: list[str] = []
    cursor = None
    while True:
        lane = yard.lanes(state="todo", text="number 3", limit=2, cursor=cursor)["lanes"]["todo"]
        seen += ids(lane["tasks"])
        cursor = lane["next"]
        if cursor is None:
            break
    assert seen == made[3::10]


def test_agents_have_what_they_hold_and_what_happened_to_them(yard: Yard) -> None:
    first, second, third = yard.add_many({"kind": "build"} for _ in range(3))
    taken(yard.claim(first, worker="ada")).done()
    taken(yard.claim(second, worker="ada"))
    lost = taken(yard.claim(third, worker="bob"))
    yard.crash(lost.handle, "killed")
    with pytest.raises(ClaimLost):
        lost.done()
    answer = yard.agents()
    agents = {agent["worker"]: agent for agent in answer["agents"]}
    ada, bob = agents["ada"], agents["bob"]
    assert ids(ada["tasks"]) == [second]
    assert ada["hour"]["done"] == 1
    assert [(span["task"], span["how"]) for span in ada["spans"]] == [(first, "done"), (second, None)]
    assert ada["heartbeat_at"] is not None
    assert bob["tasks"] == []
    assert [mark["event"] for mark in bob["marks"]] == ["reaped", "refused"]
    assert [span["how"] for span in bob["spans"]] == ["reaped"]
    assert answer["since"] == answer["begin"]


def test_series_count_the_hour_by_the_minute(yard: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(5))
    taken(yard.claim()).done()
    taken(yard.claim()).fail("broken", retry=False)
    series = yard.series()
    assert {name: sum(counts) for name, counts in series["counts"].items()} == {
        "added": 5, "claimed": 2, "done": 1, "failed": 1, "reaped": 0,
    }  # fmt: skip
    assert series["backlog"][-1] == 3
    assert series["backlog"][0] == 0
    assert next(run for run in series["run"] if run is not None) >= 0
    assert len(series["wait"]) == len(series["backlog"]) == 60


def test_the_newest_events_that_match_come_oldest_first_and_go_on_from_there(yard: Yard) -> None:
    made = yard.add_many({"kind": f"kind{n % 2}"} for n in range(10))
    for _ in range(4):
        taken(yard.claim(worker="ada")).done()
    found = yard.events(newest=True, limit=3)
    assert [event["event"] for event in found] == ["done", "claimed", "done"]
    assert [event["task"] for event in yard.events(newest=True, event="added", kind="kind1", limit=2)] == [
        made[7],
        made[9],
    ]
    assert [event["event"] for event in yard.events(newest=True, worker="ada", limit=2)] == ["claimed", "done"]
    assert len(yard.events(newest=True, task=made[0])) == 3
    assert yard.events(cursor=found.cursor) == []
    later = yard.add("later")
    assert [event["task"] for event in yard.events(cursor=found.cursor)] == [later.id]


def test_a_mission_has_a_rate(yard: Yard) -> None:
    yard.add_many({"kind": "build", "mission": mission} for mission in ("house", "house", "boat"))
    for _ in range(3):
        taken(yard.claim()).done()
    assert yard.mission("house")["rates"] == {"minute": {"done": 2}, "hour": {"done": 2}}
    assert yard.mission("boat")["rates"] == {"minute": {"done": 1}, "hour": {"done": 1}}


def test_a_task_that_has_printed_nothing_has_no_output(yard: Yard) -> None:
    task = yard.add("build")
    assert yard.output(task.id) == []
    taken(yard.claim(task.id)).done()
    assert yard.output(task.id) == []
