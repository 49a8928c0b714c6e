"""`ready` and `list`: tasks, a page at a time."""

from __future__ import annotations

from taskyard.core import ids, reasons
from taskyard.core.errors import TaskyardError
from taskyard.core.task import State
from taskyard.doors.cli import filters
from taskyard.doors.cli.filters import ENDED, OPEN
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark
from taskyard.doors.cli.verbs import pause
from taskyard.yard import arguments
from taskyard.yard.arguments import Page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.port import YardPort

    Entry = dict[str, str | None]

LIMIT = 100
_HEADS = ("ID", "STATE", "P", "KIND", "TITLE", "WORKER", "AGE")
_FIRST_TO_GO = (2, 6, 5, 3)  # columns that a narrow terminal leaves out first, to keep room for titles
_REASON_MOST = 60  # columns of a reason, and at most a quarter of the terminal; 'taskyard show' prints all of it
_ENDED_FROM = "ended."  # the prefix of a cursor that continues among ended tasks


def ready(call: Call) -> Reply:
    """List the tasks that this worker could claim now."""
    given = call.given
    states = filters.states(given)
    page = call.yard.ready(given.texts("kind"), given.text("mission"), None, _limit(call), given.text("cursor"))
    if states is not None and State.TODO not in states:
        page = Page()  # only a task in todo can be ready
    if not page:
        return _nothing(call)
    paused = pause.concerning(call.yard.paused(), given.texts("kind"))
    unusable = call.yard.unusable()
    reply = _reply(call.yard, page, "")
    if paused is None and not unusable:
        return reply

    def text() -> str:
        shown = reply.text()
        if paused is not None:
            remark(f"{reasons.paused(paused)} ({reasons.unpause(paused)})")
        for refused in unusable:
            remark(f"taskyard: warning: passed over {refused}")
        return shown

    data = dict(reply.data)
    if paused is not None:
        data["why"] = {"paused": paused}
    if unusable:
        data["unusable"] = unusable
    return Reply(data, text)


def _nothing(call: Call) -> Reply:
    """Return the answer of `ready` if nothing is: why, and what would change that."""
    why = call.yard.why(kinds=call.given.texts("kind"), mission=call.given.text("mission"))
    data: dict[str, Any] = {"tasks": [], "next": None, "why": why}
    if "unusable" in why:
        data["unusable"] = why["unusable"]

    def text() -> str:
        remark(f"nothing is ready: {why['message']}\n  {why['next']}")
        return ""

    return Reply(data, text)


def listed(call: Call) -> Reply:
    """List tasks by state, kind, mission and holder; with failed tasks, also refused files that never became tasks."""
    given = call.given
    states = filters.states(given)

    def find(states: frozenset[State], limit: int, cursor: str | None) -> Page:
        return call.yard.find(states, given.texts("kind"), given.text("mission"), given.text("worker"), limit, cursor)

    if states is None:
        page = _open_first(find, arguments.limit(_limit(call)), given.text("cursor"))
    else:
        page = find(states, _limit(call), given.text("cursor"))
    aside = None
    if (states is None or State.FAILED in states) and not any(map(given.flag, ("kind", "mission", "worker", "cursor"))):
        aside = call.yard.set_aside()[: _limit(call)]
    guests = None
    if not any(map(given.flag, ("kind", "mission", "cursor"))):
        guests = [
            entry
            for entry in call.yard.outside().guests
            if (states is None or entry["state"] in states) and given.text("worker") in (None, entry["worker"])
        ][: _limit(call)]
    return _reply(call.yard, page, "no such tasks", aside, guests)


def _open_first(find: Callable[[frozenset[State], int, str | None], Page], limit: int, cursor: str | None) -> Page:
    """Return a page of tasks: those that have not ended, oldest first, and then those that have."""
    page, after = Page(), None
    if cursor is not None and cursor.startswith(_ENDED_FROM):
        after = cursor[len(_ENDED_FROM) :] or None
    else:
        page = find(OPEN, limit, cursor)
        if page.next is not None:
            return page
    if len(page) == limit:
        page.next = _ENDED_FROM if find(ENDED, 1, None) else None
        return page
    rest = find(ENDED, limit - len(page), after)
    listed = {task.id for task in page}  # a task that ended between both reads is listed once
    whole = Page([*page, *(task for task in rest if task.id not in listed)])
    whole.next = None if rest.next is None else f"{_ENDED_FROM}{rest.next}"
    return whole


def _limit(call: Call) -> int:
    limit = call.given.integer("limit")
    return LIMIT if limit is None else limit


def _reply(
    yard: YardPort, page: Page, none: str, aside: list[Entry] | None = None, guests: list[Entry] | None = None
) -> Reply:
    data = {"tasks": [task.as_line() for task in page], "next": page.next}
    if aside is not None:
        data["set_aside"] = aside
    if guests is not None:
        data["guests"] = guests

    def text() -> str:
        if not page and not aside and not guests:
            remark(none)
        return "\n\n".join(filter(None, (_table(yard, page), _block(aside or []), _held_elsewhere(guests or []))))

    return Reply(data, text)


