"""Edits of what a task comes after: one transaction, in which nothing that counts for it can move."""

from __future__ import annotations

from taskyard.core import draft as drafts
from taskyard.core import ids, needs
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.needs import Need
    from taskyard.core.task import Standing
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context


class _Passed(Exception):
    """The task, or one that it is to come after, has moved since the edit was decided."""


def edit(
    context: Context,
    connection: Statements,
    statement: str,
    standing: Standing,
    move: Move,
    values: dict[str, Any],
) -> bool:
    """Make the edit, with other needs than before; return False if something moved, or if it would make a cycle."""
    unmet = [needs.parse(need) for need in move.unmet or ()]
    try:
        with connection.transaction():
            context.on(connection, "moves", "one_order")
            left = _locked(context, connection, standing, unmet)
            if values["after"] and context.on(connection, "moves", "comes_after", values)[0][0]:
                raise _Passed
            if not connection.rows(statement, values):
                raise _Passed
            context.on(connection, "moves", "replace_needs", {**_edges(move, left), **values})
            _tell(context, connection, standing, move, unmet, left, values["by"])
    except _Passed:
        return False
    return True


def _locked(context: Context, connection: Statements, standing: Standing, unmet: list[Need]) -> list[Need]:
    """Lock the task and those that it needs, in the order of age; return the needs that are still unmet."""
    if not unmet:
        return []
    ages = sorted(ids.age_key(id) for id in {standing.id, *unmet})
    own_followed = {"ages": [age for age in ages if age != ids.age_key(standing.id)]}
    context.on(connection, "moves", "lock", {"ages": ages})
    states = {id: State(state) for id, state in context.on(connection, "moves", "follow", own_followed)}
    missing = [ids.age_key(need) for need in unmet if need not in states]
    if missing and not context.on(connection, "moves", "are_done", {"ages": missing})[0][0]:
        raise _Passed
    return [need for need in unmet if need in states and needs.verdict(need.on_failure, states[need]) != needs.MET]


def _edges(move: Move, left: list[Need]) -> dict[str, Any]:
    """Return the values of the rows that say what the task needs, and what it comes after."""
    draft = move.draft
    assert draft is not None  # the move is an edit
    policies = {str(need): need.on_failure for need in map(needs.parse, draft.after) if need.on_failure != needs.BLOCK}
    return {
        "others": list(map(str, left)),
        "policies": [need.on_failure for need in left],
        "on_failure": drafts.compact(policies) if policies else None,
        "related": bool(policies or draft.parent or draft.discovered_from or draft.expires or draft.timeout),
    }


def _tell(
    context: Context,
    connection: Statements,
    standing: Standing,
    move: Move,
    unmet: list[Need],
    left: list[Need],
    by: str,
) -> None:
    """Log what the edit means, and follow the rule for needs that were settled before."""
    event = {"id": standing.id, "kind": standing.kind, "fence": move.fence, "worker": None, "by": by}
    if unmet:
        more = drafts.compact({"after": sorted(map(str, unmet))})
        context.on(connection, "moves", "log_event", {**event, "event": "blocked", "more": more})
    elif standing.state is State.BLOCKED:
        context.on(connection, "moves", "log_event", {**event, "event": "unblocked", "more": None})
    if unmet and not left:
        freed = drafts.compact({"freed_by": str(max(unmet))})
        context.on(connection, "moves", "unblock", {"ids": [standing.id], "by": by, "more": freed})
    if left:
        context.on(connection, "moves", "cancel_doomed", {"ids": [standing.id], "by": by})
