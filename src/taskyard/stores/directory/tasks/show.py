"""Reading tasks out of the yard: one with its whole report, or a page of many."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.store_records import Report
from taskyard.core.task import State, Task
from taskyard.core.times import rfc3339
from taskyard.stores.directory.dropbox import dropped_names
from taskyard.stores.directory.names import NO_FILE
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.core.store_records import Query
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.listing import Listing
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.segment_index import SegmentIndex
    from taskyard.stores.directory.tasks.shifts import Shifts
    from taskyard.stores.directory.tasks.uses import Uses

_LOOKS = 100  # tries for a task that moves all the time; after that a missing file is really missing


class Reader:
    """From files to Tasks and Reports."""

    def __init__(self, context: Context, listing: Callable[[], Listing], shifts: Shifts) -> None:
        """`listing` is called for a page: one task is read without it, and the process of a `done` does not load it."""
        self._context = context
        self._shifts = shifts
        self._disk = context.disk
        self._locator = context.locator
        self._records = context.records
        self._edits = context.edits
        self._policy = context.policy
        self._listing = listing

    def known(self, id: str) -> Task:
        """Return the task that an earlier add made under the same key."""
        task = self.report(id).task
        task.created = False
        return task

    def report(self, id: str) -> Report:
        """Return all about the one task that fits this pattern."""
        for _ in range(_LOOKS):
            try:
                return self.of(self._locator.find(id))
            except FileNotFoundError:
                continue  # it moved between lookup and read: try again
        return self.of(self._locator.find(id))

    def of(self, found: Found, moved_at: int | None = None, papers: SegmentIndex | None = None) -> Report:
        """Return all about the task with this file; raise `FileNotFoundError` if it has moved.

        A caller that reads many tasks passes what it knows: when the task was moved here, and the segment's index.
        """
        # A task that is about to be pruned must be readable to the last byte: what cannot be archived stays.
        content = self._content(found) if papers is None else self._edits.read(*found.place)
        stamp = self._disk.stamp(found.path) if moved_at is None else moved_at
        token = found.token
        task = self._task(found, content)
        whole = papers is not None
        names = None if papers is None else papers.of("results", token.id)
        records = self._records.all(token.id, names, whole=whole)
        history, stale = self._records.history(token, found.state, stamp, records, papers)
        if found.state is State.PROCESSING:
            task.lease_ends = stamp + (token.lease or 0)
            task.progress = self._records.progress_of(token)
        if found.state is State.DONE:
            task.result = self._records.result(token, records)
        else:
            task.error = self._records.error(token, found.state, history, names)
        dropped_as = (
            dropped_names.of(self._context, token.id) if papers is None or papers.of("names", token.id) else None
        )
        if dropped_as is not None:
            task.dropped_as = dropped_as
        silent = papers is not None and not papers.of("attempts", token.id)
        notes = [] if silent else self._records.notes(token.id, whole=whole)
        standing = token.standing(found.state, found.place, self._policy)
        return Report(
            task,
            history,
            notes,
            stale,
            lambda: self._shifts.drafted(standing),
            lambda most: sorted(self._shifts.edges.followers(token.id), key=ids.age_key)[:most],
            lambda most: self._shifts.children.of(token.id, most),
        )

    def dropped_as(self, name: str) -> list[Task]:
        """Return the tasks that were dropped under this name."""
        return [self.report(id).task for id in dropped_names.find(self._context, name)]

    def page(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks by age, and the cursor of the next."""
        page: list[Task] = []
        walk = self._listing().oldest_first(query)
        for found in walk:
            if len(page) == query.limit:
                return page, walk.cursor(page[-1].id, found.token.id)
            task = self._still(found, query)
            if task is not None and (query.mission is None or task.mission == query.mission):
                page.append(task)
        return page, None

    def ready(self, query: Query, hidden: frozenset[str], uses: Uses) -> tuple[list[Task], str | None]:
        """Return one page of what the taker could claim, without `hidden` kinds, in the order of claims; and its cursor."""
        page: list[Task] = []
        last: Found | None = None
        taken, kept = uses.taken(), uses.kept(fresh=True)
        walk = self._listing().in_claim_order(query, hidden, frozenset(taken), self._policy.ageing)
        for found in walk:
            if last is not None and len(page) == query.limit:
                return page, walk.cursor(last, found)
            task = self._still(found, query)
            if task is None or (query.mission is not None and task.mission != query.mission):
                continue
            if task.uses and (
                taken.first(task.uses) is not None or uses.first_kept(kept, task.uses, task.id) is not None
            ):
                continue
            page.append(task)
            last = found
        return page, None

    def named(self, wanted: Iterable[str], query: Query) -> list[Task]:
        """Return those of these tasks that exist and that the query lets through, oldest first."""
        tasks = (self._still(found, query) for found in self._locator.several(wanted).values())
        found = [task for task in tasks if task is not None and _fits(task, query)]
        return sorted(found, key=lambda task: ids.age_key(task.id))

    def _still(self, found: Found, query: Query) -> Task | None:
        """Return the listed task, also if it has moved since; None if the query does not want it any more."""
        for _ in range(_LOOKS):
            try:
                return self.of(found).task if query.whole else self._task(found, self._content(found))
            except FileNotFoundError:
                again = self._locator.matching(found.token.id).get(found.token.id)
                if again is None or (query.states is not None and again.state not in query.states):
                    return None
                found = again
        return None

    def _content(self, found: Found) -> bytes:
        """Return the task's content; b"" if it cannot be read. Raise `FileNotFoundError` if the task has moved."""
        try:
            return self._edits.read(*found.place)
        except FileNotFoundError:
            if found.token.body is None or not self._disk.exists(found.path):
                raise
            return b""  # the edit that replaced its file is gone
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            return b""

    def _task(self, found: Found, content: bytes) -> Task:
        try:
            fields = task_file.decode(content)
        except Invalid:
            fields = {}  # a broken file is still a task that can be shown
        token = found.token
        fields.update(
            id=token.id,
            kind=token.lane.kind,
            state=found.state,
            priority=token.lane.priority,
            assignee=token.lane.assignee,
            attempts=token.errors + token.crashes,
            max_attempts=token.max_attempts or self._policy.max_attempts,
            fence=token.fence,
            worker=token.worker,
        )
        if token.due is not None:
            fields["not_before"] = rfc3339(token.due)
        return Task(**fields)


def _fits(task: Task, query: Query) -> bool:
    """Whether a task that was asked for by its id or key passes the other filters too."""
    return (
        (query.states is None or task.state in query.states)
        and query.wants(task.kind, task.assignee)
        and (query.mission is None or task.mission == query.mission)
        and (query.worker is None or task.worker == query.worker)
    )
