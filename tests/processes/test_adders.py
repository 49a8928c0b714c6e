"""Many adders at once: nothing is lost beside claimers and janitors, and no segment grows far beyond its size."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.tasks.segments import SIZE
from tests.conftest import sized, wait_until
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Crew = Callable[..., subprocess.Popen[str]]

ADDERS = 6
MOST = 1100


@sized("each", 60, 300)
def test_six_adders_and_two_claimers_lose_nothing(place: str, crew: Crew, each: int) -> None:
    adders = [crew(place, "add", str(each)) for _ in range(ADDERS)]
    claimers = [crew(place, "drain") for _ in range(2)]
    for member in (*adders, *claimers):
        assert tools.said(member) == "ready"
    for member in (*adders, *claimers):
        tools.tell(member)
    ids = tools.told(adders)
    tools.told(claimers)
    with recorded_yard(place) as yard:
        while (claim := yard.claim()) is not None:  # what came after the claimers had seen an empty yard
            claim.done()
    assert len(set(ids)) == len(ids) == ADDERS * each
    tools.judge(place, drained=True)
    assert tools.places(place) == dict.fromkeys(ids, "done")
    held = Counter(id[:4] for id in ids)
    assert max(held.values()) <= MOST
    assert len(held) <= ADDERS + 1
    for segment in Path(place, "segments").glob("????"):
        head, _, marks = segment.read_bytes().partition(b"\n")
        assert head.endswith(b" 5-build")
        assert held[segment.name] <= len(marks) <= MOST, "a place for every task, and hardly one more"


def test_adders_go_on_together_in_the_next_segment(place: str) -> None:
    """In turn, by yards that each remember a segment that the others have filled meanwhile."""
    yards = [taskyard.open(place) for _ in range(8)]
    ids = [id for _ in range(2) for yard in yards for id in yard.add_many([{"kind": "build"}] * 100)]
    held = Counter(id[:4] for id in ids)
    for yard in yards:
        yard.close()
    assert max(held.values()) <= SIZE
    assert len(held) == 2, "segments are filled before the next is opened"


def test_kinds_have_segments_of_their_own_whoever_opens_them(place: str, crew: Crew) -> None:
    kinds = ("build", "test", "deploy")
    tools.race([crew(place, "add", "100", kind) for kind in kinds for _ in range(2)])
    lanes: dict[str, set[str]] = {}
    for _, token, _ in tools.task_files(place):
        lanes.setdefault(token.id[:4], set()).add(token.lane.kind)
    assert sorted(len(lane) for lane in lanes.values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("durability", "each"),
    [
        ("fast", 100),
        ("durable", 50),
        pytest.param("fast", 300, marks=pytest.mark.proof),
    ],
)
def test_tasks_with_a_short_delay_are_not_lost_between_sweeps(
    tmp_path: Path, crew: Crew, durability: str, each: int
) -> None:
    """A sweep removes the folder that it has emptied, and an adder may just have made it."""
    place = str(tmp_path / "yard")
    taskyard.init(place, durability=durability).close()
    sweepers = [crew(place, "sweep_for_ever") for _ in range(2)]
    ids = tools.race([crew(place, "add", str(each), "build", "0.001", "0.001") for _ in range(3)])
    with taskyard.open(place) as yard:
        wait_until(lambda: (yard.sweep(), yard.counts()["waiting"] == 0)[1])
    for sweeper in sweepers:
        tools.tell(sweeper)
    tools.told(sweepers)
    assert len(ids) == 3 * each
    tools.judge(place)
    assert set(tools.places(place)) >= set(ids)


def test_a_retry_after_an_error_is_not_lost_between_sweeps(place: str, crew: Crew) -> None:
    """The same folders, and a claim that its holder gives up: it must neither be lost nor be refused."""
    tools.settle(place, backoff=0.001, backoff_cap=0.002)
    sweepers = [crew(place, "sweep_for_ever") for _ in range(2)]
    with recorded_yard(place) as yard:
        ids = yard.add_many([{"kind": "build", "max_attempts": 999}] * 20)
        for _ in range(400):
            claim = yard.claim(wait=30)
            assert claim is not None
            claim.fail("again")
        wait_until(lambda: yard.counts()["waiting"] == 0)
        assert sum(yard.get(id).attempts for id in ids) == 400
    for sweeper in sweepers:
        tools.tell(sweeper)
    tools.told(sweepers)
    tools.judge(place)
    assert tools.places(place) == dict.fromkeys(ids, "todo")


def test_one_shot_commands_share_a_segment(place: str) -> None:
    ids = [
        tools.taskyard(place, "add", "build", *more).data["task"]["id"]
        for more in ((), ("--delay", "1h"), (), ("--delay", "1h"))
    ]
    later = [tools.taskyard(place, "add", "later", "--delay", "1h").data["task"]["id"] for _ in range(3)]
    assert len({id[:4] for id in ids}) == 1
    assert len({id[:4] for id in later}) == 1, "also where all tasks of the lane are waiting"
