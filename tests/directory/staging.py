"""Interleavings on purpose: a disk that runs somebody else's step at a chosen call, actors that take turns, and deaths."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Where it matters who comes first: looks and listings between these change nothing.
DECIDING = frozenset(("create", "publish", "rename", "exists", "unlink", "mkdir", "link", "read"))
NEVER = 1e9  # seconds to the next sweep that nobody has asked for


class Staged:
    """A disk; every call goes through `cue`, which is told the call's name, its paths, and whether it was made already."""

    def __init__(self, cue: Callable[[str, str, bool], object]) -> None:
        self._disk = Disk()
        self._cue = cue
        self._inside = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._disk, name)

        def staged(*args: Any, **options: Any) -> Any:
            paths = " ".join(arg for arg in args if isinstance(arg, str))
            self._tell(name, paths, False)
            answer = call(*args, **options)
            self._tell(name, paths, True)
            return answer

        return staged

    def _tell(self, name: str, paths: str, made: bool) -> None:
        if not self._inside:
            self._inside = True
            try:
                self._cue(name, paths, made)
            finally:
                self._inside = False


class Step:
    """Somebody else's step, taken once: before or after the first call of this name with this in its paths."""

    def __init__(self, when: str, call: str, part: str, step: Callable[[], object]) -> None:
        self._made, self._call, self._part, self._step = when == "after", call, part, step
        self.taken = False

    def __call__(self, name: str, paths: str, made: bool) -> None:
        if not self.taken and (name, made) == (self._call, self._made) and self._part in paths:
            self.taken = True
            self._step()


class AtCall:
    """Somebody else's step, taken once: before the call of this number."""

    def __init__(self, number: int, step: Callable[[], object]) -> None:
        self._left, self._step = number, step
        self.taken = False
        self.call = ""

    def __call__(self, name: str, paths: str, made: bool) -> None:
        if made or self.taken:
            return
        self._left -= 1
        if not self._left:
            self.taken, self.call = True, f"{name} {paths}"
            self._step()


def yard_on(url: str, cue: Callable[[str, str, bool], object] | None = None, worker: str = "ada") -> Yard:
    """A yard that nobody sweeps unasked, on a staged disk if there is a cue."""
    disk = None if cue is None else cast("Disk", Staged(cue))
    store = DirectoryStore(url, None, disk)
    store.policy.sweep_every = NEVER
    return Yard(store, worker)


def every_call(play: Callable[[int], AtCall]) -> int:
    """Play for call 1, 2, 3, ... until there is no call of that number; how many there were."""
    for number in itertools.count(1):
        if not play(number).taken:
            assert number > 1, "nothing was tried"
            return number - 1
    raise AssertionError


def dead(work: Callable[[], object]) -> None:
    """Do this work in a forked child that must kill itself in the midst of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"the child was to die, and ended with {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Turns:
    """Two actors whose calls are made one at a time, in an order that is given."""

    def __init__(self, order: Iterator[int], watch: Callable[[], object], deciding: frozenset[str] = DECIDING) -> None:
        self._order = order
        self._deciding = deciding
        self._watch = watch
        self._changed = threading.Condition()
        self._running = [True, True]
        self._next = next(order)
        self.calls = [0, 0]
        self._playing = False

    def cue(self, actor: int) -> Callable[[str, str, bool], object]:
        def wait(name: str, paths: str, made: bool) -> None:
            if made or not self._playing or name not in self._deciding:
                return
            with self._changed:
                self.calls[actor] += 1
                self._watch()
                self._advance()
                self._changed.wait_for(lambda: self._next == actor or not self._running[1 - actor], timeout=10)

        return wait

    def _advance(self) -> None:
        self._next = next(self._order, self._next)
        self._changed.notify_all()

    def play(self, *works: Callable[[], object]) -> None:
        """Run both to their ends."""
        failures: list[BaseException] = []
        self._playing = True

        def run(actor: int) -> None:
            with self._changed:
                self._changed.wait_for(lambda: self._next == actor or not self._running[1 - actor], timeout=10)
            try:
                works[actor]()
            except BaseException as error:
                failures.append(error)
            with self._changed:
                self._running[actor] = False
                self._changed.notify_all()

        threads = [threading.Thread(target=run, args=(actor,)) for actor in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "the actors wait for one another"
        self._watch()
        if failures:
            raise failures[0]


def drop(url: str, name: str, content: Any) -> Path:
    """Put a file into the drop box."""
    path = Path(url, "todo", name)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
