"""The file after a sync: patches for all that the yard has to say, and what is agreed on then."""

from __future__ import annotations

from taskyard.core.task import State
from taskyard.doors.tasksmd import dialects, lineage, rows
from taskyard.doors.tasksmd.base import Entry
from taskyard.doors.tasksmd.rows import listed
from taskyard.doors.tasksmd.text import patched
from taskyard.doors.tasksmd.yard_side import STEERING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.planning import Removals, RowPlan
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.text import Patch
    from taskyard.doors.tasksmd.yard_side import Seen, Tasks

_DETAILS = ("tags", "details", "files", "acceptance", "estimate", "notes")  # data that new rows show
_LINE = 200  # characters of a yard's value that a remark quotes


class Writer:
    """Makes the new text of one file."""

    def __init__(self, document: Document, tasks: Tasks, base: Base, report: Report, copies: set[int]) -> None:
        self._document = document
        self._tasks = tasks
        self._base = base
        self._report = report
        self._copies = copies
        self._patches: list[Patch] = []
        self._moves: dict[str, list[tuple[str, str]]] = {}
        """By field: the id of a row, and the value whose section it goes to."""
        self._plans: dict[str, RowPlan] = {}
        self._names: dict[str, str] = {}
        """The id in the file of each task that has a row there after the sync."""
        self._with_id: set[str] = set()
        """Tasks whose rows had their ids in the file that was read."""
        self._new = document
        self.later: set[str] = set()
        """Tasks whose status in the file stays, to be given by a later sync."""

    def written(self, plans: list[RowPlan], added: list[tuple[Row, str]], gone: Removals) -> str:
        """Return the text of the file with all that is to be shown."""
        self._name(plans, added, gone)
        for plan in plans:
            self._plans[plan.id] = plan
            self._show(plan)
        for row, id in added:
            self._show_added(row, id)
        self._add_rows(gone)
        self._report.rows = len(self._names)
        self._report.rename(self._names)
        text = patched(self._document.text, self._patches) if self._patches else self._document.text
        if text != self._document.text or self._moves:
            self._new = dialects.parsed(text, self._document.dialect)
        for some in self._moves.values():
            by_id = {row.id: row for row in self._new.rows}
            moved = [(by_id[id], value) for id, value in some if id in by_id]
            self._new = dialects.parsed(patched(self._new.text, self._new.move(moved)), self._document.dialect)
        return self._new.text

    def _name(self, plans: list[RowPlan], added: list[tuple[Row, str]], gone: Removals) -> None:
        """Settle the id in the file of every task that has a row, or gets one."""
        rows_of = [(plan.row, plan.id) for plan in plans] + added
        for row, id in rows_of:
            if row.id and row.line not in self._copies:
                self._names[id] = row.id
        self._with_id = set(self._names)
        for id in (*gone.back, *gone.unseen, *gone.hidden):
            self._names[id] = self._base.entries[id].row
        known = self._names.keys() | {id for _, id in rows_of} | set(gone.ending)
        self._newcomers = [id for id in self._tasks.listed if id not in known]
        without = [id for _, id in rows_of if id not in self._names] + self._newcomers
        self._names |= dict(zip(without, self._tasks.shorten(without), strict=True))

    def _show(self, plan: RowPlan) -> None:
        """Patch one row with what the yard has to say."""
        document, row, task = self._document, plan.row, self._tasks.all.get(plan.id)
        if task is None:
            return
        if task.state.ended and task.status not in document.keeps and row.fields["status"] != task.status:
            if not plan.held and not plan.conflicts:
                self._patches.append(document.remove(row))
                self._report.shown.append(self._names.pop(plan.id))
                self._report.notice(
                    "ended", row.id, f"{row.id} is {task.status} in the yard: its line was taken out", row.line
                )
                return
            self._report.notice(
                "ended", row.id, f"{row.id} is {task.status} in the yard, and was edited here: its line stays", row.line
            )
        before = self._changes
        self._follow_agent(plan, task)
        for name, value in plan.pulls.items():
            self._set(row, plan.id, name, self._rendered(task, name, value))
        self._show_status(row, plan.id, task, plan)
        self._patches += document.set_remark(row, self._remark(plan))
        if self._changes > before:
            self._report.shown.append(self._names[plan.id])
        self._give_id(row, plan.id)

    @property
    def _changes(self) -> int:
        """How much of the file is to change so far: words, and rows that go to another section."""
        return len(self._patches) + sum(map(len, self._moves.values()))

    def _follow_agent(self, plan: RowPlan, task: Seen) -> None:
        """Show who has the task now, if a person's own edit has just changed that."""
        entry = plan.entry
        if entry is None or "agent" not in plan.row.fields or "agent" in (*plan.pushes, *plan.held, *plan.conflicts):
            return
        if task.state is not State.DONE and plan.status is not None and task.fields["agent"] != entry.yard.get("agent"):
            plan.pulls["agent"] = task.fields["agent"]

    def _show_added(self, row: Row, id: str) -> None:
        """Patch a row that has become a task: its id, and its status if that cannot be what the file says."""
        self._report.added.append(self._names[id])
        task = self._tasks.all.get(id)
        if task is not None:
            self._show_status(row, id, task, None)
        self._give_id(row, id)

    def _show_status(self, row: Row, id: str, task: Seen, plan: RowPlan | None) -> None:
        said, shown = row.fields["status"], self._document.shown(task.status)
        if said == shown or id in self.later:
            return
        if said not in rows.STATUS_OF.values():
            entry = None if plan is None else plan.entry
            if entry is None or entry.file.get("status") != said or entry.yard.get("status") == task.status:
                return  # a word of the file's own stays until the yard has something new to say
        if plan is None and said in (rows.IN_PROGRESS, rows.BLOCKED, rows.NEEDS_QA):
            self._report.notice(
                "status",
                self._names[id],
                f"line {row.line} was {said}, and is {shown}: workers claim it in the yard",
                row.line,
            )
        self._set(row, id, "status", task.status)

    def _give_id(self, row: Row, id: str) -> None:
        if not row.id or row.line in self._copies:
            self._patches += self._document.set(row, "id", self._names[id])

    def _set(self, row: Row, id: str, name: str, value: str) -> None:
        if self._document.moves(row, name, value):
            self._moves.setdefault(name, []).append((self._names[id], value))
        elif name == "status":
            self._patches += self._document.set(row, name, self._document.shown(value))
        elif name != "priority" or self._document.dialect == "mosaic":
            self._patches += self._document.set(row, name, value)

    def _rendered(self, task: Seen, name: str, value: str) -> str:
        """Return a value of the yard in the words of the file."""
        if name == "title":
            return value or task.kind or "(no title)"
        if name == "after":
            ids = listed(value)
            unknown = [id for id in ids if id not in self._names]
            names = self._names | dict(zip(unknown, self._tasks.shorten(unknown), strict=True))
            return ", ".join(names[id] for id in ids)
        return value

    def _remark(self, plan: RowPlan) -> str:
        """Return the remark about what both sides have edited, and report it."""
        quoted = []
        for name, value in plan.conflicts.items():
            theirs = self._rendered(self._tasks.all[plan.id], name, value)
            self._report.conflicts.append(
                {
                    "row": self._names[plan.id],
                    "task": plan.id,
                    "line": plan.row.line,
                    "field": name,
                    "file": plan.row.fields[name],
                    "yard": theirs,
                }
            )
            quoted.append(f'{name} "{theirs[:_LINE]}"')
        return (
            f"conflict, the yard has {' and '.join(quoted)}; take this remark out, or edit either, to settle it"
            if quoted
            else ""
        )

    def _add_rows(self, gone: Removals) -> None:
        """Put in a row for each task that the file has none for."""
        for id in gone.back:
            name, task = self._names[id], self._tasks.all[id]
            self._report.notice(
                "back",
                name,
                f"{name} was deleted in the file, and is put back: it is {task.status} in the yard, and has changed since",
            )
        for id in gone.doubtful:
            name, task = self._names[id], self._tasks.all[id]
            self._report.notice(
                "kept",
                name,
                f"{name} is not in the file, as in an older version of it, so its line is put back; "
                f"if it is to go: 'taskyard cancel {task.short}', or sync once with --removals",
            )
        for id in gone.hidden:
            name = self._names[id]
            self._report.notice(
                "hidden",
                name,
                f"the line of {name} is there, but no longer as a task: look for a code fence, a comment or a broken table",
            )
        new = [self._fields(id) for id in (*self._newcomers, *gone.unseen, *gone.back) if id in self._tasks.all]
        if new:
            self._report.shown += [fields["id"] for fields in new]
            self._patches += self._document.add(new)

    def _fields(self, id: str) -> dict[str, str]:
        task = self._tasks.whole(id)
        fields = {
            name: self._rendered(task, name, task.fields[name]) for name in ("title", "agent", "after", "priority")
        }
        more = {name: task.fields[name] for name in _DETAILS if task.fields.get(name)}
        return {"id": self._names[id], **fields, "status": task.status, **more}

    def rows(self) -> dict[str, dict[str, str]]:
        """Return the rows of the new text, by task id."""
        of_row = {name: id for id, name in self._names.items()}
        return {of_row[row.id]: row.fields for row in self._new.rows if row.id in of_row}

    def intended(self, id: str) -> list[list[dict[str, Any]]]:
        """Return what an earlier sync, which did not come to its end, was about to agree on."""
        plan, noted = self._plans.get(id), self._base.incoming.get(id)
        if plan is not None and plan.entry is not None:
            return plan.entry.pairs
        return [] if noted is None else noted.pairs

    def entries(self) -> dict[str, Entry]:
        """Return what is agreed on now, by task id."""
        of_row = {name: id for id, name in self._names.items()}
        found = {id: entry for id, entry in self._base.entries.items() if id in self._names}
        for row in self._new.rows:
            id = of_row.get(row.id)
            task = None if id is None else self._tasks.all.get(id)
            if id is not None and task is not None:
                found[id] = self._entry(row, task, self._plans.get(id))
        return found

    def _entry(self, row: Row, task: Seen, plan: RowPlan | None) -> Entry:
        file = {name: value for name, value in row.fields.items() if name != "id"}
        yard = {name: task.fields.get(name, "") for name in {*file, *STEERING} if name != "id"}
        known = self._base.entries.get(task.id)
        if known is None:
            first, absent = lineage.begun(self._base, task.id, row.id, task.id in self._with_id)
        else:
            first, absent = known.first, known.absent
        endings = {} if plan is None or plan.entry is None else dict(plan.entry.endings)
        if file["status"] in lineage.ENDED:
            endings[file["status"]] = self._base.version + 1
        conflicts = sorted(plan.conflicts) if plan is not None else []
        held = {name: file[name] for name in plan.held} if plan is not None else {}
        return Entry(row.id, str(task.state), task.fence, [[file, yard]], conflicts, first, absent, endings, held)
