"""The promise, as checks on what a run has left and on what its actors were told. Read it beside README's guarantee.

`after_a_sweep` is judged when everybody is gone and one sweep was made, `in_the_end` when all leases have ended as well
and somebody has done all the work that was left.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from taskyard.core import resources
from taskyard.stores.directory.names import Lane, Token

from .watch import STATES, Violation, task_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from .actors import World
    from .hands import Hand

    Reported = Callable[[str], Any]

MOVES = frozenset(
    ("added", "claimed", "released", "reaped", "retried", "due", "cancelled", "edited", "failed", "done", "set_aside")
) | {"unblocked"}
_W = "[0-9a-hjkmnp-tv-z]"
_ID, _SEG, _CLAIM = f"{_W}{{21}}", f"{_W}{{4}}", rf"{_W}{{21}}\.[0-9]+\.{_W}{{8}}[0-9]+"
GRAMMAR = {
    "yard.json": "", ".gitignore": "", "archive": r"[^/]+\.gz",
    "results": rf"{_SEG}/({_CLAIM}\.(done|error|released|crash|cancelled|resumed|stale-[0-9a-f]{{12}})|{_ID}\.[0-9]+\.(cancelled|retried))\.json",
    "attempts": rf"{_SEG}/{_ID}/{_CLAIM}/.*", "edits": rf"{_SEG}/{_ID}\.{_W}{{8}}\.json",
    "names": rf"{_SEG}/{_ID}\.[^/]+",
    "needs": rf"{_SEG}/{_ID}/{_ID}", "followers": rf"{_SEG}/{_ID}/({_ID}|failed|cancelled)", "children": rf"{_SEG}/{_ID}/{_ID}", "sheets": rf"{_SEG}/{_ID}",
    "keys": r"([0-9a-f]{2})/\1[0-9a-f]{38}\.json", "missions": r"since|[0-9a-f]{12}\.(json|cancelled)", "paused": r"[^/]+",
    "deadlines": rf"[0-9T-]+/{_SEG}/{_ID}\.[0-9]+", "backlog": r"[^/]+", "uses": _SEG,
    "asked": r"[^/]+", "segments": rf"{_SEG}|[0-9]-[^/]+",
    "events": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}\.[^./]+(\.[0-9]+)?\.jsonl",
    "workers": r"[^/]+", "writers": rf"([0-9]+-{_W}{{8}}(\.new)?|lost_races)", "turns": "[0-9]+",
    "dead": r"[^/]+", "tmp": rf"(clock|{_ID}\.(json|missing)|[0-9]+-{_W}{{8}}\.[0-9]+(\..*\.drop)?|init-{_W}{{8}})",
}  # fmt: skip


def places(world: World) -> dict[str, tuple[str, Token]]:
    """Where every task is: in exactly one state."""
    found: dict[str, list[tuple[str, Token]]] = {}
    for folder, names in world.files.names.items():
        for name in names:
            task = task_at(world.root, f"{folder}/{name}")
            if task is not None:
                lane = Lane.of_folder(folder.split("/")[-2]) if task[1] == "todo" else None
                token = Token.parse(name, lane)
                if token is None:
                    raise Violation("grammar", f"{folder}/{name} is no task's name")
                found.setdefault(task[0], []).append((task[1], token))
    for id, entries in found.items():
        if len(entries) > 1:
            where = [f"{state} with fence {token.fence}" for state, token in entries]
            raise Violation("two places", f"{id} is {' and '.join(where)}")
    return {id: entries[0] for id, entries in found.items()}


def legal_names(world: World) -> None:
    """No file outside the grammar of the protocol."""
    for folder, names in world.files.names.items():
        for name, ino in names.items():
            path = f"{folder}/{name}"
            if world.files.nodes[ino].folder or not path.startswith(f"{world.root}/"):
                continue
            top, _, rest = path[len(world.root) + 1 :].partition("/")
            box = top in ("todo", "failed") and "/" not in rest
            if top in STATES and (task_at(world.root, path) is not None or box):
                continue
            if top not in GRAMMAR or re.fullmatch(GRAMMAR[top], rest) is None:
                raise Violation("grammar", f"{top}/{rest} is nothing that a yard holds")


def nothing_is_lost(world: World, there: dict[str, tuple[str, Token]], known: set[str]) -> None:
    """What was there before, and every add that was acknowledged, is there."""
    gone = there.keys() | world.pruned
    for note in world.told:
        if note["verb"] == "add" and note["answer"] == "ok" and note["task"] not in gone:
            raise Violation("lost", f"{note['by']} was told that {note['task']} is added, and it is nowhere")
    for note in world.told:
        if note["verb"] == "find" and note["answer"] == "NotFound":
            raise Violation(
                "lost", f"{note['by']} was told that there is no {note['task']}, and it was there all the time"
            )
    for id in known - there.keys() - world.pruned:
        raise Violation("lost", f"{id} was there at the beginning, and is nowhere")


def endings(world: World, reported: Reported, there: dict[str, tuple[str, Token]], *, cut: bool) -> None:
    """Published once, by the claim whose name it has, with the result of that claim; late ones changed nothing.

    A power cut may undo a release: nobody was promised anything but that the task comes back.
    """
    for note in world.told:
        handle = note.get("handle")
        if handle is None or note["verb"] not in ("done", "fail", "release") or note["answer"] is None:
            continue
        id, fence, nonce = handle.split(".")
        if id not in there:
            continue
        state, token = there[id]
        report = reported(id)
        by_it = (token.fence, token.nonce) == (int(fence), nonce)
        if note["verb"] == "done" and note["answer"] == "ok":
            if state != "done" or not by_it:
                raise Violation("acknowledged", f"{note['by']} was told done by {handle}, and the task is {state}")
            asked = [n["result"] for n in world.told if n.get("handle") == handle and n["verb"] == "done"]
            if all(other == note["result"] for other in asked) and report.task.result != note["result"]:
                raise Violation("result", f"{handle} brought {note['result']}, published is {report.task.result}")
        if note["answer"] == "ClaimLost":
            if by_it and state == "done" and note["verb"] == "done":
                raise Violation("acknowledged", f"{note['by']} was refused, and {handle} has ended the task")
            if note["verb"] == "done" and note["result"] is not None:
                kept = [entry["result"] for entry in report.stale_results if entry["claim"] == handle]
                if note["result"] not in kept:
                    raise Violation("stale result", f"what {handle} brought too late is not kept: {kept}")
        if (note["verb"] == "fail" or (note["verb"] == "release" and not cut)) and note["answer"] == "ok":
            ways = [entry["outcome"] for entry in report.history if entry["claim"] == handle]
            if len(ways) != 1:
                raise Violation("history", f"{handle} has ended {len(ways)} times in the history: {ways}")


def published(world: World, reported: Reported, there: dict[str, tuple[str, Token]]) -> None:
    """Whoever's name a done task has, that claim was handed out, said done, and brought the result that is shown."""
    for id, (state, token) in there.items():
        if state != "done":
            continue
        handle = f"{id}.{token.fence}.{token.nonce}"
        asked = [note["result"] for note in world.told if note.get("handle") == handle and note["verb"] == "done"]
        shown = reported(id).task.result
        if shown not in asked:
            raise Violation("result", f"{id} shows {shown}, and {handle} brought {asked}")


