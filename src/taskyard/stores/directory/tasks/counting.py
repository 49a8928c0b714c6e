"""Counts over the whole yard, from the names alone, a folder at a time: a million names take half a second."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.names import SUFFIX, Lane, counted_lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from taskyard.stores.directory.context import Context

_BY_SEGMENT = (State.BLOCKED, State.DONE, State.FAILED, State.CANCELLED)
_WITH_OLDEST = (State.TODO, State.PROCESSING, State.BLOCKED)

Kinds = dict[str, dict[str, int]]


def count(context: Context, states: Collection[State] = tuple(State)) -> tuple[Kinds, dict[State, str]]:
    """Return how many tasks of these states there are by kind and state, and the oldest in todo, in processing and in blocked."""
    lanes: dict[tuple[State, str], int] = {}
    oldest: dict[State, str] = {}
    for state, folder, lane in _folders(context, states):
        names = context.locator.names(folder)
        for text, number in _by_lane(names, folder.rpartition("/")[2], lane).items():
            lanes[state, text] = lanes.get((state, text), 0) + number
        if names and state in _WITH_OLDEST:
            _note_oldest(oldest, state, names)
    for found in context.locator.moved.held():
        held = (State.PROCESSING, found.token.lane.text)
        lanes[held] = lanes.get(held, 0) + 1
    kinds: Kinds = {}
    for (state, text), number in lanes.items():
        parsed = Lane.of_folder(text)
        if parsed is not None and number:
            row = kinds.setdefault(parsed.kind, {})
            row[state] = row.get(state, 0) + number
    return kinds, oldest


def _folders(context: Context, states: Collection[State]) -> Iterator[tuple[State, str, str]]:
    """Yield every folder with tasks, its state, and its lane; names elsewhere than in todo/ have the lane in them."""
    root, names = context.root, context.locator.names
    for text in context.disk.listdir(f"{root}/todo") if State.TODO in states else ():
        for segment in names(f"{root}/todo/{text}"):
            yield State.TODO, f"{root}/todo/{text}/{segment}", text
    for bucket in names(f"{root}/waiting") if State.WAITING in states else ():
        for segment in names(f"{root}/waiting/{bucket}"):
            yield State.WAITING, f"{root}/waiting/{bucket}/{segment}", ""
    if State.PROCESSING in states:
        yield State.PROCESSING, context.processing, ""
    for state in filter(states.__contains__, _BY_SEGMENT):
        for segment in names(f"{root}/{state}"):
            yield state, f"{root}/{state}/{segment}", ""


def _by_lane(names: list[str], segment: str, lane: str) -> dict[str, int]:
    """Return how many tasks of each lane have these names.

    The tasks of a segment have one kind, and most of them one lane. So all names are searched together for what a task's name
    begins and ends with, and for the lane. If each is there once for each name, all are counted; else each name is parsed.
    """
    if not names:
        return {}
    first = counted_lane(names[0])
    if first is not None and bool(first) != bool(lane) and names[0].startswith(segment):
        text = "/".join(names)
        between = text.count(f"{SUFFIX}/{segment}")  # where one task's name ends and another's begins
        if between == len(names) - 1 and text.endswith(SUFFIX) and (lane or text.count(f".{first}.") == len(names)):
            return {lane or first: len(names)}
    counted: dict[str, int] = {}
    for name in names:
        found = counted_lane(name)
        if found is not None and bool(found) != bool(lane):
            counted[lane or found] = counted.get(lane or found, 0) + 1
    return counted


def _note_oldest(oldest: dict[State, str], state: State, names: list[str]) -> None:
    """Note the oldest task of these names, if it is older than the one known."""
    if state is State.PROCESSING:
        names = [name for name in names if ids.is_id(name[: ids.LENGTH])]
    first = min(names, key=ids.age_key if state is State.PROCESSING else None, default="")[: ids.LENGTH]
    if ids.is_id(first) and (state not in oldest or ids.age_key(first) < ids.age_key(oldest[state])):
        oldest[state] = first
