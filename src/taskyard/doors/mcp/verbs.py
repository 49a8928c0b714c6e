"""What the tools answer that need nothing but the yard: of an agent with a server of its own, and of one without."""

from __future__ import annotations

from taskyard.core.errors import TaskyardError
from taskyard.doors.mcp import replies
from taskyard.doors.mcp.replies import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

READY = 10  # tasks that `ready` lists
REVIEW = "pending: another one accepts or rejects it; claim() takes the next"


def name(yard: YardPort, id: str) -> str:
    """Return the short name of a task, or its id while the yard is away."""
    try:
        return yard.shorten([id])[0]
    except TaskyardError:
        return id


def review(yard: YardPort, id: str) -> str | None:
    """Return what a task waits for, if its result must be accepted by another one."""
    try:
        return REVIEW if yard.get(id).review == "pending" else None
    except TaskyardError:
        return None


def nothing_ready(yard: YardPort, kind: str | None, mission: str | None, wait: float) -> dict[str, Any]:
    """Return why a claim got nothing, and how to go on."""
    why = yard.why(kinds=kind, mission=mission)["message"]
    asked = {"kind": kind, "mission": mission}
    given = "".join(f"{word}={value!r}, " for word, value in asked.items() if value is not None)
    if wait:
        return {
            "nothing_ready": why,
            "next": f"still waiting: call claim({given}wait={wait:.10g}) again, or stop if no work is expected",
        }
    return {"nothing_ready": why, "next": f"claim({given}wait=45) waits for work; stop if none is expected"}


def claims(held: list[Claim]) -> dict[str, Any]:
    """Return claims, each whole."""
    whole = [{word: value for word, value in replies.claimed(claim).items() if value is not None} for claim in held]
    return {"claims": whole, "next": None if whole else "you hold nothing: claim()"}


def ready(
    yard: YardPort, kind: str | None = None, mission: str | None = None, limit: int = READY, cursor: str | None = None
) -> dict[str, Any]:
    """Return a page of what could be claimed; if that is nothing, why."""
    page = yard.ready(kind, mission, limit=limit, cursor=cursor)
    if not page and cursor is None:
        return {"ready": [], "why": yard.why(kinds=kind, mission=mission)["message"]}
    lines = [{word: value for word, value in replies.listed(task).items() if value is not None} for task in page]
    return {"ready": lines, "more": page.next}


def add(
    yard: YardPort, found: str | None, tasks: list[dict[str, Any]] | None, fields: dict[str, Any]
) -> dict[str, Any]:
    """Add a task, or several; `found` is the task during whose work they were found."""
    if tasks is not None and fields:
        raise Refusal("add takes one task, or several in tasks", "add(tasks=[{kind, title, data}, ...])")
    if tasks is not None:
        added = yard.add_many([_discovered(each, found) for each in tasks])
        if added.spooled:
            return {"added": list(added), "spooled": True}
        return {"added": yard.shorten(added), "created": None if added.created == len(added) else added.created}
    if "kind" not in fields:
        raise Refusal("add needs kind", "add(kind=..., title=..., data=...)")
    task = yard.add(**_discovered(fields, found))
    if task.spooled:
        return {"added": task.id, "spooled": True}
    return {"added" if task.created else "there_already": yard.shorten([task.id])[0], "state": str(task.state)}


def _discovered(fields: dict[str, Any], found: str | None) -> dict[str, Any]:
    return fields if found is None or "discovered_from" in fields else {**fields, "discovered_from": found}
