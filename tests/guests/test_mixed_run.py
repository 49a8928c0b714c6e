"""Guests' loops, a guest's janitor and workers of ours in the same folders, with kills: nothing is lost, nothing ends twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import damage, sized
from tests.guests import hand, programs
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 240.0
LEASE = 1.0


class Member:
    """One process of the crowd, which is started again when it has ended."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.ended = -1
        self.start()

    def start(self) -> None:
        self.ended += 1
        self.process = subprocess.Popen(
            [sys.executable, *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=tools.environment(),
        )

    def see_to(self) -> None:
        if self.process.poll() is not None:
            self.process.communicate()
            self.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def fill(place: str, yard: taskyard.Yard, tasks: int) -> None:
    """Half of the tasks are added, half are dropped, some of those with a taskId."""
    yard.add_many({"kind": f"kind{n % 3}", "data": {"n": n}} for n in range(0, tasks, 2))
    for n in range(1, tasks, 2):
        body = {"operation": "sharpen", "n": n} | ({"taskId": f"t{n}"} if n % 4 == 1 else {})
        draft = Path(place) / f".task_{n}"
        draft.write_text(json.dumps(body), encoding="utf-8")
        draft.rename(Path(place) / "todo" / f"task_{n}.json")


def ended(place: str) -> list[int]:
    """Which tasks have ended, wherever their files are: each is one file, so each counts once."""
    numbers = []
    for path in (*Path(place).glob("done/*.json"), *Path(place).glob("done/*/*.json")):
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            continue  # moved to its segment meanwhile
        numbers.append((content["data"] if "taskyard" in content else content)["n"])
    return numbers


@pytest.mark.timeout(600)
@sized("tasks", 300, 1200)
@pytest.mark.parametrize("reading", ["glob", "listdir"])
def test_nothing_is_lost_and_nothing_ends_twice_beside_guests(
    place: str, reading: str, tasks: int, record_property: Callable[[str, object], None]
) -> None:
    settings = Path(place) / "yard.json"
    content = json.loads(settings.read_bytes())
    content["settings"] |= {"lease": LEASE, "max_crashes": 100, "sweep_every": 0.2, "backoff": 0.05, "settle": 0.2}
    settings.write_text(json.dumps(content), encoding="utf-8")
    chance = random.Random(7)
    with taskyard.open(place, worker="ada") as yard:
        fill(place, yard, tasks)
        guests = [Member(programs.__file__, "loop", place, f"agent-{n}", reading) for n in (1, 2)]
        guests.append(Member(programs.__file__, "janitor", place, "0.7"))
        ours = [Member(hand.__file__, place, name) for name in ("bob", "eve", "joe-vouched")]
        try:
            deadline, before = time.monotonic() + PATIENCE, 0
            while (now := len(set(ended(place)))) < tasks:
                assert time.monotonic() < deadline, f"{now} of {tasks} ended"
                if now > before:  # a busy machine would not start them as fast as they are killed
                    before = now
                    chance.choice(guests + ours).kill()
                for member in guests + ours:
                    member.see_to()
                time.sleep(0.3)
        finally:
            for member in guests + ours:
                member.kill()
        yard.sweep()
        numbers = ended(place)
        assert sorted(numbers) == list(range(tasks))
        told: dict[str, int] = {}
        for event in yard.events(event="done", limit=100_000):
            told[event["task"]] = told.get(event["task"], 0) + 1
        assert [task for task, times in told.items() if times > 1] == []
        assert damage(yard) == []
        assert sum(yard.counts()[state] for state in ("todo", "waiting", "processing", "failed")) == 0
        assert yard.set_aside() == []
        record_property("kills", sum(member.ended for member in guests + ours))
        record_property("by guests", yard.stats()["guests"])
