"""Damage of many kinds at random in a yard of 500 mixed tasks: nothing that was acknowledged is lost, and the rest works."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskyard
from tests.conftest import sampled, taken
from tests.fsck.proving import Yardful
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = 500
SEEDS = tuple(range(int(os.environ.get("TASKYARD_FSCK_SEEDS", "4"))))
HURTS = 40


def mixed(place: str) -> dict[str, str]:
    """A yard of 500 tasks in every state, made by real verbs; gives for each id the word that its data holds."""
    words: dict[str, str] = {}
    taskyard.init(place, durability="fast").close()
    tools.settle(place, settle=0)
    with taskyard.open(place, worker="ada") as yard:

        def add(kind: str, **options: Any) -> str:
            word = f"word-{len(words)}-"
            id = yard.add(kind, {"word": word}, **options).id
            words[id] = word
            return id

        plain = [add(f"kind-{number % 4}", priority=number % 3) for number in range(200)]
        for number in range(100):
            add("keyed", key=f"key {number}")
        for number in range(60):
            add("late", delay=3600 * (number + 1))
        for number in range(60):
            add("after", after=[plain[number], plain[-number - 1]])
        for number in range(40):
            yard.edit(add("edited"), title=f"title {number}")
        for number in range(TASKS - len(words)):
            (Path(place) / "todo" / f"drop-{number}.json").write_text(
                json.dumps({"kind": "dropped", "word": f"drop-{number}-"})
            )
        yard.sweep()
        for task in yard.find(kind="dropped", limit=100):
            words[task.id] = str(yard.get(task.id).data["word"])
        for number in range(120):
            _end(yard, taken(yard.claim()), number % 8)
    return words


def _end(yard: taskyard.Yard, claim: taskyard.Claim, way: int) -> None:
    ways: dict[int, Callable[[], object]] = {
        0: lambda: claim.fail("no good", retry=False),
        1: lambda: claim.fail("again"),
        2: claim.release,
        3: lambda: yard.cancel(claim.task.id),
        4: claim.heartbeat,
        5: claim.done,
    }
    ways.get(way, lambda: claim.done({"way": way}))()


class Hurt:
    """Does damage by hand, of a kind and to a task that are drawn."""

    def __init__(self, place: str, draw: random.Random) -> None:
        self.root = Path(place)
        self.draw = draw
        self.ruined: set[str] = set()
        """Ids of tasks whose words were overwritten: not even a repair brings them back."""

    def tasks(self, *states: str) -> list[Path]:
        every = [
            path
            for state in states
            for path in sorted((self.root / state).rglob("*.json"))
            if path.parent.name != state
        ]
        every += sorted((self.root / "processing").glob("*.json")) if "processing" in states else []
        return [
            path
            for path in every
            if (path.is_file() and path.name[:4] == path.parent.name) or path.parent.name == "processing"
        ]

    def one(self, *states: str) -> Path:
        return self.draw.choice(self.tasks(*states))

    def any(self, pattern: str) -> Path:
        return self.draw.choice([path for path in sorted(self.root.glob(pattern)) if path.is_file()])

    def do(self) -> str:
        """One thing at random, and what it was."""
        kinds = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        kind = self.draw.choice(kinds)
        kind()
        return str(kind.__name__)

    def do_copy(self) -> None:
        path = self.one("done", "failed", "cancelled")
        other = self.one("todo").parent.parent / path.name[:4]
        other.mkdir(exist_ok=True)
        shutil.copy(path, other / f"{path.name[:21]}.0.e0.c0.json")

    def do_mangle_a_name(self) -> None:
        path = self.one("todo", "waiting", "blocked", "done", "failed", "cancelled", "processing")
        path.rename(path.with_name(f"mangled {self.draw.random()}"))

    def do_cut(self) -> None:
        path = self.one("todo", "waiting", "blocked", "processing", "cancelled")
        self.ruined.add(path.name[:21])
        path.write_bytes(path.read_bytes()[: self.draw.randrange(20)])

    def do_another_segment(self) -> None:
        path = self.one("todo", "waiting", "blocked", "done", "failed", "cancelled")
        folder = path.parent.parent / "zzz0"
        folder.mkdir(exist_ok=True)
        path.rename(folder / path.name)

    def do_another_lane(self) -> None:
        path = self.one("todo")
        folder = self.root / "todo" / "4-nobodys" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(folder / path.name)

    def do_another_bucket(self) -> None:
        path = self.one("waiting")
        folder = self.root / "waiting" / "2050-01-01" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(folder / path.name)

    def do_a_lower_fence(self) -> None:
        path = self.one("todo")
        parts = path.name.split(".")
        if parts[1] != "0":
            path.rename(path.with_name(".".join((parts[0], "0", *parts[2:]))))

    def do_an_illegal_name(self) -> None:
        path = self.one("todo")
        path.rename(path.with_name(path.name.replace(".e", ".e0", 1)))

    def do_lose_a_reason(self) -> None:
        self.any("results/*/*.error.json").unlink()

    def do_break_a_record(self) -> None:
        self.any("results/*/*.released.json").write_bytes(b"?")

    def do_lose_a_key(self) -> None:
        self.any("keys/*/*.json").unlink()

    def do_copy_a_key(self) -> None:
        path = self.any("keys/*/*.json")
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)

    def do_lose_an_edit(self) -> None:
        path = self.any("edits/*/*.json")
        self.ruined.add(path.name[:21])
        path.unlink()

    def do_half_an_edge(self) -> None:
        self.any("followers/*/*/*").unlink()

    def do_lose_a_need(self) -> None:
        self.any("needs/*/*/*").unlink()

    def do_lose_a_marker(self) -> None:
        self.any("segments/*").unlink()

    def do_break_a_marker(self) -> None:
        self.any("segments/*").write_bytes(b"")

    def do_plant_a_link(self) -> None:
        (self.one("done").parent / f"planted {self.draw.random()}").symlink_to("/etc/passwd")

    def do_plant_a_file(self) -> None:
        (self.any("results/*/*").parent / f"planted {self.draw.random()}").write_text("planted")

    def do_lose_a_folder(self) -> None:
        shutil.rmtree(self.root / "paused", ignore_errors=True)


@sampled("seed", SEEDS, SEEDS[:1])
def test_no_task_is_lost_by_a_repair_and_the_rest_of_the_yard_works(tmp_path: Path, seed: int) -> None:
    place = str(tmp_path / "yard")
    words = mixed(place)
    assert len(words) == TASKS
    hurt = Hurt(place, random.Random(seed))
    done = [hurt.do() for _ in range(HURTS)]
    story = f"seed {seed}: {done}"
    with taskyard.open(place, worker="grace") as yard:
        assert yard.audit()["verdict"] == "damaged", story
        before = everything(place)
        told = yard.audit(repair=True)
        # A dropped file does not tell whose it is: if its name was mangled, it is set aside, and its task left to a person.
        unnamed = {id for id, word in words.items() if word.startswith("drop")}
        left = {entry["task"] for entry in told["findings"] if entry["class"] == "damage" and not entry["repaired"]}
        assert left <= unnamed, story
        assert damaged(yard) == left, story
        after = everything(place)
        for id, word in words.items():
            if id not in hurt.ruined and f'"{word}"' in before:
                assert f'"{word}"' in after, f"{id} is lost; {story}"
        named = json.dumps(told["findings"])
        gone = [id for id in words if not is_there(yard, id)]
        assert all(id in named for id in gone), story
        _work_off(yard)
        assert yard.counts()["todo"] == 0
        assert damaged(yard) == left, story


def damaged(yard: taskyard.Yard) -> set[str | None]:
    """The tasks that an audit finds damaged."""
    return {entry["task"] for entry in yard.audit()["findings"] if entry["class"] == "damage"}


def everything(place: str) -> str:
    """All that tasks' files say, wherever they are."""
    texts = [
        path.read_text(errors="replace")
        for path in Path(place).rglob("*")
        if path.is_file() and "events" not in path.parts
    ]
    return "\n".join(texts)


def is_there(yard: taskyard.Yard, id: str) -> bool:
    try:
        yard.get(id)
    except taskyard.NotFound:
        return False
    return True


def _work_off(yard: taskyard.Yard) -> None:
    """Everything that is ready can be claimed and done."""
    while (claim := yard.claim()) is not None:
        claim.done({"by": "grace"})


def test_the_yard_that_is_hurt_is_like_the_one_of_the_other_tests(tmp_path: Path) -> None:
    """What is hurt at random is legal before: else every finding would be no news."""
    place = str(tmp_path / "yard")
    mixed(place)
    with taskyard.open(place, worker="grace") as yard:
        assert yard.audit()["findings"] == []
        assert set(yard.counts().values()) & {0} == set(), "a task in every state"
    assert Yardful(str(tmp_path / "small")).codes() == []
