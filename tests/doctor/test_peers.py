"""Two doctors on one place: they meet through its files alone, and find out what they see of each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from taskyard.stores.directory.doctor import two_doctors
from tests.doctor import grounds
from tests.doctor.grounds import checks, odd, remarkable
from tests.doctor.test_places import hidden
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PEER = ("--peer", "--wait", "60")
TOGETHER = {
    "peer",
    "peer_clock",
    "peer_race",
    "peer_visibility",
    "peer_late",
    "peer_missing",
    "peer_locks",
    "peer_append",
}


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that never outlive their test."""
    started: list[subprocess.Popen[str]] = []

    def call(*words: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        given = tools.environment(**(env or {}))
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given))
        return started[-1]

    yield call
    for process in started:
        process.kill()
        process.communicate()


def answered(process: subprocess.Popen[str]) -> tools.Answer:
    out, err = process.communicate(timeout=tools.PATIENCE)
    return tools.Answer(subprocess.CompletedProcess(process.args, process.returncode, out, err))


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it found together with the other."""
    found = checks(answered(process))
    return {name: check for name, check in found.items() if name in TOGETHER}


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {name: check["verdict"] for name, check in found.items() if check["verdict"] != "green"}


def test_two_containers_that_share_a_yard_find_it_good(
    place: str, tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    pair = [start(*tools.unshared("--mount", "--uts"), "sh", "-c", 'hostname "$0"; exec "$@"', host, *grounds.DOCTOR, place, *PEER) for host in ("hither", "yon")]  # fmt: skip
    one, other = map(told, pair)
    for found in (one, other):
        assert set(found) == TOGETHER
        assert verdicts(found) == {}
        assert (found["peer_race"]["files"], found["peer_race"]["won_twice"], found["peer_race"]["lost"]) == (500, 0, 0)
        assert found["peer_visibility"]["seconds_new"] < 5
        assert found["peer_append"]["lost"] == 0
        assert found["peer_late"]["late_rename_works"] is False
        assert found["peer_missing"]["found_after_listing"] is True
    assert (one["peer"]["host"], other["peer"]["host"]) == ("yon", "hither")
    assert one["peer_race"]["won"] == other["peer_race"]["won_by_peer"]
    assert one["peer_race"]["won"] + other["peer_race"]["won"] == 500
    assert hidden(tmp_path) == []


def test_two_doctors_on_one_machine_are_told_that_this_is_no_proof(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for found in map(told, [start(*grounds.DOCTOR, str(tmp_path), *PEER) for _ in range(2)]):
        assert verdicts(found) == {"peer": "warn"}
        assert "this very machine" in found["peer"]["reason"]
    assert os.listdir(tmp_path) == []


def test_of_four_doctors_each_meets_one(place: str, start: Callable[..., subprocess.Popen[str]]) -> None:
    four = [start(*grounds.DOCTOR, place, *PEER) for _ in range(4)]
    met = {process.pid: told(process)["peer"]["pid"] for process in four}
    assert {met[other] for other in met.values()} == set(met)
    assert all(met[met[pid]] == pid != met[pid] for pid in met)


def test_a_doctor_that_nobody_joins_says_what_to_start_where(place: str) -> None:
    answer = grounds.run([*grounds.DOCTOR, place, "--peer", "--wait", "0.2"])
    found = checks(answer)
    assert (answer.code, found["peer"]["verdict"]) == (1, "refuse")
    assert "no second doctor came within 0.2 s" in found["peer"]["reason"]
    assert f"taskyard doctor {place} --peer" in found["peer"]["hint"]
    assert f"taskyard doctor {place} --peer" in answer.err
    assert {name for name in found if name.startswith("peer")} == {"peer"}


# Somebody who meets a doctor, and then is not there any more.
LEAVES = """
import os, sys
from taskyard.stores.directory.doctor import directory, meeting
with directory.ProbeFolder(directory.open_directory(sys.argv[1])) as probes:
    assert meeting.meet(probes, 60) is not None
    print("met", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["leaves", "killed"])
