"""How often and how soon a task is tried again: attempt in, delay or None out. Pure, and the only place with this rule."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Policy:
    """A yard's settings for attempts and leases, with Taskyard's defaults."""

    __slots__ = ("ageing", "backoff", "backoff_cap", "lease", "max_attempts", "max_crashes", "sweep_every")

    def __init__(
        self,
        max_attempts: int = 3,
        max_crashes: int = 3,
        backoff: float = 5.0,
        backoff_cap: float = 600.0,
        lease: float = 1800.0,
        sweep_every: float = 5.0,
        ageing: float | None = None,
    ) -> None:
        self.max_attempts = max_attempts
        self.max_crashes = max_crashes
        self.backoff = backoff
        self.backoff_cap = backoff_cap
        self.lease = lease
        self.sweep_every = sweep_every
        self.ageing = ageing
        """Seconds of age that are worth one level of priority; None for strict priority (`core.order`)."""

    def become(self, other: Policy) -> None:
        """Take over the settings of another: all parts of an open yard share one, and see a change."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))


def _chance() -> float:
    import random  # 3 ms, and only needed after an error or crash

    return random.random()  # noqa: S311  a delay need not be secret


def backoff(policy: Policy, turn: int, chance: Callable[[], float] = _chance) -> float:
    """Return seconds before the next try: doubled at every turn (0, 1, 2, ...), capped, and spread by a quarter either way."""
    whole = min(policy.backoff_cap, policy.backoff * 2.0 ** min(turn, 30))
    return min(policy.backoff_cap, whole * (0.75 + 0.5 * chance()))


def after_error(policy: Policy, errors: int, max_attempts: int, chance: Callable[[], float] = _chance) -> float | None:
    """Return seconds until the task is tried again after its n-th error, or None if it has failed."""
    return None if errors >= max_attempts else backoff(policy, errors - 1, chance)


def after_crash(policy: Policy, crashes: int, chance: Callable[[], float] = _chance) -> float | None:
    """Return the same for its n-th crash: the first has no delay, because more likely the worker was at fault than the task."""
    if crashes >= policy.max_crashes:
        return None
    return 0.0 if crashes == 1 else backoff(policy, crashes - 2, chance)
