"""A reviewer that is killed anywhere: the next one goes on, and nothing that either wrote is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard import Conflict
from tests.conftest import taken
from tests.directory.kills import killed_at

if TYPE_CHECKING:
    from pathlib import Path


def rejected(path: Path, id: str) -> None:
    with taskyard.open(path, worker="bob") as yard:
        yard.reject(id, "the first note")


def test_the_note_of_a_reviewer_is_kept_wherever_the_one_before_was_killed(tmp_path: Path) -> None:
    fatal, refused, killed = 0, 0, True
    while killed:
        fatal += 1
        path = tmp_path / str(fatal)
        with taskyard.init(path, worker="ada", durability="fast") as yard:
            id = yard.add("build", review=True).id
            taken(yard.claim(id)).done("work")
        killed, _ = killed_at(fatal, lambda path=path, id=id: rejected(path, id))  # type: ignore[misc]
        with taskyard.open(path, worker="cat") as yard:
            waited = yard.get(id).review == "pending"
            try:
                yard.reject(id, "the second note")
            except Conflict as error:
                refused += "your note is kept" in (error.hint or "")
            report = yard.report(id)
            kept = [one["reason"] for one in (*report.history, *report.stale_results) if one["reason"]]
            wrote = [reason for reason in kept if reason.startswith("rejected: ")]
            assert report.task.state == "todo"
            if waited:
                assert "rejected: the second note" in wrote
            assert len(wrote) == len(set(wrote)) <= 2
            assert taken(yard.claim(id)).fence == report.task.fence + 1
            found = yard.audit()["findings"]
            assert [one for one in found if one["class"] != "pending"] == []
    assert refused, "one of the kills was between the record and the move"
