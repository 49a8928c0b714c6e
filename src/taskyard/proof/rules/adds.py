"""Rules about what was added: each task is there, once, as it was asked for, and a key has one."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.proof.final_state import Final, FinalState
    from taskyard.proof.history import History, Operation
    from taskyard.proof.task_history import Story

    Wish = tuple[str, str, str | None]
    """What a task was asked to be: kind, data and key."""


def there(story: Story, picture: FinalState) -> Iterator[Violation]:
    """Every acknowledged task is there, in one state, which list and look agree on."""
    if story.id not in picture.listed:
        if story.adds or story.takings:
            said = "acknowledged" if story.adds else "handed out"
            operations = story.adds[:1] or [story.takings[0].operation]
            yield Violation("lost", story.id, f"task {story.id} was {said}, and is not there", operations)
        return
    states = picture.listed[story.id]
    if story.final is None:
        yield Violation("lost", story.id, f"task {story.id} is listed as {states[0]}, and is not there", story.adds[:1])
    elif states != [story.final.state]:
        places = ", ".join([*states, *([] if story.final.state in states else [story.final.state])])
        yield Violation("doubled", story.id, f"task {story.id} is in several places: {places}", story.adds[:1])


def as_asked(story: Story) -> Iterator[Violation]:
    """A task is what was asked for, unless it was edited."""
    final = story.final
    if final is None or story.altered:
        return
    for op in story.adds:
        wishes = [wish(draft) for draft, id in zip(op.given["drafts"], _told(op)["ids"], strict=True) if id == story.id]
        if _is(final) not in wishes:
            text = f"task {story.id} is {_shown(_is(final))}, and was asked to be {_shown(wishes[0])}"
            yield Violation("altered", story.id, text, [op])
            return


class Wishes:
    """What was asked for without being told an id: by adds that got no answer, and through the drop box."""

    def __init__(self, history: History) -> None:
        self.sure: Counter[Wish] = Counter()
        self.unsure: Counter[Wish] = Counter()
        self.by: dict[Wish, list[Operation]] = defaultdict(list)
        for op in history:
            if (op.verb == "add" and op.unknown) or op.verb == "drop":
                for draft in op.given["drafts"]:
                    (self.unsure if op.told is None else self.sure)[wish(draft)] += 1
                    self.by[wish(draft)].append(op)


def asked(history: History, picture: FinalState, stories: dict[str, Story]) -> Iterator[Violation]:
    """No task is there that nobody asked for, nor more often than somebody did; what was dropped is there."""
    wishes = Wishes(history)
    found: dict[Wish, list[str]] = defaultdict(list)
    for id, final in picture.tasks.items():
        if not stories[id].adds and not stories[id].altered:
            found[_is(final)].append(id)
    keys = {final.key for final in picture.tasks.values()}
    edited = any(story.altered for story in stories.values())
    for what in sorted({*found, *wishes.sure}, key=str):
        most, number = wishes.sure[what] + wishes.unsure[what], len(found[what])
        if what[2] is not None:
            most = min(most, 1)
            missing = wishes.sure[what] > 0 and what[2] not in keys
        else:
            missing = number < wishes.sure[what] and not edited
        if number > most:
            text = (
                f"{number} tasks are there as {_shown(what)}, and at most {most} could be: {', '.join(found[what][:5])}"
            )
            yield Violation("unasked", found[what][0], text, wishes.by[what])
        if missing:
            text = f"{wishes.sure[what]} files were dropped as {_shown(what)}, and {number} such tasks are there"
            yield Violation("lost", None, text, wishes.by[what])


def wish(draft: dict[str, Any]) -> Wish:
    """What a task was asked to be."""
    return draft["kind"], draft["data"], draft.get("key")


def _is(final: Final) -> Wish:
    return final.kind, final.data, final.key


def _told(op: Operation) -> dict[str, Any]:
    assert op.told is not None  # only acknowledged adds belong to a story
    return op.told


def _shown(what: Wish) -> str:
    return f"{what[0]} {what[1]}" + (f" with the key {what[2]!r}" if what[2] else "")
