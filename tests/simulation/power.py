"""Power cuts: at every call of a run, in every way that the disk may come back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .actors import KILL, Actor, World
from .found import Found
from .watch import Violation, Watch

if TYPE_CHECKING:
    from .files import Files
    from .stage import Stage

CUT = "power cut"


class Cuts:
    """Plays a scene in some orders, and cuts the power before every call and after the last."""

    def __init__(self, stage: Stage, most: int = 64) -> None:
        self._stage = stage
        self._most = most
        self._seen: set[object] = set()
        self.cuts = 0
        self.disks = 0

    def __str__(self) -> str:
        return f"{self.cuts} power cuts, {self.disks} disks that they may leave"

    def all(self, orders: int, seed: int = 0) -> None:
        """One after the other first, then in so many orders by chance."""
        for number in range(orders):
            chance = random.Random(seed * 1_000 + number)
            world = self._stage.play()
            last = None
            while options := world.options():
                self._cut(world, chance)
                stays = [option for option in options if option[0] is last]
                alone = number == 0 or chance.random() < 0.7
                pick = (stays or options)[0] if alone else chance.choice(options)
                last = pick[0]
                world.step(*pick)
            self._cut(world, chance)
            if world.broken is not None:
                raise Found(world.broken, world, self._stage)
            world.over()

    def _cut(self, world: World, chance: random.Random) -> None:
        """Everybody is dead, and the disk comes back in one way after the other."""
        told = hash(repr(world.told))
        self.cuts += 1
        for files in world.files.after_power_cut(self._most, chance):
            key = (files.mark, told)
            if key in self._seen:
                continue
            self._seen.add(key)
            self.disks += 1
            after = self._after(world, files)
            try:
                self._stage.judge(after, cut=True)
            except Violation as violation:
                raise Found(violation, after, self._stage) from violation

    def _after(self, world: World, files: Files) -> World:
        after = World(world.package, files, network=world.network, seed=world.seed)
        after.trace = [*(world.trace or ()), (Actor(93, "everybody"), CUT, (), "", KILL)]
        after.told = _acknowledged(world)
        after.watch = Watch(files, after.root, strict=False)
        return after


def _acknowledged(world: World) -> list[dict[str, object]]:
    """What was said so far; a claim in `durable` is not acknowledged for longer than the power lasts."""
    return [dict(note) for note in world.told]
