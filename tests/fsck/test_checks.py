"""Tasks that ask for a check or a review are as legal as others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from pathlib import Path


def test_names_that_say_that_a_task_asks_for_a_check_are_legal(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add("build", verify="tests")
        yard.add("build", verify="tests", uses=["db"], max_attempts=2, lease=60)
        assert yard.audit()["findings"] == []


def test_the_log_knows_reviews_also_of_tasks_that_were_edited_while_they_waited(tmp_path: Path) -> None:
    with (
        taskyard.init(tmp_path / "yard", durability="fast", worker="ada") as yard,
        taskyard.open(tmp_path / "yard", worker="bob") as boss,
    ):
        for edits in range(3):
            task = yard.add("build", review=True)
            for review in (lambda id: boss.reject(id, "again"), boss.accept):
                taken(yard.claim(task.id)).done({"answer": 42})
                for number in range(edits):
                    yard.edit(task.id, title=f"title {number}")
                review(task.id)
                assert yard.audit()["findings"] == [], (edits, review)
