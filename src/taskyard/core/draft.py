"""A new task, checked: what `add` accepts, with Taskyard's limits. Every store takes drafts, so all accept the same tasks."""

from __future__ import annotations

from taskyard.core import json_codec, needs, resources, times, words
from taskyard.core.errors import Invalid
from taskyard.core.task import REVIEW, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.task import State

PAYLOAD_MOST = 1 << 20
NESTING_MOST = 200  # a reader deep in its own stack must still be able to parse accepted data
PRIORITY = 5
LEASE_MOST = 30 * 86400.0
LEASE_LEAST = 0.001
AFTER_MOST = 20_000  # tasks that one task comes after
USES_MOST = 16

compact = json_codec.compact
ATTEMPTS_MOST = 999
_CAMEL = {"maxAttempts": "max_attempts", "notBefore": "not_before", "discoveredFrom": "discovered_from"}


class Draft:
    """One task that is about to be added."""

    __slots__ = (
        "after", "assignee", "data", "delay", "discovered_from", "expires", "id", "key", "kind", "lease", "max_attempts", "mission",
        "not_before", "parent", "payload", "priority", "ref", "review", "timeout", "title", "uses", "verify",
    )  # fmt: skip

    def __init__(self, kind: object, data: Any = None, options: Mapping[str, Any] | None = None) -> None:
        self.kind = words.kind(kind)
        self.data = data
        self.payload = payload(data, "data")
        self.title: str | None = None
        self.priority = PRIORITY
        self.max_attempts: int | None = None
        self.lease: float | None = None
        self.assignee: str | None = None
        self.mission: str | None = None
        self.key: str | None = None
        self.verify: str | None = None
        self.review: bool = False
        """Whether another one must accept the result; stores keep it in `verify` (`Task.needs_review`)."""
        self.parent: str | None = None
        """The id of the task that this one is a part of."""
        self.discovered_from: str | None = None
        """The id of the task whose worker added this one."""
        self.id: str | None = None
        """The id that the task was given in the spool; None if the store is to choose it."""
        self.ref: str | None = None
        """A local name, by which other tasks of the same batch can come after this one; no store keeps it."""
        self.delay = 0.0
        self.not_before: int | None = None
        self.expires: int | float | None = None
        """When the task is cancelled unless a worker has started it: a moment (int), or seconds from the add (float)."""
        self.timeout: float | None = None
        """How many seconds one attempt may take."""
        self.after: tuple[str, ...] = ()
        """The tasks that must be done first: names, until `plan.resolved` and a store have looked them up; then ids."""
        self.uses: tuple[str, ...] = ()
        for name, value in (options or {}).items():
            option = _CAMEL.get(name, name)
            if option != name and option in (options or {}):
                raise Invalid(f"{name} and {option} are the same option", hint="give one of them")
            if option not in OPTIONS:
                raise Invalid(f"not an option of a task: {words.shown(name)}", hint=f"known are {', '.join(OPTIONS)}")
            if value is not None:
                setattr(self, option, OPTIONS[option](value))
        if self.review:
            self.verify = _with_review(self.verify)
        self._must_agree()
        self._must_fit()

    def _must_agree(self) -> None:
        """Refuse times that contradict one another."""
        if self.delay and self.not_before is not None:
            raise Invalid("delay and not_before exclude each other", hint="give one of them")
        begins = self.delay if isinstance(self.expires, float) else self.not_before
        if self.expires is not None and begins is not None and self.expires <= begins:
            raise Invalid("the task would expire before it is due", hint="give a later time to expires")

    def _must_fit(self) -> None:
        """Refuse a kind or an assignee that leaves no room for the mission in the longest file name."""
        if self.mission is None:
            return
        limits = (
            ("kind", self.kind, words.KIND_WITH_MISSION),
            ("assignee", self.assignee, words.ASSIGNEE_WITH_MISSION),
        )
        for name, value, most in limits:
            if value is not None and len(words.encoded(value)) > most:
                raise Invalid(
                    f"{name} {words.shown(value)} is too long for a task with a mission",
                    hint=f"at most {most} bytes there, counted as in file names",
                )

    @classmethod
    def of(cls, fields: object) -> Draft:
        """Make a draft from one JSON object: kind, data, and options by name."""
        if not isinstance(fields, dict):
            raise Invalid(
                f"a task must be a JSON object, not {type(fields).__name__}", hint='write {"kind": "build", "data": {}}'
            )
        rest = dict(fields)
        if "kind" not in rest:
            raise Invalid("a task needs a kind", hint='write {"kind": "build", "data": {}}')
        return cls(rest.pop("kind"), rest.pop("data", None), rest)

    def changed(self, changes: Mapping[str, Any]) -> Draft:
        """Return a copy with these options replaced, None for a default; `data` may be among them."""
        twin = Draft(self.kind, changes.get("data", self.data))
        for name in OPTIONS:
            setattr(twin, name, getattr(self, name))
        if "delay" in changes or "not_before" in changes:
            twin.delay, twin.not_before = 0.0, None
        for name, value in changes.items():
            if name not in EDITABLE:
                raise Invalid(f"not to be edited: {words.shown(name)}", hint=f"what can be is {', '.join(EDITABLE)}")
            if name != "data":
                setattr(twin, name, _DEFAULTS.get(name) if value is None else OPTIONS[name](value))
        if not changes.keys().isdisjoint(("delay", "not_before", "expires")):
            twin._must_agree()
        twin._must_fit()
        return twin

    def task(self, id: str, state: State, begins: int | None, max_attempts: int, **stands: Any) -> Task:
        """Return the task that a store made of this draft: with its own data, and its standing."""
        fields: dict[str, Any] = {
            "id": id,
            "kind": self.kind,
            "title": self.title,
            "state": state,
            "data": json_codec.scan(self.payload, 0)[0],
            "not_before": None if begins is None else times.rfc3339(begins),
            "after": self.after,
            "key": self.key,
            "verify": self.verify,
            "parent": self.parent,
            "discovered_from": self.discovered_from,
            "mission": self.mission,
            "uses": self.uses,
            "timeout": self.timeout,
            "max_attempts": self.max_attempts or max_attempts,
            "priority": self.priority,
            "assignee": self.assignee,
            "fence": 0,
        }
        if self.expires is not None:
            fields["expires"] = times.rfc3339(int(self.expires))
        fields.update(stands)
        task = Task.__new__(Task)  # `Task(**fields)` would copy them, 0.3 us
        task.__dict__ = fields
        return task

    def set_deadline(self, now: int) -> None:
        """Make `expires` a moment, counted from `now`; a store calls this when it adds or edits the task."""
        if isinstance(self.expires, float):
            self.expires = now + round(self.expires * 1000)

    def due(self, now: int) -> int | None:
        """Return when the task is due, in milliseconds since 1970, or None if it is due now."""
        if self.not_before is not None:
            return self.not_before if self.not_before > now else None
        return now + round(self.delay * 1000) if self.delay > 0 else None


