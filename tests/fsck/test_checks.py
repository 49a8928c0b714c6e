"""Tasks that ask for a check are as legal as others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from pathlib import Path


def test_names_that_say_that_a_task_asks_for_a_check_are_legal(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build", verify="tests")
        yard.add("build", verify="tests", uses=["db"], max_attempts=2, lease=60)
        assert yard.audit()["findings"] == []
