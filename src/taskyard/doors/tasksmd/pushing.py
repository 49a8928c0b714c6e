"""A person's edits of a file, made in the yard: new rows are added, words edited, and statuses become verbs."""

from __future__ import annotations

from taskyard.core import draft
from taskyard.core.errors import Conflict, Invalid, NotFound, TaskyardError, Unavailable
from taskyard.core.task import State
from taskyard.doors.tasksmd import rows
from taskyard.doors.tasksmd.rows import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.planning import Planner, RowPlan
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Row
    from taskyard.doors.tasksmd.yard_side import Tasks

_PERSON = "in the file"
_STEERED = ("id", "status", "title", "agent", "after", "priority")


class Pusher:
    """Makes edits in the yard; whatever the yard refuses becomes a notice."""

    def __init__(self, tasks: Tasks, planner: Planner, report: Report, kind: str, mission: str | None) -> None:
        self._tasks = tasks
        self._planner = planner
        self._report = report
        self._kind = kind
        self._mission = mission
        self.touched: set[str] = set()
        """Tasks that have moved: they are read again."""
        self.later: set[str] = set()
        """Tasks whose status is given by a later sync: one that was killed holds them still."""

    # New rows

    def drafted(self, new: list[tuple[Row, str]]) -> list[tuple[Row, dict[str, Any]]]:
        """Return the rows that can become tasks, each with its draft; the others get a notice."""
        keys = {row.id: key for row, key in new if row.id}
        found = []
        for row, key in new:
            try:
                fields = self._draft(row, key, keys)
                draft.Draft.of(fields)
            except Invalid as error:
                self._report.notice("refused", row.id, f"line {row.line} cannot be a task: {error.message}", row.line)
            else:
                found.append((row, fields))
        return found

    def _draft(self, row: Row, key: str, keys: dict[str, str]) -> dict[str, Any]:
        fields = row.fields
        ended = fields["status"] in (rows.DONE, rows.FAILED)
        found: dict[str, Any] = {
            "kind": self._kind,
            "title": row.title or row.id,
            "key": key,
            "ref": key,
            "mission": self._mission,
        }
        more = {name: value for name, value in fields.items() if name not in _STEERED and value}
        if more:
            found["data"] = more
        if fields.get("priority"):
            found["priority"] = self._planner.option("priority", fields["priority"])
        # What is done already must not be handed out before it is marked so.
        found["assignee"] = fields.get("agent") or (self._tasks.person if ended else None)
        if fields.get("after") and not ended:
            found["after"] = self._needs(row, keys)
        return found

    def _needs(self, row: Row, keys: dict[str, str]) -> list[Any]:
        """Return what a new row comes after: tasks, and rows that are new as well."""
        found: list[Any] = []
        for name in listed(row.fields["after"]):
            if name in keys:
                found.append({"ref": keys[name]})
                continue
            try:
                found += self._planner.after(name)
            except Invalid as error:
                self._report.notice(
                    "after", row.id, f"line {row.line}: {error.message}, so it waits for the others alone", row.line
                )
        return found

    def add(self, drafts: list[tuple[Row, dict[str, Any]]]) -> list[str]:
        """Add new tasks, and return their ids; needs that go round in a circle are left out, with a notice."""
        if not drafts:
            return []
        fields = [one for _, one in drafts]
        try:
            return self._tasks.add(fields)
        except (Invalid, Conflict, NotFound) as error:
            if not any("after" in one for one in fields):
                raise
            self._report.notice("after", "", f"new tasks were added without what they come after: {error.message}")
            return self._tasks.add([{name: value for name, value in one.items() if name != "after"} for one in fields])

    # Edits

    def edit(self, plan: RowPlan) -> None:
        """Make a person's edits of words and plans; what the yard refuses now stays in the file, and is tried again."""
        if not plan.changes:
            return
        self.touched.add(plan.id)
        try:
            self._tasks.edit(plan.id, plan.changes)
        except Unavailable:
            raise
        except TaskyardError as error:
            plan.held |= plan.pushes.keys()
            plan.take_back()
            self._report.notice(
                "held",
                plan.row.id,
                f"the edit of line {plan.row.line} stays in the file alone: {error.message}",
                plan.row.line,
            )
        else:
            self._report.edited.append(plan.id)

    # Statuses

    def set_statuses(self, wanted: list[tuple[Row, str, str]]) -> None:
        """Give tasks the statuses that people gave their rows, where that is legal; each is a row, its task and the status."""
        claimed: list[tuple[Row, str, str]] = []
        for row, id, status in wanted:
            self.touched.add(id)
            if self._is_held_by_person(id):
                self.later.add(id)
                self._report.notice(
                    "status",
                    row.id,
                    f"line {row.line} is {status} once {self._tasks.person}'s claim has ended",
                    row.line,
                )
                continue
            try:
                handle = self._set_status(id, status)
            except Unavailable:
                raise
            except TaskyardError as error:
                self._refused(row, status, error.message)
                continue
            if handle is None:
                self._report.ended.append(id)
            else:
                claimed.append((row, id, handle))
        self._finish(claimed)

    def _is_held_by_person(self, id: str) -> bool:
        """Whether the claim that this would be ended with is there already: a sync was killed after it."""
        task = self._tasks.all[id]
        return task.state is State.PROCESSING and task.worker == self._tasks.person

    def _refused(self, row: Row, status: str, why: str) -> None:
        self._report.notice(
            "status", row.id, f"line {row.line} cannot be {status} now, and shows what the yard says: {why}", row.line
        )

    def _set_status(self, id: str, status: str) -> str | None:
        """Make the verb of a status, and return the handle of a claim that is to be done."""
        task = self._tasks.all[id]
        if task.state is State.PROCESSING:
            raise Conflict(f"{task.worker or task.fields['agent']} works on it, and ends it with 'taskyard done'")
        if status == rows.CANCELLED and not task.state.ended:
            self._tasks.cancel(id, _PERSON)
        elif status == rows.NOT_STARTED and task.status == rows.NEEDS_QA:
            self._tasks.review(id, accept=False)
        elif status == rows.DONE and task.status == rows.NEEDS_QA:
            self._tasks.review(id, accept=True)
        elif status == rows.NOT_STARTED and task.state in (State.FAILED, State.CANCELLED):
            self._tasks.retry(id)
        elif status == rows.DONE:
            return self._claimed(id)
        elif status == rows.FAILED and not task.state.ended:
            self._tasks.fail(self._claimed(id))
        else:
            raise Conflict(_ADVICE.get(status, f"it is {task.status}"))
        return None

    def _claimed(self, id: str) -> str:
        """Claim a task that no worker holds, in the name of its assignee or of the person."""
        task = self._tasks.all[id]
        if task.state is State.DONE:
            raise Conflict("it is done")
        if task.state in (State.FAILED, State.CANCELLED, State.WAITING):
            self._tasks.retry(id)
        assigned = task.fields["agent"] if task.state is State.TODO else ""
        return self._tasks.claim(id, assigned or self._tasks.person)

    def _finish(self, claimed: list[tuple[Row, str, str]]) -> None:
        """End claims as done: all at once, and then one by one those that a check must pass."""
        if not claimed:
            return
        ended = self._tasks.done_many([handle for _, _, handle in claimed])
        for (row, id, handle), done in zip(claimed, ended, strict=True):
            try:
                if not done:
                    self._tasks.done(handle)
                self._report.ended.append(id)
            except Unavailable:
                raise
            except TaskyardError as error:
                self._refused(row, rows.DONE, error.message)

    def remove(self, ids: list[str], names: dict[str, str], means: str) -> None:
        """End the tasks whose rows a person has deleted, as the dialect means it."""
        claimed = []
        for id in ids:
            self.touched.add(id)
            task, name = self._tasks.all[id], names[id]
            status = means if task.state is State.TODO else rows.CANCELLED
            try:
                if status == rows.DONE:
                    claimed.append((name, self._claimed(id)))
                else:
                    self._tasks.cancel(id, "its line was deleted in the file")
                    self._report.notice(
                        "removed",
                        name,
                        f"{name} was deleted in the file, so it is cancelled; 'taskyard retry' brings it back",
                    )
            except Unavailable:
                raise
            except TaskyardError as error:
                self._report.notice(
                    "removed", name, f"{name} was deleted in the file, and is put back: {error.message}"
                )
                continue
        for (name, handle), done in zip(
            claimed, self._tasks.done_many([one for _, one in claimed]) if claimed else (), strict=True
        ):
            if not done:
                self._tasks.done(handle)
            self._report.notice("removed", name, f"{name} was deleted in the file, which means completed: it is done")


_ADVICE = {
    rows.IN_PROGRESS: "a task is in progress while a worker holds it: 'taskyard claim ID' takes it",
    rows.BLOCKED: "a task is blocked while what it comes after is not done: name that in the file",
    rows.NEEDS_QA: "a task waits for review once its worker has submitted a result",
}
