"""The actions and the faults of a torture, as pure functions of a seed: the same seed gives the same plan.

The plan does not control how the system schedules processes, so two runs of one plan differ.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("build", "test", "docs.html")
LEASE = 1.0  # seconds
SETTINGS = {
    "max_attempts": 4,
    "max_crashes": 12,
    "backoff": 0.05,
    "backoff_cap": 0.4,
    "lease": LEASE,
    "sweep_every": 0.3,
}
"""Settings of the scratch yard: short times, so that much happens, and a high `max_crashes`, so that kills fail few tasks."""
SKEWS = ("+1h", "-1h", "+40d", "-40d")
_KEYS = 60  # keys that all processes add under at a time
_VERBS = {
    # add tasks
    "add": 16, "add_keyed": 10, "add_after": 5, "add_late": 5, "add_many": 2, "drop": 3, "drop_keyed": 2,
    # claim a task, by how the claim ends
    "done": 34, "done_twice": 4, "note_and_done": 5, "fail": 5, "fail_for_good": 2, "release": 5, "forget": 2, "oversleep": 2,
    # late verbs, and changes by others
    "speak_late": 4, "resume": 2, "cancel": 2, "retry": 2, "edit": 2, "sweep": 2,
}  # fmt: skip
ADDING = frozenset(verb for verb in _VERBS if verb.startswith(("add", "drop")))


class Action(NamedTuple):
    """One action of a process."""

    verb: str
    kind: str
    number: int
    """Selects among the ids and handles that the process remembers."""
    pause: float
    """Seconds that the work on a claimed task takes."""
    key: str
    only_kind: bool
    """Whether a claim asks for this kind only."""


class Fault(NamedTuple):
    """One kill or stop of a process."""

    pause: float
    """Seconds since the previous fault."""
    slot: int
    kills: bool
    """SIGKILL if true, SIGSTOP if not."""
    stop: float
    """Seconds from SIGSTOP to SIGCONT, longer than a lease."""


class Plan:
    """All actions, faults and clock errors of a torture."""

    def __init__(self, seed: int, workers: int) -> None:
        self.seed = seed
        self.workers = workers

    def name(self, slot: int) -> str:
        """Return the worker's name of a slot, equal for all its processes; of three slots the first two share one."""
        return f"hand-{slot - (slot % 3 == 1)}"

    def skew(self, slot: int, life: int) -> str | None:
        """Return the clock error of a process, which every third slot has; `life` counts the slot's processes."""
        return self._random("skew", slot, life).choice(SKEWS) if slot % 3 == 2 else None

    def actions(self, slot: int, life: int) -> Iterator[Action]:
        """Yield the actions of a process, without end."""
        random = self._random("acts", slot, life)
        verbs, weights = list(_VERBS), list(_VERBS.values())
        while True:
            verb = random.choices(verbs, weights)[0]
            yield Action(
                verb,
                random.choice(KINDS),
                random.randrange(1 << 16),
                random.random() ** 3 * 0.02,
                f"key-{life}-{random.randrange(_KEYS)}",
                random.random() < 0.3,
            )

    def faults(self) -> Iterator[Fault]:
        """Yield the faults, without end."""
        random = self._random("faults")
        rate = self.workers + 2.0
        while True:
            yield Fault(
                min(1.0, random.expovariate(rate)),
                random.randrange(self.workers),
                random.random() < 0.75,
                LEASE * random.uniform(1.1, 1.8),
            )

    def _random(self, *what: object) -> Random:
        return Random(f"{self.seed} {what}")  # noqa: S311  no secret depends on it
