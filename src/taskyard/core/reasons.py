"""Why nothing is ready: each fact as a clause, and all of them as one sentence. No I/O.

`yard.why` gathers the facts. They are plain JSON, and every door shows the same sentence with them.
"""

from __future__ import annotations

from taskyard.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Facts = Mapping[str, Any]

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_CLAUSES_MOST = 3  # of one sentence; the facts have the rest
_NAMED_MOST = 3  # kinds or workers that one clause names
ENDED = {"failed": "failed", "cancelled": "was cancelled", "done": "is done"}


def duration(seconds: float) -> str:
    """Return a length of time in a unit of which there are at least two: `90 s`, `3 min`, `2 h`, `5 d`."""
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def tasks(count: int, at_least: bool = False) -> str:
    """Return a number of tasks in words: `1 task`, `3 tasks`, `at least 100 tasks`."""
    return f"{'at least ' if at_least else ''}{count} {'task' if count == 1 else 'tasks'}"


def state(name: str) -> str:
    """Return a state as the end of a clause: `failed`, `was cancelled`, `is processing`."""
    return ENDED.get(name, f"is {name}")


# One clause for each fact.


def paused(fact: Facts) -> str:
    """Return what is paused; an empty text if nothing is."""
    kinds = ", ".join(fact["kinds"])
    if fact["yard"]:
        return "paused: the whole yard" + (f", and {kinds}" if kinds else "")
    return f"paused: {kinds}" if kinds else ""


def unusable(folders: Sequence[str]) -> str:
    """Return which folders claims skip because the system refuses them."""
    others = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
    return f"passed over: {folders[0]}{others}"


def ready(fact: Facts) -> str:
    """Return how many tasks this worker could claim now."""
    count = fact["count"]
    return f"{_tasks(fact)} {'is' if count == 1 else 'are'} ready"


def blocked(entry: Facts) -> str:
    """Return how many tasks are blocked behind one task, and where that one stands."""
    verb = "is" if entry["count"] == 1 else "are"
    return f"{_tasks(entry)} {verb} blocked behind {entry['short']}, which {state(entry['state'])}"


def in_use(entry: Facts) -> str:
    """Return how many tasks wait for a resource, and which worker has it."""
    verb = "waits" if entry["count"] == 1 else "wait"
    what = "which" if entry["held"] == entry["resource"] else f"and {entry['held']!r} is what"
    return f"{_tasks(entry)} {verb} for {entry['resource']!r}, {what} {entry['by']} uses for {entry['short']}"


def limited(entry: Facts) -> str:
    """Return which limit of a kind, or which quota of a team, is reached, and how many tasks wait for that."""
    verb = "waits" if entry["count"] == 1 else "wait"
    return f"{limits.sentence(entry)} ({_tasks(entry)} {verb})"


def other_kinds(entries: Sequence[Facts]) -> str:
    """Return how many tasks are ready of kinds that were not asked for."""
    count = sum(entry["count"] for entry in entries)
    bounded = any(entry.get("at_least") for entry in entries)
    return f"{tasks(count, bounded)} of other kinds {'is' if count == 1 else 'are'} ready: {_some(entries, 'kind')}"


def assigned(entries: Sequence[Facts]) -> str:
    """Return how many tasks only other workers can claim."""
    count = sum(entry["count"] for entry in entries)
    bounded = any(entry.get("at_least") for entry in entries)
    return f"{tasks(count, bounded)} {'is' if count == 1 else 'are'} assigned to {_some(entries, 'worker')}"


def unserved(entries: Sequence[Facts]) -> str:
    """Return which kinds no worker has asked for, and for how long."""
    count = sum(entry["count"] for entry in entries)
    spans = [entry["for"] for entry in entries if entry["for"] is not None]
    since = f"for {duration(min(spans))}" if len(spans) == len(entries) else "yet" if not spans else "for an hour"
    kinds = f"{'kind' if len(entries) == 1 else 'kinds'} {_some(entries, 'kind')}"
    wait = tasks(count, any(entry.get("at_least") for entry in entries))
    return f"no worker has asked for {kinds} {since} ({wait})"


