"""A crowd: many processes, all verbs, everything that can go wrong, in an order that a seed decides."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from .actors import KILL, World
from .found import Found
from .modes import crash, fault, lost_reply, torn_listing
from .stage import LEASE, Scene, Stage
from .watch import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .hands import Hand
    from .package import Package

PROCESSES = 5
VERBS = 6  # that each of them says


def some_tasks(hand: Hand) -> dict[str, Any]:
    """A few tasks of two kinds, one with a key, one that comes after another."""
    first = hand.add("build", {"n": 0})
    ids = [first, hand.add("test", {"n": 1}, priority=1), hand.add("build", {"n": 2}, key="k0")]
    ids.append(hand.add("test", {"n": 3}, after=[first]))
    return {"ids": ids}


def somebody(seed: int, number: int) -> Any:
    """What one of them does: a few verbs by chance, on what it holds or on any task."""

    def script(hand: Hand, context: dict[str, Any]) -> Iterator[None]:
        yield
        chance = random.Random(seed * 100 + number)
        mine: list[Any] = []
        for step in range(VERBS):
            verb = chance.choice(
                ("claim", "claim", "claim", "end", "end", "beat", "add", "steer", "sweep", "wait", "resume", "drop")
            )
            if verb == "claim":
                claim = hand.claim()
                mine += [] if claim is None else [claim]
            elif verb == "end" and mine:
                claim = mine.pop(0)
                ending = chance.choice(("done", "done", "done", "fail", "release"))
                if ending == "done":
                    hand.done(claim, {"by": hand.name, "n": step})
                    hand.done(claim, {"by": hand.name, "n": step})
                else:
                    getattr(hand, ending)(claim)
            elif verb == "beat" and mine:
                hand.beat(mine[0])
            elif verb == "add":
                hand.add("build", {"n": 7}, key=chance.choice((None, "k1", "k2")))
            elif verb == "steer":
                getattr(hand, chance.choice(("cancel", "retry", "edit")))(chance.choice(context["ids"]))
            elif verb == "sweep":
                hand.sweep()
            elif verb == "wait":
                hand.pause(chance.choice((1, LEASE + 1)))
            elif verb == "resume":
                mine += hand.resume()
            elif verb == "drop":
                hand.drop(f"order-{number}-{step}", {"kind": "build", "from": f"{number}-{step}"}, pieces=2)

    return script


def wrong(world: World, actor: Any) -> list[str]:
    """Anything that can go wrong with this call."""
    modes = [crash, fault, torn_listing] + ([lost_reply] if world.network else [])
    return [what for mode in modes for what in mode(world, actor)]


class Crowd:
    """The run of one seed."""

    def __init__(self, package: Package, seed: int) -> None:
        chance = random.Random(seed)
        names = ["ada", "bob", "ada", "cyd", "eve"]
        parts = [(names[number % 5], somebody(seed, number)) for number in range(PROCESSES)]
        self.network = seed % 3 == 2
        self.faults = seed % 2
        scene = Scene("crowd", some_tasks, parts, durability=chance.choice(("fast", "durable", "strict")))
        self.stage = Stage(package, scene, network=self.network)
        self.stage.mode = "fault" if self.faults or self.network else "plain"
        self._seed = seed

    def run(self) -> World:
        """Play it to its end and judge it; `Found` if the promise is broken."""
        chance = random.Random(self._seed)
        world = self.stage.play(stale=self.network, seed=self._seed)
        world.deviations = wrong
        left = 3 if self.faults else 0
        last = None
        try:
            while True:
                for actor in world.actors:
                    actor.budget = left
                options = world.options()
                if not options:
                    break
                if world.broken is not None:
                    raise world.broken
                calm = [option for option in options if not option[1]]
                stays = [option for option in calm if option[0] is last]
                pick = stays[0] if stays and chance.random() < 0.8 else chance.choice(calm)
                rough = [option for option in options if option[1]]
                if rough and chance.random() < 0.004:
                    pick = (
                        chance.choice([o for o in rough if o[1] == KILL] if chance.random() < 0.3 else rough)
                        if any(o[1] == KILL for o in rough)
                        else chance.choice(rough)
                    )
                last = pick[0]
                left -= bool(pick[1])
                world.step(*pick)
            self.stage.judge(world, logged=not (self.faults or self.network))
        except Violation as violation:
            raise Found(violation, world, self.stage) from violation
        finally:
            world.over()
        return world
