"""A new task, checked: what `add` accepts, with Taskyard's limits. Every store takes drafts, so all accept the same."""

from __future__ import annotations

import json

from taskyard import times, words
from taskyard.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PAYLOAD_MOST = 1 << 20
NESTING_MOST = 200  # a reader deep in its own stack must still be able to parse what was accepted
PRIORITY = 5
LEASE_MOST = 30 * 86400.0
LEASE_LEAST = 0.001

_CAMEL = {"maxAttempts": "max_attempts", "notBefore": "not_before"}
OPTIONS = ("title", "priority", "delay", "not_before", "max_attempts", "lease", "assignee", "mission")


class Draft:
    """One task that is about to be added."""

    __slots__ = (
        "assignee", "data", "delay", "kind", "lease", "max_attempts", "mission", "not_before", "payload", "priority",
        "title",
    )  # fmt: skip

    def __init__(self, kind: object, data: Any = None, options: Mapping[str, Any] | None = None) -> None:
        given = {_CAMEL.get(name, name): value for name, value in (options or {}).items() if value is not None}
        unknown = [name for name in given if name not in OPTIONS]
        if unknown:
            raise Invalid(
                f"not an option of a task: {', '.join(map(ascii, unknown))}", hint=f"known are {', '.join(OPTIONS)}"
            )
        self.kind = words.kind(kind)
        self.data = data
        self.payload = payload(data, "data")
        self.title: str | None = words.text(given["title"], "title", words.TITLE_MOST) if "title" in given else None
        self.priority = integer(given.get("priority", PRIORITY), "priority", 0, 9)
        self.max_attempts: int | None = (
            integer(given["max_attempts"], "max_attempts", 1, 999) if "max_attempts" in given else None
        )
        self.lease: float | None = lease(given["lease"]) if "lease" in given else None
        self.assignee: str | None = words.worker(given["assignee"], "assignee") if "assignee" in given else None
        self.mission: str | None = words.text(given["mission"], "mission") if "mission" in given else None
        self.delay: float = times.seconds(given.get("delay", 0), "delay")
        self.not_before: int | None = times.moment(given["not_before"], "not_before") if "not_before" in given else None
        if self.delay and self.not_before is not None:
            raise Invalid("delay and not_before exclude each other", hint="give one of them")

    @classmethod
    def of(cls, fields: object) -> Draft:
        """A draft from one JSON object: kind, data, and options by name."""
        if not isinstance(fields, dict):
            raise Invalid(
                f"a task must be a JSON object, not {type(fields).__name__}", hint='write {"kind": "build", "data": {}}'
            )
        rest = dict(fields)
        if "kind" not in rest:
            raise Invalid("a task needs a kind", hint='write {"kind": "build", "data": {}}')
        return cls(rest.pop("kind"), rest.pop("data", None), rest)

    def due(self, now: int) -> int | None:
        """When the task is due, in milliseconds since 1970, or None if it is now."""
        if self.not_before is not None:
            return self.not_before if self.not_before > now else None
        return now + round(self.delay * 1000) if self.delay > 0 else None


def payload(value: Any, name: str) -> str:
    """The value as compact JSON, refused where it is none or larger than a yard takes."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply") from None
    except (TypeError, ValueError) as error:  # also lone surrogates, which no UTF-8 can carry
        raise Invalid(f"{name} is not JSON: {error}") from None
    if _depth(text) > NESTING_MOST:
        raise Invalid(f"{name} is nested more than {NESTING_MOST} levels deep")
    if size > PAYLOAD_MOST:
        raise Invalid(
            f"{name} is {size} bytes as JSON, and the most is {PAYLOAD_MOST}",
            hint="keep the bulk in a file and put its path into the task",
        )
    return text


def kept(value: Any) -> Any:
    """The value as it comes back out of any store: tuples are lists then, and keys are texts."""
    return json.loads(payload(value, "result"))


def _depth(text: str) -> int:
    """How deep the JSON is nested; exact only where it could matter, because counting is cheap and walking is not."""
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
    """A whole number within its range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name} must be a whole number, not {ascii(value)[:40]}")
    if not least <= value <= most:
        raise Invalid(f"{name} must be between {least} and {most}, not {value}")
    return value


def lease(value: object) -> float:
    """A legal lease in seconds, to the millisecond."""
    return round(times.seconds(value, "lease", least=LEASE_LEAST, most=LEASE_MOST), 3)
