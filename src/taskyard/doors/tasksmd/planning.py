"""What one sync is to do, decided from both sides and the base; nothing is done here."""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Conflict, Invalid
from taskyard.core.task import State
from taskyard.doors.tasksmd import lineage, merge, rows, versions
from taskyard.doors.tasksmd.base import NEVER, Entry
from taskyard.doors.tasksmd.rows import listed
from taskyard.doors.tasksmd.text import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.matching import Matched
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.yard_side import Seen, Tasks

_MANY = 3  # rows that may go at once, however few there are
_OPTION = {"title": "title", "agent": "assignee", "priority": "priority", "after": "after"}


class RowPlan:
    """What is to be done about one row and its task."""

    __slots__ = ("changes", "conflicts", "entry", "held", "id", "pulls", "pushes", "row", "status")

    def __init__(self, row: Row, id: str, entry: Entry | None) -> None:
        self.row = row
        self.id = id
        self.entry = entry
        self.pushes: dict[str, str] = {}
        """Fields of the file that go to the yard."""
        self.changes: dict[str, Any] = {}
        """The same as options of `edit`."""
        self.pulls: dict[str, str] = {}
        """Fields of the yard that go to the file."""
        self.conflicts: dict[str, str] = {}
        """Fields that both sides have edited, with the yard's value."""
        self.held: set[str] = set()
        """Fields whose edit cannot be made now: they are tried again."""
        self.status: str | None = None
        """The status that a person has given the row, if it is another one than the yard's."""

    def take_back(self) -> None:
        """Forget what was intended to be pushed: the yard has refused it."""
        if self.entry is not None:
            agreed, *intended = self.entry.pairs
            kept = [
                pair for pair in intended if not any(pair[0].get(name) == said for name, said in self.pushes.items())
            ]
            self.entry.pairs[:] = [agreed, *kept]

    def pushed(self, name: str) -> str:
        """Return the field as the yard is to have it after the push."""
        if name == "after":
            return ",".join(self.changes.get("after") or ())
        return self.pushes[name] or ("5" if name == "priority" else "")


class Planner:
    """Compares each row with its task."""

    def __init__(self, document: Document, base: Base, tasks: Tasks, found: Matched, report: Report) -> None:
        self._document = document
        self._base = base
        self._tasks = tasks
        self._report = report
        self._made = found.made
        self._since = found.since
        self.ids = {entry.row: id for id, entry in base.entries.items()} | {
            row.id: id for row, id in found.known if row.id
        }
        """The task of each id that the file uses."""

    def planned(self, row: Row, id: str) -> RowPlan:
        """Return what is to be done about one row."""
        task, entry = self._tasks.all[id], self._base.entries.get(id)
        if entry is None:
            entry = self._intended(id) or self._removed(task, row)
        plan = RowPlan(row, id, entry)
        for name in row.fields if entry is None or entry.row else ("title",):
            if name not in ("id", "status"):
                self._compare(plan, task, name)
        if plan.pushes:
            self._make_changes(plan)
        self._compare_status(plan, task)
        return plan

    def _intended(self, id: str) -> Entry | None:
        """Return what a sync that did not come to its end was about to agree on."""
        incoming = self._base.incoming.get(id)
        if incoming is not None:
            return incoming
        if id not in self._made:
            return None
        return Entry("?", "", 0, self._base.pending[self._made[id]]["pairs"], [])

    def _removed(self, task: Seen, row: Row) -> Entry | None:
        """Return the titles of a row that was taken out because its task had ended: an older buffer brings it back.

        Its status is of that time as well, and no edit.
        """
        if not task.state.ended:
            return None
        titles = versions.titles(self._base).get(task.id)
        if titles is None:
            return None
        pairs: list[list[dict[str, Any]]] = [
            [{"title": title, "status": row.fields["status"]}, {"title": None}] for title in titles
        ]
        return Entry("", "", 0, [*pairs, [{"title": NEVER}, task.fields]], [])

    def _compare(self, plan: RowPlan, task: Seen, name: str) -> None:
        said, known = plan.row.fields[name], task.fields.get(name, "")
        agreed = [] if plan.entry is None else plan.entry.agreed(name)
        was_conflict = plan.entry is not None and name in plan.entry.conflicts
        settled = was_conflict and plan.row.remark is None and self._base.unseen is None
        decision = merge.decided(said, known, agreed, self._same(task, name, said, known), settled)
        if decision == merge.PUSH:
            plan.pushes[name] = said
        elif decision == merge.PULL:
            plan.pulls[name] = known
        elif (decision == merge.CONFLICT or was_conflict) and not self._same(task, name, said, known):
            plan.conflicts[name] = known

    def _same(self, task: Seen, name: str, said: str, known: str) -> bool:
        """Whether the file's value and the yard's mean the same."""
        if name == "title":
            return said == harmless(known or task.kind).replace("&lt;!--", "<!--")
        if name == "after":
            return {self.ids.get(one, one) for one in listed(said)} == set(listed(known))
        if name == "priority":
            return not said or self._document.same_priority(said, known)
        return said == harmless(known) or said == known

    def _make_changes(self, plan: RowPlan) -> None:
        """Turn edits of the file into options of `edit`; what cannot be one is held, with a notice."""
        data: dict[str, Any] = {}
        for name, said in plan.pushes.items():
            try:
                if name in _OPTION:
                    plan.changes[_OPTION[name]] = self.option(name, said)
                else:
                    data[name] = said
            except Invalid as error:
                self._hold(plan, name, error.message)
        if data:
            self._change_data(plan, data)
        for name in plan.held:
            plan.pushes.pop(name, None)

    def _change_data(self, plan: RowPlan, data: dict[str, Any]) -> None:
        task = self._tasks.whole(plan.id)
        if task.data is not None and not isinstance(task.data, dict):
            for name in data:
                self._hold(plan, name, "the task's data is no object, so that it has no place for this")
            return
        kept = {**(task.data or {}), **data}
        plan.changes["data"] = {name: value for name, value in kept.items() if value != "" or name not in data}

    def _hold(self, plan: RowPlan, name: str, why: str) -> None:
        plan.held.add(name)
        self._report.notice(
            "held", plan.row.id, f"the {name} in line {plan.row.line} stays in the file alone: {why}", plan.row.line
        )

    def option(self, name: str, said: str) -> Any:
        """Return the option of a task that a field of the file stands for; raise `Invalid` if it is none."""
        if name == "title":
            return words.text(said, "title", words.TITLE_MOST)
        if name == "agent":
            return words.worker(said, "assignee") if said else None
        if name == "priority":
            return int(said) if said else None
        return self.after(said)

    def after(self, said: str) -> list[str]:
        """Return the ids of the tasks that a list of names in the file stands for."""
        found = []
        for name in listed(said):
            id = self.ids.get(name)
            if id is None:
                id = self._tasks.named([name]).get(name)
            if id is not None:
                found.append(id)
            elif self._document.deleted != rows.DONE:  # where completed tasks are deleted, one that is missing is done
                raise Invalid(f"there is no task {name}")
        return found

    def _compare_status(self, plan: RowPlan, task: Seen) -> None:
        """Note a status that a person has given the row; without a base, only a checked box is one."""
        said, entry = plan.row.fields["status"], plan.entry
        if said == self._document.shown(task.status):
            return
        if entry is None or (entry.row == "" and task.state.ended):
            plan.status = said if said == rows.DONE and not task.state.ended else None
        elif any(said == file.get("status") for file, _ in entry.pairs):
            if said in lineage.ENDED:
                entry.endings[said] = self._base.version
        elif said not in lineage.ENDED or lineage.is_ended(entry, said, self._since):
            plan.status = said
        else:
            self._report.notice(
                "older",
                plan.row.id,
                f"line {plan.row.line} is {said}, as in an older version of the file, so it shows what the yard says; "
                "if that is meant, sync once with --removals",
                plan.row.line,
            )


