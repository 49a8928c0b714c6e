"""A yard's own settings, in any store: what is legal, and the defaults for the rest."""

from __future__ import annotations

from taskyard.core.draft import LEASE_LEAST, LEASE_MOST
from taskyard.core.errors import Unavailable
from taskyard.core.retry import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DURABILITY = "durable"
GROUP = "group"
_POLICY = ("max_attempts", "max_crashes", "backoff", "backoff_cap", "lease", "sweep_every")
_COUNT = 999_999_999  # nine digits of a name
_SECONDS = 1e9
BOUNDS = {
    "max_attempts": (1, _COUNT),
    "max_crashes": (1, _COUNT),
    "backoff": (0.0, _SECONDS),
    "backoff_cap": (0.0, _SECONDS),
    "lease": (
        LEASE_LEAST,
        LEASE_MOST,
    ),  # those of a task's own: a lease of 0 would be over before `claim` returns
    "sweep_every": (0.001, _SECONDS),  # waiters look again at this interval, and must not spin
    "settle": (0.0, _SECONDS),
    "retention_age": (0.0, 1e12),
    "retention_count": (0, 10**12),
}
"""The least and the most of each numeric setting; it must be a whole number if both bounds are."""


class Retention:
    """How long ended tasks and events are kept: `age` in seconds, and `count` of them at most; None is without limit."""

    __slots__ = ("age", "count")

    def __init__(self, age: float | None = None, count: int | None = None) -> None:
        self.age = age
        self.count = count


class Settings:
    """A yard's own settings."""

    __slots__ = ("checks", "copy_of", "durability", "policy", "retention", "settle", "shared")

    def __init__(
        self,
        durability: str,
        policy: Policy,
        retention: Retention,
        settle: int | None,
        checks: dict[str, list[str]],
        shared: bool = False,
        copy_of: str | None = None,
    ) -> None:
        self.copy_of = copy_of
        """The yard that this one is a copy of, until the copy is finished."""
        self.shared = shared
        """Whether the group may use everything that is made here."""
        self.checks = checks
        """The command of each check, by the name that a task's `verify` refers to."""
        self.durability = durability
        self.policy = policy
        self.retention = retention
        self.settle = settle
        """Milliseconds from its last change until a dropped file that does not parse is set aside; None for the default."""


def parse(given: Any, file: str) -> Settings:
    """Return the settings in this object; `file` is the file or place that messages name."""
    if not isinstance(given, dict):
        raise Unavailable(f"'settings' in {file} must be an object")
    durability = given.get("durability", DURABILITY)
    if durability not in ("fast", "durable", "strict"):
        raise Unavailable(f"'durability' in {file} must be fast, durable or strict, not {durability!a}")
    numbers = {name: _number(file, name, given[name]) for name in BOUNDS if given.get(name) is not None}
    shared = given.get("shared")
    if shared not in (None, GROUP):
        raise Unavailable(f"'shared' in {file} must be {GROUP}, or not there, not {shared!a}")
    settle = round(numbers["settle"] * 1000) if "settle" in numbers else None
    return Settings(
        durability,
        Policy(**{name: numbers[name] for name in _POLICY if name in numbers}),
        Retention(numbers.get("retention_age"), numbers.get("retention_count")),
        settle,
        _checks(file, given.get("checks", {})),
        shared is not None,
        None if given.get("copy_of") is None else str(given["copy_of"]),
    )


def _number(file: str, name: str, value: Any) -> Any:
    """Return the setting if it is a number within its bounds, else raise `Invalid`."""
    least, most = BOUNDS[name]
    whole = isinstance(least, int)
    legal = type(value) in (int, float) and least <= value <= most and (not whole or value == int(value))
    if not legal:
        raise Unavailable(
            f"{name!r} in {file} must be a {'whole ' if whole else ''}number from {least:g} to {most:.10g}, not {value!a}"
        )
    return int(value) if whole else value


def refuse_unfinished(copy_of: str | None, label: str) -> None:
    """Raise an error if the yard is an unfinished copy: half of its tasks may be missing."""
    if copy_of is not None:
        raise Unavailable(
            f"the yard {label} is an unfinished copy of {copy_of}",
            hint="finish it by saying 'taskyard copy' again, with the same two yards",
        )


def _checks(file: str, given: Any) -> dict[str, list[str]]:
    """Return checks by name, each a list of words; a single text would need a shell, and none is used here."""
    if not isinstance(given, dict):
        raise Unavailable(f"'checks' in {file} must be an object")
    for name, words in given.items():
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise Unavailable(f'the check {name!a} in {file} must be a list of words, such as ["make", "test"]')
    return given
