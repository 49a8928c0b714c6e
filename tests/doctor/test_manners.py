"""A doctor is a guest in the yard: it disturbs nobody, is taken for nothing, and leaves everything as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import taskyard
from taskyard.stores.directory import layout
from taskyard.stores.directory.doctor.directory import MARK
from taskyard.stores.directory.recovery import crashes, edges, segments
from tests.conftest import taken, wait_until
from tests.doctor import grounds
from tests.doctor.grounds import checks, remarkable
from tests.doctor.test_places import hidden
from tests.processes import tools


def everything(place: str) -> dict[str, tuple[int, int, int]]:
    """Each file and folder, with what would tell that it was touched; a folder's own times do tell of probes."""
    found = {}
    for folder, _, names in os.walk(place):
        status = os.stat(folder)
        found[folder] = (status.st_ino, status.st_mode, 0)
        for name in names:
            status = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_ino, status.st_size, status.st_ctime_ns)
    return found


def lived_in(place: str) -> None:
    """Something of everything that a yard may hold."""
    with taskyard.open(place, worker="ada") as yard:
        first = yard.add("build", key="k")
        yard.add("ship", after=[first.id])
        yard.add("later", delay=3600)
        yard.add("other", {"n": 1})
        claim = taken(yard.claim(kinds=["other"]))
        claim.note("a word")
        claim.done({"ok": True})
        yard.add("other")
        taken(yard.claim(kinds=["other"]))
        yard.pause("docs")
        yard.cancel(yard.add("docs").id)
    Path(place, "todo", "order.json").write_text("[]")


@pytest.mark.parametrize("options", [(), ("--peer", "--wait", "0.1")], ids=["alone", "without a peer"])
def test_nothing_of_the_yard_is_changed(options: tuple[str, ...], place: str) -> None:
    lived_in(place)
    before = everything(place)
    grounds.run([*grounds.DOCTOR, place, *options])
    assert everything(place) == before


def test_four_busy_workers_are_not_disturbed(place: str) -> None:
    count = 400
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build", "data": n} for n in range(count)])
    workers = [
        subprocess.Popen(
            [*tools.COMMAND, "work", "--drain", "--yard", place, "--worker", f"w{number}", "--", "true"],
            env=tools.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    janitor = subprocess.Popen([*tools.COMMAND, "janitor", "--every", "0.05", "--yard", place, "--json"], env=tools.environment(), stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        during = 0
        while not during or any(worker.poll() is None for worker in workers):
            assert remarkable(grounds.run([*grounds.DOCTOR, place])) == {}
            during += 1
        for worker in workers:
            assert worker.communicate(timeout=tools.PATIENCE)[1] == ""
            assert worker.returncode == 0
        janitor.send_signal(signal.SIGTERM)
        sweeps = [json.loads(line)["data"] for line in janitor.communicate(timeout=tools.PATIENCE)[0].splitlines()]
    finally:
        for process in (*workers, janitor):
            process.kill()
            process.communicate()
    assert tools.places(place) == dict.fromkeys(ids, "done")
    events = [event["event"] for event in tools.events(place)]
    assert sorted(events) == sorted(["added", "claimed", "done"] * count)
    assert sweeps
    assert all(sweep["taken"] == sweep["reaped"] == sweep["mended"] == 0 for sweep in sweeps)
    assert hidden(Path(place)) == []


def seen(place: str) -> list[Any]:
    """All that can be asked of a yard."""
    with taskyard.open(place, worker="ada") as yard:
        said: list[Any] = [
            yard.counts(),
            [task.as_dict() for task in yard.find()],
            yard.paused(),
            yard.set_aside(),
        ]
        said += [list(yard.events()), [task.id for task in yard.ready()]]
    said += [tools.taskyard(place, verb).data for verb in ("list", "stats", "log")]
    for name in ("ages", "oldest_ready"):  # the clock alone changes these
        said[-2].pop(name)
    return said


def test_a_doctors_files_are_taken_for_nothing_in_any_folder_and_stay(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.settle(place, settle=3600)  # on a busy machine the dropped file would be set aside between two looks
    lived_in(place)
    with taskyard.open(place) as yard:
        yard.sweep()
    before = seen(place)
    probes = [Path(place, folder, f"{MARK}0123456789ab{end}") for folder in layout.FOLDERS for end in ("", ".probe")]
    for probe in probes:
        probe.touch()
    assert seen(place) == before
    # However long ago it was that anybody looked after them.
    for module in (crashes, segments, edges):
        monkeypatch.setattr(module, "PATIENCE", -1)
    monkeypatch.setattr(crashes, "_LAST_LOOK", -1)
    with taskyard.open(place) as yard:
        for _ in range(3):
            assert yard.sweep().mended == 0
    assert seen(place) == before
    assert all(probe.exists() for probe in probes)


def started(place: str, *options: str) -> subprocess.Popen[str]:
    """A doctor that has begun to try the place, and waits for a peer."""
    doctor = subprocess.Popen(
        [*grounds.DOCTOR, place, "--peer", "--wait", "100", *options],
        env=tools.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert doctor.stderr is not None
    assert "waiting" in doctor.stderr.readline()
    assert hidden(Path(place)) != []
    return doctor


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_doctor_that_is_told_to_stop_leaves_nothing_behind(number: signal.Signals, code: int, place: str) -> None:
    doctor = started(place)
    doctor.send_signal(number)
    out, err = doctor.communicate(timeout=tools.PATIENCE)
    assert (doctor.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert hidden(Path(place)) == []


@pytest.mark.parametrize("after", [0.05, 0.1, 0.2, 0.3])
def test_a_doctor_that_is_interrupted_wherever_it_is_leaves_nothing_behind(after: float, place: str) -> None:
    doctor = subprocess.Popen(
        [*grounds.DOCTOR, place], env=tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: hidden(Path(place)) or doctor.poll() is not None)
    time.sleep(after)  # not to be right: any moment will do
    doctor.send_signal(signal.SIGINT)
    doctor.communicate(timeout=tools.PATIENCE)
    assert hidden(Path(place)) == []


def test_what_a_killed_doctor_has_left_is_taken_away_by_the_next_and_what_a_living_one_has_is_not(place: str) -> None:
    lived_in(place)
    before = everything(place)
    killed, living = started(place, "--wait", "100"), None
    killed.kill()
    killed.communicate()
    Path(place, "done", f"{os.path.basename(hidden(Path(place))[0])}.probe").touch()
    try:
        living = started(place)
        (corner,) = hidden(Path(place))
        assert checks(grounds.run([*grounds.DOCTOR, place]))["race"]["verdict"] == "green"
        assert hidden(Path(place)) == [corner]
        living.send_signal(signal.SIGINT)
        living.communicate(timeout=tools.PATIENCE)
    finally:
        if living is not None:
            living.kill()
            living.communicate()
    assert everything(place) == before


def test_a_yard_can_be_made_where_a_doctor_is_at_work_or_was_killed(tmp_path: Path) -> None:
    doctor = started(str(tmp_path))
    try:
        assert tools.taskyard(None, "init", str(tmp_path)).data["created"] is True
    finally:
        doctor.kill()
        doctor.communicate()
    assert hidden(tmp_path) != []
    assert tools.taskyard(tmp_path, "add", "build").code == 0
    assert remarkable(grounds.run([*grounds.DOCTOR, str(tmp_path)])) == {}
    assert hidden(tmp_path) == []
