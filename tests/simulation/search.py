"""One scene in one mode, tried as far as it is meant to be: what the tests, the command and the planted bugs share."""

from __future__ import annotations

from .explorer import Explorer, Tally
from .modes import MODES
from .package import Package
from .plants import PLANTS
from .power import Cuts
from .scenes import SCENES
from .stage import Stage

NETWORK = ("lost", "stale")  # what a local kernel never does
UNLOGGED = ("lost", "stale", "fault")  # where an event may be lost, or told twice: PROTOCOL.md says so


def staged(scene: str, mode: str, plant: str | None = None, durability: str | None = None) -> Stage:
    """The scene, set up for this mode, with a planted bug or without."""
    package = Package()
    if plant is not None:
        PLANTS[plant].breaks(package)
    if durability is None and mode == "power":
        durability = "durable"
    stage = Stage(package, SCENES[scene], network=mode in NETWORK, durability=durability)
    stage.mode = mode
    stage.logged = mode not in UNLOGGED
    return stage


def explored(stage: Stage, mode: str) -> Tally:
    """All orders of it, with all that may go wrong in this mode; `Found` at the first that breaks the promise."""
    return Explorer(stage, MODES.get(mode, MODES["plain"]), stale=mode == "stale").all()


def cut(stage: Stage, orders: int, most: int, seed: int = 0) -> Cuts:
    """Power cuts at every call of some orders of it."""
    cuts = Cuts(stage, most)
    cuts.all(orders, seed)
    return cuts
