"""One sync of one file with one yard."""

from __future__ import annotations

import os

from taskyard.core.errors import Conflict, TaskyardError, Unavailable
from taskyard.core.task import State
from taskyard.doors.tasksmd import base as bases
from taskyard.doors.tasksmd import dialects, file, lineage, matching, rows, versions
from taskyard.doors.tasksmd.planning import Planner, Removals, RowPlan
from taskyard.doors.tasksmd.pushing import Pusher
from taskyard.doors.tasksmd.report import Report
from taskyard.doors.tasksmd.writing import Writer
from taskyard.doors.tasksmd.yard_side import Tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.versions import Change
    from taskyard.port import YardPort

    Drafted = tuple[Row, dict[str, Any]]

_TRIES = 20  # saves that may come between
_NAME_MOST = 400  # characters of a file's name in the yard


class Options:
    """How a file is to be synced."""

    __slots__ = ("dialect", "kind", "mission", "person", "removals")

    def __init__(
        self,
        person: str,
        mission: str | None = None,
        kind: str = "task",
        dialect: str | None = None,
        removals: bool = False,
    ) -> None:
        self.person = person
        self.mission = mission
        self.kind = kind
        self.dialect = dialect
        self.removals = removals

    def of(self, mission: str) -> Options:
        """Return the same for the file of this mission."""
        return Options(self.person, mission, self.kind, self.dialect, self.removals)


def sync(yard: YardPort, path: str, options: Options) -> Report:
    """Sync the file at this path with the yard, and return what was done."""
    whole = os.path.realpath(path)
    report = Report(path)
    with bases.locked(whole) as base:
        for _ in range(_TRIES):
            try:
                return Run(yard, whole, base, options, report).run()
            except file.Changed:
                continue
    raise Unavailable(f"{path} is saved again and again while it is synced", hint="sync again when its editor rests")


def status(yard: YardPort, path: str, options: Options) -> Report:
    """Return what a sync would find, and change nothing: neither the file, nor the yard, nor the notes beside the file."""
    whole = os.path.realpath(path)
    return Run(yard, whole, bases.Base(bases.beside(whole)), options, Report(path)).look()


