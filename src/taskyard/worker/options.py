"""The options of one run of a worker."""

from __future__ import annotations

from taskyard.core import draft, times, words
from taskyard.core.errors import Invalid
from taskyard.yard import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.options import Duration

CONCURRENCY_MOST = 1000


class Options:
    """How many tasks at a time, of which kinds and mission, and when to end."""

    __slots__ = (
        "alive",
        "concurrency",
        "drain",
        "grace",
        "idle_exit",
        "kinds",
        "max_tasks",
        "mission",
        "once",
        "processes",
    )

    def __init__(
        self,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        concurrency: int = 1,
        processes: bool = False,
        drain: bool = False,
        once: bool = False,
        max_tasks: int | None = None,
        idle_exit: Duration | None = None,
        grace: Duration = 10.0,
        alive: str | None = None,
    ) -> None:
        self.kinds = None if kinds is None else arguments.kinds(kinds)
        self.mission = None if mission is None else words.text(mission, "mission")
        self.concurrency = draft.integer(concurrency, "concurrency", 1, CONCURRENCY_MOST)
        self.processes = processes
        self.drain = drain
        self.once = once
        self.max_tasks = None if max_tasks is None else draft.integer(max_tasks, "max_tasks", 1, 10**9)
        self.idle_exit = None if idle_exit is None else times.seconds(idle_exit, "idle_exit")
        self.grace = times.seconds(grace, "grace")
        self.alive = alive
        """The path of the file that is touched at each sign of life."""
        if alive is not None and processes:
            raise Invalid(
                "alive and processes exclude each other",
                hint="one file cannot speak for several processes: use threads",
            )
        if once and max_tasks is not None:
            raise Invalid(
                "once and max_tasks exclude each other",
                hint="once is max_tasks=1, and ends at once if there is nothing",
            )
        if once:
            self.max_tasks = 1

    def share(self, number: int) -> Options:
        """Return the options of one process of a run: one task at a time, and its part of the tasks."""
        twin = Options.__new__(Options)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.processes, twin.concurrency = False, 1
        if self.max_tasks is not None:
            twin.max_tasks = self.max_tasks // self.concurrency + (number < self.max_tasks % self.concurrency)
        return twin


OPTIONS = Options.__slots__


class Tally:
    """How many tasks ended in each way in one run."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.why: dict[str, Any] | None = None
        """Why a run with `drain` left tasks behind (`yard.why`); None if it left none."""

    def add(self, ending: str, number: int = 1) -> None:
        """Count `number` more tasks with this ending."""
        self.counts[str(ending)] = self.counts.get(ending, 0) + number

    def __getitem__(self, ending: str) -> int:
        return self.counts.get(ending, 0)

    @property
    def total(self) -> int:
        """The number of all tasks."""
        return sum(self.counts.values())

    def as_dict(self) -> dict[str, int]:
        """Return the counts by ending."""
        return dict(self.counts)

    def __repr__(self) -> str:
        return f"<Tally {self.counts}>"
