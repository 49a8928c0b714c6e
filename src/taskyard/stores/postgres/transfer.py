"""A project as one end of a copy: read in one snapshot, written one segment per transaction."""

from __future__ import annotations

import json
from contextlib import contextmanager

from taskyard.core import ids, needs
from taskyard.core.draft import compact
from taskyard.core.errors import Conflict, TaskyardError, Unavailable
from taskyard.core.settings import refuse_unfinished
from taskyard.core.times import rfc3339
from taskyard.core.transfer import (
    MISSION_FIELDS,
    NEVER_COPIED,
    SCHEDULE_FIELDS,
    Entry,
    Facts,
    TaskCopy,
    cancel_reason,
    last_error,
    moment,
    ordered,
    plain,
    value,
)
from taskyard.stores.postgres import driver, queries, rows, schema
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Row = tuple[Any, ...]

_AT_ONCE = 100  # rows that a reader holds in memory
_CLEAR = ("records", "used", "deadlines", "tasks", "bodies", "ended", "needs", "relations", "keys")
_PUT = (
    "needs",
    "relations",
    "deadlines",
    "tasks",
    "bodies",
    "ended",
    "records",
    "followed",
    "followed_ended",
    "keys",
    "used",
)
_EVENT_COLUMNS = ("at", "event", "task", "kind", "fence", "worker", "by")