class Removals:
    """The tasks whose rows are gone from the file."""

    def __init__(self, document: Document, base: Base, tasks: Tasks, found: Matched) -> None:
        here = {id for _, id in found.known}
        self.ending: list[str] = []
        """A person has deleted the row, and nothing has happened to the task since."""
        self.back: list[str] = []
        """Something has happened, or a worker holds the task: the row is put back."""
        self.unseen: list[str] = []
        """The version that the file comes from never had the row, or may not have had it: it gets it again."""
        self.doubtful: list[str] = []
        """Those of them that a person may just as well have deleted."""
        self.hidden: list[str] = []
        """The line is still there, but no longer as a row: in a code fence, or in a table whose head is broken."""
        for id, entry in base.entries.items():
            task = tasks.all.get(id)
            if id in here or task is None or task.state.ended:
                continue
            seen = id not in (base.unseen or ())
            if not seen or not lineage.is_gone(entry, found.since):
                entry.absent = base.version
                self.unseen.append(id)
                self.doubtful += [id] if seen else []
                continue
            unchanged = (entry.state, entry.fence) == (str(task.state), task.fence)
            if _still_there(document, entry):
                self.hidden.append(id)
            elif unchanged and task.state is not State.PROCESSING:
                self.ending.append(id)
            else:
                self.back.append(id)

    def refuse_too_many(self, base: Base) -> None:
        """Raise `Conflict` if so many rows are gone that a broken file is likelier than a plan that has changed."""
        known = sum(not State(entry.state).ended for entry in base.entries.values())
        gone = len(self.ending) + len(self.hidden) + len(self.back)
        if gone > 1 and (gone == known or (gone > _MANY and gone * 4 > known)):
            raise Conflict(
                f"{gone} of {known} open tasks are gone from the file, so nothing was changed",
                hint="put the lines back; or if all of them are to go, sync once with --removals",
            )


def _still_there(document: Document, entry: Entry) -> bool:
    title = entry.file.get("title") or "\n"
    return bool(entry.row) and any(entry.row in line.text and title in line.text for line in document.lines)