class Run:
    """One attempt; `file.Changed` if the file was saved meanwhile."""

    def __init__(self, yard: YardPort, path: str, base: Base, options: Options, report: Report) -> None:
        self._yard = yard
        self._path = path
        self._base = base
        self._options = options
        self._report = report
        self._noted = any(len(entry.pairs) > 1 for entry in base.entries.values())
        """Whether the base has intentions, which are to be taken out at the end."""

    def run(self) -> Report:
        """Read both sides, push what the file says, and write down what the yard says."""
        base, report = self._base, self._report
        self._compare()
        document, tasks, found, plans = self._document, self._tasks, self._found, self._plans
        pusher = Pusher(tasks, self._planner, report, self._options.kind, base.mission)
        drafts = pusher.drafted(found.new)
        theirs = versions.changes(self._last, {id: row.fields for row, id in found.known})
        self._intend(plans, matching.pending(document, drafts), theirs)
        added = self._push(pusher, drafts)
        tasks.refresh(pusher.touched)
        writer = Writer(document, tasks, base, report, found.copies)
        writer.later = pusher.later
        text = writer.written(plans, added, self._gone)
        seen = {id: row.fields for row, id in (*found.known, *added)}
        theirs += [[id, versions.ROW, None, row.fields] for row, id in added]
        self._keep(writer, text, versions.noted(base, theirs, versions.changes(seen, writer.rows())))
        return report

    def look(self) -> Report:
        """Report what differs, and change nothing."""
        self._compare()
        writer = Writer(self._document, self._tasks, self._base, self._report, self._found.copies)
        writer.written(self._plans, [], self._gone)
        report = self._report
        report.rows = len(self._document.rows)
        report.added = [row.id or row.title for row, _ in self._found.new]
        report.edited = [plan.row.id for plan in self._plans if plan.pushes]
        report.ended = [plan.row.id for plan in self._plans if plan.status is not None]
        report.ended += [row.id or row.title for row, _ in self._found.new if row.fields["status"] in lineage.ENDED]
        report.removed = [self._base.entries[id].row for id in self._gone.ending]
        return report

    def _compare(self) -> None:
        """Read both sides, find out which row is which task, and decide about each."""
        base, report = self._base, self._report
        report.conflicts.clear()
        self._before = self._read()
        report.made = self._before is None
        self._document = document = dialects.parsed(self._before or "", self._options.dialect or base.dialect)
        self._settle_scope(document)
        self._tasks = tasks = Tasks(self._yard, base.mission, self._options.person)
        tasks.load(base.entries)
        self._refuse_other_yard(tasks)
        self._last = {
            id: {**entry.file, "id": entry.row} for id, entry in (*base.entries.items(), *base.incoming.items())
        }
        versions.settle(base, document, self._last)
        base.version += self._before != base.text
        if self._options.removals:
            base.unseen = None  # as the person says, whatever a sync that was killed took it for
        else:
            self._rewind(document)
        self._found = found = matching.matched(document, base, tasks, report, self._options.removals)
        self._read_new_columns(found.known, tasks)
        self._gone = Removals(document, base, tasks, found)
        if not self._options.removals:
            self._gone.refuse_too_many(base)
        self._planner = Planner(document, base, tasks, found, report)
        self._plans = [self._planner.planned(row, id) for row, id in found.known]

    def _rewind(self, document: Document) -> None:
        """Take the base back if the file is an older version of itself."""
        if versions.rewind(self._base, document):
            self._report.notice(
                "older",
                "",
                "the file is an older version of itself, saved by an editor or a checkout: what was changed since is put in again. "
                "If it is to count as it is, sync once with --removals",
            )

    def _read(self) -> str | None:
        text, base = file.read(self._path), self._base
        if text is None and base.entries:
            raise Conflict(
                f"{self._path} is gone, and had {len(base.entries)} tasks; nothing was changed",
                hint="put it back; its tasks are in the yard. To begin anew, move the notes beside it away as well",
            )
        if text is not None and base.text is not None:
            if base.entries and not text.strip():
                raise Conflict(
                    f"{self._path} is empty, and had {len(base.entries)} tasks; nothing was changed",
                    hint="save it again with its lines; its tasks are in the yard",
                )
            file.refuse_cut(base.text, text)
        return text

    def _settle_scope(self, document: Document) -> None:
        base, report = self._base, self._report
        if self._options.mission is not None and not base.is_new and base.mission != self._options.mission:
            raise Conflict(
                f"this file was synced with {f'the mission {base.mission}' if base.mission else 'no mission'} before",
                hint="sync each mission with a file of its own",
            )
        if base.is_new:
            base.mission = self._options.mission
        base.dialect = report.dialect = document.dialect
        report.mission = base.mission

    def _refuse_other_yard(self, tasks: Tasks) -> None:
        """Raise `Conflict` if the file belongs to another yard: none of its open tasks is known here."""
        base = self._base
        opened = [id for id, entry in base.entries.items() if not State(entry.state).ended]
        if base.yard not in ("", self._yard.label) and opened and not any(id in tasks.all for id in opened):
            raise Conflict(
                f"this file was synced with another yard, {base.yard}, and none of its tasks is in {self._yard.label}",
                hint="name that yard with --yard; or sync a copy of the file in another folder",
            )
        base.yard = self._yard.label

    def _read_new_columns(self, known: list[tuple[Row, str]], tasks: Tasks) -> None:
        """Read those tasks as a whole of which the file has a field that the base has not."""
        entries = self._base.entries
        tasks.refresh(
            id
            for row, id in known
            if id in entries
            and not tasks.all[id].kind
            and any(name not in entries[id].yard for name in row.fields if name != "id")
        )

    def _intend(self, plans: list[RowPlan], new: dict[str, dict[str, Any]], theirs: list[Change]) -> None:
        """Note what is about to be pushed, so that a sync that is killed does not take its own words for the yard's edits."""
        pushed = [plan for plan in plans if plan.changes and plan.entry is not None]
        if not pushed and not new:
            return
        for plan in pushed:
            assert plan.entry is not None
            said, known = plan.entry.pairs[-1]
            yard = {**known, **{name: plan.pushed(name) for name in plan.pushes}}
            plan.entry.pairs.append([{**said, **plan.pushes}, yard])
        self._base.pending |= new
        self._base.steps = versions.noted(self._base, theirs, [])
        self._base.save()
        self._noted = True

    def _push(self, pusher: Pusher, drafts: list[Drafted]) -> list[tuple[Row, str]]:
        """Make the file's edits in the yard, and return the rows that have become tasks."""
        ids, gone = pusher.add(drafts), self._gone
        added = [(row, id) for (row, _), id in zip(drafts, ids, strict=True)]
        pusher.touched.update(ids)
        for plan in self._plans:
            pusher.edit(plan)
        statuses = [(plan.row, plan.id, plan.status) for plan in self._plans if plan.status is not None]
        fresh = [(row, id) for row, id in added if row.fields["status"] in (rows.DONE, rows.FAILED, rows.CANCELLED)]
        self._tasks.refresh(id for _, id in fresh)
        pusher.set_statuses([*statuses, *((row, id, row.fields["status"]) for row, id in fresh)])
        names = {id: self._base.entries[id].row for id in gone.ending}
        self._report.removed += names.values()
        pusher.remove(gone.ending, names, self._document.deleted)
        return added

    def _keep(self, writer: Writer, text: str, steps: list[dict[str, Any]]) -> None:
        """Put the new text in place, and note what is agreed on now; before it, what is about to be agreed on."""
        base, report, before = self._base, self._report, self._before
        entries = writer.entries()
        if before is None or text != before:
            for id, entry in entries.items():
                # A row that the file is to get is no entry yet: it would look deleted, if this were the end.
                if base.entries.get(id) is entry:
                    continue
                if id in base.entries:
                    pairs = base.entries[id].pairs
                    base.entries[id].endings |= entry.endings
                else:
                    pairs = list(writer.intended(id))
                    base.incoming[id] = entry.announced(pairs)
                pairs.append(entry.intention(pairs))
            base.steps = steps  # also if the text is never written: it does no harm among those that were
            base.version += 1
            base.save()
            file.replace(self._path, before, text)
            report.written = True
        published = self._publish()
        same = {id: entry.packed() for id, entry in entries.items()} == {
            id: entry.packed() for id, entry in base.entries.items()
        }
        if self._noted or published or not same or base.text != text or base.pending or base.incoming:
            lineage.forget(base, entries)
            base.entries, base.pending, base.incoming, base.unseen, base.text = entries, {}, {}, None, text
            base.steps = [{**step, "written": True} for step in steps]
            base.save()

    def _publish(self) -> bool:
        """Have the yard list the conflicts of this file among what needs a person; whether they are others than it had."""
        base, found = self._base, self._report.conflicts
        # Without the line: an edit further up would make it another conflict.
        now = [[one[name] for name in ("task", "field", "file", "yard")] for one in found]
        if now == base.published:
            return False
        try:
            self._yard.set_file_conflicts(_public_name(self._path), found)
        except Unavailable:
            raise
        except TaskyardError as error:
            if found:
                self._report.notice("unlisted", "", f"the yard does not list these conflicts: {error.message}")
            return False
        base.published = now
        return True


def _public_name(path: str) -> str:
    """Return the name of a file for people at other machines, in one line."""
    name = f"{os.uname().nodename}:{path}"
    return "".join(letter if letter.isprintable() else "?" for letter in name)[-_NAME_MOST:]
