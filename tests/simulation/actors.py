"""Processes that take turns: each runs the real code, and stands still before every call that others could notice."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from .kernel import CHANGING, LISTING_ENDS, NETWORK_ROOT, ROOT, SECOND, Descriptors
from .watch import Violation, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .files import Files
    from .package import Package

BEGIN = 1_769_860_800 * SECOND  # 2026-01-31T12:00:00Z: an hour's beginning, so that its log has one page
VIEW = 30 * SECOND  # how long a client of a file server goes on believing what it has seen
KILL, LOST, MISSED, TWICE = "kill", "lost", "missed", "twice"
BEFORE = "before"  # marks a call of somebody who gets ready, or cleans up afterwards
FAULTS = ("ENOSPC", "EIO", "EMFILE", "ESTALE")


class Gone(BaseException):
    """The process was killed: nothing of it runs any more."""


class Actor:
    """One process: what it does, what it has open, what it was told."""

    def __init__(self, world: World, number: int, name: str) -> None:
        self.world = world
        self.number = number
        self.name = name
        self.opened = Descriptors()
        self.paths: dict[int, str] = {}
        self.view: dict[str, int | None] = {}
        """What it has seen of names by itself, and believes still; None for a name that was not there."""
        self.drawn = 0
        self.is_racing = False
        """Whether others may go between its calls: not while it gets ready."""
        self.is_dead = False
        self.was_killed = False
        self.pending: tuple[str, tuple[Any, ...], dict[str, Any]] | None = None
        self.history = 0
        self._made = 0
        self._green: greenlet | None = None

    def fresh(self) -> int:
        """A number for a new file: its own, so that it is the same whoever else makes one."""
        self._made += 1
        return (self.number + 1) * 1_000_000 + self._made

    def begin(self, work: Callable[[], object]) -> None:
        """Start, get ready, and stand still before the first call after that: a script gets ready up to its `yield`."""

        def run(_: None) -> None:
            try:
                script = work()
                if isinstance(script, Generator):
                    next(script)
                    self.is_racing = True
                    for _never in script:
                        raise AssertionError("a script gets ready once")
            except Gone:
                return

        self._green = greenlet(run)
        self.resume(None)

    def resume(self, answer: Any) -> None:
        """Go on with this answer, up to the next call or the end."""
        assert self._green is not None
        self.pending = None
        self.world.me = self
        self._green.switch(answer)
        if self._green.dead and not self.is_dead:
            self.end()

    def end(self) -> None:
        """Killed, or at its end without a word: the kernel closes what it has open, and its locks are free."""
        self.is_dead = True
        self.pending = None
        for opened in self.opened.values():
            if opened.number in opened.node.locks:
                self.world.files.locked(opened.node, opened.number, None)
        self.opened.clear()

    def bury(self) -> None:
        """Let go of its frames; whatever they do at their end is not done."""
        self.is_dead = True
        if self._green is not None and not self._green.dead:
            self.world.me = self
            self._green.throw(Gone)


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
        self.me: Actor = Actor(self, 90, "stage")
        self.trace: list[tuple[Actor, str, tuple[Any, ...], str, str]] = []
        """Who called what, with which answer, and what was done to the call."""
        self.contended: set[object] | None = None
        """Names and files that several processes look at or change; None for all: there everybody stands still."""
        self.used: dict[object, dict[str, set[int]]] = {}
        self.deviations: Callable[[World, Actor], Sequence[str]] = lambda _world, _actor: ()
        self.budget = 0
        """How many more times something may go wrong in this run."""
        self.moving = 0
        """How often time is still to pass as somebody's step."""
        self.watch: Watch | None = None
        self.broken: Violation | None = None
        self.told: list[dict[str, Any]] = []
        self._scheduler = getcurrent()
        package.kernel.world = self

    @property
    def pruned(self) -> set[str]:
        """Tasks that were let go on purpose."""
        return set() if self.watch is None else self.watch.left

    # What actors call

    def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Make a call, after standing still if others could notice, or if something could go wrong."""
        me = self.me
        if me.is_dead:
            raise Gone
        if not me.is_racing or self._is_private(me, name, args):
            return self._answered(self._made(me, name, args, options, ""))
        me.pending = (name, args, options)
        answer = self._scheduler.switch()
        if me.is_dead:
            raise Gone
        return self._answered(answer)

    def _is_private(self, me: Actor, name: str, args: tuple[Any, ...]) -> bool:
        if self.contended is None:
            return False
        if not self.contended.isdisjoint(self.package.kernel.about(me, name, args)):
            return False
        return not (self.budget and self._wrong(me, name, args))

    def _wrong(self, me: Actor, name: str, args: tuple[Any, ...]) -> Sequence[str]:
        me.pending = (name, args, {})
        possible = self.deviations(self, me)
        me.pending = None
        return possible

    @staticmethod
    def _answered(answer: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def heard(self, fact: object) -> None:
        """Somebody has learned something without a call."""
        self.me.history = hash((self.me.history, fact))

    def advance(self, seconds: float) -> None:
        """Time passes, for everybody."""
        self.files.now += round(seconds * SECOND)
        if seconds * SECOND > VIEW:
            for actor in self.actors:
                actor.view.clear()

    # Making calls

    def _made(self, actor: Actor, name: str, args: tuple[Any, ...], options: dict[str, Any], wrong: str) -> Any:
        """Make the call for this actor, with this gone wrong; its answer, or its error."""
        kernel = self.package.kernel
        self.files.seen.clear()
        answer: Any
        try:
            if wrong in FAULTS:
                number = getattr(errno, wrong)
                raise OSError(number, os.strerror(number), args[0] if args and isinstance(args[0], str) else None)
            if name == "advance":
                self.moving -= 1
                self.advance(*args)
                answer = None
            elif name == LISTING_ENDS:
                answer = kernel.do_listdir(actor, args[0])
                before = set(args[1])
                now = set(answer)
                answer = sorted(before | now if args[2] == TWICE else before & now)
            else:
                answer = getattr(kernel, f"do_{name}")(actor, *args, **options)
            if wrong == LOST:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), args[0])
        except OSError as error:
            answer = error
        self.account(actor)
        shown = _shown(answer)
        actor.history = hash((actor.history, name, args, shown))
        self.trace.append((actor, name, args, shown, wrong if actor.is_racing else BEFORE))
        if self.watch is not None and name in CHANGING:
            try:
                self.watch.after(name, args, isinstance(answer, OSError) and wrong != LOST)
            except Violation as violation:
                self.broken = self.broken or violation
        return answer

    def account(self, actor: Actor | None = None) -> None:
        """Note who looks at or changes what, so that it is known what is contended."""
        actor = actor or self.me
        for how, what in self.files.seen if actor.is_racing else ():
            self.used.setdefault(what, {}).setdefault(how, set()).add(actor.number)
        self.files.seen.clear()

    def step(self, actor: Actor, wrong: str = "") -> None:
        """Let this actor make the call that it stands before, and go on to the next."""
        assert actor.pending is not None
        name, args, options = actor.pending
        if wrong:
            self.budget -= 1
        if wrong == KILL:
            self.trace.append((actor, name, args, "", KILL))
            actor.was_killed = True
            actor.end()
            return
        if wrong in (MISSED, TWICE):
            names = self._made(actor, name, args, options, wrong)
            if not isinstance(names, OSError):
                actor.pending = (LISTING_ENDS, (args[0], tuple(names), wrong), {})
                return
            answer = names
        else:
            answer = self._made(actor, name, args, options, wrong)
        actor.resume(answer)

    def options(self) -> list[tuple[Actor, str]]:
        """Who may go next, and what may go wrong then."""
        live = [actor for actor in self.actors if actor.pending is not None]
        if self.contended is not None:
            for actor in live:
                name, args, _ = actor.pending or ("", (), {})
                if self.contended.isdisjoint(self.package.kernel.about(actor, name, args)):
                    live = [actor]  # nobody else could notice: there is no point in waiting
                    break
        choices = [(actor, "") for actor in live]
        if self.budget:
            choices += [(actor, wrong) for actor in live for wrong in self.deviations(self, actor)]
        return choices

    def key(self) -> object:
        """What decides all that can follow: the disk, and all that every process has been told."""
        parts = tuple((actor.history, actor.is_dead, actor.was_killed) for actor in self.actors)
        return self.files.mark, self.files.now, parts, self.budget

    def schedule(self) -> str:
        """The order of this run, to be repeated."""
        words: list[list[Any]] = []
        for actor, _, _, _, wrong in self.trace:
            if wrong == BEFORE or actor not in self.actors:
                continue
            letter = "abcdefghijklmnopqrstuvwxyz"[actor.number]
            if not wrong and words and words[-1][0] == letter and words[-1][2] == "":
                words[-1][1] += 1
            else:
                words.append([letter, 1, wrong])
        return ",".join(f"{letter}:{wrong}" if wrong else f"{letter}{count}" for letter, count, wrong in words)

    def over(self) -> None:
        """Let go of all that is left of the actors."""
        for actor in self.actors:
            actor.bury()


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
