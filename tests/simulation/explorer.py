"""All orders of a scene, each state of it once.

A process is a function of the answers that it gets (`program`). So the disk and every process's row of answers decide all
that can follow, and two orders that lead to the same of both are one from there on. Whose next call concerns nothing that
the others may look at or change from there on moves alone: whatever they do, they might as well do it afterwards. What they
may do is not known beforehand. It is gathered from what was tried, and where more turns out to concern others than was
thought, the search goes on from there with everybody who is concerned, until all that was left out is known to concern nobody.
"""

from __future__ import annotations

import contextlib
import gc
import random
from typing import TYPE_CHECKING

from .modes import nothing
from .program import union
from .replay import replayed
from .watch import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .actors import Actor, Trail, World
    from .program import Marks, Node
    from .stage import Stage

    Deviations = Callable[[World, Actor], Sequence[str]]

END = "end"
WALKS = 8
BROAD = 2_000


class Tally:
    """What a search has covered."""

    def __init__(self) -> None:
        self.runs = 0
        self.states = 0
        self.schedules = 0
        self.ends = 0

    def __str__(self) -> str:
        return f"{self.schedules} schedules, {self.states} states, {self.runs} runs"


class Part:
    """A part of the search in which only some moved, because what they did concerned none of the others."""

    __slots__ = ("link", "marks", "movers", "others", "trail")

    def __init__(self, link: Link, movers: list[Actor], live: list[Actor], trail: Trail) -> None:
        self.link = link
        self.movers = [actor.number for actor in movers]
        self.others = [actor.node for actor in live if actor not in movers]
        self.trail = trail
        self.marks: Marks = (0, 0, 0)

    def is_still(self, mover: Actor, live: list[Actor]) -> bool:
        """Whether it goes on: the same moves, and the others are where they were."""
        return self.movers == [mover.number] and self.others == [actor.node for actor in live if actor is not mover]

    def was_right(self) -> bool:
        """Whether it concerns none of the others still, now that more is known of them."""
        return not any(concerns(self.marks, other.future) for other in self.others if other is not None)


class Link:
    """The way from one state with a choice to the next."""

    __slots__ = ("at", "is_choice", "parent", "parts")

    def __init__(self, parent: object, *, is_choice: bool = False) -> None:
        self.parent = parent
        self.is_choice = is_choice
        """Whether it is no way yet, but the choice itself."""
        self.at = -1
        """Which of the ways from there it is."""
        self.parts: list[Part] = []


