"""A yard's own settings, in any store: what is legal, and the defaults for the rest."""

from __future__ import annotations

from taskyard.core.draft import ATTEMPTS_MOST, LEASE_LEAST, LEASE_MOST
from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.retry import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DURABILITY = "durable"
GROUP = "group"
_POLICY = ("max_attempts", "max_crashes", "backoff", "backoff_cap", "lease", "sweep_every", "ageing")
_COUNT = 999_999_999  # nine digits of a name
_SECONDS = 1e9
BOUNDS = {
    "max_attempts": (1, ATTEMPTS_MOST),
    "max_crashes": (1, _COUNT),
    "backoff": (0.0, _SECONDS),
    "backoff_cap": (0.0, _SECONDS),
    "lease": (
        LEASE_LEAST,
        LEASE_MOST,
    ),  # those of a task's own: a lease of 0 would be over before `claim` returns
    "sweep_every": (0.001, _SECONDS),  # waiters look again at this interval, and must not spin
    "ageing": (0.001, _SECONDS),
    "settle": (0.0, _SECONDS),
    "retention_age": (0.0, 1e12),
    "retention_count": (0, 10**12),
    "max_todo": (0, 10**12),
}
"""The least and the most of each numeric setting; it must be a whole number if both bounds are."""


KIND_BOUNDS = {"concurrency": (1, _COUNT), "rate": (1, 10_000), "max_todo": BOUNDS["max_todo"]}
"""The same of the settings of one kind, all of them whole numbers."""


class KindLimits:
    """The limits of one kind; None is without limit."""

    __slots__ = ("concurrency", "max_todo", "rate")

    def __init__(self, concurrency: int | None = None, rate: int | None = None, max_todo: int | None = None) -> None:
        self.concurrency = concurrency
        """How many of its tasks can be in processing at a time."""
        self.rate = rate
        """How many of its tasks can be claimed in any minute."""
        self.max_todo = max_todo


class Retention:
    """How long ended tasks and events are kept: `age` in seconds, and `count` of them at most; None is without limit."""

    __slots__ = ("age", "count")

    def __init__(self, age: float | None = None, count: int | None = None) -> None:
        self.age = age
        self.count = count


class Settings:
    """A yard's own settings."""

    __slots__ = (
        "checks",
        "copy_of",
        "durability",
        "features",
        "kinds",
        "max_todo",
        "policy",
        "retention",
        "settle",
        "shared",
    )

    def __init__(
        self,
        durability: str,
        policy: Policy,
        retention: Retention,
        settle: int | None,
        checks: dict[str, list[str]],
        shared: bool = False,
        copy_of: str | None = None,
        max_todo: int | None = None,
        kinds: dict[str, KindLimits] | None = None,
    ) -> None:
        self.features: frozenset[str] = frozenset()
        """What a directory's clients must know."""
        self.max_todo = max_todo
        self.kinds = {} if kinds is None else kinds
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
        numbers.get("max_todo"),
        _kinds(file, given.get("kinds")),
    )


def _number(file: str, name: str, value: Any, bounds: tuple[float, float] | None = None) -> Any:
    """Return the setting if it is a number within its bounds, else raise `Unavailable`."""
    least, most = bounds or BOUNDS[name]
    whole = isinstance(least, int)
    legal = type(value) in (int, float) and least <= value <= most and (not whole or value == int(value))
    if not legal:
        raise Unavailable(
            f"{name!r} in {file} must be a {'whole ' if whole else ''}number from {least:.13g} to {most:.13g}, not {value!a}"
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


def _kinds(file: str, given: Any) -> dict[str, KindLimits]:
    """Return the limits of each kind that has some."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Unavailable(f"'kinds' in {file} must be an object")
    found = {}
    for kind, limits in given.items():
        if limits is None:
            continue
        if not isinstance(limits, dict):
            raise Unavailable(f'the kind {kind!a} in {file} must be an object, such as {{"concurrency": 2}}')
        found[kind] = KindLimits(
            **{
                name: _number(file, f"kinds.{kind}.{name}", limits[name], bounds)
                for name, bounds in KIND_BOUNDS.items()
                if limits.get(name) is not None
            }
        )
    return found


# Changing them: pure functions on the settings as they are written.

_NESTED = {
    "kinds": 2,
    "checks": 1,
}  # settings that are objects, and how many levels of their names can be changed alone
_FIXED = {
    "shared": "'taskyard init --shared' chooses it for a new yard; docs/trust.md has how to share an old one",
    "copy_of": "'taskyard copy' sets it, and takes it back when the copy is finished",
    "tokens": "'taskyard token' makes and revokes them",
    "file_conflicts": "'taskyard sync' sets them, and takes them back when they are settled",
}
_LEFT_OUT = ("tokens", "file_conflicts")  # kept with the settings, and shown elsewhere


def defaults() -> dict[str, Any]:
    """Return every setting with its default; None is without limit, or as the store chooses."""
    policy = Policy()
    return {
        "durability": DURABILITY,
        **{name: getattr(policy, name) for name in _POLICY},
        **dict.fromkeys(("settle", "retention_age", "retention_count", "max_todo")),
        "checks": {},
        "kinds": {},
    }


def effective(written: dict[str, Any]) -> dict[str, Any]:
    """Return every setting as it counts: as it is written, else its default; with those that this version does not know.

    Tokens are left out: who may look at settings need not know who else there is. So are conflicts of files, which are no setting.
    """
    shown = {name: value for name, value in written.items() if value is not None and name not in _LEFT_OUT}
    return {**defaults(), **shown}


def changed(written: dict[str, Any], changes: Any) -> dict[str, Any]:
    """Return the settings with these changes, in which None takes one back; raise `Invalid` if they are no legal settings.

    The limits of a kind, and checks, are changed one by one. What this version does not know is kept.
    """
    if not isinstance(changes, dict) or not changes:
        raise Invalid("settings are changed by name", hint="such as max_todo=1000, or kinds.build.concurrency=2")
    known = defaults()
    for name in changes:
        if name in _FIXED:
            raise Invalid(f"the setting {name!r} cannot be changed so", hint=_FIXED[name])
        if name not in known:
            raise Invalid(f"there is no setting {name!a}", hint=f"there are {', '.join(known)}")
    _refuse_odd_kinds(changes.get("kinds"))
    result = _merged(written, changes, 0)
    try:
        parse(result, "these settings")
    except Unavailable as error:
        raise Invalid(error.message) from None
    return result


def _refuse_odd_kinds(given: Any) -> None:
    """Raise `Invalid` for a kind that no task can have, and for a limit that there is not."""
    from taskyard.core import words

    for kind, limits in given.items() if isinstance(given, dict) else ():
        words.kind(kind)
        for name in limits if isinstance(limits, dict) else ():
            if name not in KIND_BOUNDS:
                raise Invalid(f"a kind has no limit {name!a}", hint=f"there are {', '.join(KIND_BOUNDS)}")


def _merged(written: Any, changes: dict[str, Any], level: int, depth: int = 0) -> dict[str, Any]:
    """Return the object with these changes; below `depth` levels a change replaces all that was there."""
    result = dict(written) if isinstance(written, dict) else {}
    for name, value in changes.items():
        deeper = _NESTED.get(name, 0) if level == 0 else depth - 1
        if value is None:
            result.pop(name, None)
        elif deeper > 0 and isinstance(value, dict):
            result[name] = _merged(result.get(name), value, level + 1, deeper)
            if not result[name]:
                del result[name]
        else:
            result[name] = value
    return result
