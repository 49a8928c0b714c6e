"""`ready` and `list`: tasks, a page at a time."""

from __future__ import annotations

from taskyard import ids
from taskyard.asking import Page
from taskyard.doors.cli.grammar import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark
from taskyard.errors import Invalid
from taskyard.task import State

LIMIT = 100


def ready(call: Call) -> Reply:
    """What this worker could be handed now."""
    given = call.given
    states = given.texts("state")
    for state in states or ():
        if state not in set(State):
            raise Invalid(f"not a state: {state!a}", hint=f"states are {', '.join(State)}")
    page = call.yard.ready(given.texts("kind"), given.text("mission"), None, _limit(call), given.text("cursor"))
    if states is not None and State.TODO not in states:
        page = Page()  # only what is in todo can be ready
    return _reply(call, page, "nothing is ready")


def listed(call: Call) -> Reply:
    """Tasks by state, kind, mission and holder; and beside those that failed, the files that never became tasks."""
    given = call.given
    states = given.texts("state")
    page = call.yard.find(
        states,
        given.texts("kind"),
        given.text("mission"),
        given.text("worker"),
        _limit(call),
        given.text("cursor"),
    )
    aside = None
    if (states is None or State.FAILED in states) and not any(map(given.flag, ("kind", "mission", "worker", "cursor"))):
        aside = call.yard.set_aside()[: _limit(call)]
    return _reply(call, page, "no such tasks", aside)


def _limit(call: Call) -> int:
    limit = call.given.integer("limit")
    return LIMIT if limit is None else limit


def _reply(call: Call, page: Page, none: str, aside: list[dict[str, str | None]] | None = None) -> Reply:
    data = {"tasks": [task.as_line() for task in page], "next": page.next}
    if aside is not None:
        data["set_aside"] = aside

    def text() -> str:
        if not page and not aside:
            remark(none)
        return "\n\n".join(filter(None, (_table(call, page), _block(aside or []))))

    return Reply(data, text)


def _block(aside: list[dict[str, str | None]]) -> str:
    """The files that were refused, each with its reason."""
    if not aside:
        return ""
    from taskyard.doors.cli import paper

    rows = [(f"  {entry['name']}", entry["reason"] or "-") for entry in aside]
    head = paper.paint("Set aside", "heading") + " (put right in failed/, then 'taskyard retry NAME'):"
    return "\n".join((head, *paper.table(("", ""), rows, shrink=1).splitlines()[1:]))


def _table(call: Call, page: Page) -> str:
    from taskyard.doors.cli import ages, paper

    if not page:
        return ""
    short = call.yard.shorten([task.id for task in page])
    rows = [
        (
            shown,
            task.state,
            str(task.priority),
            task.kind,
            task.title or "-",
            task.worker or "-",
            ages.age(ids.created(task.id)),
        )
        for shown, task in zip(short, page, strict=True)
    ]
    text = paper.table(
        ("ID", "STATE", "P", "KIND", "TITLE", "WORKER", "AGE"), rows, states=1, shrink=4, right=frozenset((6,))
    )
    return text if page.next is None else f"{text}\nmore: --cursor {page.next}"


_FILTERS = (
    Option("--state", "STATE", "only tasks in this state", many=True),
    Option("--kind", "KIND", "only tasks of this kind", many=True),
    Option("--mission", "TEXT", "only tasks of this mission"),
    Option("--limit", "N", f"at most so many (default {LIMIT})"),
    Option("--cursor", "CURSOR", "go on after the page that gave this cursor"),
)

COMMANDS = {
    "ready": Command(
        ready,
        "List what this worker could claim now, oldest first: in todo, and assigned to nobody else. Claiming takes the most urgent first.",
        (
            ("taskyard ready", "what there is to do"),
            ("taskyard ready --kind review --json --limit 5", "the five oldest of one kind, for a program"),
        ),
        options=_FILTERS,
    ),
    "list": Command(
        listed,
        "List tasks in any state, oldest first. --worker is the one who holds or ended the task. With those that failed come the files of the "
        "drop box that could not be tasks and were set aside, with the reason.",
        (
            ("taskyard list --state processing", "who works on what"),
            (
                "taskyard list --state failed --state cancelled --kind build --json",
                "what went wrong with the builds, for a program",
            ),
        ),
        options=(*_FILTERS, Option("--worker", "NAME", "only tasks that this worker holds, or ended")),
    ),
}
