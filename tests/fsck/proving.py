"""What the tests of fsck share: a small yard with a task in every state, damage done by hand, and a look at what is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard import opening
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.links import Links
from taskyard.stores.directory.tasks.locate import Locator
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.tasks.locate import Found

PASSING = ("writers", "turns", "tmp")  # whose files come and go by the rules


class Yardful:
    """A yard with tasks made by real verbs, by the names that the tests call them."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.root = Path(place)
        self.ids: dict[str, str] = {}
        with taskyard.init(place, worker="ada", durability="fast") as yard:
            self.ids["plain"] = yard.add("build", {"n": 1}).id
            self.ids["second"] = yard.add("build", {"n": 2}).id
            self.ids["keyed"] = yard.add("keyed", {"n": 3}, key="the key").id
            self.ids["waiting"] = yard.add("late", {"n": 4}, delay=7200).id
            self.ids["edited"] = yard.edit(yard.add("edited", {"n": 5}).id, title="other words", priority=2).id
            self.ids["needed"] = yard.add("needed", {"n": 6}, priority=9).id
            self.ids["blocked"] = yard.add("blocked", {"n": 7}, after=[self.ids["needed"]]).id
            for name, end in _ENDINGS.items():
                id = self.ids[name] = yard.add(name, {"name": name}).id
                end(yard, taken(yard.claim(id)))
            yard.cancel(self._add(yard, "cancelled"))
        assert self.audit()["findings"] == []

    def _add(self, yard: taskyard.Yard, name: str) -> str:
        id = self.ids[name] = yard.add(name, {"name": name}).id
        return id

    # Reader

    def audit(self, repair: bool = False) -> dict[str, Any]:
        with opening.open_to_audit(self.place, worker="grace") as yard:
            return yard.audit(repair)

    def codes(self) -> list[str]:
        return [entry["code"] for entry in self.audit()["findings"]]

    def found(self, name: str) -> Found:
        return Locator(disk := Disk(), Links(disk, self.place), self.place, 1800.0).find(self.ids[name])

    def file(self, name: str) -> Path:
        return Path(self.found(name).path)

    def record(self, name: str, outcome: str) -> Path:
        (path,) = self.root.glob(f"results/*/{self.ids[name]}.*.{outcome}.json")
        return path

    def page(self) -> Path:
        return sorted(self.root.glob("events/*.jsonl"))[-1]

    def task(self, name: str) -> taskyard.Task:
        with taskyard.open(self.place, worker="grace") as yard:
            return yard.get(self.ids[name])

    def aside(self) -> dict[str, str]:
        """What is set aside, with the reasons."""
        with taskyard.open(self.place, worker="grace") as yard:
            return {str(entry["name"]): str(entry["reason"]) for entry in yard.set_aside()}

    def does(self, name: str) -> None:
        """The task can be claimed and done."""
        with taskyard.open(self.place, worker="linus") as yard:
            claim = taken(yard.claim(self.ids[name]))
            assert claim.task.id == self.ids[name]
            claim.done({"at": "last"})
            assert yard.get(self.ids[name]).result == {"at": "last"}
        assert self.audit()["findings"] == []

    def does_at_all(self, name: str) -> None:
        """The same, in a yard that has other things wrong with it."""
        with taskyard.open(self.place, worker="linus") as yard:
            taken(yard.claim(self.ids[name])).done()

    def record_names_aside(self) -> list[str]:
        """Records that were set aside."""
        return [name for name, reason in self.aside().items() if "a record" in reason]

    def contents(self) -> set[bytes]:
        """All that is in the yard's files, wherever they are."""
        kept = set()
        for folder, _, names in os.walk(self.place):
            if Path(folder).relative_to(self.place).parts[:1] in [(name,) for name in PASSING]:
                continue
            for name in names:
                path = Path(folder) / name
                if path.is_file() and not path.is_symlink():
                    kept.add(path.read_bytes())
        return kept

    # What every kind of damage is tried with

    def finds(self, *codes: str) -> list[dict[str, Any]]:
        """Exactly these findings, whatever their number, and the same once more: a look changes nothing."""
        before = self.contents()
        told = self.audit()
        assert {entry["code"] for entry in told["findings"]} == set(codes), told["findings"]
        again = self.audit()
        assert again["findings"] == told["findings"]
        assert self.contents() == before, "an audit without repair touches nothing"
        findings: list[dict[str, Any]] = told["findings"]
        return findings

    def heals(self, *codes: str) -> list[dict[str, Any]]:
        """It is found, healed without loss, and not found again."""
        self.finds(*codes)
        findings = self.repairs()
        assert findings["verdict"] == "repaired", findings["findings"]
        assert all(entry["repaired"] for entry in findings["findings"] if entry["class"] == "damage"), findings
        assert self.audit()["findings"] == []
        return list(findings["findings"])

    def repairs(self) -> dict[str, Any]:
        """What a repair says; nothing that was there before it is lost."""
        before = self.contents()
        told = self.audit(repair=True)
        lost = {content for content in before - self.contents() if not _is_log(content)}
        assert lost == set(), f"lost: {lost}"
        return told

    def leaves(self, *codes: str) -> list[dict[str, Any]]:
        """It is found, and left to a person with a word of what to do."""
        self.finds(*codes)
        told = self.repairs()
        assert told["verdict"] == "damaged"
        left = [entry for entry in told["findings"] if entry["class"] == "damage" and not entry["repaired"]]
        assert {entry["code"] for entry in left} == set(codes)
        assert all(entry["hint"] for entry in left)
        assert {entry["code"] for entry in self.audit()["findings"]} == set(codes)
        return left


def _is_log(content: bytes) -> bool:
    """A page of the log, which has grown since; or a segment's marker, whose count has."""
    return content.startswith(b'{"at":') or content[:1].isdigit()


_ENDINGS: dict[str, Callable[[taskyard.Yard, taskyard.Claim], object]] = {
    "done": lambda _, claim: claim.done(),
    "answered": lambda _, claim: claim.done({"answer": 42}),
    "failed": lambda _, claim: claim.fail("no good", retry=False),
    "released": lambda _, claim: claim.release(),
    "held": lambda _, claim: claim.note("still at it"),
}


def moved(path: Path, **changes: str) -> Path:
    """The file under a name with other parts: `moved(path, fence="9")`."""
    parts = path.name.split(".")
    places = {"id": 0, "fence": 1, "errors": 2, "crashes": 3}
    for name, value in changes.items():
        parts[places[name]] = value
    return path.rename(path.with_name(".".join(parts)))