def test_a_peer_that_goes_in_the_midst_is_missed_at_once_and_nothing_is_left(
    how: str, place: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for _ in range(3):  # host or guest, as it happens
        ours, theirs = start(*grounds.DOCTOR, place, *PEER), start(tools.PYTHON, "-c", LEAVES, place, how)
        assert theirs.communicate(timeout=60)[0] == "met\n"
        found = told(ours)
        assert verdicts(found) == {"peer": "refuse"}
        assert "the other doctor has left" in found["peer"]["reason"]
    assert remarkable(grounds.run([*grounds.DOCTOR, place])) == {}
    assert hidden(Path(place)) == []


def mounted_twice(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]], quirks: tuple[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What two doctors say who see one directory through a filesystem each: as two clients of one server do."""
    pair = [
        start(*odd(quirk, tmp_path, *grounds.DOCTOR, str(tmp_path / point), *PEER, point=point))
        for quirk, point in zip(quirks, ("here", "there"), strict=True)
    ]
    one, other = map(told, pair)
    return one, other


@pytest.mark.proof
def test_two_clients_whose_renames_are_copies_get_in_each_others_way(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for number in range(5):  # where one of them is done before the other has begun, nobody gets in anybody's way
        (tmp_path / str(number)).mkdir()
        one, other = mounted_twice(tmp_path / str(number), start, ("copy", "copy"))
        found = one["peer_race"]
        assert found["verdict"] == other["peer_race"]["verdict"], found
        if found["verdict"] == "refuse":
            break
    assert found["verdict"] == "refuse", found
    # Where no file was won twice this time, there is one more than there were: somebody's copy.
    assert re.search("two workers would get one task|500 were won and 50[1-9] are listed", found["reason"]), found


@pytest.mark.proof
def test_two_clients_that_rename_find_each_other_sound(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for found in mounted_twice(tmp_path, start, ("", "")):
        assert verdicts(found) == {}
        assert found["peer_locks"]["relied_on"] is False
        assert "leases decide" in found["peer_locks"]["reason"]


def test_clocks_of_two_machines_are_compared_through_the_filesystem(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    one = start(*grounds.DOCTOR, str(tmp_path), *PEER)
    other = start(*grounds.DOCTOR, str(tmp_path), *PEER, env=tools.faketime("+3600s") | {"FAKE_UTIME": "1"})
    right, wrong = told(one), told(other)
    assert verdicts(right) == verdicts(wrong) == {"peer": "warn", "peer_clock": "warn"}
    assert 3500 < right["peer_clock"]["peer_ahead"] < 3700
    assert -3700 < wrong["peer_clock"]["peer_ahead"] < -3500


@pytest.mark.proof
def test_a_file_server_that_uses_its_own_disk_does_not_see_its_clients_locks(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    client = start(*odd("", tmp_path, *grounds.DOCTOR, str(tmp_path / "place"), *PEER))
    server = start(*grounds.DOCTOR, str(tmp_path / "backing"), *PEER)
    there, here = told(client), told(server)
    assert verdicts(there) == {}
    assert verdicts(here) == {"peer_locks": "refuse"}
    assert "mount its own export" in here["peer_locks"]["hint"]


def test_words_that_wait_for_nobody_are_refused(place: str) -> None:
    answer = grounds.run([*grounds.DOCTOR, place, "--wait", "5"])
    assert (answer.code, answer.error["code"]) == (2, "invalid")
    assert "--peer" in json.dumps(answer.error)


class Alone:
    """A meeting with somebody who makes its folder when it is time to."""

    role, other = "host", "guest"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, _: str) -> str:
        return str(self._folder)

    def exchange(self, step: str) -> None:
        if step == "there":
            (self._folder / self.other).mkdir()
            (self._folder / self.other / "file").touch()


@pytest.mark.parametrize(("forgets", "verdict"), [(True, "warn"), (False, "refuse")])
def test_a_machine_that_remembers_missing_names_is_told_how_to_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets: bool, verdict: str
) -> None:
    missing: set[str] = set()
    lexists, listdir = os.path.lexists, os.listdir

    def remembered(path: str) -> bool:
        if path in missing or not lexists(path):
            missing.add(path)
            return False
        return True

    def listed(path: str) -> list[str]:
        if forgets:
            missing.clear()
        return listdir(path)

    monkeypatch.setattr(os.path, "lexists", remembered)
    monkeypatch.setattr(os, "listdir", listed)
    found = two_doctors.missing_names(two_doctors.Pair(cast("Any", Alone(tmp_path)), {}, {}))
    monkeypatch.undo()
    assert (str(found.verdict), found.measured["found_at_once"]) == (verdict, False)
    assert ("lookupcache=pos" in str(found.hint)) == forgets
