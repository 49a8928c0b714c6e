"""`claim.publish`: a file is put in place under a fence, and never over what a later claim has put there."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, Conflict, Invalid
from tests.conftest import taken

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Yard


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_later_claim_publishes_over_an_earlier_one_and_never_the_other_way(yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    early = taken(yard.claim())
    source, place = tmp_path / "new", tmp_path / "report"
    assert early.publish(written(source, "first"), place) == os.path.realpath(place)
    assert early.publish(written(source, "first, again"), place) == os.path.realpath(place)
    early.release()
    late = taken(yard.claim())
    late.publish(written(source, "second"), place)
    with pytest.raises(ClaimLost):
        early.publish(written(source, "too late"), place)
    assert place.read_text() == "second"
    assert json.loads((tmp_path / ".report.fence").read_text())["fences"] == {late.id: late.fence}
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")], "nothing half-written is left"


def test_a_claim_that_is_over_publishes_nothing(yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    claim.done()
    with pytest.raises(ClaimLost, match="nothing was published"):
        claim.publish(written(tmp_path / "new", "x"), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_lower_fence_is_refused_also_by_the_record_alone(yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    claim = taken(yard.claim())  # as in a yard that was brought back from a copy: its fences begin anew
    (tmp_path / ".report.fence").write_text(json.dumps({"taskyard": 1, "fences": {claim.id: claim.fence + 1}}))
    written(tmp_path / "report", "newer")
    with pytest.raises(ClaimLost, match=f"fence {claim.fence + 1}"):
        claim.publish(written(tmp_path / "new", "older"), tmp_path / "report")
    assert (tmp_path / "report").read_text() == "newer"


def test_fences_of_two_tasks_are_not_compared(yard: Yard, tmp_path: Path) -> None:
    ids = [yard.add("build").id for _ in range(2)]
    taken(yard.claim(ids[0])).release()
    first = taken(yard.claim(ids[0]))
    first.publish(written(tmp_path / "new", "one"), tmp_path / "report")
    second = taken(yard.claim(ids[1]))
    assert second.fence < first.fence
    second.publish(written(tmp_path / "new", "two"), tmp_path / "report")
    assert (tmp_path / "report").read_text() == "two"
    fences = json.loads((tmp_path / ".report.fence").read_text())["fences"]
    assert fences == {ids[0]: first.fence, ids[1]: second.fence}


def test_a_published_file_keeps_the_mode_and_a_link_leads_to_it(yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    source = written(tmp_path / "new", "#!/bin/sh\n")
    source.chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    claim.publish(source, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / ".real.fence").exists()


def test_what_cannot_be_published_is_refused_with_the_reason(yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    source = written(tmp_path / "new", "x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for bad, place in (
        (tmp_path / "nothing", tmp_path / "report"),
        (tmp_path, tmp_path / "report"),
        (source, tmp_path),
        (source, tmp_path / "no folder" / "report"),
        (source, tmp_path / "pipe"),
        (source, tmp_path / "loop"),
        (source, tmp_path / ("n" * 250)),
    ):
        with pytest.raises(Invalid):
            claim.publish(bad, place)
    assert (tmp_path / "pipe").is_fifo(), "what is no file stays what it is"
    written(tmp_path / ".report.fence", "a program's own file")
    with pytest.raises(Conflict, match="no record"):
        claim.publish(source, tmp_path / "report")
    assert claim.holds()
