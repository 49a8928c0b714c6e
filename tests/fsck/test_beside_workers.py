"""fsck beside a busy crew: no alarm for what is only on the move, and real damage is found all the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = float(os.environ.get("TASKYARD_FSCK_SECONDS", "3"))
CREW = ("work", "work", "work", "work", "add", "add", "tend")


class Crew:
    """Workers, adders and a janitor; any of them may be killed, and another takes its place."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._serial = 0
        self.kills = 0
        self.members = [self._start(verb) for verb in CREW]

    def _start(self, verb: str) -> tuple[str, subprocess.Popen[str]]:
        self._serial += 1
        member = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("hands.py")), verb, self._place, f"{verb}-{self._serial}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=tools.environment(),
        )
        assert member.stdout is not None
        assert member.stdout.readline() == "ready\n"
        return verb, member

    def kill_one(self) -> None:
        at = random.randrange(len(self.members))
        verb, member = self.members[at]
        assert member.poll() is None, f"a member has ended by itself: {verb}"
        member.kill()
        member.communicate()
        self.kills += 1
        self.members[at] = self._start(verb)

    def end(self) -> None:
        for _, member in self.members:
            if member.poll() is None:
                member.communicate("\n", timeout=tools.PATIENCE)

    def close(self) -> None:
        for _, member in self.members:
            if member.poll() is None:
                member.kill()
                member.communicate()


@pytest.fixture
def place(tmp_path: Path) -> str:
    path = str(tmp_path / "yard")
    taskyard.init(path, durability="fast").close()
    tools.settle(path, max_crashes=1000, max_attempts=999, backoff=0.01, sweep_every=0.2)
    return path


@pytest.fixture
def crew(place: str) -> Iterator[Crew]:
    members = Crew(place)
    try:
        yield members
    finally:
        members.close()


def alarms(told: dict[str, Any]) -> list[dict[str, Any]]:
    """What is said to be wrong; what a killed process left for the next sweep is not."""
    return [entry for entry in told["findings"] if entry["class"] != "pending"]


def test_no_audit_beside_a_busy_crew_that_is_killed_again_and_again_alarms_anybody(place: str, crew: Crew) -> None:
    end = time.monotonic() + SECONDS
    audits = tasks = 0
    with taskyard.open(place, worker="grace") as yard:
        while time.monotonic() < end or audits <= 3 or tasks <= 100:
            told = yard.audit()
            audits += 1
            assert alarms(told) == [], told
            assert told["verdict"] == "clean"
            tasks = told["checked"]["tasks"]
            crew.kill_one()
        assert crew.kills == audits
        crew.end()
        told = yard.audit()
        assert alarms(told) == []
        # What is still pending, a repair sees to.
        assert yard.audit(repair=True)["verdict"] in ("clean", "repaired")
        assert yard.audit()["verdict"] == "clean"


def test_real_damage_is_found_and_healed_beside_a_busy_crew(place: str, crew: Crew) -> None:
    with taskyard.open(place, worker="grace") as yard:
        # Of a kind that nobody takes meanwhile.
        yard.pause("mine")
        ids = [yard.add("mine", {"n": number}).id for number in range(3)]
        (one, two, three) = (next(Path(place).glob(f"todo/5-mine/*/{id}.*")) for id in ids)
        one.write_bytes(b"?")
        two.rename(two.with_name("mangled"))
        wrong = Path(place) / "todo" / "5-mine" / "zzzz"
        wrong.mkdir()
        three.rename(wrong / three.name)
        for _ in range(3):
            told = yard.audit()
            assert {(entry["code"], entry["task"]) for entry in alarms(told)} == {
                ("broken", ids[0]),
                ("stray", ids[1]),
                ("misplaced", ids[2]),
            }, told
            assert told["verdict"] == "damaged"
        healed = yard.audit(repair=True)
        assert healed["verdict"] == "repaired", healed
        assert alarms(yard.audit()) == []
        # What was failed may be pruned by now, with all that is told of it.
        assert {entry["task"] for entry in healed["findings"] if entry["repaired"]} == set(ids)
        assert yard.get(ids[2]).state == "todo"
    crew.end()