def late_verbs(world: World) -> None:
    """Who did not hold the task any more when it asked was refused; only the winner's repeated ending gets its answer again."""
    for number, note in enumerate(world.told):
        if note.get("held") is not False or note["answer"] != "ok":
            continue
        said = [n for n in world.told[:number] if n.get("handle") == note["handle"] and n["verb"] == note["verb"]]
        if note["verb"] in ("heartbeat", "note") or not said:
            raise Violation(
                "late verb", f"{note['by']}'s {note['verb']} by {note['handle']} was taken, and it was over"
            )


def no_wonder(world: World) -> None:
    """Where the disk did nothing wrong, nobody is told that it did: each answer is one that the verb has."""
    for note in world.told:
        if note["answer"] not in (None, "ok", "ClaimLost", "Conflict", "NotFound", "failed"):
            raise Violation("answer", f"{note['by']} was told {note['answer']} to its {note['verb']}, for no reason")


def nothing_ready(world: World) -> None:
    """Nobody is told that nothing is ready while a task is there, from before the question until after the answer."""
    for note in world.told:
        if note["verb"] == "passed over" and note["left"]:
            raise Violation("nothing ready", f"{note['by']} was told so, and there was {note['left'][0]}")


def counters(world: World, hand: Hand, reported: Reported, there: dict[str, tuple[str, Token]]) -> None:
    """Errors and crashes are counted, each as what it was; and a task has failed by these, or because its holder said so."""
    retried = {note["task"] for note in world.told if note["verb"] == "retry"}
    for id, (state, token) in there.items():
        if id in retried:
            continue
        ways = Counter(entry["outcome"] for entry in reported(id).history)
        if (token.errors, token.crashes) != (ways["error"], ways["crash"]):
            counted = f"{token.errors} errors and {token.crashes} crashes"
            raise Violation("counters", f"{id} has {counted} in its name, and its history is {dict(ways)}")
        handle = f"{id}.{token.fence}.{token.nonce}"
        said = [note for note in world.told if note.get("handle") == handle and note["verb"] == "fail"]
        if state == "failed" and not said and token.crashes < hand.yard.policy.max_crashes:
            raise Violation("counters", f"{id} has failed, and nobody said so: {hand.yard.get(id).error}")


