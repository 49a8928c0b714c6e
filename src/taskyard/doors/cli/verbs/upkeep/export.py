"""`export`: a yard as JSON Lines, as Markdown, or its log."""

from __future__ import annotations

from contextlib import closing, nullcontext

from taskyard import opening
from taskyard.core.draft import PRIORITY
from taskyard.core.errors import Invalid
from taskyard.core.task import State
from taskyard.doors.cli import files, filters
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark, say
from taskyard.yard import export_lines
from taskyard.yard.export_lines import Choice, Exported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.core.task import Task
    from taskyard.port import YardPort

_TOGETHER = 500  # lines that are written with one call
_PAGE = 1000
_BOXES = {State.DONE: "x", State.PROCESSING: "/", State.CANCELLED: "-"}
_ORDER = (
    State.PROCESSING, State.TODO, State.BLOCKED, State.WAITING, State.FAILED, State.DONE, State.CANCELLED,
)  # fmt: skip
_MARKS = frozenset("\\`*_[]<>#|~&()")


def export(call: Call) -> Reply:
    """Write the yard to a file, or to stdout."""
    given = call.given
    path = given.word(0) or "-"
    wanted = given.text("format") or "jsonl"
    if wanted not in FORMATS:
        raise Invalid(f"there is no format {ascii(wanted)[:40]}", hint=f"formats are {', '.join(FORMATS)}")
    if path == "-" and call.as_json:
        raise Invalid(
            "with --json the answer is one value, and an export is many", hint="name a FILE, or leave --json out"
        )
    counts = Exported()
    with files.replacing(path) if path != "-" else nullcontext() as stream:
        write: Callable[[str], object] = say if stream is None else lambda text: stream.write(f"{text}\n")
        together: list[str] = []
        for line in FORMATS[wanted](call, counts):
            together.append(line)
            if len(together) == _TOGETHER:
                write("\n".join(together))
                together = []
        if together:
            write("\n".join(together))
    if not counts.exact:
        remark(
            "taskyard: warning: workers were at work meanwhile, so this may have half of what they did; for an exact export\n"
            "  'taskyard pause' first, and wait until nothing is processing"
        )
    return Reply(
        {"file": path, "format": wanted, **counts.as_dict()}, lambda: "" if path == "-" else _said(path, counts)
    )


def _said(path: str, counts: Exported) -> str:
    parts = [
        f"{number} {word}{'s'[: number != 1]}"
        for number, word in ((counts.tasks, "task"), (counts.events, "event"), (counts.files, "file"))
        if number
    ]
    return f"{' and '.join(parts) or 'nothing'} written to {path}"


def _json_lines(call: Call, counts: Exported) -> Iterator[str]:
    given = call.given
    states, kinds = filters.states(given), given.texts("kind")
    choice = Choice(None if states is None else set(map(str, states)), kinds, given.text("mission"))
    url = given.text("yard") or opening.locate()
    with closing(opening.endpoint(url, target=False)) as source:
        yard = call.yard
        end = yard.log_end()
        dropped = source.facts().dropped
        if dropped:
            remark(
                f"taskyard: warning: {dropped} files lie in the drop box, and are no tasks yet: 'taskyard janitor' takes them in"
            )
        yield from export_lines.lines(source, choice, lambda: bool(yard.events(cursor=end, limit=1)), counts)


def _events(call: Call, counts: Exported) -> Iterator[str]:
    """Yield the log; a filter by state would be about tasks, and not about what happened."""
    given = call.given
    kinds = given.texts("kind") or []
    if given.flag("state") or len(kinds) > 1:
        raise Invalid("events are chosen by one --kind and by --mission", hint="leave the other filters out")
    from taskyard.doors.cli.replies import encoded

    cursor = None
    while True:
        page = call.yard.events(kind=next(iter(kinds), None), mission=given.text("mission"), cursor=cursor, limit=_PAGE)
        for event in page:
            counts.events += 1
            yield encoded(event)
        if len(page) < _PAGE:
            return
        cursor = page.cursor


def _markdown(call: Call, counts: Exported) -> Iterator[str]:
    """Yield a check-list with a heading for each state."""
    yard, given = call.yard, call.given
    states = filters.states(given)
    yield f"# Tasks of {_escaped(yard.label)}"
    for state in _ORDER:
        if states is not None and state not in states:
            continue
        headed = False
        for task in _found(yard, state, given.texts("kind"), given.text("mission")):
            if not headed:
                yield f"\n## {state}\n"
                headed = True
            counts.tasks += 1
            yield from _entry(yard, task)


def _found(yard: YardPort, state: State, kinds: list[str] | None, mission: str | None) -> Iterator[Task]:
    cursor = None
    while True:
        page = yard.find(state=str(state), kind=kinds, mission=mission, limit=_PAGE, cursor=cursor)
        yield from page
        if page.next is None:
            return
        cursor = page.next


def _entry(yard: YardPort, task: Task) -> Iterator[str]:
    holder = f" (@{task.worker})" if task.state is State.PROCESSING and task.worker else ""
    title = _escaped(task.title or task.kind)
    yield f"- [{_BOXES.get(task.state, ' ')}] {title}{_escaped(holder)} <!-- id: {task.id} -->"
    fields = [("Kind", task.kind), ("Mission", task.mission)]
    if task.priority != PRIORITY:
        fields.append(("Priority", str(task.priority)))
    if task.state is State.BLOCKED:
        fields.append(("Blocked by", ", ".join(map(str, yard.get(task.id).after))))
    elif task.state is State.FAILED:
        fields.append(("Error", yard.get(task.id).error))
    for name, text in fields:
        if text:
            yield f"  - **{name}**: {_escaped(' '.join(str(text).split()))}"


def _escaped(text: str) -> str:
    """Return the text as Markdown shows it: no word of a task becomes a link, a mark or HTML."""
    return "".join(f"\\{letter}" if letter in _MARKS else letter for letter in text)


FORMATS = {"jsonl": _json_lines, "markdown": _markdown, "events": _events}

COMMANDS = {
    "export": Command(
        export,
        "Write the yard to FILE, or to stdout. `jsonl` is all of it, a line for each task, event and file, as 'copy' carries them: 'taskyard import "
        "taskyard FILE' makes the same yard of it again. It is exact if no worker moves a task meanwhile; else the last line says so, and so does a "
        "warning. It is read from the store itself, so not through a gateway. `markdown` is a check-list by state, for people. `events` is the "
        "log, one JSON object a line. Filters leave out tasks, and then also events and files; such a part can be read, and not be imported. FILE appears whole "
        "or not at all.",
        (
            ("taskyard export yard.jsonl", "all of it, to be kept, or to be imported elsewhere"),
            ("taskyard export --format markdown --mission launch TASKS-launch.md", "a check-list of one mission"),
            ("taskyard export --format events events.jsonl", "the whole log"),
            ("taskyard export --state failed | jq .task.title", "for other programs"),
        ),
        words="[FILE]",
        most=1,
        options=(
            Option("--format", "NAME", "jsonl (default), markdown, or events"),
            *filters.OPTIONS,
        ),
        lasts=True,
    ),
}
