"""Why one task is where it is: each reason as a fact with its clause, and what would move the task. No I/O."""

from __future__ import annotations

from taskyard.core import limits, reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Reason = dict[str, Any]


def ago(seconds: float) -> str:
    """Return how long ago something was."""
    return f"{reasons.duration(seconds)} ago"


# Waiting


def not_due(at: str, left: float) -> Reason:
    """The task waits for its time."""
    when = f"is due in {reasons.duration(max(1.0, left))}" if left > 0 else "is due now, and the next sweep wakes it"
    return {"code": "not_due", "at": at, "in": round(left, 1), "message": f"it {when}"}


def backoff(outcome: str, reason: str | None, worker: str | None) -> Reason:
    """The task is tried again after an attempt that failed."""
    how = {"error": "failed", "crash": "crashed"}.get(outcome, f"was {outcome}")
    said = f": {_line(reason)}" if reason else ""
    message = f"its last attempt, by {worker}, {how}{said}"
    return {"code": "backoff", "outcome": outcome, "reason": reason, "worker": worker, "message": message}


# Blocked


def behind(id: str, short: str, state: str) -> Reason:
    """The task comes after one that is not done."""
    message = f"it comes after {short}, which {reasons.state(state)}"
    return {"code": "behind", "task": id, "short": short, "state": state, "message": message}


def review(worker: str | None) -> Reason:
    """A worker has done the task, and another one must accept it."""
    return {"code": "review", "worker": worker, "message": f"{worker} has done it, and it waits for review"}


def behind_review(id: str, short: str) -> Reason:
    """The task comes after one that waits for review."""
    return {"code": "behind_review", "task": id, "short": short, "message": f"it waits for the review of {short}"}


def stuck(id: str, short: str, state: str, through: Sequence[str]) -> Reason:
    """The task stays blocked until the failed or cancelled one at the root is retried."""
    way = f", through {', '.join(through)}" if through else ""
    message = f"it stays blocked until {short}, which {reasons.state(state)}, is retried{way}"
    return {"code": "stuck", "task": id, "short": short, "state": state, "through": list(through), "message": message}


def cycle(path: Sequence[str], shorts: Sequence[str]) -> Reason:
    """The task comes after itself, by edits that crossed."""
    message = f"it comes after itself, and can never start: {' after '.join(shorts)}"
    return {"code": "cycle", "tasks": list(path), "path": list(shorts), "message": message}


# Todo


def paused(kind: str | None) -> Reason:
    """The yard, or the task's kind, is paused."""
    what = "the whole yard" if kind is None else f"the kind {kind}"
    return {"code": "paused", "kind": kind, "message": f"{what} is paused"}


def assigned(worker: str) -> Reason:
    """The task is for one worker only."""
    return {"code": "assigned", "worker": worker, "message": f"it is assigned to {worker}, and to no other worker"}


def limited(fact: dict[str, Any]) -> Reason:
    """A limit of the task's kind, or a quota of its team, is reached."""
    code = "limited_by_team" if "team" in fact else "limited"
    return {"code": code, **fact, "message": limits.sentence(fact)}


def in_use(resource: str, held: str, id: str, short: str, worker: str) -> Reason:
    """Another running task has what the task uses, or a folder around it, or something in it."""
    what = "which" if held == resource else f"and {held!r} is what"
    message = f"it uses {resource!r}, {what} {worker} uses for {short}"
    return {
        "code": "in_use",
        "resource": resource,
        "held": held,
        "task": id,
        "short": short,
        "worker": worker,
        "message": message,
    }


def refused(folders: Sequence[str]) -> Reason:
    """Claims skip the task's folder, because the system refuses it."""
    return {"code": "refused", "folders": list(folders), "message": reasons.unusable(folders)}


def unserved(kind: str, since: str | None, gone: float | None) -> Reason:
    """No claim has asked for the task's kind for an hour."""
    when = "yet" if gone is None else f"for {reasons.duration(gone)}"
    return {"code": "unserved", "kind": kind, "since": since, "message": f"no worker has asked for kind {kind} {when}"}


def ready(kind: str, before: int, at_least: bool) -> Reason:
    """Nothing holds the task back."""
    first = f"{reasons.tasks(before, at_least)} of its kind {'is' if before == 1 else 'are'} before it"
    message = f"it is ready: {first}" if before else f"it is ready: the next claim of kind {kind} gets it"
    return {"code": "ready", "before": before, **({"at_least": True} if at_least else {}), "message": message}


def expires(at: str, left: float) -> Reason:
    """The task is cancelled unless a worker starts it in time."""
    soon = f"in {reasons.duration(left)}" if left > 0 else "now: the next sweep cancels it"
    return {
        "code": "expires",
        "at": at,
        "in": round(left, 1),
        "message": f"it expires {soon}, unless a worker starts it before",
    }


# Processing


def held(
    worker: str | None, since: tuple[str, float] | None, beat: tuple[str, float] | None, lease: tuple[str, float]
) -> Reason:
    """A worker has the task; each moment comes with how many seconds ago it was, or that it is still to come."""
    holds = "holds it" if since is None else f"has held it for {reasons.duration(since[1])}"
    heard = "no heartbeat yet" if beat is None else f"the last heartbeat was {ago(beat[1])}"
    until = f"its lease ends in {reasons.duration(lease[1])}" if lease[1] >= 0 else f"its lease ended {ago(-lease[1])}"
    return {
        "code": "held",
        "worker": worker,
        "since": None if since is None else since[0],
        "heartbeat_at": None if beat is None else beat[0],
        "lease_until": lease[0],
        "message": f"{worker} {holds}; {until}, {heard}",
    }


