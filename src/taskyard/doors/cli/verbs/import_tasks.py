"""`import`: bring the tasks of another tool into the yard."""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Invalid, NoYard
from taskyard.core.signals import Interrupted, Stopping
from taskyard.doors import importers
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark
from taskyard.doors.importers import load
from taskyard.doors.importers.item import ENDED, STATES, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.parser import Given
    from taskyard.doors.importers.load import Imported
    from taskyard.doors.importers.plan import Row

_NOTES = 20  # that the text shows


def import_tasks(call: Call) -> Reply:
    """Import what a file or folder has, or with --dry-run print what that would do."""
    given = call.given
    tool, path = given.words
    if tool == "taskyard":
        return _exported(call, path)
    if tool not in importers.TOOLS:
        known = ", ".join((*importers.TOOLS, "taskyard"))
        raise Invalid(f"there is no importer for {ascii(tool)[:60]}", hint=f"known are {known}")
    options = _options(given)
    if given.flag("dry-run"):
        yard = None
        try:
            yard = call.yard
        except NoYard:
            pass  # the mapping can be looked at before there is a yard
        imported = load.dry_run(importers.read(tool, path, options), options, yard)
        return Reply(imported.as_dict(), lambda: _text(imported))
    opened = call.yard  # before stdin is read, so that a missing yard is an error at once
    found = importers.read(tool, path, options)
    asked: list[int] = []

    def interrupt(number: int) -> None:
        asked.append(number)
        if len(asked) == 1:  # a later signal would interrupt the yard while it rolls the batch back
            raise KeyboardInterrupt

    from taskyard.doors.cli.verbs.upkeep.copy import Ticker

    ticker = Ticker()
    try:
        with Stopping(interrupt):
            imported = load.run(found, options, opened, ticker)
    except KeyboardInterrupt:
        left = "run the same command again: what was imported is known, and the rest follows"
        raise Interrupted(asked[0] if asked else None, left) from None
    finally:
        ticker.clear()
    return Reply(imported.as_dict(), lambda: _text(imported), stands=_summary(imported))


def _exported(call: Call, path: str) -> Reply:
    """Make the empty yard equal to the exported one; one that is equal already stays as it is."""
    from contextlib import closing

    from taskyard import opening
    from taskyard.doors.cli.verbs.upkeep.copy import Ticker
    from taskyard.yard import copy_yard
    from taskyard.yard.export_file import ExportFile

    given = call.given
    other = next((option.name for option in OPTIONS[1:] if option.name in given.values), None)
    if other is not None:
        raise Invalid(f"{other} is for other tools' files; an exported yard is imported as it was", hint="leave it out")
    source = ExportFile(path)
    counts = dict(source.counts)
    if given.flag("dry-run"):
        return Reply({"tool": "taskyard", "dry_run": True, **counts}, lambda: f"{_counted(counts)} would be imported")
    ticker = Ticker()
    url = given.text("yard") or opening.locate()
    try:
        with closing(opening.endpoint(url, target=True)) as target:
            copied = copy_yard.copy(source, target, with_claims=True, progress=ticker)
    finally:
        ticker.clear()
    for warning in copied.warnings:
        remark(f"taskyard: warning: {warning}")
    said = "were there already" if copied.was_complete else "were imported"
    data = {"tool": "taskyard", "dry_run": False, **counts, "was_complete": copied.was_complete}
    return Reply(data, lambda: f"{_counted(counts)} {said}: the yard is paused until 'taskyard unpause'")


def _counted(counts: dict[str, int]) -> str:
    return f"{counts['tasks']} task{'s'[: counts['tasks'] != 1]} and {counts['events']} event{'s'[: counts['events'] != 1]}"


def _options(given: Given) -> Options:
    kind, mission, prefix = given.text("kind"), given.text("mission"), given.text("prefix")
    return Options(
        kind=None if kind is None else words.kind(kind),
        mission=None if mission is None else words.text(mission, "mission"),
        prefix=None if prefix is None else words.text(prefix, "prefix", 100),
        keep_assignee=given.flag("keep-assignee"),
        open_only=given.flag("open-only"),
        statuses=dict(map(_status, given.texts("status") or ())),
    )