def payload(value: Any, name: str) -> str:
    """Return the value as compact JSON; raise `Invalid` if that is impossible, or too large for a yard."""
    try:
        text = compact(value)
        size = len(text) if text.isascii() else len(text.encode())
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply") from None
    except (TypeError, ValueError) as error:  # also lone surrogates, which UTF-8 cannot encode
        raise Invalid(f"{name} is not JSON: {error}") from None
    if _depth(text) > NESTING_MOST:
        raise Invalid(f"{name} is nested more than {NESTING_MOST} levels deep")
    if size > PAYLOAD_MOST:
        raise Invalid(
            f"{name} is {size} bytes as JSON, and the most is {PAYLOAD_MOST}",
            hint="keep the bulk in a file and put its path into the task",
        )
    return text


def digest(payload: str) -> str:
    """Return a hash that is equal for equal data, in any order of its keys."""
    import json
    from hashlib import sha256

    return sha256(json.dumps(json.loads(payload), sort_keys=True).encode()).hexdigest()


def kept(value: Any) -> Any:
    """Return the value as any store would return it: tuples become lists, and keys become texts."""
    return json_codec.decode(payload(value, "result").encode())


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON, in any order and Python type of their keys."""
    import json

    first, second = (json.dumps(json.loads(json.dumps(value)), sort_keys=True) for value in (one, other))
    return first == second


def _depth(text: str) -> int:
    """Return how deep the JSON is nested; exact only near the limit, because counting is cheap and walking is not."""
    if text.count("[") + text.count("{") <= NESTING_MOST:
        return 0
    depth = deepest = 0
    quoted = escaped = False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not quoted and letter in "]}":
            depth -= 1
    return deepest


def integer(value: object, name: str, least: int, most: int) -> int:
    """Return a whole number within its range, else raise `Invalid`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name} must be a whole number, not {words.shown(value)}")
    if not least <= value <= most:
        raise Invalid(f"{name} must be between {least} and {most}, not {words.shown(value)}")
    return value