def exclusive(world: World) -> None:
    """Of all who were told that they hold a task, no two have to themselves what both use."""
    granted = {note.get("granted") for note in world.told}
    holders: list[tuple[str, str]] = []
    for id, (state, token) in places(world).items():
        handle = f"{id}.{token.fence}.{token.nonce}"
        if state == "processing" and token.uses and handle in granted:
            own = [(resource, handle) for resource in _body(world, id, token).get("uses") or ()]
            for resource, _ in own:
                for other, holder in holders:
                    if resources.conflict(resource, other):
                        raise Violation("in use", f"{holder} has {other} to itself, and {handle} has {resource}")
            holders += own


def _limits(world: World) -> dict[str, dict[str, int]]:
    """The limits of kinds, by the yard's settings."""
    content = json.loads(world.files.find(f"{world.root}/yard.json").content)
    return content["settings"]["kinds"]  # type: ignore[no-any-return]


def within_limits(world: World) -> None:
    """Of all who were told that they hold a task, no more are of a kind than its limit allows."""
    granted = {note.get("granted") for note in world.told}
    held = Counter(
        token.lane.kind
        for id, (state, token) in places(world).items()
        if state == "processing" and f"{id}.{token.fence}.{token.nonce}" in granted
    )
    for kind, limits in _limits(world).items():
        if held[kind] > limits["concurrency"]:
            raise Violation("limit", f"{held[kind]} of kind {kind} are held, and {limits['concurrency']} may be")


def claims(world: World, *, again: bool) -> None:
    """No claim is handed out twice: a fence is one claim's, unless a power cut took the claim back; a handle always."""
    granted = [note for note in world.told if note["verb"] == "claim" and note.get("granted")]
    for what, twice in (
        ("handle", Counter(n["granted"] for n in granted)),
        ("fence", Counter((n["task"], n["fence"]) for n in granted)),
    ):
        double = [one for one, count in twice.items() if count > 1]
        if double and not (again and what == "fence"):
            raise Violation("two claims", f"the {what} {double[0]} was handed out {twice[double[0]]} times")


def handed_out(world: World) -> None:
    """Where nobody died, whoever holds a task knows it."""
    granted = {note.get("granted") for note in world.told}
    for id, (state, token) in places(world).items():
        handle = f"{id}.{token.fence}.{token.nonce}"
        if state == "processing" and handle not in granted:
            raise Violation("handed out", f"{handle} holds its task, and nobody was told so")


def keys(world: World, there: dict[str, tuple[str, Token]], *, cut: bool) -> None:
    """One key, one task; and no key without its task, but for one that a power cut has left of an add in mid-air."""
    by_key: dict[str, set[str]] = {}
    for note in world.told:
        if note["verb"] == "add" and note["answer"] == "ok" and note.get("key"):
            by_key.setdefault(note["key"], set()).add(note["task"])
    for key, ids in by_key.items():
        if len(ids) > 1 and not ids & world.pruned:
            raise Violation("key", f"the key {key} stands for {len(ids)} tasks: {sorted(ids)}")
    held = Counter(filter(None, (_key_of(world, id, token) for id, (_, token) in there.items())))
    double = [key for key, count in held.items() if count > 1]
    if double:
        raise Violation("key", f"{held[double[0]]} tasks have the key {double[0]}")
    for folder, names in world.files.names.items():
        for name, ino in names.items():
            if folder.startswith(f"{world.root}/keys/"):
                id = json.loads(world.files.nodes[ino].content or b'{"id": "a torn file"}')["id"]
                if id not in there and not (cut and world.files.nodes[ino].nlink == 1):
                    raise Violation("key", f"the key {name[:8]} stands for {id}, which is nowhere")


def _key_of(world: World, id: str, token: Token) -> str | None:
    """The key in a task's own file."""
    key = None if token.dropped else _body(world, id, token).get("key")
    return None if key is None else str(key)


def _body(world: World, id: str, token: Token) -> dict[str, Any]:
    """What a task's own file says."""
    for folder, names in world.files.names.items():
        for name, ino in names.items():
            if name.startswith(f"{id}.{token.fence}.") and task_at(world.root, f"{folder}/{name}"):
                body: dict[str, Any] = json.loads(world.files.nodes[ino].content or b"{}")
                return body
    return {}


