"""Missions in a directory: lanes, names that fit, and yards from before there were lanes of missions."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import words
from taskyard.stores.directory import layout, names
from tests.conftest import damage, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


@pytest.fixture
def before(place: str) -> str:
    """A yard as a version left it that knew no lanes of missions: tasks of a mission in plain lanes, and no folder for missions."""
    with taskyard.open(place, worker="ada") as yard:
        plain = names.Lane.of(5, "build", None)
        for mission in ("launch", "launch", "launch", "other", None):
            yard.add("build", mission=mission)
        for lane in list(Path(place, "todo").iterdir()):
            if lane.name != plain.text:
                for file in list(lane.glob("*/*")):
                    home = Path(place, "todo", plain.text, file.parent.name)
                    home.mkdir(parents=True, exist_ok=True)
                    file.rename(home / file.name)
                shutil.rmtree(lane)
    shutil.rmtree(f"{place}/missions")
    return place


def test_tasks_from_before_are_found_counted_and_claimed_by_their_mission(before: str) -> None:
    with taskyard.open(before, worker="ada") as yard:
        assert damage(yard) == []
        old = [task.id for task in yard.find(mission="launch")]
        assert len(old) == 3
        assert [task.id for task in yard.ready(mission="launch")] == old
        assert yard.mission("launch")["total"] == 3
        assert {mission["name"]: mission["total"] for mission in yard.missions()} == {"launch": 3, "other": 1}
        new = yard.add("build", mission="launch").id
        claims = yard.claim_many(9, mission="launch")
        assert [claim.task.id for claim in claims] == [new, *old], "its own lanes first"
        claims[1].done()
        claims[2].release()
        claims[3].fail("broken", retry=False)
        again = taken(yard.claim(mission="launch"))
        assert again.task.id == old[1]
        again.done()
        counts = yard.mission("launch")["counts"]
        assert (counts["done"], counts["failed"], counts["processing"]) == (2, 1, 1)
        assert damage(yard) == []


def test_an_edit_brings_a_task_from_before_into_the_lane_of_its_mission(before: str) -> None:
    with taskyard.open(before, worker="ada") as yard:
        id = yard.find(mission="launch")[0].id
        yard.edit(id, title="New")
        lane = Path(before, "todo", names.Lane.of(5, "build", None, "launch").text)
        assert [file.name[:21] for file in lane.glob("*/*.json")] == [id]
        assert taken(yard.claim(mission="launch")).task.id == id


def test_from_the_first_mission_on_only_older_files_are_read(before: str) -> None:
    with taskyard.open(before, worker="ada") as yard:
        yard.new_mission("launch")
    since = Path(before, "missions", "since").read_text()
    assert since.strip().isdigit()
    with taskyard.open(before, worker="bob") as yard:
        yard.new_mission("other")
        assert len(yard.find(mission="launch")) == 3
    assert Path(before, "missions", "since").read_text() == since


def test_a_new_yard_reads_no_file_to_claim_by_mission(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
        monkeypatch.setattr(yard._store, "find", lambda _: pytest.fail("it looked for older tasks"))
        assert yard.claim(mission="launch") is None


def test_lanes_of_missions_share_their_segments(place: str) -> None:
    with taskyard.open(place) as yard:
        ids = [yard.add("build", mission=f"m{number}").id for number in range(20)]
        ids += yard.add_many({"kind": "build", "mission": f"m{number}"} for number in range(20))
    assert len({id[:4] for id in ids}) == 1
    assert sorted(os.listdir(f"{place}/segments")) == ["0000", "5-build"]


@pytest.mark.parametrize("assignee", [None, "a" * words.ASSIGNEE_WITH_MISSION])
def test_the_longest_name_of_a_mission_fits(place: str, assignee: str | None) -> None:
    head = f"{'0' * 21}.{'9' * 9}.e{'9' * 9}.c{'9' * 9}.b{'0' * 8}.m999.t{'9' * 10}.w"
    lane = names.Lane.of(9, "k" * words.KIND_WITH_MISSION, assignee, "launch").text
    name = f"{head}.{lane}.l{'9' * 10}.L.{'w' * 60 if assignee is None else '@'}-{'0' * 24}.r.json"
    assert len(name) < 255
    assert names.Token.parse(name) is not None
    Path(place, "tmp", name).touch()
    Path(place, "tmp", name).unlink()


@pytest.mark.parametrize(
    "text", ["5-a~", "5-a~zz", "5-a~0123456789AB", "5-a~0123456789abc", "5-~0123456789ab", "5-a~0123456789ab~"]
)
def test_what_follows_the_tilde_is_a_digest_or_it_is_no_lane(text: str) -> None:
    assert names.Lane.parse(text) is None


def test_lanes_come_back_from_their_names() -> None:
    for assignee in (None, "ada b~c"):
        lane = names.Lane.of(3, "ci:lint", assignee, "a/b ~ c")
        assert names.Lane.parse(lane.text) is not lane
        back = names.Lane.parse(lane.text)
        assert back is not None
        assert (back.priority, back.kind, back.assignee, back.mission) == (3, "ci:lint", assignee, lane.mission)
        assert lane.text == f"{lane.plain}~{names.mission_digest('a/b ~ c')}"


@pytest.mark.damages
def test_a_task_in_the_lane_of_another_mission_is_damage_that_is_healed(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        id = yard.add("build", mission="launch").id
        own, other = (names.Lane.of(5, "build", None, mission).text for mission in ("launch", "other"))
        Path(place, "todo", own).rename(Path(place, "todo", other))
        assert [finding["code"] for finding in damage(yard)] == ["lane_differs"]
        yard.audit(repair=True)
        assert damage(yard) == []
        assert taken(yard.claim(mission="launch")).task.id == id


@pytest.mark.damages
@pytest.mark.parametrize("content", ["", "{}", '{"name":"other","brief":null,"owner":null,"created_at":1}', "[1]"])
def test_a_broken_file_of_a_mission_is_told_and_touches_no_task(place: str, content: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build", mission="launch")
        yard.new_mission("launch", brief="Ship it")
        [file] = Path(place, "missions").glob("*.json")
        file.write_text(content)
        assert [finding["code"] for finding in damage(yard)] == ["mission_broken"]
        shown = yard.mission("launch")
        assert (shown["total"], shown["brief"]) == (1, None)


def test_what_was_said_survives_another_process(place: str) -> None:
    with taskyard.open(place) as yard:
        yard.new_mission("launch", brief="Ship it", owner="ada")
        yard.cancel_mission("launch", "not needed")
    files = sorted(os.listdir(f"{place}/missions"))
    digest = names.mission_digest("launch")
    assert files == [f"{digest}.cancelled", f"{digest}.json", "since"]
    assert json.loads(Path(place, "missions", f"{digest}.json").read_text())["name"] == "launch"
    with taskyard.open(place) as yard:
        assert yard.mission("launch")["reason"] == "not needed"


def both(yard: Yard) -> list[str]:
    return [mission["name"] for mission in yard.missions()]


def test_a_dropped_file_goes_to_the_lane_of_its_mission(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        Path(place, "todo", "order.json").write_text('{"kind": "build", "mission": "launch", "n": 1}')
        claim = taken(yard.claim(mission="launch"))
        assert claim.task.data == {"kind": "build", "mission": "launch", "n": 1}
        assert both(yard) == ["launch"]


# Versions that know no lanes of missions


def features(place: str) -> list[str]:
    return list(json.loads(Path(place, "yard.json").read_text())["features"])


def unmarked(place: str) -> None:
    """Take the features out of the yard's settings."""
    file = Path(place, "yard.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "features": []}))


def drop(yard: Yard) -> None:
    Path(yard.url, "todo", "a.json").write_text('{"kind": "build", "mission": "launch"}')
    yard.sweep()


@pytest.mark.parametrize(
    "add",
    [
        lambda yard: yard.add("build", mission="launch"),
        lambda yard: yard.add_many([{"kind": "build"}, {"kind": "build", "mission": "launch", "key": "one"}]),
        drop,
    ],
    ids=["add", "add many", "drop"],
)
def test_the_first_task_of_a_mission_makes_older_versions_refuse_the_yard(
    place: str, monkeypatch: pytest.MonkeyPatch, add: Callable[[Yard], object]
) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
        yard.sweep()
        assert features(place) == []
        add(yard)
        assert features(place) == ["missions"]
        yard.add("build", mission="other", uses=["src/"])
        assert features(place) == ["folders", "missions"]
    with taskyard.open(place, worker="bob") as yard:
        assert len(yard.claim_many(9)) >= 2
    with monkeypatch.context() as older:
        older.setattr(layout, "_KNOWN", ("unfinished-copy", "limits", "folders"))
        with pytest.raises(taskyard.Unavailable, match="features that this version does not know"):
            taskyard.open(place, worker="old").close()


def test_a_sweep_marks_a_yard_where_a_shell_has_made_the_lane(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build", mission="launch")
    unmarked(place)  # a shell does not change the settings
    with taskyard.open(place, worker="ada") as yard:
        yard.sweep()
        assert features(place) == ["missions"]


def test_an_edit_that_brings_a_task_from_before_into_its_lane_marks_the_yard(before: str) -> None:
    unmarked(before)
    with taskyard.open(before, worker="ada") as yard:
        yard.edit(yard.find(mission="launch")[0].id, title="Ship it")
        assert features(before) == ["missions"]


def test_a_shared_yard_is_marked_from_its_beginning_because_others_cannot_mark_it(tmp_path: Path) -> None:
    place = str(tmp_path / "shared")
    layout.make(place, shared=True)
    assert features(place) == ["missions"]