class Explorer:
    """Tries all orders of one scene."""

    def __init__(self, stage: Stage, wrong: Deviations = nothing, *, stale: bool = False) -> None:
        self._stage = stage
        self._wrong = wrong
        self._stale = stale
        self._bits: dict[object, int] = {}
        self.roots: list[Node] = []
        self._unminded: set[tuple[int, Node]] = set()
        self._chance = random.Random(0)
        self._clear()

    def _clear(self) -> None:
        self.tally = Tally()
        self._seen: dict[object, list[object]] = {}
        self._judged: set[object] = set()
        self._marked: set[object] = set()
        """The same ends by the marks of their disks, which are known without a look at every file."""
        self._ahead: list[tuple[World, Part | None, int, str, object]] = []
        self._parts: list[Part] = []

    def all(self) -> Tally:
        """Try them all; `Found` at the first that breaks the promise."""
        start = self._stage.play(stale=self._stale)
        with _rarely_collected():
            return self._all(start)

    def _all(self, start: World) -> Tally:
        start.trace = None
        start.deviations, start.minded = self._wrong, self._minded
        for actor in start.actors:
            actor.budget = 0 if self._wrong is nothing else 1
        self.roots = [program.root for program in start.programs]
        try:
            for seed in range(WALKS):
                self._walk(start.fork(), random.Random(seed))
            self._search(start)
            while any(self._is_minded(bit, root) for bit, root in self._unminded):
                self._clear()
                self._search(start)
        finally:
            start.over()
        self.tally.states, self.tally.ends = len(self._seen), len(self._judged)
        self.tally.schedules = _paths(self._seen)
        return self.tally

    def _walk(self, world: World, chance: random.Random) -> None:
        """One order by chance: a few of them tell most of what concerns several."""
        while live := world.live():
            self._step(world, chance.choice(live), "")

    def _step(self, world: World, actor: Actor, wrong: str, part: Part | None = None) -> None:
        """One turn, and a note of all that it has looked at or changed."""
        node, bits = actor.node, self._bits
        world.step(actor, wrong)
        read = appended = written = 0
        for how, what in set(world.files.seen):
            bit = bits.get(what) or bits.setdefault(what, 1 << len(bits))
            if how == "r":
                read |= bit
            elif how == "w":
                written |= bit
            else:
                appended |= bit
        assert node is not None
        touched = (read, appended, written)
        node.note(touched)
        if part is not None:
            part.marks = union(part.marks, touched)

    def _minded(self, _: World, actor: Actor, what: object) -> bool:
        """Whether anybody else ever changes this."""
        bit, root = self._bits.get(what, 0), self.roots[actor.number]
        if self._is_minded(bit, root):
            return True
        self._unminded.add((bit, root))
        return False

    def _is_minded(self, bit: int, but: Node) -> bool:
        return any(concerns((bit, 0, 0), root.future) for root in self.roots if root is not but)

    def _search(self, start: World) -> None:
        """From the beginning, and then again from wherever more turns out to concern others than was thought."""
        self._run(start.fork(), Link(None))
        self._exhaust()
        while wrong := [part for part in self._parts if not part.was_right()]:
            self._parts = [part for part in self._parts if part.was_right()]
            for part in wrong:
                self._repair(start, part)
            self._exhaust()

    def _exhaust(self) -> None:
        ahead = self._ahead
        while ahead:
            # Any of them at first: a bug that shows in one corner is not looked for in the others. Then the last: few are kept.
            if self.tally.runs < BROAD:
                at = self._chance.randrange(len(ahead))
                ahead[at], ahead[-1] = ahead[-1], ahead[at]
            before, part, number, wrong, parent = ahead.pop()
            world = before.fork()
            self._step(world, world.actors[number], wrong, part)
            self._run(world, Link(parent))

    def _run(self, world: World, link: Link) -> None:
        """Go on to a choice or to the end, unless it was seen."""
        self.tally.runs += 1
        try:
            movers = self._alone(world, link)
            key = world.key() if movers else (END, world.key())
            ways = self._seen.setdefault(link.parent, [])
            link.at = len(ways)
            ways.append(key)
            if not movers and self._is_new(world):
                self._stage.judge(world)
            elif movers and key not in self._seen:
                self._seen[key] = []
                self._choose(world, movers, key)
        except Violation as violation:
            self._tell(world, violation)

    def _alone(self, world: World, link: Link) -> list[Actor]:
        """Go on while there is one way only; who may move then."""
        part: Part | None = None
        while live := world.live():
            movers = self._movers(world, live)
            if len(movers) > 1 or len(world.ways(movers[0])) > 1:
                return movers
            if len(live) > 1 and (part is None or not part.is_still(movers[0], live)):
                part = Part(link, movers, live, world.trail)
                link.parts.append(part)
                self._parts.append(part)
            self._step(world, movers[0], "", part if len(live) > 1 else None)
            if world.broken is not None:
                raise world.broken
        if world.broken is not None:
            raise world.broken
        return []

    def _choose(self, world: World, movers: list[Actor], key: object, before: Part | None = None) -> None:
        """Note who may move, and in which ways, except for those whose ways were noted before."""
        live, part = world.live(), None
        if len(movers) < len(live):
            part = Part(Link(key, is_choice=True), movers, live, world.trail)
            part.marks = (0, 0, 0) if before is None else before.marks
            self._parts.append(part)
        twin = world.fork()
        for actor in movers:
            if before is None or actor.number not in before.movers:
                self._ahead += [(twin, part, actor.number, wrong, key) for wrong in world.ways(actor)]

    def _repair(self, start: World, part: Part) -> None:
        """Some who moved without the others should not have: go on from there with everybody who is concerned."""
        link = part.link
        if link.is_choice:
            world = self._at(start, part.trail)
            movers = [world.actors[number] for number in part.movers]
            self._choose(world, _closed(movers, world.live()), link.parent, part)
        elif part in link.parts:
            del link.parts[link.parts.index(part) :]
            self._seen[link.parent][link.at] = None
            self._run(self._at(start, part.trail), link)

    @staticmethod
    def _at(start: World, trail: Trail) -> World:
        """The run with these turns."""
        turns = []
        while trail is not None:
            turns.append(trail[1:])
            trail = trail[0]
        world = start.fork()
        for number, wrong in reversed(turns):
            world.step(world.actors[number], wrong)
        return world

    def _movers(self, world: World, live: list[Actor]) -> list[Actor]:
        """As few as will do: whatever the others may do from here on does not concern the next calls of these."""
        best = live
        for actor in live if len(live) > 1 else ():
            node = actor.node
            if node is not None and not node.is_known:
                twin = world.fork()
                self._step(twin, twin.actors[actor.number], "")
        for actor in live:
            movers = _closed([actor], live)
            if len(movers) < len(best):
                best = movers
        return best

    def _is_new(self, world: World) -> bool:
        """Whether nobody has judged such an end: the same disk, and the same told to the same."""
        killed = any(actor.was_killed for actor in world.actors)
        rest = (world.files.now, repr(world.told), killed, frozenset(world.pruned))
        times = frozenset((node.ino, node.mtime) for node in world.files.nodes.values())
        marked = (world.files.mark, times, rest)
        if marked in self._marked:
            return False
        self._marked.add(marked)
        end = (world.files.picture(), rest)
        is_new = end not in self._judged
        self._judged.add(end)
        return is_new

    def _tell(self, world: World, violation: Violation) -> None:
        """Play the run again, from its beginning and call by call, for its story."""
        schedule = world.schedule()
        replayed(self._stage, schedule, stale=self._stale)
        raise AssertionError(f"{violation}, and not when it was played again: {schedule}")


@contextlib.contextmanager
def _rarely_collected() -> Iterator[None]:
    """Have memory looked through for cycles less often: a search keeps much that has none, and that was a fifth of its time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _closed(movers: list[Actor], live: list[Actor]) -> list[Actor]:
    """These, with everybody who may yet do what concerns their next calls, or those of others that are in it by then."""
    for mover in movers:
        assert mover.node is not None
        for other in live:
            if other not in movers and other.node is not None and concerns(mover.node.next, other.node.future):
                movers.append(other)
    return movers


def concerns(call: Marks, future: Marks) -> bool:
    """Whether it matters which comes first; two that only append to the same do not mind one another."""
    reads, appends, writes = call
    read, appended, written = future
    if reads & written or reads & appended:
        return True
    return bool(appends & (read | written) or writes & (read | appended | written))


def _paths(edges: dict[object, list[object]]) -> int:
    """How many ways lead from the beginning to an end."""
    counts: dict[object, int] = {}
    order: list[tuple[object, bool]] = [(None, False)]
    while order:
        node, ready = order.pop()
        if ready:
            counts[node] = sum(counts[child] for child in edges[node] if child is not None)
        elif node not in counts:
            if node not in edges:
                counts[node] = 1
                continue
            counts[node] = 0
            order.append((node, True))
            order += [(child, False) for child in edges[node] if child is not None and child not in counts]
    return counts[None]