def _block(aside: list[dict[str, str | None]]) -> str:
    """Return the refused files as text, each with its reason."""
    if not aside:
        return ""
    from taskyard.doors.cli import output

    rows = [(f"  {entry['name']}", entry["reason"] or "-") for entry in aside]
    head = output.paint("Set aside", "heading") + " (put right in failed/, then 'taskyard retry NAME'):"
    return "\n".join((head, *output.table(("", ""), rows, shrink=1).splitlines()[1:]))


def _held_elsewhere(guests: list[Entry]) -> str:
    """Return, as text, the files that other programs hold or have ended by moving them between folders."""
    if not guests:
        return ""
    from taskyard.doors.cli import ages, output

    rows = [
        (
            f"  {entry['name']}",
            entry["state"] or "-",
            entry["worker"] or "-",
            ages.ago(entry["at"]) if entry["at"] else "-",
        )
        for entry in guests
    ]
    head = output.paint("Other programs' files", "heading") + ":"
    return "\n".join((head, *output.table(("", "", "", ""), rows, shrink=0).splitlines()[1:]))


def _table(yard: YardPort, page: Page) -> str:
    from taskyard.doors.cli import ages, output

    if not page:
        return ""
    extra, details = _details(yard, page)
    rows = [
        (
            task.short,
            task.state,
            str(task.priority),
            task.kind,
            task.title or "-",
            task.worker or "-",
            ages.age(ids.created(task.id)),
            *more,
        )
        for task, more in zip(page, details, strict=True)
    ]
    heads = (*_HEADS, *extra)
    text = output.table(heads, rows, states=1, shrink=4, right=frozenset((6,)), first_to_go=_FIRST_TO_GO)
    return text if page.next is None else f"{text}\nmore: --cursor {page.next}"


def _details(yard: YardPort, page: Page) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the columns that only some tasks fill: progress, and the reason for the state. Each task is read for them."""
    cells = [_progress_and_reason(yard, task) if len(page) <= LIMIT else ("", "") for task in page]
    shown = [column for column in (0, 1) if any(row[column] for row in cells)]
    return tuple(("PROGRESS", "REASON")[column] for column in shown), [
        tuple(row[column] or "-" for column in shown) for row in cells
    ]


def _progress_and_reason(yard: YardPort, task: Task) -> tuple[str, str]:
    from taskyard.doors.cli import ages, output

    if task.state in (State.TODO, State.DONE):
        return "", ""
    try:
        whole = yard.get(task.id)
    except TaskyardError:
        return "", ""  # pruned since, or the yard is unavailable; the list is printed all the same
    progress = "" if whole.progress is None else f"{whole.progress:.0%}"
    parts = []
    if whole.review == "pending":
        parts.append("waits for review")
    elif whole.state is State.WAITING and whole.not_before is not None:
        parts.append(f"due {ages.ago(whole.not_before)}")
    if whole.state is State.BLOCKED:
        parts.append(f"after {', '.join(map(ids.short, whole.after[:2]))}{', ...' if len(whole.after) > 2 else ''}")
    if whole.error is not None:
        parts.append(whole.error.strip().partition("\n")[0])
    return progress, output.cut(output.plain("; ".join(parts)), min(_REASON_MOST, (output.columns() or 240) // 4))


_FILTERS = (
    *filters.OPTIONS,
    Option("--limit", "N", f"at most so many (default {LIMIT})"),
    Option("--cursor", "CURSOR", "go on after the page that gave this cursor"),
)

COMMANDS = {
    "ready": Command(
        ready,
        "List what this worker could claim now, in the order in which claims would hand it out: in todo, and not assigned to another worker.",
        (
            ("taskyard ready", "what there is to do"),
            ("taskyard ready --kind review --json --limit 5", "the next five of one kind, for a program"),
        ),
        options=_FILTERS,
    ),
    "list": Command(
        listed,
        "List tasks in any state: first those that have not ended, oldest first, then those that have. A page of at most 100 shows how far "
        "each is, and why it waits, is blocked, has failed or was cancelled. --worker is the one who holds or ended the task. With those that failed come the files of the "
        "drop box that could not be tasks and were set aside, with the reason; and at the end what other programs hold or have done by the folders alone.",
        (
            ("taskyard list --state processing", "who works on what"),
            ("taskyard list --state open", "all that is still to be done"),
            (
                "taskyard list --state failed,cancelled --kind build --json",
                "what went wrong with the builds, for a program",
            ),
        ),
        options=(*_FILTERS, Option("--worker", "NAME", "only tasks that this worker holds, or ended")),
    ),
}
