"""Adding what was found to a yard: one graph, all of it or nothing, and then the endings that the other tool had published.

No yard can add a task that is done already. So the importer claims each task that was done, under its own worker's name, and
ends it. The next import of the same file finishes what a killed one has left.
"""

from __future__ import annotations

from functools import partial

from taskyard.core.errors import ClaimLost, Conflict, Invalid, NotFound
from taskyard.core.task import State
from taskyard.core.times import moment
from taskyard.doors.importers import plan
from taskyard.doors.importers.item import CANCELLED, DONE, ENDED, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.errors import TaskyardError
    from taskyard.core.task import Task
    from taskyard.doors.importers.item import Found, Options
    from taskyard.doors.importers.plan import Row
    from taskyard.port import YardPort

    Progress = Callable[[str, int, int], object]

_TOGETHER = 200  # tasks that are looked up, and endings that are published, with one call
_ENDED_STATES = (State.DONE, State.FAILED, State.CANCELLED)


class Imported:
    """The result of an import, or of a dry run."""

    def __init__(self, found: Found, rows: list[Row], dry_run: bool) -> None:
        self.tool = found.tool
        self.rows = rows
        self.notes = found.notes
        self.dry_run = dry_run

    @property
    def created(self) -> int:
        """How many tasks are new."""
        return sum(row.created for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "tool": self.tool,
            "dry_run": self.dry_run,
            "created": self.created,
            "known": len(self.rows) - self.created,
            "ids": [row.id for row in self.rows],
            "tasks": [row.as_dict() for row in self.rows],
            "notes": self.notes,
        }


def dry_run(found: Found, options: Options, yard: YardPort | None) -> Imported:
    """Return what an import would do; no yard is changed, and there may be none."""
    return Imported(found, plan.rows(found, options, lambda keys: _known(yard, keys)), True)


def run(found: Found, options: Options, yard: YardPort, progress: Progress | None = None) -> Imported:
    """Add what is new, end what was ended, and return all of it."""
    rows = plan.rows(found, options, lambda keys: _known(yard, keys))
    ending = [row for row in rows if row.state in ENDED and (row.task is None or _is_left(yard, row, row.task))]
    _refuse_pause(yard, ending)
    _add(yard, [row for row in rows if row.created])
    _end(yard, ending, found, progress or (lambda *_: None))
    _name_missions(yard, found, rows)
    return Imported(found, rows, False)


def _known(yard: YardPort | None, keys: Sequence[str]) -> dict[str, Task]:
    """Return the tasks that were added under these keys, by key."""
    found: dict[str, Task] = {}
    for start in range(0, len(keys) if yard is not None else 0, _TOGETHER):
        tasks = yard.get_many(keys=keys[start : start + _TOGETHER]) if yard is not None else ()
        found |= {str(task.key): task for task in tasks}
    return found


def _is_left(yard: YardPort, row: Row, task: Task) -> bool:
    """Return whether this is a task that an import added, and that it did not end because it was killed."""
    if task.state in _ENDED_STATES:
        return False
    if row.state == DONE or task.state is State.PROCESSING:
        return plan.IMPORTER in (task.assignee, task.worker)
    if task.not_before is None or moment(task.not_before, "due") != moment(plan.SOMEDAY, "due"):
        return False
    return not yard.events(task=task.id, event=("failed", "cancelled"), limit=1)  # else a person has retried it


def _refuse_pause(yard: YardPort, ending: list[Row]) -> None:
    """Raise `Conflict` before anything is added, if tasks are to be ended that a paused yard would not hand out."""
    claimed = [row for row in ending if row.state != CANCELLED]
    if not claimed:
        return
    paused = yard.paused()
    held = [row for row in claimed if paused["yard"] or row.fields["kind"] in paused["kinds"]]
    if held:
        raise Conflict(
            f"{len(held)} of the tasks are ended in the file, and what is paused cannot be claimed to be ended here",
            hint="'taskyard unpause' first, or import only what is still to be done: --open-only",
        )


def _add(yard: YardPort, new: list[Row]) -> None:
    if not new:
        return
    try:
        added = yard.add_many([row.fields for row in new])
    except (Invalid, NotFound) as error:
        raise _blamed(error, new) from None
    for row, id in zip(new, added, strict=True):
        row.id = id


def _blamed(error: TaskyardError, new: list[Row]) -> TaskyardError:
    """Return the error with the place of its task in the file, in place of the yard's count of tasks."""
    begin, colon, message = error.message.partition(": ")
    count = begin.removeprefix("task ")
    if colon and count != begin and count.isdecimal() and 0 < int(count) <= len(new):
        return new[int(count) - 1].item.place.refuse(message, error.hint)
    return error