def lapsed(worker: str | None) -> Reason:
    """The lease of the claim is over, and no sweep has given the task back yet."""
    message = f"its lease is over: the next sweep gives it back, unless {worker} sends a heartbeat first"
    return {"code": "lapsed", "worker": worker, "message": message}


def dead(worker: str | None) -> Reason:
    """The process that holds the task has died."""
    return {
        "code": "dead",
        "worker": worker,
        "message": f"the process of {worker} is dead: the next sweep gives it back",
    }


# Ended


def ended(state: str, at: tuple[str, float] | None, worker: str | None, reason: str | None) -> Reason:
    """The task has ended, and nothing more happens to it by itself."""
    when = "" if at is None else f" {ago(at[1])}"
    by = "" if worker is None else f", by {worker}"
    said = f": {_line(reason)}" if reason else ""
    verb = "was done" if state == "done" else reasons.state(state)
    message = f"it {verb}{when}{by}{said}"
    return {
        "code": state,
        "at": None if at is None else at[0],
        "worker": worker,
        "reason": reason,
        "message": message,
    }


def cancelled_with(other: str, short: str, state: str) -> Reason:
    """The task comes after one that it is cancelled with, and that has to be retried first."""
    message = f"it is cancelled with {short}, which it comes after and which {reasons.state(state)}"
    return {"code": "cancelled_with", "other": other, "short": short, "state": state, "message": message}


# A file that is no task


def set_aside(name: str, reason: str | None, at: str | None) -> Reason:
    """A dropped file could be no task."""
    said = f": {reason}" if reason else ""
    return {
        "code": "set_aside",
        "reason": reason,
        "at": at,
        "message": f"{name} lies aside in failed/, and is no task{said}",
    }


def not_a_task(name: str, reason: str | None) -> Reason:
    """A file in the drop box is never taken in."""
    return {"code": "not_a_task", "reason": reason, "message": f"{name} in the drop box is no task: {reason}"}


def guest(name: str, state: str, worker: str | None, at: str | None) -> Reason:
    """Another program holds the file, or has ended it, by moving it between the folders."""
    who = "another program" if worker is None else worker
    message = f"{name} is {'done' if state == 'done' else 'held'} by {who}, which works on the files alone"
    return {"code": "guest", "state": state, "worker": worker, "at": at, "message": message}


def way_out(short: str, found: Sequence[Reason]) -> str:
    """Return what would move the task, by the first reason that has an answer."""
    for reason in sorted(
        found, key=lambda one: one["code"] != "cancelled_with"
    ):  # a retry of the task itself is refused
        if reason["code"] == "paused":
            return reasons.unpause({"yard": reason["kind"] is None, "kinds": [reason["kind"]]})
        if reason["code"] in _WAYS:
            return _WAYS[reason["code"]].format_map({**reason, "short": short, "other": reason.get("short")})
    return f"'taskyard show {short}' has its whole history"


_WAYS = {
    "stuck": "'taskyard retry {other}' tries that one again",
    "cycle": "take one of these steps away: taskyard edit {short} --after ID, or --no-after",
    "review": "'taskyard accept {short}' accepts it, 'taskyard reject {short} --note TEXT' has it done again",
    "behind_review": "'taskyard accept {other}' accepts that one, 'taskyard reject {other} --note TEXT' has it done again",
    "behind": "it goes on by itself when all that it comes after are done",
    "not_due": "it goes on by itself; 'taskyard retry {short}' makes it ready now",
    "assigned": "claim it as that worker (--worker {worker}), or change it: taskyard edit {short} --assignee NAME",
    "limited_by_team": "it goes on by itself; 'taskyard team show' has the team's quotas, and how full they are",
    "limited": "it goes on by itself; 'taskyard settings kinds.{kind}.{limit}=' takes the limit away",
    "in_use": "it can be claimed when task {other} ends or is given back",
    "refused": "check who owns that folder, and its permissions; 'taskyard fsck' names what cannot be read",
    "unserved": "start a worker for it: taskyard work --kind {kind} -- CMD",
    "ready": "'taskyard claim {short}' takes it",
    "lapsed": "it comes back by itself; 'taskyard janitor' sweeps now",
    "dead": "it comes back by itself; 'taskyard janitor' sweeps now",
    "held": "it goes on when {worker} ends it, or when its lease ends without a heartbeat",
    "done": "nothing: it is done; add another task to do it once more",
    "failed": "'taskyard retry {short}' tries it again",
    "cancelled_with": "'taskyard retry {other}' first; then 'taskyard retry {short}' puts this one back",
    "cancelled": "'taskyard retry {short}' puts it back",
    "set_aside": "put the file right in failed/, then 'taskyard retry {short}'",
    "not_a_task": "put it right, or give it a name that ends in .json",
    "guest": "the program that holds it has to end it or put it back",
}


def _line(text: str) -> str:
    """Return the first line of a reason, which may be the end of a program's output."""
    return gist(text).strip().partition("\n")[0]


def gist(text: str) -> str:
    """Return the part of a reason that says most: all of it, or the last line of a Python traceback."""
    return text.strip().rpartition("\n")[2] if text.startswith("Traceback (most recent call last)") else text