def review(fact: Facts) -> str:
    """Return how many tasks wait for review, and the first of them."""
    verb = "waits" if fact["count"] == 1 else "wait"
    return f"{_tasks(fact)} {verb} for review, the first is {fact['short']}"


def due(fact: Facts) -> str:
    """Return how many tasks are not due, and when the next is."""
    verb = "is" if fact["count"] == 1 else "are"
    soon = "now" if fact["in"] <= 0 else f"in {duration(max(1.0, fact['in']))}"
    return f"{_tasks(fact)} {verb} not due yet, the next {soon}"


def schedule(entries: Sequence[Facts]) -> str:
    """Return which schedule adds the next task, and when; or that the only ones are paused."""
    entry = entries[0]
    what = f"the schedule {entry['schedule']!r}"
    if entry["paused"]:
        return f"{what}, which adds {entry['kind']}, is paused"
    soon = "now" if entry["in"] <= 0 else f"in {duration(max(1.0, entry['in']))}"
    return f"{what} adds the next {entry['kind']} {soon}"


def running(count: int) -> str:
    """Return how many tasks workers hold."""
    return f"{tasks(count)} {'is' if count == 1 else 'are'} in workers' hands"


def dropped(count: int, entries: Sequence[Facts] = ()) -> str:
    """Return how many dropped files are still to be taken in, and what has no room for them."""
    return f"{_files(count)} not taken in yet" + (f", because {full(entries)}" if entries else "")


def full(entries: Sequence[Facts]) -> str:
    """Return what has no room for more tasks: dropped files stay where they are until it has."""
    parts = []
    for entry in entries:
        what = "the yard" if entry["kind"] is None else f"kind {entry['kind']}"
        what = f"the team {entry['team']}" if "team" in entry else what
        parts.append(f"{what} is full ({entry['count']} of {entry['max_todo']})")
    return ", ".join(parts)


def refusing(entries: Sequence[Facts]) -> str:
    """Return what refuses further tasks."""
    return f"{full(entries)}: an add is refused, or waits for room"


def set_aside(count: int) -> str:
    """Return how many dropped files could be no tasks."""
    return f"{_files(count)} set aside, because no task could be made of {'it' if count == 1 else 'them'}"


def not_tasks(entries: Sequence[Facts]) -> str:
    """Return what lies in the drop box and is no task."""
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[0]['name']}{more} in the drop box: {entries[0]['reason']}"


def done(failed: int, cancelled: int) -> str:
    """Return that no task is open, and how many did not end well."""
    endings = [f"{tasks(failed)} failed"] if failed else []
    endings += [f"{tasks(cancelled)} {'was' if cancelled == 1 else 'were'} cancelled"] if cancelled else []
    return "everything is done" if not endings else f"everything has ended, and {' and '.join(endings)}"


def empty(fact: Facts) -> str:
    """Return that there is no task at all, of what was asked for."""
    wanted = "".join(
        f" of {word} {', '.join(fact[name])}"
        for name, word in (("kinds", "kind"), ("missions", "mission"))
        if fact[name]
    )
    return f"there is no task{wanted}"


# The sentence, and what to do next.


def sentence(facts: Facts) -> str:
    """Return the most telling reasons as one sentence."""
    return "; ".join(clauses(facts)[:_CLAUSES_MOST]) or "nothing is known that holds tasks back"


