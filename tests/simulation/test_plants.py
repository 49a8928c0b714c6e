"""Every planted bug is found, as what it is, and its story can be seen again."""

from __future__ import annotations

import pytest

from .found import Found
from .plants import PLANTS
from .replay import replayed
from .search import cut, explored, staged
from .story import told

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str) -> None:
    plant = PLANTS[name]
    stage = staged(plant.scene, plant.mode, name)
    with pytest.raises(Found) as caught:
        cut(stage, orders=3, most=48) if plant.mode == "power" else explored(stage, plant.mode)
    found = caught.value
    schedule = found.world.schedule()
    where = f"{plant.scene} --mode {plant.mode} --plant {name}"
    story = told(found, f"python -m tests.simulation {where} --schedule {schedule}")
    assert found.violation.kind in plant.kinds, story
    assert schedule in story
    if plant.mode != "power":
        with pytest.raises(Found) as again:
            replayed(stage, schedule, stale=plant.mode == "stale")
        assert again.value.violation.kind in plant.kinds


def test_there_are_a_dozen_of_them() -> None:
    assert len(PLANTS) >= 12