def log(world: World, hand: Hand, there: dict[str, tuple[str, Token]]) -> None:
    """The log tells every task's whole story: no gap, no double."""
    events = hand.yard.events(limit=100_000)
    for id, (state, token) in there.items():
        story = [event for event in events if event["task"] == id and event["event"] in MOVES]
        final = [event for event in story if event["event"] == "done" or event.get("final")]
        moves = Counter(event["fence"] for event in story if event not in final or event["event"] == "reaped")
        told = [(event["event"], event["fence"]) for event in story]
        ending = state in ("done", "failed") and token.nonce is not None  # which keeps the number of its claim
        may_give_way = token.uses or token.lane.kind in _limits(world)  # that raises the fence, and is not logged
        if (not may_give_way and set(moves) != set(range(token.fence + 1))) or (ending and not final):
            raise Violation("log", f"a gap in {told}, and {id} is {state} with fence {token.fence}")
        if max(moves.values()) > 1 or len([event for event in final if event["event"] == "done"]) > 1:
            raise Violation("log", f"a double in {told}")
        put_off = {event["fence"]: event["due"] for event in story if event.get("due")}
        for event in story:
            if event["event"] == "due" and event["at"] < put_off.get(event["fence"] - 1, ""):
                raise Violation("too early", f"{id} was woken at {event['at']}, and is due at {put_off}")


def steering(world: World, hand: Hand, there: dict[str, tuple[str, Token]]) -> None:
    """What was cancelled is so, unless it was tried again; what was edited says so, whoever has it now."""
    for number, note in enumerate(world.told):
        if note["answer"] != "ok" or note.get("task") not in there:
            continue
        state = there[note["task"]][0]
        later = [n for n in world.told[number + 1 :] if n.get("task") == note["task"] and n["verb"] == "retry"]
        if note["verb"] == "cancel" and state != "cancelled" and not later:
            raise Violation(
                "acknowledged", f"{note['by']} was told that {note['task']} is cancelled, and it is {state}"
            )
        if note["verb"] == "edit":
            _edited(world, hand, note)


def _edited(world: World, hand: Hand, note: dict[str, Any]) -> None:
    """What one edit has changed and no other edit was about is as it said."""
    task = hand.yard.get(note["task"])
    for field, value in note["changes"].items():
        edits = [n["changes"] for n in world.told if n["verb"] == "edit" and n["task"] == note["task"]]
        if getattr(task, field) != value and all(changes.get(field, value) == value for changes in edits):
            raise Violation("acknowledged", f"{task.id} was edited to {field} {value}, and says {getattr(task, field)}")


def drops(world: World, hand: Hand, there: dict[str, tuple[str, Token]]) -> None:
    """A file that arrived whole is one task, which tells its name, or set aside; never gone, never two."""
    for note in world.told:
        if note["verb"] == "drop" and note["answer"] == "ok":
            tasks = [task for task in map(hand.yard.get, there) if task.data == note["data"]]
            made = len(tasks)
            aside = sum(entry["name"].split("~")[0] == note["file"] for entry in hand.yard.set_aside())
            box = f"{note['file']}.json" in world.files.names[f"{world.root}/todo"]
            same = [n for n in world.told if n["verb"] == "drop" and n["data"] == note["data"]]
            twice = len(same) == 1 and made + aside + box > 1
            if made + aside + box == 0 or twice or made > (1 if "taskId" in note["data"] else len(same)):
                raise Violation("drop", f"{note['file']} has become {made} tasks, {aside} set aside")
            if len(same) == 1 and made and str(tasks[0].dropped_as).split("~")[0] != note["file"]:
                raise Violation("drop", f"{note['file']} has become a task that was dropped as {tasks[0].dropped_as}")


def after_a_sweep(world: World, hand: Hand, known: set[str], *, logged: bool, cut: bool) -> None:
    """All that must hold once the janitor has been there."""
    there = places(world)
    reported = functools.cache(hand.yard.report)  # nobody changes anything while these look
    legal_names(world)
    nothing_is_lost(world, there, known)
    nothing_ready(world)
    claims(world, again=cut)
    endings(world, reported, there, cut=cut)
    published(world, reported, there)
    steering(world, hand, there)
    keys(world, there, cut=cut)
    if not cut:
        counters(world, hand, reported, there)
        drops(world, hand, there)  # whoever copies a file in does not sync it
        late_verbs(world)
    if logged:
        log(world, hand, there)


def in_the_end(world: World) -> None:
    """Nothing is stuck: whoever works on has ended all that can be ended."""
    there = places(world)
    for id, (state, token) in there.items():
        needs = world.files.names.get(f"{world.root}/needs/{id[:4]}/{id}", {})
        policies = _policies(world, id) if state == "blocked" else {}
        if any(there.get(need, ("",))[0] in ("failed", "cancelled") and need not in policies for need in needs):
            continue
        if state not in ("done", "failed", "cancelled"):
            raise Violation("stuck", f"{id} is {state} with fence {token.fence} and nobody can have it")


def _policies(world: World, id: str) -> dict[str, str]:
    """What the task's own file says of failures of those that it comes after, where it is not to block."""
    [path] = list(world.watch.places[id])  # type: ignore[union-attr]
    folder, _, name = path.rpartition("/")
    content = json.loads(world.files.nodes[world.files.names[folder][name]].content)
    return dict(content.get("on_failure") or {})
