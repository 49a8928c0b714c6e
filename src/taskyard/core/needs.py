"""What a task comes after: one need for each other task, with what it means if that one is failed or cancelled."""

from __future__ import annotations

from taskyard.core import ids, words
from taskyard.core.errors import Invalid
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

BLOCK, CANCEL, RUN = "block", "cancel", "run"
POLICIES = (BLOCK, CANCEL, RUN)
MET = "met"
_NAMES = ("id", "ref", "key")


class Need(str):
    """The name of a task that another comes after, as a text with extra fields; once a store has looked it up, an id.

    A text without these fields is a need that blocks, and that may be an id, a short name, a key or a local name.
    """

    __slots__ = ("by", "on_failure", "position")

    on_failure: str
    """What the task does if the other is failed or cancelled: `block` until that is done, `cancel`, or `run`."""
    by: str | None
    """What the text is, if the caller said so: `id`, `ref` or `key`."""
    position: int | None
    """The other task's place in the same batch, which has no id yet."""

    def __new__(cls, name: str, on_failure: str = BLOCK, by: str | None = None, position: int | None = None) -> Self:
        """Make a need; it compares, sorts and hashes as its name."""
        need = super().__new__(cls, name)
        need.on_failure, need.by, need.position = on_failure, by, position
        return need

    def named(self, id: str) -> Need:
        """Return the same need of the task that has this id."""
        return Need(id, self.on_failure)


def on_failure(need: str) -> str:
    """Return what this need means if the other task is failed or cancelled."""
    return need.on_failure if isinstance(need, Need) else BLOCK


def verdict(policy: str, state: State) -> str | None:
    """Return what a need means now that the other task is in this state: `met`, `cancel`, or None as long as it blocks."""
    if state is State.DONE:
        return MET
    if state in (State.FAILED, State.CANCELLED) and policy != BLOCK:
        return CANCEL if policy == CANCEL else MET
    return None


def cancel_reason(other: str, state: State) -> str:
    """Return why a task is cancelled with the task `other` that it comes after, which is failed or cancelled."""
    return f"task {ids.short(other)}, which it comes after, {'failed' if state is State.FAILED else 'was cancelled'}"


def parse(value: object) -> Need:
    """Return one entry of `after`: a name, `NAME:cancel`, a task, or an object with `id`, `ref` or `key`, and `on_failure`."""
    if isinstance(value, Need):
        return value
    value = getattr(value, "id", value)  # a `Task` is accepted in place of its id
    if isinstance(value, str):
        name, colon, policy = value.rpartition(":")
        if colon and name and policy in POLICIES:
            return Need(_name(name), policy)
        return Need(_name(value))
    if isinstance(value, dict):
        return _of_object(value)
    raise Invalid(f"after: a task's name must be a text, not {type(value).__name__}", hint=_HINT)


def _of_object(value: dict[Any, Any]) -> Need:
    fields = {"on_failure" if name == "onFailure" else name: field for name, field in value.items()}
    names = [name for name in _NAMES if name in fields]
    others = fields.keys() - {"on_failure", *_NAMES}
    policy = fields.get("on_failure") or BLOCK
    if len(names) != 1 or others:
        raise Invalid(f"after: {words.shown(value)} does not name one task", hint=_HINT)
    if policy not in POLICIES:
        raise Invalid(f"on_failure must be {', '.join(POLICIES[:-1])} or {RUN}, not {words.shown(policy)}", hint=_HINT)
    return Need(_name(fields[names[0]]), policy, names[0])


def _name(value: object) -> str:
    return words.text(value, "after")


def unique(some: Iterable[Need]) -> tuple[Need, ...]:
    """Return each need once; raise `Invalid` if two entries for one task differ in what its failure means."""
    found: dict[object, Need] = {}
    for need in some:
        first = found.setdefault(str(need) if need.position is None else need.position, need)
        if first.on_failure != need.on_failure:
            raise Invalid(
                f"after names {words.shown(str(need))} twice, with {first.on_failure} and with {need.on_failure}",
                hint="name each task once",
            )
    return tuple(found.values())


def encode(after: Iterable[str]) -> list[str | dict[str, str]]:
    """Return needs as JSON has them: the id alone where it blocks, else with its `on_failure`."""
    return [
        str(need) if on_failure(need) == BLOCK else {"id": str(need), "on_failure": on_failure(need)} for need in after
    ]


_HINT = 'write an id, a ref or key of the same file, "ID:cancel", or {"id": "...", "on_failure": "block", "cancel" or "run"}'
