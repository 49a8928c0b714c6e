"""Lost races are counted for people: what becomes of the count concerns no claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import taken
from tests.directory.staging import yard_on

MANY = 100  # more than a process counts before it writes


def lose(url: str) -> str:
    """Have a worker try for many tasks that another one has claimed since; return what it holds then."""
    with yard_on(url, worker="bob") as bob, yard_on(url) as ada:
        bob.add_many({"kind": "build"} for _ in range(MANY + 1))
        taken(ada.claim()).done()
        for claim in bob.claim_many(MANY):
            claim.done()
        bob.add("build")
        return taken(ada.claim()).handle


def test_they_are_counted(url: str) -> None:
    lose(url)
    with yard_on(url) as yard:
        assert yard.stats()["lost_races"] == MANY


@pytest.mark.parametrize("there", ["a folder", "a torn line"])
def test_a_count_that_cannot_be_written_or_read_spoils_no_claim(url: str, there: str) -> None:
    path = Path(url, "writers/lost_races")
    if there == "a folder":
        path.mkdir()
    else:
        path.write_text("7\n12")
    handle = lose(url)
    with yard_on(url) as yard:
        assert yard.held(handle).holds()
        assert yard.stats()["lost_races"] == (0 if there == "a folder" else 7 + 12 + MANY)
    assert len(os.listdir(f"{url}/processing")) == 1