class PostgresEndpoint:
    """One project in one database, to be copied from or to."""

    keeps_files = False

    def __init__(self, url: str, target: bool = False) -> None:
        self._address = address = Address(url)
        self.url, self.label = url, address.label
        self._connection = driver.connect(address)
        self._is_source = not target
        try:
            self._greet(target)
        except BaseException:
            self._connection.close()
            raise

    def _greet(self, make: bool) -> None:
        with self._translating_errors():
            try:
                self._project = schema.read_project(self._connection, self._address).project
            except Unavailable:
                if not make:
                    raise
                schema.make(self.url)  # not before it is missed: who may work in a project may not make one
                self._project = schema.read_project(self._connection, self._address).project
            facts = self._run("facts")[0]
            self.identity: object = ("postgresql", facts[6], self._project, facts[3])
            if self._is_source:
                refuse_unfinished(json.loads(facts[2]).get("copy_of"), self.label)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate errors of the driver; the hints ask to repeat the command, which continues the copy."""
        errors = driver.module().Error
        try:
            yield
        except errors as error:
            meant = driver.meaning(error, self._connection, self._address)
            if isinstance(meant, TaskyardError):
                raise meant from None
            # No meaning: a deadlock, or rows that another transaction has changed. Only another copy writes here.
            if meant is None or isinstance(error, driver.module().errors.UniqueViolation):
                raise Conflict(
                    f"somebody else writes into {self.label} at the same time",
                    hint="let that copy end; then say the same once more, and both are compared",
                ) from None
            raise Unavailable(
                f"PostgreSQL at {self._address.where} went away or was too busy: {driver.first_line(error)}",
                hint="say the same once more: it goes on where it was",
            ) from None

    def _run(self, name: str, values: dict[str, Any] | None = None) -> list[Row]:
        statement = queries.load("transfer")[name]
        cursor = self._connection.execute(statement, {"project": getattr(self, "_project", None), **(values or {})})
        return cursor.fetchall() if cursor.description is not None else []

    def _stream(self, name: str, values: dict[str, Any] | None = None) -> Iterator[Row]:
        """Read rows as they arrive, however many there are."""
        with (
            self._translating_errors(),
            self._connection.transaction(),
            self._connection.cursor(name="endpoint") as cursor,
        ):
            cursor.itersize = _AT_ONCE
            cursor.execute(queries.load("transfer")[name], {"project": self._project, **(values or {})})
            yield from cursor

    def warnings(self) -> list[str]:
        """Return nothing: a database is never read partially."""
        return []

    # Reading

    def facts(self) -> Facts:
        """Return what is true of the project as a whole."""
        with self._translating_errors():
            self._renew()
            paused, kinds, settings, _, highest, holds, _ = self._run("facts")[0]
            facts = Facts(paused, kinds, json.loads(settings))
            facts.missions = [dict(zip(MISSION_FIELDS, row, strict=True)) for row in self._run("missions")]
            facts.schedules = [dict(zip(SCHEDULE_FIELDS, row, strict=True)) for row in self._run("schedules")]
            for schedule in facts.schedules:
                schedule["said"] = json.loads(schedule["said"])
            facts.held = [row[0] for row in self._run("held")]
            facts.highest, facts.is_empty = highest, not holds
            return facts

    def _renew(self) -> None:
        """Begin a new snapshot, if this is the source."""
        if self._is_source:
            self._connection.rollback()
            self._connection.execute(queries.load("transfer")["snapshot"])

    def segments(self) -> list[str]:
        """Return the segments that have tasks, in order."""
        with self._translating_errors():
            self._renew()
            return [row[0] for row in self._run("segments")]

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """Read the tasks of one segment, by id."""
        return map(_task_copy, self._stream("task_copies", {"segment": segment}))

    def events(self) -> Iterator[dict[str, Any]]:
        """Read the log, in the order in which it was written."""
        for row in self._stream("log"):
            event = dict(zip(_EVENT_COLUMNS, row[:-1], strict=True))
            event["at"] = rfc3339(row[0])
            yield event if row[-1] is None else {**event, **json.loads(row[-1])}

    def files(self, with_progress: bool) -> Iterator[str]:  # noqa: ARG002  a database has no files
        """Return nothing: a database has no files."""
        return iter(())

    def chunks(self, path: str) -> Iterator[bytes]:  # noqa: ARG002  a database has no files
        """Return nothing: a database has no files."""
        return iter(())

    # Writing

    def begin(self, origin: str, facts: Facts) -> None:
        """Mark the project as unfinished, so that no process opens it before `finish`."""
        with self._translating_errors(), self._connection.transaction():
            self._run("lock")
            there = self._run("facts")[0]
            settings = json.loads(there[2])
            if there[5] and settings.get("copy_of") is None:
                raise Conflict(
                    f"somebody has just put something into {self.label}", hint="name an empty yard, or a new one"
                )
            self._run("mark", {"settings": json.dumps({**settings, "copy_of": origin}), "kinds": facts.kinds})

    def replace(self, segment: str, tasks: Iterator[TaskCopy], known: bool) -> int:
        """Replace the tasks of the segment with these, in one transaction; return their number."""
        number = 0
        with self._translating_errors(), self._connection.transaction():
            if known:
                for name in _CLEAR:
                    self._run(f"clear_{name}", {"segment": segment})
            self._run("settled")
            self._run("make_task_copies")
            with self._connection.cursor().copy(queries.load("transfer")["copy_task_copies"]) as copy:
                for task in tasks:
                    copy.write_row(_row(task))
                    number += 1
            for name in _PUT:
                self._run(f"put_{name}")
        return number

    def append_events(self, events: list[dict[str, Any]]) -> None:
        """Append these events to the log."""
        with self._translating_errors(), self._connection.transaction():
            self._run("make_event_copies")
            with self._connection.cursor().copy(queries.load("transfer")["copy_event_copies"]) as copy:
                for place, event in enumerate(events):
                    more = {name: value for name, value in event.items() if name not in _EVENT_COLUMNS}
                    row = [event[name] for name in _EVENT_COLUMNS]
                    row[0] = moment(event["at"])
                    copy.write_row((place, *row, _json(more) if more else None))
            self._run("append_events")

    def clear_events(self) -> None:
        """Empty the log."""
        with self._translating_errors():
            self._run("clear_events")

    def write_file(self, path: str, chunks: Iterator[bytes]) -> None:
        """Never called: `keeps_files` is false here."""
        raise NotImplementedError(path)

    def finish(self, facts: Facts) -> None:
        """Open the project to all processes, paused as the source is."""
        own = {name: given for name, given in facts.settings.items() if name not in NEVER_COPIED}
        with self._translating_errors():
            before = json.loads(self._run("facts")[0][2])
            own |= {name: before[name] for name in ("tokens", "file_conflicts") if name in before}
            self._connection.execute(queries.load("transfer")["analyze"])
            if facts.highest >= 0:
                with self._connection.transaction():
                    self._run("numbering")
                    self._run("number", {"next": (facts.highest + 1) << 10})
            with self._connection.transaction():
                self._run("renew")
                for mission in facts.missions:
                    self._run("put_mission", mission)
                for schedule in facts.schedules:
                    self._run("put_schedule", {**schedule, "said": compact(schedule["said"])})
                self._run("mark", {"settings": json.dumps(own), "kinds": facts.kinds})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _task_copy(row: Row) -> TaskCopy:
    (
        id, kind, state, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, due, worker, nonce, lease,
        progress, ended_at, title, mission, key, after, verify, not_before, data, result, error, digest, unmet, records,
        relation, bound,
    ) = row  # fmt: skip
    parent, discovered_from, policies, expires, timeout = rows.origin(relation)
    entries: dict[str, list[Entry]] = {"outcome": [], "note": [], "stale": [], "name": []}
    for sort, of, by_nonce, holder, at, outcome, content, brought in records or ():
        # What was submitted is kept also if it is null; a late result is not.
        kept = _brought(brought) if sort != "outcome" or brought is None else plain(value(brought))
        entries[sort].append(Entry(of, by_nonce, holder, at, outcome, value(content), kept))
    if state == "done":
        entries["outcome"].append(Entry(fence, nonce, worker, ended_at, "done", None))
    is_held = state == "processing"
    history = ordered(entries["outcome"])
    return TaskCopy(
        id=id,
        kind=kind,
        state=state,
        priority=priority,
        assignee=assignee,
        fence=fence,
        errors=errors,
        crashes=crashes,
        max_attempts=max_attempts,
        lease=_milliseconds(own_lease),
        uses=uses or [],
        due=due if state in ("waiting", "blocked") else None,
        title=title,
        mission=mission,
        key=key,
        added=digest,
        after=needs.encode(rows.comes_after(after, policies)),
        verify=verify,
        not_before=not_before,
        data=plain(value(data)),
        needs=sorted(unmet),
        worker=worker,
        nonce=nonce,
        held_for=_milliseconds(lease) if is_held else None,
        progress=progress if is_held else None,
        result=_brought(result) if state == "done" else None,
        dropped_as=entries["name"][0].text if entries["name"] else None,
        cancel_reason=cancel_reason(state, value(error), history),
        parent=parent,
        discovered_from=discovered_from,
        expires=expires,
        bound=bound and state not in ("done", "failed", "cancelled"),
        timeout=timeout,
        history=history,
        notes=ordered(entries["note"]),
        stale=ordered(entries["stale"]),
        ended_at=ended_at,
        claim_lease=None,
    )


def _row(task: TaskCopy) -> Row:
    """Return a task's values, in the order of the temporary table's columns."""
    is_over = task.state in ("done", "failed", "cancelled")
    ended_at = None
    if is_over:
        ended_at = task.ended_at or (task.history[-1].at if task.history else ids.created(task.id))
        if task.state == "done":
            ended_at = task.history[-1].at
    reason = task.cancel_reason or last_error(task.history)
    result = (task.result or "null") if task.state == "done" else None
    after = [needs.parse(need) for need in task.after]
    policies = {str(need): need.on_failure for need in after if need.on_failure != needs.BLOCK}
    others = (task.parent, task.discovered_from, task.expires, task.timeout)
    is_related = bool(policies) or any(value is not None for value in others)
    return (
        task.id, task.kind, task.state, task.priority, task.assignee, task.fence, task.errors, task.crashes,
        task.max_attempts, _seconds(task.lease), _list(task.uses), task.due, task.worker, task.nonce,
        _seconds(task.held_for), task.progress, ended_at, task.title, task.mission, task.key,
        "[]" if is_related and not after else _list(after),
        task.verify, task.not_before, task.data, result, None if reason is None else compact(reason), task.added,
        _list(task.needs), _records(task), _list([policies.get(id, needs.BLOCK) for id in task.needs]) if policies else None,
        compact(policies) if policies else None, *others, task.bound,
    )  # fmt: skip


def _records(task: TaskCopy) -> str | None:
    """Return the records of a task, in order of time, as rows of the record table; a done is in the task's own row."""
    rows: list[list[Any]] = []
    if task.dropped_as is not None:
        rows.append(["name", 0, "", None, ids.created(task.id), None, compact(task.dropped_as), None])
    for sort, entries in (("outcome", task.history), ("note", task.notes), ("stale", task.stale)):
        for entry in entries:
            if sort == "outcome" and entry.outcome == "done":
                continue
            text = None if entry.text is None else compact(entry.text)
            brought = (entry.result or "null") if sort == "stale" else entry.result
            rows.append([sort, entry.fence, entry.nonce, entry.worker, entry.at, entry.outcome, text, brought])
    return compact(sorted(rows, key=lambda row: row[4])) if rows else None


def _brought(text: str | None) -> str | None:
    """Return a result as plain JSON; None for null."""
    result = None if text is None else plain(value(text))
    return None if result == "null" else result


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _list(texts: Iterable[str]) -> str | None:
    return compact(list(texts)) if texts else None


def _json(more: dict[str, Any]) -> str:
    """Write JSON as UTF-8; with escapes where the text is not valid Unicode."""
    text = compact(more)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(more)
    return text
