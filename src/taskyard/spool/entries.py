"""What stands in an entry of the spool: an add or the ending of a claim, as JSON, and the tasks that an add promises."""

from __future__ import annotations

import os
import time

from taskyard.core import draft_fields, ids, plan
from taskyard.core.draft import Draft
from taskyard.core.errors import Invalid, NotFound
from taskyard.core.retry import Policy
from taskyard.core.task import Handle, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.errors import Away
    from taskyard.core.task import Task
    from taskyard.spool.folder import Entry

ADD, DONE, FAIL = "add", "done", "fail"
_TOGETHER = 1024  # tasks in one segment


def added(drafts: Sequence[Draft], by: str, away: Away) -> Entry:
    """Return the entry of an add, and give each draft its id; times from now on become moments."""
    _refuse_bad_graph(drafts)
    now = time.time_ns() // 1_000_000
    mint, segment = ids.Mint(), ""
    for place, draft in enumerate(drafts):
        if place % _TOGETHER == 0:
            segment = ids.base32(ids.chance(20), ids.SEGMENT)
        draft.id = segment + mint.tail(now)
        draft_fields.fix_moments(draft, now)
    sent = away.sent or {}
    return {
        "verb": ADD,
        "by": by,
        "token": sent.get("token") or ids.base32(ids.chance(100), 20),
        "sent": away.sent,
        "tasks": [{"id": draft.id, **draft_fields.fields(draft)} for draft in drafts],
    }


def ended(verb: str, handle: Handle, worker: str, by: str, **brought: Any) -> Entry:
    """Return the entry of a claim's ending."""
    return {"verb": verb, "by": by, "worker": worker, "claim": str(handle), **brought}


def here() -> str | None:
    """Return the working directory, where a task's check is to be run; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _refuse_bad_graph(drafts: Sequence[Draft]) -> None:
    """Raise `Invalid` for what no yard would take: tasks that come after one another, or a ref that two have."""
    if not any(draft.after or draft.ref for draft in drafts):
        return
    given = [draft.after for draft in drafts]
    try:
        plan.ordered(drafts, lambda _: {})
    except NotFound:
        pass  # only the yard knows its keys
    finally:
        for draft, after in zip(drafts, given, strict=True):
            draft.after = after


def promised(draft: Draft) -> Task:
    """Return the task that will be added, as far as it is known."""
    state = State.BLOCKED if draft.after else State.WAITING if draft.due(time.time_ns() // 1_000_000) else State.TODO
    task = draft.task(draft.id or "", state, draft.not_before, Policy().max_attempts)
    task.spooled = True
    return task


def drafts(entry: Entry) -> list[Draft]:
    """Return the drafts of an add's entry, with their ids."""
    found = []
    for fields in _checked(entry, "tasks", list):
        if not isinstance(fields, dict) or not ids.is_id(str(fields.get("id"))):
            raise Invalid("a task of this entry has no id")
        draft = Draft.of({name: value for name, value in fields.items() if name != "id"})
        draft.id = str(fields["id"])
        found.append(draft)
    _checked(entry, "token", str)
    return found


def claim(entry: Entry) -> Handle:
    """Return the handle of an ending's entry."""
    return Handle.parse(_checked(entry, "claim", str))


def _checked(entry: Entry, name: str, sort: type) -> Any:
    value = entry.get(name)
    if not isinstance(value, sort) or not value:
        raise Invalid(f"this entry has no legal {name!r}")
    return value


def shown(name: str, entry: Entry | None, *, failed: bool) -> dict[str, Any]:
    """Return what people and programs see of an entry: no data and no result."""
    fields: dict[str, Any] = {"name": name, "state": "failed" if failed else "pending"}
    if entry is None:
        return {**fields, "verb": None, "error": {"code": "invalid", "message": "the file cannot be read"}}
    fields |= {key: entry.get(key) for key in ("verb", "at", "by")}
    if entry.get("verb") == ADD:
        tasks = [task for task in entry.get("tasks") or () if isinstance(task, dict)]
        fields["tasks"] = [{key: task.get(key) for key in ("id", "kind", "title", "key")} for task in tasks]
    else:
        fields["claim"] = entry.get("claim")
        fields["task"] = str(entry.get("claim")).partition(".")[0]
    if failed:
        fields["error"] = entry.get("error")
    return fields
