"""Segments: numbers are used up by tasks, and not by processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taskyard
from taskyard.core import ids
from taskyard.stores.directory.tasks import segments
from tests.conftest import wait_until

LANES = 20  # more than the newest segments that are looked through


def opened(url: str) -> list[str]:
    return [name for name in os.listdir(f"{url}/segments") if ids.is_segment(name)]


@pytest.mark.parametrize("where", ["waiting", "blocked", "todo"])
def test_processes_that_have_just_begun_share_the_segments_of_their_lanes(url: str, where: str) -> None:
    with taskyard.open(url) as yard:
        other = yard.add("other").id
    more = {"waiting": {"delay": 3600}, "blocked": {"after": [other]}, "todo": {}}[where]
    for number in range(3 * LANES):
        with taskyard.open(url) as yard:
            yard.add(f"kind{number % LANES}", **more)  # type: ignore[arg-type]
    assert len(opened(url)) == 1 + LANES


@pytest.mark.parametrize("note", [b"", b"zzzz\n", b"0000\n", b"\xff\xff\xff\xff", b"../x", None])
def test_a_note_that_leads_nowhere_costs_a_look_and_nothing_else(url: str, note: bytes | None) -> None:
    with taskyard.open(url) as yard:
        yard.add("other")  # 0000 is this lane's
        first = yard.add("build", delay=3600).id
    path = Path(url, "segments", "5-build")
    assert path.read_text() == f"{first[:4]}\n"
    path.unlink()
    if note is None:
        path.mkdir()
    else:
        path.write_bytes(note)
    with taskyard.open(url) as yard:
        assert yard.add("build", delay=3600).id[:4] == first[:4]
    if note is not None:
        assert path.read_text() == f"{first[:4]}\n"
        assert taskyard.open(url).audit()["findings"] == []


def test_a_full_segment_is_followed_by_another_and_the_note_by_its_name(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SIZE", 3)
    with taskyard.open(url) as yard:
        yard.add("other")
    for _ in range(7):
        with taskyard.open(url) as yard:
            yard.add("build", delay=3600)
    assert sorted(opened(url)) == ["0000", "0001", "0002", "0003"]
    assert Path(url, "segments", "5-build").read_text() == "0003\n"


def test_the_note_goes_with_the_marker_that_it_names(url: str) -> None:
    with taskyard.open(url, worker="ada") as yard:
        yard.add("build")
        for number in range(segments.RECENT):
            yard.add(f"kind{number}")
        claim = yard.claim(kinds=["build"])
        assert claim is not None
        claim.done()
        assert "5-build" in os.listdir(f"{url}/segments")

        def gone() -> bool:  # a prune looks at some of the markers, beginning anywhere
            yard.prune(age=0, apply=True)
            return "0000" not in os.listdir(f"{url}/segments")

        wait_until(gone)
        assert "5-build" not in os.listdir(f"{url}/segments")
