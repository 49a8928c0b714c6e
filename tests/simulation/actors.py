"""Processes that take turns on one disk: each stands before a call, and whoever is on makes it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from .kernel import CHANGING, LISTING_ENDS, NETWORK_ROOT, ROOT, SECOND, Descriptors, is_silent
from .watch import Violation, Watch, task_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .files import Files
    from .package import Package
    from .program import Call, Node, Program

BEGIN = 1_769_860_800 * SECOND  # 2026-01-31T12:00:00Z: an hour's beginning, so that its log has one page
VIEW = 30 * SECOND  # how long a client of a file server goes on believing what it has seen
KILL, LOST, MISSED, TWICE, FOREIGN = "kill", "lost", "missed", "twice", "foreign"
BEFORE = "before"  # marks a call of somebody who gets ready, or cleans up afterwards
FAULTS = ("ENOSPC", "EIO", "EMFILE", "ESTALE")


Trail = tuple[Any, int, str] | None


class Actor:
    """One process as the model knows it: where its code stands, what it has open, what it has seen."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.node: Node | None = None
        self.half: Call | None = None
        """A call that has begun and is not over."""
        self.opened = Descriptors()
        self.paths: dict[int, str] = {}
        self.view: dict[str, int | None] = {}
        """What it has seen of names by itself, and believes still; None for a name that was not there."""
        self.is_racing = False
        """Whether others may go between its calls: not while it gets ready."""
        self.was_killed = False
        self.shut_out = ""
        """A folder of another user, who keeps it to himself: what is in it is not for this process."""
        self.budget = 0
        """How many more times something may go wrong for it."""
        self.said = ""
        """All that it has said and was answered, once it is gone."""
        self._is_shared = False
        """Whether a copy has the same dictionaries: what changes one of them makes its own first."""
        self._rests = 0
        self._made = 0
        self._numbered = 0

    def fork(self) -> Actor:
        """The same, to go on from."""
        self._is_shared = True
        twin = Actor.__new__(Actor)
        twin.__dict__.update(self.__dict__)
        return twin

    def own(self) -> None:
        """Have for itself what copies have in common: it is about to make a call."""
        if self._is_shared:
            self.opened, self.paths, self.view = Descriptors(self.opened), self.paths.copy(), self.view.copy()
            self._is_shared = False

    def rest(self) -> object:
        """All that counts of it besides what its code remembers; what it makes is numbered from here on as on any other way."""
        self._rests += 1
        self._made = self._numbered = 1_000 * self._rests
        opened = tuple(sorted((number, self.paths[number]) for number in self.opened))
        return tuple(sorted(self.opened.items())), opened, self.shut_out

    def fresh(self) -> int:
        """A number for a new file: its own, so that it is the same whoever else makes one."""
        self._made += 1
        return (self.number + 1) * 1_000_000 + self._made

    def numbered(self) -> int:
        """A number for what it opens."""
        self._numbered += 1
        return (self.number + 1) * 1_000_000 + self._numbered

    @property
    def pending(self) -> Call | None:
        """The call that it stands before; None if it is gone."""
        return self.half or (None if self.node is None else self.node.call)


