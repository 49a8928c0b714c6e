"""The promise holds in every order of every scene, whatever goes wrong once on the way."""

from __future__ import annotations

import pytest

from .crowd import Crowd
from .extent import CROWDS, CUT, EXPLORED
from .found import Found
from .package import Package
from .search import cut, explored, staged
from .story import told

pytestmark = pytest.mark.proof


def again(found: Found, rest: str) -> str:
    """The story, as pytest shows it."""
    return told(found, f"python -m tests.simulation {rest}")


@pytest.mark.parametrize(("scene", "mode"), EXPLORED, ids=lambda part: part)
def test_the_promise_holds_in_all_orders(scene: str, mode: str) -> None:
    try:
        tally = explored(staged(scene, mode), mode)
    except Found as found:
        pytest.fail(again(found, f"{scene} --mode {mode} --schedule {found.world.schedule()}"), pytrace=False)
    assert tally.schedules >= tally.ends > 0


@pytest.mark.parametrize(("scene", "durability"), [*((scene, "durable") for scene in CUT), ("two-claimers", "strict")])
def test_what_was_acknowledged_survives_a_power_cut_at_any_call(scene: str, durability: str) -> None:
    try:
        cuts = cut(staged(scene, "power", durability=durability), orders=2, most=16)
    except Found as found:
        pytest.fail(again(found, f"{scene} --mode power"), pytrace=False)
    assert cuts.disks >= cuts.cuts > 0


@pytest.mark.parametrize("part", range(4))
def test_the_promise_holds_in_a_crowd(part: int) -> None:
    package = Package()
    for seed in range(part, CROWDS, 4):
        try:
            Crowd(package, seed).run()
        except Found as found:
            pytest.fail(again(found, f"--seed {seed}"), pytrace=False)