def _end(yard: YardPort, ending: list[Row], found: Found, progress: Progress) -> None:
    """End tasks as they are ended in the other tool, each after those that it comes after."""
    done = 0
    held = _taken_over(yard, ending)
    for level in _levels(ending):
        for start in range(0, len(level), _TOGETHER):
            _end_some(yard, level[start : start + _TOGETHER], held, found)
            done += len(level[start : start + _TOGETHER])
            progress("ending tasks", done, len(ending))


def _taken_over(yard: YardPort, ending: list[Row]) -> dict[str, str]:
    """Take over the claims of a killed import; return their handles by id."""
    left = {row.id for row in ending if row.task is not None and row.task.state is State.PROCESSING}
    if not left:
        return {}
    return {claim.task.id: claim.handle for claim in yard.resume(plan.IMPORTER) if claim.task.id in left}


def _levels(ending: list[Row]) -> list[list[Row]]:
    """Return the rows in groups, each of which comes after the groups before it only."""
    height: dict[str, int] = {}
    rows = {row.item.id: row for row in ending}
    for row in ending:
        path = [row.item.id]
        while path:
            ahead = [id for id in rows[path[-1]].after if id in rows and id not in height]
            if ahead:
                path.append(ahead[0])
                continue
            id = path.pop()
            height[id] = 1 + max((height[other] for other in rows[id].after if other in height), default=-1)
    levels: list[list[Row]] = [[] for _ in range(1 + max(height.values(), default=-1))]
    for row in ending:
        levels[height[row.item.id]].append(row)
    return levels


def _end_some(yard: YardPort, rows: list[Row], held: dict[str, str], found: Found) -> None:
    claims = []
    for row in rows:
        if row.state == CANCELLED:
            _cancel(yard, row)
            continue
        handle = held.get(str(row.id)) or _claimed(yard, row, found)
        if handle is not None and row.state == FAILED:
            _unless_lost(yard, handle, partial(yard.fail, handle, _reason(row), retry=False))
        elif handle is not None:
            claims.append((handle, row.item.outcome))
    if claims:
        for (handle, result), is_done in zip(claims, yard.done_many(claims), strict=True):
            if not is_done:  # said again alone, it raises with the reason
                _unless_lost(yard, handle, partial(yard.done, handle, result))


def _unless_lost(yard: YardPort, handle: str, end: Callable[[], object]) -> None:
    """End a claim; another import of the same file may have taken it over, and ends the task then."""
    try:
        end()
    except ClaimLost:
        task = yard.get(handle.partition(".")[0])
        if task.state not in _ENDED_STATES and task.worker != plan.IMPORTER:
            raise


def _cancel(yard: YardPort, row: Row) -> None:
    try:
        yard.cancel(str(row.id), _reason(row))
    except Conflict:
        if yard.get(str(row.id)).state is not State.CANCELLED:
            raise


def _claimed(yard: YardPort, row: Row, found: Found) -> str | None:
    """Claim the task of this row; None if it has ended meanwhile, or another worker has taken it."""
    id = str(row.id)
    task = yard.get(id)
    if task.state in _ENDED_STATES:
        return None
    if task.state is State.BLOCKED:
        yard.sweep()  # a killed import may have left it so, behind what it has ended
    if row.state == FAILED and task.state is State.WAITING:
        yard.retry(id)  # due now, and claimed at once
    try:
        claim = yard.claim(id, worker=plan.IMPORTER)
    except (Conflict, ClaimLost):
        now = yard.get(id)
        if now.state is State.PROCESSING:
            if now.worker != plan.IMPORTER:  # else another import of the same file ends it
                word = f"{row.item.id} is {row.state} there, but {now.worker} has just claimed it here"
                found.note(row.item.place, word)
            return None
        if now.state in _ENDED_STATES:
            return None
        raise
    if claim is None:
        raise Conflict(
            f"task {task.short} could not be claimed to be ended",
            hint="run the same import again: it goes on from here",
        )
    return claim.handle


def _reason(row: Row) -> str:
    said = f": {row.item.outcome}" if isinstance(row.item.outcome, str) else ""
    return f"{row.state} before it was imported{said}"


def _name_missions(yard: YardPort, found: Found, rows: list[Row]) -> None:
    """Keep the briefs of the missions that imported tasks belong to; one that has another brief here keeps it."""
    used = {row.fields.get("mission") for row in rows}
    for name, brief in found.missions.items():
        if name not in used:
            continue
        try:
            yard.new_mission(name, brief)
        except Conflict:
            found.note(None, f"the mission {name} is there already, and keeps its own brief")
