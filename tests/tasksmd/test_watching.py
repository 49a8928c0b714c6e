"""`sync --watch`, folders of missions, and `serve --sync`: every door answers the same about a mission."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.errors import Conflict, Invalid
from taskyard.doors.tasksmd import dialects
from taskyard.doors.tasksmd.folder import Folder
from taskyard.doors.tasksmd.sync import Options, sync
from taskyard.doors.tasksmd.watch import Watch
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard
    from taskyard.doors.tasksmd.report import Report


def start(*argv: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "taskyard", *argv]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), (process.returncode, out, err)


def test_a_watch_follows_both_sides_until_it_is_stopped(place: str, tmp_path: Path) -> None:
    file = tmp_path / "TASKS.md"
    file.write_text("- [ ] One\n")
    process = start("--yard", place, "sync", str(file), "--watch")
    with taskyard.open(place, worker="bob") as yard:
        wait_until(lambda: "<!-- id" in file.read_text())
        yard.add("task", title="Two")
        wait_until(lambda: "Two" in file.read_text())
        file.write_text(file.read_text().replace("[ ] Two", "[x] Two"))
        wait_until(lambda: yard.counts()["done"] == 1)
        file.write_text("<<<<<<< HEAD\n" + file.read_text())
        assert process.stderr is not None
        assert "line 1 is a conflict marker" in process.stderr.readline()
        file.write_text(file.read_text().removeprefix("<<<<<<< HEAD\n") + "- [ ] Three\n")
        wait_until(lambda: sum(yard.counts().values()) == 3)
    stop(process)


def test_an_idle_watch_looks_at_the_file_and_syncs_no_more(yard: Yard, tmp_path: Path) -> None:
    file = tmp_path / "TASKS.md"
    file.write_text("- [ ] One\n")
    looks: list[int] = []
    syncs: list[int] = []

    def synced() -> list[Report]:
        syncs.append(len(looks))
        return [sync(yard, str(file), Options("ada"))]

    def looked() -> list[str]:
        looks.append(len(syncs))
        return [str(file)]

    watch = Watch(yard, synced, looked, lambda report: None, lambda text: None)
    thread = threading.Thread(target=watch.run)
    thread.start()
    wait_until(lambda: len(looks) > 4 and looks[-1] == looks[-4])
    at_rest = len(syncs)
    wait_until(lambda: len(looks) > 12)
    assert len(syncs) == at_rest <= 4, "after its own writes and events it rests"
    watch.stop()
    thread.join()


# Folders


@pytest.fixture
def missions(tmp_path: Path) -> Path:
    folder = tmp_path / "missions"
    folder.mkdir()
    return folder


def test_a_folder_is_a_mission_with_its_brief(yard: Yard, missions: Path) -> None:
    launch = missions / "launch"
    launch.mkdir()
    (launch / "TASKS.md").write_text("- [ ] One\n- [x] Two\n")
    (launch / "PRD.md").write_text("# Launch\n\nShip it.\n")
    (launch / "mission.json").write_text('{"name": "Launch 1.0", "owner": "ada", "milestones": [1, 2]}')
    [report] = Folder(yard, str(missions), Options("ada")).sync()
    assert report.mission == "Launch 1.0"
    found = yard.mission("Launch 1.0")
    assert (found["brief"], found["owner"], found["progress"]) == ("# Launch\n\nShip it.\n", "ada", 0.5)
    said = json.loads((launch / "mission.json").read_text())
    assert said["milestones"] == [1, 2]
    assert {name: said[name] for name in ("state", "progress")} == {"state": "running", "progress": 0.5}
    assert said["counts"] == found["counts"]
    [again] = Folder(yard, str(missions), Options("ada")).sync()
    assert not again.changed


def test_missions_of_the_yard_get_folders(yard: Yard, missions: Path) -> None:
    yard.new_mission("road/map", brief="Where to", owner="ada")
    yard.add("task", title="Go", mission="road/map")
    yard.add("task", title="Rest", mission="camp")
    taken(yard.claim(mission="camp")).done()
    Folder(yard, str(missions), Options("ada")).sync()
    [folder] = missions.iterdir()
    assert (folder / "PRD.md").read_text() == "Where to"
    assert "Go" in (folder / "TASKS.md").read_text()
    assert json.loads((folder / "mission.json").read_text())["name"] == "road/map"
    assert [report.changed for report in Folder(yard, str(missions), Options("ada")).sync()] == [False]


def test_a_folder_that_cannot_be_synced_does_not_hold_up_the_others(yard: Yard, missions: Path) -> None:
    for name in ("bad", "good", "worse"):
        (missions / name).mkdir()
        (missions / name / "TASKS.md").write_text(f"- [ ] {name}\n")
    (missions / "bad" / "mission.json").write_text('{"name": ')
    (missions / "worse" / "TASKS.md").write_text("<<<<<<< HEAD\n")
    reports = Folder(yard, str(missions), Options("ada")).sync()
    assert [[notice["code"] for notice in report.notices] for report in reports] == [["error"], [], ["error"]]
    assert "line 1 column" in reports[0].notices[0]["message"]
    assert [task.title for task in yard.find()] == ["good"]
    with pytest.raises(Invalid, match="is not JSON"):
        Folder(yard, str(missions / "bad"), Options("ada")).sync()
    with pytest.raises(Conflict, match="conflict marker"):
        Folder(yard, str(missions / "worse"), Options("ada")).sync()


def test_a_brief_that_differs_is_named_and_neither_is_overwritten(yard: Yard, missions: Path) -> None:
    yard.new_mission("launch", brief="Ship it")
    (missions / "launch").mkdir()
    (missions / "launch" / "PRD.md").write_text("Ship it later")
    [report] = Folder(yard, str(missions), Options("ada")).sync()
    assert [notice["code"] for notice in report.notices] == ["brief"]
    assert yard.mission("launch")["brief"] == "Ship it"
    assert (missions / "launch" / "PRD.md").read_text() == "Ship it later"


def test_conflict_copies_in_a_folder_are_ignored(yard: Yard, missions: Path) -> None:
    launch = missions / "launch"
    launch.mkdir()
    (launch / "TASKS.md").write_text("- [ ] One\n")
    (launch / "TASKS.sync-conflict-20260101-120000-ABCDEFG.md").write_text("- [ ] Copy\n")
    Folder(yard, str(missions), Options("ada")).sync()
    assert [task.title for task in yard.find()] == ["One"]


# One mission, seen through every door


@pytest.fixture
def gateway(place: str, missions: Path) -> Iterator[str]:
    process = start("--yard", place, "serve", "--port", "0", "--sync", str(missions))
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("http://"), line + process.stderr.read()
    yield line.split()[0].rpartition("/")[0]
    stop(process)


def by_command(place: str) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-m", "taskyard", "--yard", place, "mission", "show", "launch", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return summary(json.loads(told.stdout)["data"]["mission"]["counts"])


def by_http(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/default/v1/mission?name=launch") as answer:
        return summary(json.load(answer)["data"]["mission"]["counts"])


def by_file(folder: Path) -> dict[str, Any]:
    counts: dict[str, int] = {}
    names = {"not-started": "todo", "in-progress": "processing", "done": "done", "failed": "failed", "blocked": "blocked", "cancelled": "cancelled"}  # fmt: skip
    for row in dialects.parsed((folder / "TASKS.md").read_text()).rows:
        state = names[row.fields["status"]]
        counts[state] = counts.get(state, 0) + 1
    return counts


def by_json(folder: Path) -> dict[str, Any]:
    return summary(json.loads((folder / "mission.json").read_text())["counts"])


def summary(counts: dict[str, int]) -> dict[str, int]:
    return {state: number for state, number in counts.items() if number}


def test_command_http_and_file_give_the_same_status_of_a_mission_at_every_step(
    place: str, missions: Path, gateway: str
) -> None:
    folder = missions / "launch"
    with taskyard.open(place, worker="bob") as yard:

        def all_say(**wanted: int) -> None:
            def same() -> bool:
                if not (folder / "mission.json").exists() or not (folder / "TASKS.md").exists():
                    return False
                return by_file(folder) == by_json(folder) == wanted

            wait_until(same)
            assert by_command(place) == by_http(gateway) == wanted

        yard.add_many(
            [
                {"kind": "task", "title": "Build", "mission": "launch", "ref": "b"},
                {"kind": "task", "title": "Ship", "mission": "launch", "after": [{"ref": "b"}]},
            ]
        )
        all_say(todo=1, blocked=1)
        claim = taken(yard.claim(mission="launch"))
        all_say(processing=1, blocked=1)
        claim.done()
        all_say(done=1, todo=1)
        text = (folder / "TASKS.md").read_text()
        row = next(line for line in text.splitlines() if "Ship" in line)
        (folder / "TASKS.md").write_text(text.replace(row, f"{row}\n| T9 | not-started | Tell them | | | |"))
        all_say(done=1, todo=2)
        taken(yard.claim(mission="launch")).fail("broken", retry=False)
        all_say(done=1, todo=1, failed=1)
        text = (folder / "TASKS.md").read_text()
        (folder / "TASKS.md").write_text(text.replace("| T9 | not-started |", "| T9 | done |"))
        all_say(done=2, failed=1)
        (folder / "TASKS.md").write_text((folder / "TASKS.md").read_text().replace("| failed |", "| not-started |"))
        all_say(done=2, todo=1)
        taken(yard.claim(mission="launch")).done()
        all_say(done=3)
