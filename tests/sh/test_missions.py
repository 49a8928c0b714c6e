"""The shell client works in the lanes of missions, and puts dropped files of a mission into them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from taskyard.stores.directory import names
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell


def lanes(place: str) -> list[str]:
    return sorted(name for name in os.listdir(f"{place}/todo") if names.is_lane(name))


def test_a_shell_claims_releases_fails_and_completes_tasks_of_missions(sh: Shell, yard: Yard, place: str) -> None:
    first = yard.add("build", mission="launch").id
    second = yard.add("build", mission="launch", assignee="bob").id
    handle = sh.run("claim_task", "build").line.split("\t")[0]
    assert handle.startswith(first)
    sh.run("release_task", handle)
    assert lanes(place) == [
        names.Lane.of(5, "build", "bob", "launch").text,
        names.Lane.of(5, "build", None, "launch").text,
    ]
    handle = sh.run("claim_task", "build").line.split("\t")[0]
    sh.run("fail_task", handle, "broken")
    assert yard.mission("launch")["counts"]["waiting"] == 1
    yard.retry(first)
    claim = taken(yard.claim(mission="launch"))
    assert (claim.task.id, claim.task.attempts) == (first, 1)
    claim.release()
    sh.run("process_loop", "--drain", "cat", env={"TASKYARD_WORKER": "bob"})
    shown = yard.mission("launch")
    assert (shown["state"], shown["counts"]["done"]) == ("done", 2)
    assert yard.get(second).worker == "bob"


def test_a_dropped_file_goes_to_the_lane_of_its_mission(sh: Shell, yard: Yard, place: str) -> None:
    Path(place, "todo", "a.json").write_text(json.dumps({"kind": "build", "mission": "Übung 1.0", "data": 1}))
    Path(place, "todo", "b.json").write_text(
        json.dumps({"kind": "build", "mission": "Übung 1.0", "taskId": "b", "assignee": "ada", "data": 2})
    )
    sh.run("reap_stale")
    assert lanes(place) == [
        names.Lane.of(5, "build", "ada", "Übung 1.0").text,
        names.Lane.of(5, "build", None, "Übung 1.0").text,
    ]
    claims = yard.claim_many(3, mission="Übung 1.0")
    assert sorted(claim.task.data for claim in claims) == [1, 2]


def test_lanes_of_missions_share_the_segments_of_their_kind(sh: Shell, yard: Yard) -> None:
    ours = yard.add("build", mission="launch").id
    theirs = sh.run("add_task", "build").line
    assert ours[:4] == theirs[:4]
