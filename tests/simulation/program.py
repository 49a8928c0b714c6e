"""A process as a function of the answers that it gets: the real code runs once for each row of answers, and is remembered.

So a process can be at many places at once, one in each order that is tried, and the code need not run again to get there.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from .kernel import Kernel

    Call = tuple[str, tuple[Any, ...], dict[str, Any]]

MOST_RUNS = 400  # that stand still, ready to go on; others are run anew when they are needed

PLAIN = (int, str, bytes, type(None))  # answers that tell themselves apart
REST = "rest"  # the call by which a process says that it is all that it remembers, whatever it was told

Marks = tuple[int, int, int]
"""What is read, appended to and changed, one bit for each name or file."""


class Gone(BaseException):
    """The process is over: nothing of it runs any more."""


class Node:
    """A process after one row of answers: what it calls next, and what it may look at or change from here on."""

    __slots__ = ("after", "answer", "call", "future", "is_known", "next", "noted", "parents", "program", "run")

    def __init__(self, program: Program, parent: Node | None, answer: Any) -> None:
        self.program = program
        self.parents = [] if parent is None else [parent]
        """Where it was before; several, if it has come to remember the same on several ways."""
        self.answer = answer
        """What it was told last."""
        self.call: Call | None = None
        self.after: dict[object, Node] = {}
        self.run: Run | None = None
        """The run that stands here."""
        self.is_known = False
        self.next: Marks = (0, 0, 0)
        """What the next call and all that comes silently after it have looked at or changed, wherever they were made."""
        self.future: Marks = (0, 0, 0)
        """The same of all that can follow, as far as it is known."""
        self.noted: Marks = (0, 0, 0)
        """What the next call touched when it was made last."""

    def told(self, answer: Any) -> Node:
        """Where the process is once it is told this."""
        key = _key(answer)
        node = self.after.get(key)
        if node is None:
            node = self.after[key] = self.program.gone_on(self, answer)
        return node

    def note(self, marks: Marks) -> None:
        """The next call touches all this."""
        if self.is_known and marks == self.noted:
            return
        self.is_known, self.noted = True, marks
        self.next = union(self.next, marks)
        self.foresee(marks)

    def foresee(self, marks: Marks) -> None:
        """All this may be touched from here on, and so from wherever it can come from."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            future = union(node.future, marks)
            if future != node.future:
                node.future = future
                ahead += node.parents


def union(one: Marks, other: Marks) -> Marks:
    return one[0] | other[0], one[1] | other[1], one[2] | other[2]


class Program:
    """One process of a scene, in all its runs."""

    def __init__(self, kernel: Kernel, number: int, name: str, seed: int, work: Callable[[], object]) -> None:
        self.kernel = kernel
        self.number = number
        self.name = name
        self.seed = seed
        self.work = work
        self._rested: dict[object, Node] = {}
        """Where it rests, by all that it remembers there."""
        self._standing: dict[Node, None] = {}
        self.root = Node(self, None, None)
        run = Run(self)
        self._stands(self.root, run, run.go(None))

    def gone_on(self, node: Node, answer: Any) -> Node:
        """The process after one answer more."""
        assert node.call is not None
        if node.call[0] == REST:
            rested = self._rested.get((node.call[1], answer))
            if rested is not None:
                rested.parents.append(node)
                node.foresee(rested.future)
                return rested
        run = node.run or self._again(node)
        self._standing.pop(node, None)
        node.run = None
        after = Node(self, node, answer)
        self._stands(after, run, run.go(answer))
        if node.call[0] == REST:
            self._rested[node.call[1], answer] = after
        return after

    def _stands(self, node: Node, run: Run, call: Call | None) -> None:
        node.call = call
        if call is None:
            return
        node.run = run
        self._standing[node] = None
        if len(self._standing) > MOST_RUNS:
            oldest = next(iter(self._standing))
            self._standing.pop(oldest)
            if oldest.run is not None:
                oldest.run.close()
            oldest.run = None

    def _again(self, node: Node) -> Run:
        """A run with the same answers once more."""
        answers = []
        at = node
        while at.parents:
            answers.append(at.answer)
            at = at.parents[0]
        run = Run(self)
        call = run.go(None)
        for answer in reversed(answers):
            call = run.go(answer)
        assert call is not None and node.call is not None  # noqa: PT018
        assert call[:2] == node.call[:2], f"{self.name} was told the same and calls {call}, not {node.call}"
        return run

    def close(self) -> None:
        """Let go of all runs."""
        for node in self._standing:
            if node.run is not None:
                node.run.close()
            node.run = None
        self._standing.clear()


class Run:
    """The real code, standing before a call until it is told the answer."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.number, self.name, self.seed = program.number, program.name, program.seed
        self.drawn = 0
        self.folders: dict[int, str] = {}
        """Folders that are open, by their numbers."""
        self._rests = 0
        self._is_over = False
        self._home = getcurrent()
        self._green = greenlet(self._work)

    def go(self, answer: Any) -> Call | None:
        """Go on with this answer; the next call, or None at the end."""
        kernel = self._program.kernel
        before, kernel.me = kernel.me, self
        try:
            call: Call | None = self._green.switch(answer)
        finally:
            kernel.me = before
        return call

    def rests(self, *memory: object) -> None:
        """From here on it is what it remembers. Its chance goes on from where it would be however often it was asked."""
        self._rests += 1
        self.drawn = 1_000 * self._rests
        self.folders.clear()
        self.call(REST, (self._rests, memory), {})

    def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What the code calls: it stands still here, and gets whatever answer it is told."""
        if self._is_over:
            raise Gone
        answer = self._home.switch((name, args, options))
        if self._is_over:
            raise Gone
        if isinstance(answer, OSError):
            raise OSError(answer.errno, os.strerror(answer.errno or 0), answer.filename)
        return list(answer) if isinstance(answer, list) else answer

    def _work(self, _: None) -> None:
        try:
            script = self._program.work()
            if isinstance(script, Generator):
                next(script)
                self.call("ready", (), {})
                for _never in script:
                    raise AssertionError("a script gets ready once")
        except Gone:
            return

    def close(self) -> None:
        """Let go of its frames; whatever they do at their end is not done."""
        self._is_over = True
        kernel = self._program.kernel
        before, kernel.me = kernel.me, self
        if not self._green.dead:
            self._green.throw(Gone)
        kernel.me = before


def _key(answer: Any) -> object:
    """What tells this answer from others to the same call."""
    if isinstance(answer, PLAIN):
        return answer
    if isinstance(answer, OSError):
        return "error", answer.errno
    if isinstance(answer, list):
        return tuple(answer)
    if hasattr(answer, "st_ino"):
        return answer.st_ino, answer.st_nlink, answer.st_size, answer.st_mtime_ns, answer.st_ctime_ns
    return answer
