"""What goes over the wire, and back: JSON, tasks, claims and errors. Both ends use this, so that they agree."""

from __future__ import annotations

from taskyard.core import errors, json_codec
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.task import REVIEW, State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1  # of the JSON envelope, which is that of the command line
WORKER = "taskyard-worker"
"""The header with the name of the worker that asks, percent-encoded."""
KEY = "idempotency-key"
AGAIN = "taskyard-again"
"""The header that tells whether a request with a key was sent before. `0` spares the gateway a look for its claims."""
HINT = "put it right and ask again; /openapi.json has the arguments of every request"
"""For a plain client's mistake that has no hint of its own. A far yard's own doors know better, so it drops this one."""
_FULL = ("kind", "team", "count", "most", "wanted")
LONGEST_POLL = 25.0
"""Seconds that one request waits at the most: proxies close a connection that is silent for a minute."""
_FAMILY = {
    kind.code: kind
    for kind in (
        TaskyardError, Invalid, errors.Denied, errors.ClaimLost, errors.TimedOut, errors.Stuck, errors.NotFound,
        errors.Ambiguous, errors.Conflict, errors.Full, errors.Unavailable,
    )
}  # fmt: skip


def encoded(value: Any) -> bytes:
    """Return the arguments of a verb as JSON."""
    try:
        text = json_codec.encode(value)
        try:
            return text.encode()
        except UnicodeEncodeError:  # bytes that were no text: escapes carry them, and the yard decides
            import json

            return json.dumps(value).encode()
    except RecursionError:
        raise Invalid("an argument is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise Invalid(f"an argument is not JSON: {error}") from None


def plain(value: Any) -> Any:
    """Return an option as JSON has it: a task is its id, a set a list, a time its text."""
    if isinstance(value, Task):
        return value.id
    if isinstance(value, set | frozenset | list | tuple):
        return [plain(one) for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a task as JSON has them; its data is left as it is."""
    return {name: value if name == "data" else plain(value) for name, value in given.items()}


def good(data: Any) -> dict[str, Any]:
    """Return the envelope of an answer."""
    return {"v": VERSION, "ok": True, "data": data}


def bad(error: TaskyardError) -> dict[str, Any]:
    """Return the envelope of an error."""
    hint = error.hint or (HINT if error.code == Invalid.code else None)
    error_fields: dict[str, Any] = {"code": error.code, "message": error.message, "hint": hint}
    why = getattr(error, "why", None)
    if why:
        error_fields["why"] = why
    tasks = getattr(error, "tasks", None)
    if tasks:
        error_fields["tasks"] = [task.as_dict() for task in tasks]
    if isinstance(error, errors.Full):
        error_fields |= {name: getattr(error, name) for name in _FULL}
    names = getattr(error, "ids", None)
    if names:
        error_fields["ids"] = names
    return {"v": VERSION, "ok": False, "error": error_fields}


def raised(error_fields: dict[str, Any]) -> TaskyardError:
    """Return the error that an envelope tells of."""
    kind = _FAMILY.get(error_fields.get("code", ""), TaskyardError)
    if kind is errors.Stuck:
        tasks = [task(fields) for fields in error_fields.get("tasks", ())]
        return errors.Stuck(
            error_fields["message"], hint=error_fields.get("hint"), why=error_fields.get("why"), tasks=tasks
        )
    if kind is errors.Full:
        return errors.Full(
            error_fields["message"],
            hint=error_fields.get("hint"),
            **{name: error_fields[name] for name in _FULL if name in error_fields},
        )
    if kind is errors.TimedOut:
        return errors.TimedOut(error_fields["message"], hint=error_fields.get("hint"), ids=error_fields.get("ids", ()))
    hint = error_fields.get("hint")
    return kind(error_fields.get("message"), hint=None if hint == HINT else hint)


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of a time that `times.rfc3339` wrote; `datetime` would cost a command 2 ms."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    year -= month < 3  # a year that begins in March has its leap day at the end
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 719469
    hours, minutes = int(text[11:13]), int(text[14:16])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(float(text[17:].rstrip("Z")) * 1000)


def task(fields: dict[str, Any]) -> Task:
    """Return the task of these fields; fields that a list leaves out have their defaults."""
    known = {name: value for name, value in fields.items() if name not in ("created_at", "lease_until")}
    if fields.get("review") is not None:
        known["verify"] = f"{REVIEW}{fields.get('verify') or ''}"  # from which the task knows both
    known["state"] = State(fields["state"])
    until = fields.get("lease_until")
    if until is not None:
        known["lease_ends"] = milliseconds(until)
    if fields.get("after"):
        from taskyard.core import needs

        known["after"] = tuple(map(needs.parse, fields["after"]))
    return Task(**known)
