"""The texts that tools answer with: each is one line, because some agents read no further.

An answer is compact JSON without nulls and defaults. A refusal is a sentence that ends with the next right call.
"""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Task
    from taskyard.yard.claim import Claim

DATA_MOST = 16_000  # characters of data and inputs that come with a claim; `show` has them whole
HISTORY_MOST = 2_400  # characters of earlier attempts that come with a claim: about 600 tokens
_LEFT = ("reason", "notes", "result", "workdir")  # of an earlier attempt; the result is one that a reviewer rejected
_RESULT_MOST = 2_000  # characters of each result that `wait` returns
_PRIORITY = 5


class Refusal(Exception):
    """A call that was refused: what is wrong, and the next right call."""

    def __init__(self, message: str, next: str) -> None:
        super().__init__(message)
        self.next = next

    def __str__(self) -> str:
        return " ".join(f"{self.args[0].rstrip('. ')}. Next: {self.next}".split())


def line(fields: dict[str, Any]) -> str:
    """Return one line of JSON without what is None."""
    return json.dumps(
        {name: value for name, value in fields.items() if value is not None}, ensure_ascii=False, separators=(",", ":")
    )


def clipped(value: Any, most: int) -> Any:
    """Return the value, or if its JSON is longer than `most` the beginning of that, with a remark."""
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text) <= most:
        return value
    return f"{text[:most]} [cut: {len(text)} characters; show(task) has all]"


def claimed(claim: Claim) -> dict[str, Any]:
    """Return what an agent needs to begin: the handle, the task, its inputs, and what earlier attempts left."""
    task = claim.task
    fields: dict[str, Any] = {"claim": claim.handle, **listed(task)}
    fields["data"] = clipped(task.data, DATA_MOST)
    if task.after:
        names = ids.shorten(list(claim.inputs), claim.inputs)  # no two alike
        found = {name: one for name, one in zip(names, claim.inputs.values(), strict=True) if one is not None}
        fields["inputs"] = clipped(found, DATA_MOST) if found else None
    if claim.fence > 1:
        fields["history"] = _attempts(claim.history) or None
    fields["check"] = task.verify
    return fields


def listed(task: Task) -> dict[str, Any]:
    """Return the few fields that lists have."""
    return {
        "task": task.short,
        "kind": task.kind,
        "title": task.title,
        "priority": None if task.priority == _PRIORITY else task.priority,
        "mission": task.mission,
    }


def _attempts(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest attempts that fit the budget, oldest first; a claim that left nothing is none."""
    kept: list[dict[str, Any]] = []
    budget = HISTORY_MOST
    for entry in reversed(history):
        said = {name: entry[name] for name in ("outcome", "worker", *_LEFT) if entry.get(name)}
        if entry["outcome"] in ("resumed", "released") and not any(name in said for name in _LEFT):
            continue
        size = len(json.dumps(said, ensure_ascii=False))
        if size > budget and kept:
            break
        if size > budget:  # the newest attempt always comes along: what a reviewer wrote may be long
            said.update({name: clipped(said[name], budget // 3) for name in _LEFT[:3] if name in said})
        kept.append(said)
        budget -= size
    return kept[::-1]


def ended(task: Task) -> dict[str, Any]:
    """Return how a task ended."""
    fields = {"task": task.short, "state": str(task.state)}
    if task.state is State.DONE:
        return {**fields, **({} if task.result is None else {"result": clipped(task.result, _RESULT_MOST)})}
    return {**fields, **({} if task.error is None else {"error": clipped(task.error, _RESULT_MOST)})}


def whole(report: Report) -> dict[str, Any]:
    """Return everything about a task but nulls and defaults."""
    fields = report.task.as_dict()
    short, own = fields.pop("short"), {"attempts": 0, "fence": 0, "priority": _PRIORITY}
    filled = {name: value for name, value in fields.items() if value not in (None, []) and value != own.get(name)}
    for name in ("history", "notes", "stale_results"):
        entries = [{key: value for key, value in entry.items() if value} for entry in getattr(report, name)]
        if entries:
            filled[name] = entries
    return {"task": short, **filled}
