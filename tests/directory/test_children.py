"""The children of a task in a directory: found without a search, and what a killed process leaves is tidied."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from taskyard.stores.directory.fsck import children as audit
from taskyard.stores.directory.recovery import children as recovery
from taskyard.stores.directory.recovery import segments
from tests.conftest import taken, wait_until

from .staging import yard_on

if TYPE_CHECKING:
    import pytest

    from taskyard import Yard


def never_added(yard: Yard, parent: str) -> str:
    """Return the id of a child whose adder was killed before it was in its place."""
    store: Any = yard._store
    child = f"{parent[:-1]}{'0' if parent[-1] != '0' else '1'}"
    store.shifts.children.note(parent, child, sync=False)
    return child


def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segments, recovery, audit):
        monkeypatch.setattr(module, "PATIENCE", -1)


def test_the_entry_is_there_before_the_child_is(url: str) -> None:
    seen: list[str] = []

    def note(_: str, paths: str, made: bool) -> None:
        seen.extend([paths] if made else [])

    with yard_on(url, note) as yard:
        epic = yard.add("epic").id
        for options in ({}, {"key": "one"}, {"after": epic}):
            seen.clear()
            child = yard.add("part", parent=epic, **options).id  # type: ignore[arg-type]
            entry = next(at for at, path in enumerate(seen) if f"/children/{epic[:4]}/{epic}/{child}" in path)
            file = next(at for at, path in enumerate(seen) if f"{child}.0.e0.c0" in path)
            assert entry < file, seen


def test_a_task_without_a_parent_writes_no_entry(url: str) -> None:
    with yard_on(url) as yard:
        yard.add("epic")
        yard.add_many([{"kind": "part"}] * 6)
        assert os.listdir(f"{url}/children") == []


def test_the_entry_of_a_child_that_never_came_is_skipped_and_removed_after_a_while(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with yard_on(url) as yard:
        epic = yard.add("epic").id
        child = yard.add("part", parent=epic).id
        never = never_added(yard, epic)
        folder = f"{url}/children/{epic[:4]}/{epic}"
        assert yard.report(epic).children(1) == [child]
        yard.sweep()
        assert sorted(os.listdir(folder)) == sorted([child, never]), "somebody may be about to add it"
        assert yard.audit()["findings"] == []
        without_patience(monkeypatch)
        found = yard.audit()
        assert [(finding["code"], finding["where"]) for finding in found["findings"]] == [
            ("orphan", f"children/{epic[:4]}/{epic}/{never}")
        ]
        assert found["verdict"] != "damaged"
        monkeypatch.setattr(recovery, "_PER_ROUND", 1)
        wait_until(lambda: (yard.sweep(), os.listdir(folder) == [child])[1])
        assert yard.report(epic).children(9) == [child]


def test_entries_of_a_parent_that_is_gone_are_removed_after_a_while(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with yard_on(url) as yard:
        epic = yard.add("epic").id
        child = yard.add("part", parent=epic).id
        taken(yard.claim(epic)).done()
        yard.prune(count=0, apply=True)
        assert os.listdir(f"{url}/children") == []
        store: Any = yard._store
        store.shifts.children.note(epic, child, sync=False)  # an add that has looked the parent up before
        without_patience(monkeypatch)
        assert "orphan" in {finding["code"] for finding in yard.audit()["findings"]}
        monkeypatch.setattr(recovery, "_PER_ROUND", 1)
        wait_until(lambda: (yard.sweep(), not os.listdir(f"{url}/children"))[1])
        assert yard.get(child).parent == epic


def test_other_names_among_the_children_are_strays(url: str) -> None:
    with yard_on(url) as yard:
        epic = yard.add("epic").id
        yard.add("part", parent=epic)
        open(f"{url}/children/{epic[:4]}/{epic}/notes.txt", "w").close()
        assert [finding["code"] for finding in yard.audit()["findings"]] == ["stray"]
        assert len(yard.report(epic).children(9)) == 1
