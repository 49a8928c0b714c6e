"""One run again, call by call, as a failure told it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .found import Found
from .watch import Violation

if TYPE_CHECKING:
    from .actors import World
    from .stage import Stage

_WORD = re.compile(r"([a-z])(?::([A-Za-z]+)|([0-9]+))")


def replayed(stage: Stage, schedule: str, *, stale: bool = False) -> World:
    """The run of this schedule, such as `a12,b3,a:kill,b20`, judged; `Found` if it breaks the promise."""
    world = stage.play(stale=stale)
    try:
        for letter, wrong, count in _WORD.findall(schedule):
            actor = world.actors[ord(letter) - ord("a")]
            for _ in range(int(count or 1)):
                if actor.pending is not None:
                    world.step(actor, wrong)
        stage.judge(world)
    except Violation as violation:
        raise Found(violation, world, stage) from violation
    return world