def lease(value: object) -> float:
    """Return a legal lease in seconds, to the millisecond."""
    return round(times.seconds(value, "lease", least=LEASE_LEAST, most=LEASE_MOST), 3)


def _expires(value: object) -> int | float:
    """Return a deadline: a moment in milliseconds since 1970, or seconds from now as a float."""
    if isinstance(value, (int, float)) or (isinstance(value, str) and ":" not in value):
        try:
            return times.seconds(value, "expires", least=0.001)
        except Invalid as error:
            if error.hint is None:  # a number, out of its bounds
                raise
            raise Invalid(
                f"expires is neither a moment nor a duration: {words.shown(value)}",
                hint="write a moment such as 2026-01-31T12:00:00Z, or how long from now: 90, 10m, 2h, 1d",
            ) from None
    return times.moment(value, "expires")


def _with_review(verify: str | None) -> str:
    return f"{REVIEW}{(verify or '').removeprefix(REVIEW)}"


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{name} must be true or false, not {words.shown(value)}")
    return value


def _several(value: object, name: str, most: int, check: Callable[[object], str]) -> tuple[str, ...]:
    """Return one text, or a list of at most `most` texts, as a tuple of checked texts."""
    given = [value] if isinstance(value, str | dict) or hasattr(value, "id") else value
    if not isinstance(given, list | tuple | set | frozenset):
        raise Invalid(f"{name} must be a text or a list of texts, not {type(value).__name__}")
    if len(given) > most:
        raise Invalid(f"{name} has {len(given)} entries, and the most is {most}")
    return tuple(map(check, given))


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "title": lambda value: words.text(value, "title", words.TITLE_MOST),
    "priority": lambda value: integer(value, "priority", 0, 9),
    "delay": lambda value: times.seconds(value, "delay"),
    "not_before": lambda value: times.moment(value, "not_before"),
    "expires": _expires,
    "timeout": lambda value: round(times.seconds(value, "timeout", least=LEASE_LEAST, most=LEASE_MOST), 3),
    "max_attempts": lambda value: integer(value, "max_attempts", 1, ATTEMPTS_MOST),
    "lease": lease,
    "assignee": lambda value: words.worker(value, "assignee"),
    "mission": lambda value: words.text(value, "mission"),
    "key": lambda value: words.text(value, "key"),
    "verify": lambda value: words.text(value, "verify"),
    "review": lambda value: _flag(value, "review"),
    "parent": lambda value: words.text(getattr(value, "id", value), "parent"),
    "discovered_from": lambda value: words.text(getattr(value, "id", value), "discovered_from"),
    "ref": lambda value: words.text(value, "ref"),
    "after": lambda value: _several(value, "after", AFTER_MOST, needs.parse),
    "uses": lambda value: tuple(dict.fromkeys(_several(value, "uses", USES_MOST, resources.legal))),
}
EDITABLE = (
    "title",
    "data",
    "priority",
    "assignee",
    "delay",
    "not_before",
    "expires",
    "timeout",
    "max_attempts",
    "after",
)
_DEFAULTS: dict[str, Any] = {"priority": PRIORITY, "delay": 0.0, "after": ()}
