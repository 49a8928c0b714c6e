"""What an attempt leaves is handed to the next: its reason, its notes, its folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from taskyard.yard.claim import HISTORY_MOST
from tests.conftest import retried, taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_the_next_claimer_reads_the_notes_and_the_reason_of_the_one_before(yard: Yard) -> None:
    id = yard.add("build").id
    first = taken(yard.claim())
    first.note("the tests need a database")
    first.note("and it must be empty")
    first.fail("no database")
    retried(yard, id)
    (entry,) = taken(yard.claim()).history
    assert (entry["outcome"], entry["reason"]) == ("error", "no database")
    assert entry["notes"] == ["the tests need a database", "and it must be empty"]


def test_a_first_claim_has_no_history(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    claim.note("mine")
    assert claim.history == []


def test_what_is_handed_over_stays_within_its_budget_and_the_newest_is_whole(yard: Yard) -> None:
    id = yard.add("build", max_attempts=99).id
    for number in range(5):
        claim = taken(yard.claim())
        claim.note(f"{number}" * (HISTORY_MOST // 3))
        claim.fail(f"reason {number}")
        retried(yard, id)
    history = taken(yard.claim()).history
    assert len(history) == 5
    assert history[-1]["notes"] == ["4" * (HISTORY_MOST // 3)]
    assert history[0]["notes"] == ["[cut]"]
    assert sum(len(note) for entry in history for note in entry["notes"]) < HISTORY_MOST + 100


def test_each_attempt_has_a_folder_of_its_own_that_the_next_can_read(yard: Yard) -> None:
    id = yard.add("build").id
    first = taken(yard.claim())
    folder = first.workdir
    if folder is None:  # a store without files
        assert not os.path.isabs(yard.url)
        return
    with open(f"{folder}/half-done.txt", "w") as file:
        file.write("so far")
    first.fail("ran out of time")
    retried(yard, id)
    second = taken(yard.claim())
    (entry,) = second.history
    assert entry["workdir"] == folder
    assert second.workdir != folder
    with open(f"{entry['workdir']}/half-done.txt") as file:
        assert file.read() == "so far"


def test_a_folder_in_which_nothing_was_put_does_not_stay(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    folder = claim.workdir
    claim.done()
    assert folder is None or not os.path.exists(folder)


def test_lost_races_are_counted(yard: Yard) -> None:
    assert yard.stats()["lost_races"] == 0
