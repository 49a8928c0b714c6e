"""Each verb of the table as one call of the Yard port, and its answer as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.core import tokens
from taskyard.core.errors import Denied, Invalid, TimedOut
from taskyard.core.retry import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.task import Task
    from taskyard.port import YardPort
    from taskyard.yard.arguments import Page
    from taskyard.yard.claim import Claim

    Given = dict[str, Any]

KEYS = "http:"
"""How a key begins that the gateway made of an Idempotency-Key; no user has set it, so no answer shows it."""
_AROUND = 1000  # tasks that wait for one, or are parts of it


def task(one: Task) -> dict[str, Any]:
    """Return a whole task."""
    fields = one.as_dict()
    if str(fields["key"]).startswith(KEYS):
        fields["key"] = None
    return fields


def claim(one: Claim) -> dict[str, Any]:
    """Return a claim as its worker gets it."""
    whole = one.task
    return {
        "claim": one.handle,
        "fence": one.fence,
        "task": task(whole),
        "lease_until": one.lease_until or whole.lease_until,
    }


def _facts(yard: YardPort) -> Given:
    policy = {name: getattr(yard.policy, name) for name in Policy.__slots__}
    return {
        "label": yard.label, "policy": policy, "checks": yard.checks, "batch": yard.batch, "version": taskyard.__version__,
    }  # fmt: skip


def _add(yard: YardPort, key: str | None, given: Given) -> Given:
    made_up = key is not None and given.get("key") is None
    if made_up:
        given["key"] = f"{KEYS}{key}"
    added = yard.add(given.pop("kind", None), **given)
    return {"task": task(added), "created": made_up or added.created}  # a repetition gets the first one's answer


def _add_many(yard: YardPort, key: str | None, given: Given) -> Given:
    drafts, made_up = [], 0
    tasks = given.get("tasks")
    if not isinstance(tasks, list):
        raise Invalid("tasks must be a list of tasks")
    for number, fields in enumerate(tasks):
        if key is not None and isinstance(fields, dict) and fields.get("key") is None:
            fields = {**fields, "key": f"{KEYS}{key}.{number}"}  # noqa: PLW2901  the same place in the list
            made_up += 1
        drafts.append(fields)
    added = yard.add_many(drafts)
    return {"ids": list(added), "created": max(added.created, made_up)}


def _report(yard: YardPort, id: str) -> Given:
    found = yard.report(id)
    return {
        "task": task(found.task),
        "history": found.history,
        "notes": found.notes,
        "stale_results": found.stale_results,
        "dependents": found.followers(_AROUND),
        "children": found.children(_AROUND),
    }


def _find(yard: YardPort, **given: Any) -> Given:
    return _page(yard.find(**given))


def _ready(yard: YardPort, **given: Any) -> Given:
    return _page(yard.ready(**given))


def _page(page: Page) -> Given:
    return {"tasks": [{**one.as_line(), "fence": one.fence} for one in page], "next": page.next}


def _graph(yard: YardPort, fold: str = "none", **given: Any) -> Given:
    return {"graph": yard.graph(**given, fold=None if fold == "auto" else fold)}


def _inputs(yard: YardPort, task: str) -> Given:
    found = yard.inputs(task)
    return {"inputs": dict(found), "left_out": found.left_out}


def _outside(yard: YardPort) -> Given:
    found = yard.outside()
    return {"guests": found.guests, "others": found.others}


def _release(yard: YardPort, claim: str, **given: Any) -> Given:
    yard.release(claim, **given)
    return {}


def _done_many(yard: YardPort, ended: list[Given]) -> Given:
    return {"done": yard.done_many([(one["claim"], one.get("result")) for one in ended])}


def _retry(yard: YardPort, id: str) -> Given:
    tried = yard.retry(id)
    return {"task": None if tried is None else task(tried)}


def _edit(yard: YardPort, id: str, **changes: Any) -> Given:
    return {"task": task(yard.edit(id, **changes))}


def _pause(yard: YardPort, **given: Any) -> Given:
    yard.pause(**given)
    return {}


def _unpause(yard: YardPort, **given: Any) -> Given:
    yard.unpause(**given)
    return {}


def _set_file_conflicts(yard: YardPort, **given: Any) -> Given:
    yard.set_file_conflicts(**given)
    return {}


def _set_settings(yard: YardPort, changes: Given) -> Given:
    if "checks" in changes:
        raise Denied(
            "checks are commands that run on the gateway's machine",
            hint="set them there, on the URL of the yard itself",
        )
    return {"settings": yard.set_settings(changes)}


def _new_token(yard: YardPort, **given: Any) -> Given:
    if given.get("scope") == tokens.TEAMS:
        raise Denied(
            "a token that may change teams is not made through a gateway",
            hint="make it beside the database, on the URL of the yard itself",
        )
    return {"token": yard.new_token(**given)}


def _remains(yard: YardPort, kinds: list[str] | None = None, mission: str | None = None) -> Given:
    return {"remains": yard.remains(None if kinds is None else frozenset(kinds), mission)}


def events(yard: YardPort, **given: Any) -> Given:
    """Return a page of the log."""
    found = yard.events(**given)
    return {"events": list(found), "cursor": found.cursor}


def _state(state: Any) -> Given:
    return {"state": None if state is None else str(state)}


CALLS: dict[str, Callable[..., Given]] = {
    "facts": _facts,
    "held": lambda yard, handle: {"claim": yard.held(handle).handle},
    "heartbeat": lambda yard, **given: {"lease_until": yard.heartbeat(**given)},
    "done_many": _done_many,
    "fail": lambda yard, **given: _state(yard.fail(**given)),
    "release": _release,
    "crash": lambda yard, **given: _state(yard.crash(**given)),
    "holding": lambda yard, claims: {"holding": yard.holding(claims)},
    "settled": lambda yard, claim: _state(yard.settled(claim)),
    "lease": lambda yard, claim: {"lease": yard.lease(claim)},
    "report": _report,
    "get_many": lambda yard, **given: {"tasks": [task(one) for one in yard.get_many(**given)]},
    "find": _find,
    "ready": _ready,
    "graph": _graph,
    "output": lambda yard, **given: {"output": yard.output(**given)},
    "inputs": _inputs,
    "dependencies": lambda yard, task: {"dependencies": yard.dependencies(task)},
    "shorten": lambda yard, ids: {"names": yard.shorten(ids)},
    "counts": lambda yard: {"counts": yard.counts()},
    "stats": lambda yard, **given: {"stats": yard.stats(**given)},
    "overview": lambda yard: {"overview": yard.overview()},
    "lanes": lambda yard, **given: yard.lanes(**given),
    "agents": lambda yard: {"agents": yard.agents()},
    "series": lambda yard: {"series": yard.series()},
    "full": lambda yard: {"full": yard.full()},
    "paused": lambda yard: yard.paused(),
    "why": lambda yard, **given: {"why": yard.why(**given)},
    "unusable": lambda yard: {"unusable": yard.unusable()},
    "outside": _outside,
    "set_aside": lambda yard: {"files": yard.set_aside()},
    "missions": lambda yard: {"missions": yard.missions()},
    "new_mission": lambda yard, **given: {"mission": yard.new_mission(**given)},
    "mission": lambda yard, name: {"mission": yard.mission(name)},
    "cancel_mission": lambda yard, **given: {"mission": yard.cancel_mission(**given)},
    "schedules": lambda yard: {"schedules": yard.schedules()},
    "new_schedule": lambda yard, **given: {"schedule": yard.new_schedule(**given)},
    "schedule": lambda yard, name: {"schedule": yard.schedule(name)},
    "pause_schedule": lambda yard, name: {"schedule": yard.pause_schedule(name)},
    "unpause_schedule": lambda yard, name: {"schedule": yard.unpause_schedule(name)},
    "remove_schedule": lambda yard, name: {"schedule": yard.remove_schedule(name)},
    "events": events,
    "log_end": lambda yard: {"cursor": yard.log_end()},
    "cancel": lambda yard, **given: {"task": task(yard.cancel(**given))},
    "accept": lambda yard, **given: {"task": task(yard.accept(**given))},
    "reject": lambda yard, **given: {"task": task(yard.reject(**given))},
    "retry": _retry,
    "edit": _edit,
    "bulk": lambda yard, **given: {"bulk": yard.bulk(**given)},
    "pause": _pause,
    "unpause": _unpause,
    "settings": lambda yard: {"settings": yard.settings()},
    "set_settings": _set_settings,
    "tokens": lambda yard: {"tokens": yard.tokens()},
    "new_token": _new_token,
    "revoke_token": lambda yard, name: {"token": yard.revoke_token(name)},
    "set_file_conflicts": _set_file_conflicts,
    "team": lambda yard: {"team": yard.team()},
    "teams": lambda yard, **given: {"teams": yard.teams(**given)},
    "new_team": lambda yard, **given: {"team": yard.new_team(**given)},
    "set_team": lambda yard, **given: {"team": yard.set_team(**given)},
    "give_team": lambda yard, **given: {"team": yard.give_team(**given)},
    "take_team": lambda yard, **given: {"team": yard.take_team(**given)},
    "team_tokens": lambda yard, team: {"tokens": yard.team_tokens(team)},
    "new_team_token": lambda yard, **given: {"token": yard.new_team_token(**given)},
    "revoke_team_token": lambda yard, **given: {"token": yard.revoke_team_token(**given)},
    "remains": _remains,
    "sweep": lambda yard, **given: {"swept": yard.sweep(**given).as_dict()},
    "prune": lambda yard, **given: {"pruned": yard.prune(**given)},
    "audit": lambda yard, **given: {"audit": yard.audit(**given)},
}
"""What only needs its arguments."""
KEYED: dict[str, Callable[[YardPort, str | None, Given], Given]] = {"add": _add, "add_many": _add_many}
"""What creates, and needs the key of its request as well."""


def ended(yard: YardPort, ids: list[str], filters: Given) -> list[Given] | TimedOut:
    """Return the tasks that a wait is for, if all have ended; else the error that tells which those are."""
    try:
        return [task(one) for one in yard.wait(*ids, timeout=0, **filters)]
    except TimedOut as error:
        return error
