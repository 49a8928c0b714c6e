"""A run that breaks the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .actors import World
    from .stage import Stage
    from .watch import Violation


class Found(AssertionError):
    """A run that breaks the promise."""

    def __init__(self, violation: Violation, world: World, stage: Stage) -> None:
        super().__init__(str(violation))
        self.violation = violation
        self.world = world
        self.stage = stage
        self.mode = stage.mode
