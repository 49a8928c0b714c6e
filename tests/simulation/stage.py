"""A scene, set up once and played as often as there are orders to try; and what is done and judged when a run is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import promise
from .actors import BEGIN, Actor, World
from .files import Files
from .hands import Hand
from .kernel import NETWORK_ROOT, ROOT
from .program import Program
from .watch import Violation, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .package import Package

    Script = Callable[[Hand, dict[str, Any]], object]

LONG = 700  # seconds: longer than every lease here, and than anything has to be left alone
LEASE = 20  # seconds: less than a client of a file server goes on believing what it has seen
ANSWERS = ("ok", "ClaimLost", "Conflict", "NotFound")  # of whoever was neither killed nor left alone by the disk
CALM = ("plain", "crash", "torn")  # modes in which no call fails that could be made
MOST = 100  # rounds in which all that is left must be done


class Scene:
    """What is there at the beginning, and what several processes do at once."""

    def __init__(
        self,
        name: str,
        setup: Callable[[Hand], dict[str, Any]],
        parts: list[tuple[str, Script]],
        durability: str = "fast",
        kinds: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.setup = setup
        self.parts = parts
        self.durability = durability
        self.kinds = kinds or {}
        """The limits of kinds."""


class Stage:
    """One scene with the disk that it begins with."""

    def __init__(self, package: Package, scene: Scene, *, network: bool = False, durability: str | None = None) -> None:
        self.package = package
        self.scene = scene
        self.network = network
        self.mode = "plain"
        self.logged = True
        """Whether every event must be in the log in the end; not where its disk fails or is cut off."""
        files = Files()
        files.now = BEGIN
        world = World(package, files, network=network)
        me = world.alone(91, "before")
        root = NETWORK_ROOT if network else ROOT
        layout = package.module("stores.directory.layout")
        layout._check_place = lambda _: []  # whether the place is safe is not the question here
        layout.make(root, durability or scene.durability, shared=False)
        settings = files.find(f"{root}/yard.json")
        content = json.loads(settings.content)
        content["settings"] |= {"sweep_every": 1e8, "lease": LEASE}
        content["settings"]["kinds"] = scene.kinds
        content["features"] = ["folders", *(["limits"] if scene.kinds else [])]  # so that nobody has to mark the yard
        settings.content = json.dumps(content).encode()
        world.watch = Watch(files, root)
        hand = Hand(package, root, "before")
        self.context = scene.setup(hand)
        hand.yard.close()
        me.end()
        world.files.now += 1_000_000
        if (clock := files.look(f"{root}/tmp/clock")) is not None:  # a broken variant may ask another one
            files.touched(clock)
        self._told = world.told
        self._files = files.copy()
        self.known = set(world.watch.places)

    def play(self, *, stale: bool = False, seed: int = 0) -> World:
        """A new run, with everybody at the beginning."""
        world = World(self.package, self._files.fork(), network=self.network, stale=stale, seed=seed)
        world.watch = Watch(world.files, world.root)
        world.told = [dict(note) for note in self._told]
        world.actors = [Actor(number, f"{name}{number}") for number, (name, _) in enumerate(self.scene.parts)]
        world.begin(self._programs(world))
        return world

    def _programs(self, world: World) -> list[Program]:
        """What everybody does."""
        parts = zip(world.actors, self.scene.parts, strict=True)
        return [self._program(world, actor, name, script) for actor, (name, script) in parts]

    def _program(self, world: World, actor: Actor, name: str, script: Script) -> Program:
        def work() -> object:
            return script(Hand(self.package, world.root, name), self.context)

        return Program(self.package.kernel, actor.number, actor.name, world.seed, work)

    def judge(self, world: World, *, cut: bool = False, logged: bool | None = None) -> None:
        """When everybody is gone: sweep, check, let the leases end, do all that is left, check again."""
        if world.broken is not None:
            raise world.broken
        killed = cut or any(actor.was_killed for actor in world.actors)
        if not killed and all(note["answer"] in ANSWERS for note in world.told):
            promise.handed_out(world)
        if not cut:
            promise.exclusive(world)
            promise.within_limits(world)
        if self.mode in CALM:
            promise.no_wonder(world)
        logged = (self.logged and not cut) if logged is None else logged
        world.alone(92, "janitor")
        hand = Hand(self.package, world.root, "janitor")
        try:
            hand.yard.sweep()
            if cut:
                hand.yard.sweep()
            promise.after_a_sweep(world, hand, self.known, logged=logged and not world.network, cut=cut)
            for _ in range(3):
                world.advance(LONG)
                hand.yard.sweep()
            self._say_again(hand)
            self._finish(world, hand)
            world.advance(LONG)
            hand.yard.sweep()  # what is ended stays so, whatever else lies around
            promise.in_the_end(world)
            promise.after_a_sweep(world, hand, self.known, logged=logged, cut=cut)
        except hand._errors as error:
            raise Violation("stuck", f"after the run: {type(error).__name__}: {error}") from error
        if world.broken is not None:
            raise world.broken

    def _say_again(self, hand: Hand) -> None:
        """Whoever got no answer to an add with a key says it again: the key must lead to a task."""
        for note in [note for note in hand.world.told if note["verb"] == "add" and note.get("key")]:
            hand.add(note["kind"], note["data"], key=note["key"])

    def _finish(self, world: World, hand: Hand) -> None:
        """Somebody does all the work that is left, whatever was asked for."""
        for _ in range(MOST):
            claim = hand.claim()
            if claim is not None:
                hand.done(claim, {"by": "whoever came last"})
                continue
            if not self._is_left(world):
                return
            world.advance(LONG)
            hand.yard.sweep()

    @staticmethod
    def _is_left(world: World) -> bool:
        """Whether something waits, is blocked or is held."""
        open_states = tuple(f"{world.root}/{state}/" for state in ("waiting", "blocked", "processing"))
        assert world.watch is not None
        return any(path.startswith(open_states) for paths in world.watch.places.values() for path in paths)
