"""All orders of a scene, each state of it once.

A process is a function of the answers that it gets. So the disk and every process's history of answers decide all that can
follow, and two orders that lead to the same of both are one from there on. Orders are tried depth first, each from the
beginning; a run ends where it comes to a state that was seen. Calls that only one process is concerned with change
nothing for the others: nobody waits before them. What several are concerned with is not known beforehand: it is gathered
from the runs, and the search begins anew when there is more of it than was thought.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .modes import nothing
from .watch import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .actors import Actor, World
    from .stage import Stage

    Deviations = Callable[[World, Actor], Sequence[str]]

END = "end"


class Pruned(Exception):
    """This state was seen."""


class Found(AssertionError):
    """A run that breaks the promise."""

    def __init__(self, violation: Violation, world: World, stage: Stage) -> None:
        super().__init__(str(violation))
        self.violation = violation
        self.world = world
        self.stage = stage
        self.mode = stage.mode


class Tally:
    """What a search has covered."""

    def __init__(self) -> None:
        self.runs = 0
        self.states = 0
        self.schedules = 0
        self.ends = 0

    def __str__(self) -> str:
        return f"{self.schedules} schedules, {self.states} states, {self.runs} runs"


class Explorer:
    """Tries all orders of one scene."""

    def __init__(self, stage: Stage, wrong: Deviations = nothing, budget: int = 0, *, stale: bool = False) -> None:
        self._stage = stage
        self._wrong = wrong
        self._budget = budget
        self._stale = stale
        self._contended: set[object] = set()
        self._used: dict[object, dict[str, set[int]]] = {}
        self.tally = Tally()

    def all(self) -> Tally:
        """Try them all; `Found` at the first that breaks the promise."""
        for seed in range(4):
            self._warm_up(seed)
        while not self._search():
            pass
        return self.tally

    def _warm_up(self, seed: int) -> None:
        """A few orders by chance tell most of what is contended."""
        chance = random.Random(seed)
        world = self._world(None)
        while options := world.options():
            world.step(*chance.choice([option for option in options if not option[1]]))
        self._gather(world)
        world.over()

    def _world(self, contended: set[object] | None) -> World:
        world = self._stage.play(stale=self._stale)
        world.contended = contended
        world.deviations = self._wrong
        world.budget = self._budget
        self._stage.begin(world)
        return world

    def _gather(self, world: World) -> bool:
        """Whether it is known now that more is contended than was thought."""
        before = len(self._contended)
        for what, ways in world.used.items():
            known = self._used.setdefault(what, {})
            for how, actors in ways.items():
                known.setdefault(how, set()).update(actor for actor in actors if actor < 80)
            readers, writers, appenders = (known.get(how, set()) for how in "rwa")
            if (writers and len(writers | readers | appenders) > 1) or (
                appenders and len(appenders | readers) > 1 and readers
            ):
                self._contended.add(what)
        if self._stage.scene.pauses:
            self._contended.add("the clock")
        return len(self._contended) > before

    def _search(self) -> bool:
        """Whether the search came to its end."""
        self.tally = tally = Tally()
        seen: dict[object, list[object]] = {}
        judged: set[object] = set()
        ahead: list[tuple[list[int], object]] = [([], None)]
        chance = random.Random(0)
        while ahead:
            # Any of them, and not the last: a bug that shows in one corner is not looked for in the others first.
            at = chance.randrange(len(ahead))
            ahead[at], ahead[-1] = ahead[-1], ahead[at]
            prefix, parent = ahead.pop()
            world = self._world(self._contended)
            tally.runs += 1
            try:
                parent = self._follow(world, prefix, parent, seen, ahead)
                ended = (END, world.key())
                seen.setdefault(parent, []).append(ended)
                if ended not in judged:
                    judged.add(ended)
                    self._stage.judge(world)
            except Pruned:
                pass
            except Violation as violation:
                raise Found(violation, world, self._stage) from violation
            finally:
                more = self._gather(world)
                world.over()
            if more:
                return False
        tally.states, tally.ends = len(seen) + len(judged), len(judged)
        tally.schedules = _paths(seen)
        return True

    def _follow(
        self,
        world: World,
        prefix: list[int],
        parent: object,
        seen: dict[object, list[object]],
        ahead: list[tuple[list[int], object]],
    ) -> object:
        """Run to the end, and note what else could have been done on the way from where the prefix ends."""
        chosen = list(prefix)
        at = 0
        while options := world.options():
            if world.broken is not None:
                raise world.broken
            if len(options) == 1:
                world.step(*options[0])
                continue
            if at < len(prefix):
                pick = prefix[at]
            else:
                key = world.key()
                seen.setdefault(parent, []).append(key)
                if key in seen:
                    raise Pruned
                seen[key] = []
                ahead += [([*chosen, other], key) for other in range(1, len(options))]
                parent, pick = key, 0
                chosen.append(0)
            at += 1
            world.step(*options[pick])
        return parent


def _paths(edges: dict[object, list[object]]) -> int:
    """How many ways lead from the beginning to an end."""
    counts: dict[object, int] = {}
    order: list[tuple[object, bool]] = [(None, False)]
    while order:
        node, ready = order.pop()
        if ready:
            counts[node] = sum(counts[child] for child in edges[node])
        elif node not in counts:
            if node not in edges:
                counts[node] = 1
                continue
            counts[node] = 0
            order.append((node, True))
            order += [(child, False) for child in edges[node] if child not in counts]
    return counts[None]
