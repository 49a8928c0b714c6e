"""Rules about adds: each added task exists once, as it was requested."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.proof.final_state import FinalState, FinalTask
    from taskyard.proof.history import History, Operation
    from taskyard.proof.task_history import TaskHistory

    Content = tuple[str, str, str | None]
    """A task's kind, data and key."""


def present(task: TaskHistory, final_state: FinalState) -> Iterator[Violation]:
    """Every acknowledged task exists in one state, and is listed in that state only."""
    if task.id not in final_state.listed:
        if task.adds or task.claims:
            what = "acknowledged" if task.adds else "handed out"
            operations = task.adds[:1] or [task.claims[0].operation]
            yield Violation("lost", task.id, f"task {task.id} was {what}, and is not there", operations)
        return
    states = final_state.listed[task.id]
    if task.final is None:
        yield Violation("lost", task.id, f"task {task.id} is listed as {states[0]}, and is not there", task.adds[:1])
    elif states != [task.final.state]:
        places = ", ".join([*states, *([] if task.final.state in states else [task.final.state])])
        yield Violation("doubled", task.id, f"task {task.id} is in several places: {places}", task.adds[:1])


def unaltered(task: TaskHistory) -> Iterator[Violation]:
    """A task has the requested kind, data and key, unless it was edited."""
    final = task.final
    if final is None or task.edited:
        return
    for op in task.adds:
        assert op.answer is not None  # a task history has acknowledged adds only
        pairs = zip(op.arguments["drafts"], op.answer["ids"], strict=True)
        requests = [requested_content(draft) for draft, id in pairs if id == task.id]
        if _content(final) not in requests:
            text = f"task {task.id} is {_shown(_content(final))}, and was asked to be {_shown(requests[0])}"
            yield Violation("altered", task.id, text, [op])
            return


class _AddsWithoutId:
    """Requests whose answer has no id: adds without an answer, and files in the drop box."""

    def __init__(self, history: History) -> None:
        self.certain: Counter[Content] = Counter()
        self.uncertain: Counter[Content] = Counter()
        self.operations: dict[Content, list[Operation]] = defaultdict(list)
        for op in history:
            if (op.verb == "add" and op.unknown) or op.verb == "drop":
                for draft in op.arguments["drafts"]:
                    content = requested_content(draft)
                    (self.uncertain if op.answer is None else self.certain)[content] += 1
                    self.operations[content].append(op)


def requested(history: History, final_state: FinalState, tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    """No task exists without a request, nor more often than it was requested; every dropped file became a task."""
    adds = _AddsWithoutId(history)
    found: dict[Content, list[str]] = defaultdict(list)
    for id, final in final_state.tasks.items():
        if not tasks[id].adds and not tasks[id].edited:
            found[_content(final)].append(id)
    keys = {final.key for final in final_state.tasks.values()}
    edited = any(task.edited for task in tasks.values())
    for content in sorted({*found, *adds.certain}, key=str):
        most, number = adds.certain[content] + adds.uncertain[content], len(found[content])
        shown = _shown(content)
        if content[2] is not None:
            most = min(most, 1)
            missing = adds.certain[content] > 0 and content[2] not in keys
        else:
            missing = number < adds.certain[content] and not edited
        if number > most:
            some = ", ".join(found[content][:5])
            text = f"{number} tasks are there as {shown}, and at most {most} could be: {some}"
            yield Violation("unasked", found[content][0], text, adds.operations[content])
        if missing:
            text = f"{adds.certain[content]} files were dropped as {shown}, and {number} such tasks are there"
            yield Violation("lost", None, text, adds.operations[content])


def requested_content(draft: dict[str, Any]) -> Content:
    """Return the content that a draft of a history asks for."""
    return draft["kind"], draft["data"], draft.get("key")


def _content(final: FinalTask) -> Content:
    return final.kind, final.data, final.key


def _shown(content: Content) -> str:
    return f"{content[0]} {content[1]}" + (f" with the key {content[2]!r}" if content[2] else "")
