"""What is done and what is done to whom, as pure functions of a seed: the same seed has the same plan.

When the system lets whom go on is not in it, so two runs of one plan are two runs.
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
"""Of the scratch yard: short times, so that much happens; and a killer must not be what makes most tasks fail."""
SKEWS = ("+1h", "-1h", "+40d", "-40d")
_KEYS = 60  # that are fought for at a time
_VERBS = {
    # what puts tasks in
    "add": 16, "add_keyed": 10, "add_after": 5, "add_late": 5, "add_many": 2, "drop": 3, "drop_keyed": 2,
    # what takes a task, and how it ends
    "done": 34, "done_twice": 4, "note_and_done": 5, "fail": 5, "fail_for_good": 2, "release": 5, "forget": 2, "oversleep": 2,
    # what a late, forgetful or meddling process does
    "speak_late": 4, "resume": 2, "cancel": 2, "retry": 2, "edit": 2, "sweep": 2,
}  # fmt: skip
ADDING = frozenset(verb for verb in _VERBS if verb.startswith(("add", "drop")))


class Act(NamedTuple):
    """One thing that a process does."""

    verb: str
    kind: str
    number: int
    """Picks among what the process knows."""
    pause: float
    """Seconds that its work takes."""
    key: str
    picky: bool
    """Whether a claim asks for this kind only."""


class Fault(NamedTuple):
    """One thing that is done to a process."""

    pause: float
    """Seconds after the fault before."""
    slot: int
    kills: bool
    """SIGKILL; else SIGSTOP."""
    stop: float
    """Seconds until SIGCONT, more than a lease."""


class Plan:
    """Everything that is decided beforehand."""

    def __init__(self, seed: int, workers: int) -> None:
        self.seed = seed
        self.workers = workers

    def name(self, slot: int) -> str:
        """The worker's name of a slot, the same in all its lives: every third pair of neighbours has the same."""
        return f"hand-{slot - (slot % 3 == 1)}"

    def skew(self, slot: int, life: int) -> str | None:
        """How wrong this life's clock is, where clocks can be set wrong: every third slot's are."""
        return self._chance("skew", slot, life).choice(SKEWS) if slot % 3 == 2 else None

    def acts(self, slot: int, life: int) -> Iterator[Act]:
        """What a process does, without end."""
        chance = self._chance("acts", slot, life)
        verbs, weights = list(_VERBS), list(_VERBS.values())
        while True:
            verb = chance.choices(verbs, weights)[0]
            yield Act(
                verb,
                chance.choice(KINDS),
                chance.randrange(1 << 16),
                chance.random() ** 3 * 0.02,
                f"key-{life}-{chance.randrange(_KEYS)}",
                chance.random() < 0.3,
            )

    def faults(self) -> Iterator[Fault]:
        """What happens to them, without end."""
        chance = self._chance("faults")
        rate = self.workers + 2.0
        while True:
            yield Fault(
                min(1.0, chance.expovariate(rate)),
                chance.randrange(self.workers),
                chance.random() < 0.75,
                LEASE * chance.uniform(1.1, 1.8),
            )

    def _chance(self, *what: object) -> Random:
        return Random(f"{self.seed} {what}")  # noqa: S311  nobody gains by guessing it
