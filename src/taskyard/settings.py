"""A yard's own settings, wherever they are kept: what is legal, and the defaults for the rest."""

from __future__ import annotations

from taskyard.draft import LEASE_MOST
from taskyard.errors import Unavailable
from taskyard.retry import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DURABILITY = "durable"
GROUP = "group"
_POLICY = ("max_attempts", "max_crashes", "backoff", "backoff_cap", "lease", "sweep_every")


class Retention:
    """How long ended tasks and events are kept: for so many seconds, and so many of them; None is for ever."""

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
        """The yard that this one is a copy of, as long as the copy is not finished."""
        self.shared = shared
        """Whether all that is made here is the group's as well."""
        self.checks = checks
        """Commands that tasks may name to be verified by."""
        self.durability = durability
        self.policy = policy
        self.retention = retention
        self.settle = settle
        """Milliseconds that a dropped file which does not parse is left in peace; None for the default of the place."""


def parse(given: Any, file: str) -> Settings:
    """The settings in this object, which stands in that file or place."""
    if not isinstance(given, dict):
        raise Unavailable(f"'settings' in {file} must be an object")
    durability = given.get("durability", DURABILITY)
    if durability not in ("fast", "durable", "strict"):
        raise Unavailable(f"'durability' in {file} must be fast, durable or strict, not {durability!a}")
    numbers = {name: given[name] for name in _POLICY if name in given}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise Unavailable(f"{name!r} in {file} must be a number, not {value!a}")
    if numbers.get("lease", 0) > LEASE_MOST:
        raise Unavailable(f"'lease' in {file} must be at most {LEASE_MOST:g} seconds, not {numbers['lease']!a}")
    limits = {name: given.pop(name, None) for name in ("retention_age", "retention_count", "settle")}
    for name, value in limits.items():
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12
        ):
            raise Unavailable(f"{name!r} in {file} must be a number, not {value!a}")
    shared = given.get("shared")
    if shared not in (None, GROUP):
        raise Unavailable(f"'shared' in {file} must be {GROUP}, or not there, not {shared!a}")
    settle = None if limits["settle"] is None else round(limits["settle"] * 1000)
    return Settings(
        durability,
        Policy(**numbers),
        Retention(limits["retention_age"], limits["retention_count"]),
        settle,
        _checks(file, given.get("checks", {})),
        shared is not None,
        None if given.get("copy_of") is None else str(given["copy_of"]),
    )


def refuse_unfinished(copy_of: str | None, label: str) -> None:
    """Have nobody work in a yard that is still being copied: half of its tasks may be missing."""
    if copy_of is not None:
        raise Unavailable(
            f"the yard {label} is an unfinished copy of {copy_of}",
            hint="finish it by saying 'taskyard copy' again, with the same two yards",
        )


def _checks(file: str, given: Any) -> dict[str, list[str]]:
    """Checks by name, each a list of words; a single text would be a shell's business, and there is no shell here."""
    if not isinstance(given, dict):
        raise Unavailable(f"'checks' in {file} must be an object")
    for name, words in given.items():
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise Unavailable(f'the check {name!a} in {file} must be a list of words, such as ["make", "test"]')
    return given
