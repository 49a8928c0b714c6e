"""note: a word for whoever works on the task next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import Invalid
from tests.conftest import crash, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def test_notes_are_kept_in_their_order_with_their_claim(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.note("halfway")
    claim.heartbeat(note="nearly there")
    notes = yard.report(id).notes
    assert [note["text"] for note in notes] == ["halfway", "nearly there"]
    assert {(note["claim"], note["fence"], note["worker"]) for note in notes} == {(claim.handle, claim.fence, "ada")}
    assert all(note["at"].endswith("Z") for note in notes)


def test_notes_outlive_their_claim_and_its_ending(yard: Yard) -> None:
    id = yard.add("build").id
    first = taken(yard.claim())
    first.note("one")
    first.release()
    second = taken(yard.claim())
    assert [note["text"] for note in yard.report(id).notes] == ["one"]
    second.note("two")
    second.done()
    assert [note["text"] for note in yard.report(id).notes] == ["one", "two"]


def test_a_crashed_workers_notes_are_there_for_the_next(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.note("I was here")
    claim.release()
    crash(yard, id)
    assert [note["text"] for note in yard.report(id).notes] == ["I was here"]


def test_a_note_renews_the_lease(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=5))
    first = yard.get(id).lease_until
    assert first is not None

    def renewed() -> bool:
        claim.note("tick")
        until = yard.get(id).lease_until
        return until is not None and until > first

    wait_until(renewed)


@pytest.mark.parametrize("text", ["a\nb\n\nc", "☃ \U0001f680", '{"json": true}', "- [ ] list", "\u2028 \0", " padded "])
def test_notes_of_any_text_come_back(yard: Yard, text: str) -> None:
    id = yard.add("build").id
    taken(yard.claim()).note(text)
    assert [note["text"] for note in yard.report(id).notes] == [text]


@pytest.mark.parametrize("text", ["", " \n ", 7])
def test_a_note_must_say_something(yard: Yard, text: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    with pytest.raises(Invalid):
        claim.note(text)
    assert yard.report(id).notes == []