def clauses(facts: Facts) -> list[str]:
    """Return every reason as a clause, the most telling first."""
    behind = facts.get("blocked", ())
    stuck = [entry for entry in behind if entry["state"] in ENDED]
    found = [
        *_one(paused, facts.get("paused")),
        *_one(unusable, facts.get("unusable")),
        *_one(ready, facts.get("ready")),
        *map(blocked, stuck),
        *map(limited, facts.get("team", ())),
        *map(limited, facts.get("limits", ())),
        *map(in_use, facts.get("in_use", ())),
        *_one(assigned, facts.get("assigned")),
        *_one(other_kinds, facts.get("other_kinds")),
        *_one(unserved, facts.get("unserved")),
        *_one(review, facts.get("review")),
        *_one(due, facts.get("due")),
        *_one(running, facts.get("running")),
        *(blocked(entry) for entry in behind if entry not in stuck),
        *(
            [dropped(facts["dropped"], facts.get("full", ()))]
            if facts.get("dropped")
            else _one(refusing, facts.get("full"))
        ),
        *([done(facts.get("failed", 0), facts.get("cancelled", 0))] if facts.get("done") else ()),
        *_one(empty, facts.get("empty")),
        *_one(schedule, facts.get("schedules")),
        *_one(set_aside, facts.get("set_aside")),
        *_one(not_tasks, facts.get("not_tasks")),
    ]
    return [clause for clause in found if clause]


def way_out(facts: Facts) -> str:
    """Return what would move things, by the most telling reason."""
    stuck = [entry for entry in facts.get("blocked", ()) if entry["state"] in ENDED]
    found = {**facts, "stuck": stuck}
    for name, way in _WAYS.items():
        if found.get(name):
            return unpause(found[name]) if name == "paused" else way.format_map(_first(found[name]))
    return "'taskyard stats' shows what there is; 'claim --wait 60' waits for a task to be ready"


_OPEN = "'taskyard claim --wait 60' waits for a task; 'taskyard list --state open' shows all that is left"
_WAYS = {
    "paused": "",
    "unusable": "check who owns that folder, and its permissions; 'taskyard fsck' names what cannot be read",
    "ready": "'taskyard claim' takes the first of them",
    "stuck": "'taskyard retry {short}' tries that one again; 'taskyard show {short}' has its reason",
    "team": "'taskyard claim --wait 60' waits for it; 'taskyard team show' has the team's quotas, and how full they are",
    "limits": "'taskyard claim --wait 60' waits for it; 'taskyard settings kinds.{kind}.{limit}=' takes the limit away",
    "in_use": "{resource} is free when task {short} ends",
    "assigned": "only that worker can claim them (--worker {worker})",
    "other_kinds": "'taskyard claim --kind {kind}' takes one",
    "unserved": "start a worker for it: taskyard work --kind {kind} -- CMD",
    "review": "'taskyard accept {short}' accepts it, 'taskyard reject {short} --note TEXT' has it done again",
    "due": _OPEN,
    "running": _OPEN,
    "blocked": _OPEN,
    "failed": "'taskyard list --state failed' names them, 'taskyard show ID' has the reason; 'taskyard retry ID' tries one again",
}


def _first(fact: Any) -> Facts:
    """Return the first entry of a list of facts, or the fact itself."""
    entry = fact[0] if isinstance(fact, list) else fact
    return entry if isinstance(entry, dict) else {}


def unpause(fact: Facts) -> str:
    """Return how to end this pause."""
    words = ["taskyard unpause"] if fact["yard"] else [f"taskyard unpause {kind}" for kind in fact["kinds"]]
    return f"'{words[0]}' ends {'the pause' if len(words) == 1 else 'the first of these pauses'}"


def _one(clause: Callable[[Any], str], fact: Any) -> list[str]:
    return [clause(fact)] if fact else []


def _tasks(entry: Facts) -> str:
    return tasks(entry["count"], bool(entry.get("at_least")))


def _files(count: int) -> str:
    return "1 dropped file is" if count == 1 else f"{count} dropped files are"


def _some(entries: Sequence[Facts], name: str) -> str:
    more = ", ..." if len(entries) > _NAMED_MOST else ""
    return ", ".join(str(entry[name]) for entry in entries[:_NAMED_MOST]) + more
