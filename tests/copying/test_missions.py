"""Missions go with their tasks from one store to another, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import taskyard
from taskyard.doors.cli import main
from tests.conftest import taken
from tests.servers import postgres


def told(url: str) -> list[dict[str, Any]]:
    with taskyard.open(url, worker="ada") as yard:
        yard.tends = False
        return [
            {name: mission[name] for name in ("name", "brief", "owner", "state", "reason", "counts", "created_at")}
            for mission in yard.missions()
        ]


def test_missions_are_the_same_in_a_copy(tmp_path: Path) -> None:
    first, second, third = str(tmp_path / "first"), postgres.url(), str(tmp_path / "third")
    with taskyard.init(first, worker="ada") as yard:
        yard.new_mission("launch", brief="Ship it\nsoon", owner="ada")
        yard.new_mission("empty")
        yard.add_many({"kind": "build", "mission": "launch"} for _ in range(3))
        taken(yard.claim(mission="launch")).done()
        yard.add("build", mission="other")
        yard.cancel_mission("other", "not needed")
        yard.pause()
    for source, target in ((first, second), (second, third)):
        assert main(["copy", source, target]) == 0
        assert told(target) == told(first)
    assert json.loads(Path(third, "yard.json").read_text())["features"] == ["missions"]
    with taskyard.open(third, worker="bob") as yard:
        yard.unpause()
        assert len(yard.claim_many(9, mission="launch")) == 2
        assert yard.audit()["findings"] == []
