"""Two processes add under the same keys and are killed at random: one task a key, and never none."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import taskyard
from taskyard.stores.directory.recovery import crashes
from tests.conftest import sized
from tests.directory.stories import check_places
from tests.processes import tools

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    import pytest

    Crew = Callable[..., subprocess.Popen[str]]

KILLS = 12


def last_words(adder: subprocess.Popen[str]) -> list[list[str]]:
    """All that the adder said, up to the moment when it is killed."""
    adder.kill()
    assert adder.stdout is not None
    said = tools.whole_lines(adder.stdout.read())  # not communicate(), which forgets what was read ahead
    adder.wait()
    return said


@sized("keys", 200, 1000)
def test_two_adders_of_the_same_keys_that_are_killed_at_random_add_one_task_a_key(
    place: str, crew: Crew, monkeypatch: pytest.MonkeyPatch, keys: int
) -> None:
    chance = random.Random(7)
    said: list[list[str]] = []
    adders = [crew(place, "add_keys", str(keys), str(number)) for number in (1, 2)]
    for adder in adders:
        assert tools.said(adder) == "ready"
    for kill in range(KILLS):
        time.sleep(chance.uniform(0.01, 0.08))
        at = kill % 2
        said += last_words(adders[at])
        adders[at] = crew(place, "add_keys", str(keys), str(kill + 10))
        assert tools.said(adders[at]) == "ready"
    said += tools.told(adders)
    ids = dict(said)
    assert len(ids) == keys
    tools.judge(place)  # one key, one task, whoever asked
    # Files without a key that their adder had no time to link are left alone for long; here nobody is at work any more.
    monkeypatch.setattr(crashes, "PATIENCE", -1)
    with taskyard.open(place) as yard:
        yard.sweep()
        assert sorted(check_places(place)) == sorted(ids.values())
        assert sum(len(names) for _, _, names in os.walk(f"{place}/keys")) == keys
        assert os.listdir(f"{place}/tmp") == ["clock"]
        assert yard.counts()["todo"] == keys
        again = yard.add_many([{"kind": "build", "data": {"key": key}, "key": key} for key in ids])
        assert again.created == 0
    tools.judge(place)