def _status(text: str) -> tuple[str, str]:
    word, equals, state = text.rpartition("=")
    state = state.strip().lower()
    if not equals or not word.strip() or state not in STATES:
        raise Invalid(
            f"--status needs WORD=STATE, not {ascii(text)[:60]}",
            hint=f"WORD is the other tool's, STATE is one of {', '.join(STATES)}: --status 'Ready for QA=review'",
        )
    return word, state


def _text(imported: Imported) -> str:
    from taskyard.doors.cli import output

    for note in imported.notes[:_NOTES]:
        remark(f"note: {output.plain(note)}")
    if len(imported.notes) > _NOTES:
        remark(f"and {len(imported.notes) - _NOTES} more notes, which --json lists")
    heads = ("THERE", "HERE", "STATE", "PRIORITY", "KIND", "TITLE", "")
    rows = [_line(row) for row in imported.rows]
    remark(_summary(imported))
    return output.table(heads, rows, states=2, shrink=5, right=frozenset({3})) if rows else ""


def _line(row: Row) -> tuple[str, ...]:
    from taskyard.core import ids

    here = ids.short(row.id) if row.id else "new"
    fields = row.fields
    return row.item.id, here, row.state, str(fields["priority"]), fields["kind"], str(fields.get("title")), _tail(row)


def _tail(row: Row) -> str:
    parts = [f"after {', '.join(row.after[:5])}{', ...' if len(row.after) > 5 else ''}"] if row.after else []
    if row.differs:
        parts.append("here in other words, and left as it is")
    return "; ".join(parts)


def _summary(imported: Imported) -> str:
    """Return how many tasks are new, and how many were known; those that differ are named, because nothing was done with them."""
    ended: dict[str, int] = {}
    for row in imported.rows:
        if row.created and row.state in ENDED:
            ended[row.state] = ended.get(row.state, 0) + 1
    of_them = ", ".join(f"{number} {state}" for state, number in ended.items())
    would = "would be " if imported.dry_run else ""
    text = f"{imported.created} task{'s'[: imported.created != 1]} {would}imported" + (f" ({of_them})" if ended else "")
    known = len(imported.rows) - imported.created
    differ = sum(row.differs for row in imported.rows)
    if known:
        text += f", {known} known already"
    return text + (f", {differ} of which differ from the file and are left as they are" if differ else "")


OPTIONS = (
    Option("--dry-run", None, "print what would be imported, task by task, and what cannot be carried"),
    Option("--open-only", None, "leave out what is done, failed or cancelled"),
    Option("--kind", "KIND", "the kind of all tasks (else the tool's own word for it, or `task`)"),
    Option("--mission", "TEXT", "the mission of all tasks"),
    Option("--keep-assignee", None, "hand a task only to whom it was assigned to (else that name is data)"),
    Option("--prefix", "NAME", "a name in front of the ids, for a second project with the same ids"),
    Option(
        "--status",
        "WORD=STATE",
        "what a status of the other tool means",
        many=True,
    ),
)

COMMANDS = {
    "import": Command(
        import_tasks,
        "Bring the tasks of another tool into the yard, as one graph: if one of them is bad, nothing is imported, and the error names file, "
        "line and column. Each task gets the other tool's id as its key (`beads:bd-12`), so that a second import adds only what is new; "
        "what is known is left as it is. What is done there is done here too; what was being worked on is still to be done; what was "
        "deferred waits for 'taskyard retry ID'. Fields that have no place here become the task's data. TOOL is "
        + "; ".join(f"`{tool}` ({about})" for tool, about in importers.TOOLS.items())
        + "; and `taskyard`, what 'taskyard export' wrote: that makes an empty yard equal to the exported one, with ids, states, history and log"
        ". FILE may be a folder where the tool has one, or - for stdin.",
        (
            ("taskyard import beads .beads/issues.jsonl --dry-run", "what would become of each issue, and what would not"),
            ("taskyard import taskmaster .taskmaster/tasks/tasks.json", "all tags; each but master becomes a mission"),
            ("bd list --json --all | taskyard import beads -", "from another program's output"),
        ),
        words="TOOL FILE",
        least=2,
        most=2,
        options=OPTIONS,
        lasts=True,
    ),
}  # fmt: skip
