"""Is a yard as the promise says? Every task in exactly one place, and the log with one line for every move."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from taskyard.core.task import State
from taskyard.stores.directory.names import Lane, Token

if TYPE_CHECKING:
    import taskyard

MOVES = frozenset(
    ("added", "claimed", "released", "reaped", "retried", "due", "cancelled", "edited", "failed", "done", "set_aside")
) | {"unblocked"}


def places(root: str) -> dict[str, list[tuple[State, Token]]]:
    """Every name of every task, by its id."""
    found: dict[str, list[tuple[State, Token]]] = {}
    for state in State:
        for folder, _, names in os.walk(f"{root}/{state}"):
            lane = Lane.of_folder(os.path.basename(os.path.dirname(folder))) if state is State.TODO else None
            for name in names:
                token = Token.parse(name, lane)
                if token is not None:
                    found.setdefault(token.id, []).append((state, token))
    return found


def check_places(root: str) -> dict[str, tuple[State, Token]]:
    """Where every task is, after making sure that it is there only."""
    found = places(root)
    twice = {id: entries for id, entries in found.items() if len(entries) > 1}
    assert not twice, f"in two places: {twice}"
    return {id: entries[0] for id, entries in found.items()}


def check_nothing_is_stuck(yard: taskyard.Yard) -> None:
    """No task is blocked by what is done, and no edge is left of one that is not blocked."""
    found = check_places(yard.url)
    done = {id for id, (state, _) in found.items() if state is State.DONE}
    for id, (state, _) in found.items():
        if state is State.BLOCKED:
            unmet = set(yard.get(id).after) - done
            assert unmet, f"{id} is blocked by nothing"
            folder = f"{yard.url}/needs/{id[:4]}/{id}"
            noted = set(os.listdir(folder)) if os.path.exists(folder) else set()
            assert noted | in_sheets(yard.url, id) == unmet
            assert all(os.path.exists(f"{yard.url}/followers/{other[:4]}/{other}/{id}") for other in noted)
        elif state is not State.CANCELLED:
            assert not os.path.exists(f"{yard.url}/needs/{id[:4]}/{id}"), f"{id} is {state} and has needs"
            assert in_sheets(yard.url, id) == set(), f"{id} is {state} and has needs in a sheet"
        if state is State.DONE:
            assert not os.path.exists(f"{yard.url}/followers/{id[:4]}/{id}"), f"{id} is done and has followers"


def in_sheets(root: str, task: str) -> set[str]:
    """What the task waits for, by the sheets of its segment; each is in the segments of the others as well."""
    waits: set[str] = set()
    folder = f"{root}/sheets/{task[:4]}"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(f"{folder}/{name}", encoding="ascii") as file:
            lines = [line.split() for line in file]
        met = {line[0] for line in lines if len(line) == 1}
        own = {other for line in lines if line[:1] == [task] and line[-1] == "." for other in line[1:-1]} - met
        assert all(os.path.samefile(f"{folder}/{name}", f"{root}/sheets/{other[:4]}/{name}") for other in own)
        waits |= set() if f"-{task}" in met else own
    return waits


def check_log(yard: taskyard.Yard) -> None:
    """The log tells every task's whole story: no gap, no double, in order."""
    events = yard.events(limit=100_000)
    for id, (state, token) in check_places(yard.url).items():
        story = [event for event in events if event["task"] == id and event["event"] in MOVES]
        numbers = [event["fence"] for event in story]
        assert numbers == sorted(numbers), f"out of order: {story}"
        endings = [event for event in story if event["event"] == "done" or event.get("final")]
        moves = Counter(event["fence"] for event in story if event not in endings or event["event"] == "reaped")
        # A claim that stood back for another one that uses the same was none, and is not told of.
        assert token.uses or set(moves) == set(range(token.fence + 1)), (
            f"a gap in {[(e['event'], e['fence']) for e in story]}, at {state} {token.fence}"
        )
        assert max(moves.values()) == 1, f"a double in {[(e['event'], e['fence']) for e in story]}"
        if state is State.DONE:
            assert [event["event"] for event in endings][-1:] == ["done"], f"ended as {endings}"


def path_of(url: str, id: str) -> str:
    """The one file of a task."""
    [path] = [f"{folder}/{name}" for state in State for folder, _, found in os.walk(f"{url}/{state}") for name in found if name.startswith(id)]  # fmt: skip
    return path


def state_of(url: str, id: str) -> State:
    """The one state that a task is in."""
    return check_places(url)[id][0]


def told(yard: taskyard.Yard, id: str | None = None) -> list[tuple[str, int]]:
    """What the log says of a task, or of all."""
    return [(event["event"], event["fence"]) for event in yard.events(limit=100_000) if id in (None, event["task"])]
