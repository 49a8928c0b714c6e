"""What a dead process had in mind is logged for it, unless it was another's move and that one is about to log it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from taskyard.yard import Yard


def added(yard: Yard, id: str) -> list[dict[str, Any]]:
    return [event for event in yard.events(limit=1_000) if (event["task"], event["event"]) == (id, "added")]


def unlogged(yard: Yard, monkeypatch: Any) -> tuple[str, bytes]:
    """A task that is in its place, and whose adder has not come to log it yet; with what it is going to log."""
    journal = yard._store._ground.journal  # type: ignore[attr-defined]
    lines: list[bytes] = []
    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", lines.append)
        id = yard.add("build", {"n": 1}).id
    return id, b"".join(lines)


def test_a_move_that_a_living_process_is_about_to_log_is_not_logged_for_a_dead_one(
    tmp_path: Path, monkeypatch: Any
) -> None:
    root = tmp_path / "yard"
    taskyard.init(str(root)).close()
    with taskyard.open(str(root), worker="ada") as ada, taskyard.open(str(root), worker="eve") as eve:
        id, line = unlogged(ada, monkeypatch)
        dead = root / "writers" / "99999-deaddead"
        shutil.copy(root / "writers" / ada._store._ground.writer.tag, dead)  # type: ignore[attr-defined]
        eve.sweep()
        assert added(eve, id) == []
        assert dead.exists()
        ada._store._ground.journal.append(line)  # type: ignore[attr-defined]
        eve.sweep()
        assert [event["by"] for event in added(eve, id)] == ["ada"]
        assert not dead.exists()


def test_a_move_that_only_dead_processes_had_in_mind_is_logged_once(tmp_path: Path, monkeypatch: Any) -> None:
    root = tmp_path / "yard"
    taskyard.init(str(root)).close()
    with taskyard.open(str(root), worker="ada") as ada, taskyard.open(str(root), worker="eve") as eve:
        id, _ = unlogged(ada, monkeypatch)
        note = root / "writers" / ada._store._ground.writer.tag  # type: ignore[attr-defined]
        for name in ("99998-deaddead", "99999-deaddead"):
            shutil.copy(note, root / "writers" / name)
        ada._store._ground.journal.forget()  # type: ignore[attr-defined]
        eve.sweep()
        assert len(added(eve, id)) == 1
        assert not list((root / "writers").glob("*-deaddead"))