class Sole(Actor):
    """A process that has the disk for itself: whoever sets the stage, and the janitor afterwards."""

    def __init__(self, world: World, number: int, name: str) -> None:
        super().__init__(number, name)
        self._world = world
        self.seed = world.seed
        self.drawn = 0
        self.folders: dict[int, str] = {}

    def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Make the call, now."""
        world = self._world
        world.files.seen.clear()
        if world.trace is None and name not in CHANGING:  # nobody asks what it was, and an end has thousands of them
            kernel = world.package.kernel
            kernel.world = world
            return kernel.calls[name](self, *args, **options)
        answer = world.made(self, name, args, options)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def end(self) -> None:
        """At its end without a word."""
        self._world.package.kernel.closed(self)


class World:
    """One run: a disk, the processes on it, and who goes next."""

    def __init__(self, package: Package, files: Files, *, network: bool = False, stale: bool = False, seed: int = 0):
        self.package = package
        self.files = files
        self.root = NETWORK_ROOT if network else ROOT
        self.network = network
        self.stale = stale
        self.seed = seed
        self.actors: list[Actor] = []
        self.trace: list[tuple[Actor, str, tuple[Any, ...], str, str]] | None = []
        """Who called what, with which answer, and what was done to the call; None where nobody wants to know."""
        self.trail: Trail = None
        """The turns so far, the last first."""
        self.deviations: Callable[[World, Actor], Sequence[str]] = lambda _world, _actor: ()
        self.minded: Callable[[World, Actor, object], bool] = lambda _world, _actor, _what: True
        """Whether others may change this while the actor looks at it."""
        self._sole: Sole | None = None
        self.watch: Watch | None = None
        self._owns_watch = True
        self.broken: Violation | None = None
        self.told: list[dict[str, Any]] = []
        self.programs: list[Program] = []
        package.kernel.world = self

    def fork(self) -> World:
        """The same run, to go on from in another way."""
        twin = World.__new__(World)
        twin.__dict__.update(self.__dict__)
        twin.files = self.files.fork()
        twin.actors = [actor.fork() for actor in self.actors]
        twin.told = list(self.told)
        self._owns_watch = twin._owns_watch = False
        return twin

    def alone(self, number: int, name: str) -> Sole:
        """Somebody who has the disk for itself from now on."""
        self._sole = actor = Sole(self, number, name)
        self.package.kernel.world, self.package.kernel.me = self, actor
        return actor

    @property
    def pruned(self) -> set[str]:
        """Tasks that were let go on purpose."""
        return set() if self.watch is None else self.watch.left

    def advance(self, seconds: float) -> None:
        """Time passes, for everybody."""
        self.files.now += round(seconds * SECOND)
        if seconds * SECOND > VIEW:
            for actor in (*self.actors, *([] if self._sole is None else [self._sole])):
                actor.view = {}

    # Making calls

    def begin(self, programs: list[Program]) -> None:
        """Everybody starts, gets ready, and stands still before the first call after that."""
        self.programs = programs
        for actor, program in zip(self.actors, programs, strict=True):
            actor.node = program.root
            self._on(actor)

    def made(self, actor: Actor, name: str, args: tuple[Any, ...], options: dict[str, Any], wrong: str = "") -> Any:
        """Make the call for this actor, with this gone wrong; its answer, or its error."""
        silent = is_silent(actor, name, args)
        answer = self._answer(actor, name, args, options, wrong)
        if not silent:
            self._noted(actor, name, args, answer, wrong)
        return answer

    def _answer(self, actor: Actor, name: str, args: tuple[Any, ...], options: dict[str, Any], wrong: str = "") -> Any:
        kernel = self.package.kernel
        kernel.world = self
        actor.own()
        try:
            if wrong or actor.shut_out or name == LISTING_ENDS:
                return self._amiss(actor, name, args, options, wrong)
            return kernel.calls[name](actor, *args, **options)
        except OSError as error:
            return error.with_traceback(None)

    def _amiss(self, actor: Actor, name: str, args: tuple[Any, ...], options: dict[str, Any], wrong: str) -> Any:
        """Make a call that goes wrong, or is in the midst of that, or may not be made."""
        kernel = self.package.kernel
        if wrong in FAULTS:
            number = getattr(errno, wrong)
            raise OSError(number, os.strerror(number), args[0] if args and isinstance(args[0], str) else None)
        if actor.shut_out and any(_is_within(arg, actor.shut_out) for arg in args):
            if name not in ("access", "exists"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), args[0])
            return False
        if name == LISTING_ENDS:
            answer = kernel.do_listdir(actor, args[0])
            before, now = set(args[1]), set(answer)
            return sorted(before | now if args[2] == TWICE else before & now)
        answer = kernel.calls[name](actor, *args, **options)
        if wrong == LOST:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), args[0])
        return answer

    def _noted(self, actor: Actor, name: str, args: tuple[Any, ...], answer: Any, wrong: str) -> None:
        if actor.is_racing:
            self.trail = (self.trail, actor.number, wrong)
        if self.trace is not None:
            self.trace.append((actor, name, args, _shown(answer), wrong if actor.is_racing else BEFORE))
        if self.watch is None or name not in CHANGING:
            return
        for arg in args:
            task = task_at(self.root, arg) if isinstance(arg, str) else None
            if task is not None:
                self.files.seen.append(("w", ("task", task[0])))
        if not self._owns_watch:
            self.watch, self._owns_watch = self.watch.copy(self.files), True
        try:
            self.watch.after(name, args, isinstance(answer, OSError) and wrong != LOST)
        except Violation as violation:
            self.broken = self.broken or violation

    def step(self, actor: Actor, wrong: str = "") -> None:
        """Let this actor make the call that it stands before, and go on to the next."""
        pending = actor.pending
        assert pending is not None
        name, args, options = pending
        self.files.seen.clear()
        if wrong:
            actor.budget -= 1
        if wrong == KILL:
            self.trail = (self.trail, actor.number, wrong)
            if self.trace is not None:
                self.trace.append((actor, name, args, "", KILL))
            actor.was_killed = True
            self._ends(actor)
            return
        if wrong == FOREIGN:
            actor.shut_out = args[0] if name == "listdir" else args[0].rpartition("/")[0]
        answer = self.made(actor, name, args, options, wrong)
        if wrong in (MISSED, TWICE) and not isinstance(answer, OSError):
            actor.half = (LISTING_ENDS, (args[0], tuple(answer), wrong), {})
            return
        actor.half = None
        assert actor.node is not None
        actor.node = actor.node.told(answer)
        self._on(actor)

    def _on(self, actor: Actor) -> None:
        """Up to the next call that others could come before."""
        node = actor.node
        assert node is not None
        while node.call is not None:
            name, args, options = node.call
            if not actor.is_racing:
                node = node.told(self.made(actor, name, args, options))
                continue
            if not is_silent(actor, name, args):
                actor.node = node
                return
            node = node.told(self._answer(actor, name, args, options))
        self._ends(actor)

    def _ends(self, actor: Actor) -> None:
        """Killed, or at its end without a word: the kernel closes what it has open, and its locks are free."""
        actor.node = actor.half = None
        actor.said = repr([note for note in self.told if note["by"] == actor.name])
        self.package.kernel.world = self
        self.package.kernel.closed(actor)

    def ways(self, actor: Actor) -> list[str]:
        """How its next call may come out: as it should, or with something gone wrong."""
        return ["", *(self.deviations(self, actor) if actor.budget else ())]

    def live(self) -> list[Actor]:
        """Who is still on its way."""
        return [actor for actor in self.actors if actor.node is not None and actor.pending is not None]

    def options(self) -> list[tuple[Actor, str]]:
        """Who may go next, and what may go wrong then."""
        return [(actor, wrong) for actor in self.live() for wrong in self.ways(actor)]

    def key(self) -> object:
        """What decides all that can follow: the disk, and all that every process has been told."""
        seen = tuple(frozenset(actor.view.items()) for actor in self.actors) if self.stale else ()
        parts = tuple(map(self._part, self.actors))
        return self.files.mark, self.files.now, parts, seen, self.watch and self.watch.mark()

    def _part(self, actor: Actor) -> object:
        """What counts of this process: all that it was told, or all that it has said and was answered once it is gone."""
        if actor.node is None:
            return actor.was_killed, actor.said
        return actor.node, actor.half and actor.half[1], actor.budget, actor.shut_out

    def schedule(self) -> str:
        """The order of this run, to be repeated."""
        turns = []
        trail = self.trail
        while trail is not None:
            turns.append(trail[1:])
            trail = trail[0]
        words: list[list[Any]] = []
        for number, wrong in reversed(turns):
            letter = "abcdefghijklmnopqrstuvwxyz"[number]
            if not wrong and words and words[-1][0] == letter and words[-1][2] == "":
                words[-1][1] += 1
            else:
                words.append([letter, 1, wrong])
        return ",".join(f"{letter}:{wrong}" if wrong else f"{letter}{count}" for letter, count, wrong in words)

    def over(self) -> None:
        """Let go of all that is left of the actors."""
        for program in self.programs:
            program.close()


def _is_within(arg: object, folder: str) -> bool:
    """Whether this is the path of what is in the folder, or the folder itself, which can be seen but not listed."""
    return isinstance(arg, str) and f"{arg}/".startswith(f"{folder}/")


def _shown(answer: Any) -> str:
    if isinstance(answer, OSError):
        return errno.errorcode.get(answer.errno or 0, "error")
    if answer is None:
        return "ok"
    if isinstance(answer, list):
        return f"[{', '.join(answer)}]"
    if hasattr(answer, "st_ino"):
        return f"inode {answer.st_ino}, {answer.st_nlink} names, {answer.st_size} bytes, time {answer.st_ctime_ns}"
    return str(answer)
