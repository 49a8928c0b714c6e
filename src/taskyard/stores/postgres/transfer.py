"""A project as an endpoint of a copy: read in one snapshot, and written one segment in one transaction."""

from __future__ import annotations

import json
from contextlib import contextmanager

from taskyard.core import ids
from taskyard.core.draft import compact
from taskyard.core.errors import Conflict, TaskyardError, Unavailable
from taskyard.core.settings import refuse_unfinished
from taskyard.core.times import rfc3339
from taskyard.core.transfer import Entry, Facts, TaskCopy, moment, ordered, plain, value
from taskyard.stores.postgres import driver, queries, schema
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Row = tuple[Any, ...]

_AT_ONCE = 100  # rows that a reader has in memory
_CLEAR = ("records", "used", "tasks", "bodies", "ended", "needs", "keys")
_PUT = ("needs", "tasks", "bodies", "ended", "records", "followed", "followed_ended", "keys", "used")
_TOLD = ("at", "event", "task", "kind", "fence", "worker", "by")


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
        with self._told():
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
    def _told(self) -> Iterator[None]:
        """What the driver raises, as what it means; whoever copies says the same again, and goes on where it was."""
        errors = driver.module().Error
        try:
            yield
        except errors as error:
            meant = driver.meaning(error, self._connection, self._address)
            if isinstance(meant, TaskyardError):
                raise meant from None
            if isinstance(error, driver.module().errors.UniqueViolation):
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
        """Rows as they come, however many there are."""
        with self._told(), self._connection.transaction(), self._connection.cursor(name="endpoint") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(queries.load("transfer")[name], {"project": self._project, **(values or {})})
            yield from cursor

    def warnings(self) -> list[str]:
        """Nothing here can be read by half."""
        return []

    # Reading

    def facts(self) -> Facts:
        """What is true of the project as a whole."""
        with self._told():
            self._renew()
            paused, kinds, settings, _, highest, holds, _ = self._run("facts")[0]
            facts = Facts(paused, kinds, json.loads(settings))
            facts.held = [row[0] for row in self._run("held")]
            facts.highest, facts.is_empty = highest, not holds
            return facts

    def _renew(self) -> None:
        """Of a source all is read as it was at one moment: now."""
        if self._is_source:
            self._connection.rollback()
            self._connection.execute(queries.load("transfer")["snapshot"])

    def segments(self) -> list[str]:
        """The segments that have tasks, in order."""
        with self._told():
            self._renew()
            return [row[0] for row in self._run("segments")]

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """The tasks of one segment, by their ids."""
        return map(_task_copy, self._stream("task_copies", {"segment": segment}))

    def events(self) -> Iterator[dict[str, Any]]:
        """The log, in the order in which it was written."""
        for row in self._stream("log"):
            told = dict(zip(_TOLD, row[:-1], strict=True))
            told["at"] = rfc3339(row[0])
            yield told if row[-1] is None else {**told, **json.loads(row[-1])}

    def files(self, with_progress: bool) -> Iterator[str]:  # noqa: ARG002  no file is kept here
        """There are none here."""
        return iter(())

    def chunks(self, path: str) -> Iterator[bytes]:  # noqa: ARG002  no file has content here
        """There are none here."""
        return iter(())

    # Writing

    def begin(self, origin: str, facts: Facts) -> None:
        """Have nobody work here until `finish`."""
        with self._told(), self._connection.transaction():
            self._run("lock")
            there = self._run("facts")[0]
            settings = json.loads(there[2])
            if there[5] and settings.get("copy_of") is None:
                raise Conflict(
                    f"somebody has just put something into {self.label}", hint="name an empty yard, or a new one"
                )
            self._run("mark", {"settings": json.dumps({**settings, "copy_of": origin}), "kinds": facts.kinds})

    def replace(self, segment: str, tasks: Iterator[TaskCopy], known: bool) -> int:
        """Make these the tasks of the segment, all at once."""
        number = 0
        with self._told(), self._connection.transaction():
            if known:
                for name in _CLEAR:
                    self._run(f"clear_{name}", {"segment": segment})
            self._run("make_task_copies")
            with self._connection.cursor().copy(queries.load("transfer")["copy_task_copies"]) as copy:
                for task in tasks:
                    copy.write_row(_row(task))
                    number += 1
            for name in _PUT:
                self._run(f"put_{name}")
        return number

    def append_events(self, events: list[dict[str, Any]]) -> None:
        """Add these to the end of the log."""
        with self._told(), self._connection.transaction():
            self._run("make_event_copies")
            with self._connection.cursor().copy(queries.load("transfer")["copy_event_copies"]) as copy:
                for place, event in enumerate(events):
                    more = {name: said for name, said in event.items() if name not in _TOLD}
                    row = [event[name] for name in _TOLD]
                    row[0] = moment(event["at"])
                    copy.write_row((place, *row, _json(more) if more else None))
            self._run("append_events")

    def clear_events(self) -> None:
        """Make the log empty."""
        with self._told():
            self._run("clear_events")

    def write_file(self, path: str, chunks: Iterator[bytes]) -> None:
        """Nobody asks for it where no files are kept."""
        raise NotImplementedError(path)

    def finish(self, facts: Facts) -> None:
        """Have everybody see the project, paused as it is."""
        own = {name: given for name, given in facts.settings.items() if name != "shared"}
        with self._told():
            self._connection.execute(queries.load("transfer")["analyze"])
            if facts.highest >= 0:
                with self._connection.transaction():
                    self._run("numbering")
                    self._run("number", {"next": (facts.highest + 1) << 10})
            with self._connection.transaction():
                self._run("renew")
                self._run("mark", {"settings": json.dumps(own), "kinds": facts.kinds})

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _task_copy(row: Row) -> TaskCopy:
    (
        id, kind, state, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, due, worker, nonce, lease,
        progress, ended_at, title, mission, key, after, verify, not_before, data, result, digest, needs, records,
    ) = row  # fmt: skip
    entries: dict[str, list[Entry]] = {"outcome": [], "note": [], "stale": [], "name": []}
    for sort, of, by_nonce, holder, at, outcome, content, brought in records or ():
        entries[sort].append(Entry(of, by_nonce, holder, at, outcome, value(content), _brought(brought)))
    if state == "done":
        entries["outcome"].append(Entry(fence, nonce, worker, ended_at, "done", None))
    is_held = state == "processing"
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
        after=after or [],
        verify=verify,
        not_before=not_before,
        data=plain(value(data)),
        needs=sorted(needs),
        worker=worker,
        nonce=nonce,
        held_for=_milliseconds(lease) if is_held else None,
        progress=progress if is_held else None,
        result=_brought(result) if state == "done" else None,
        dropped_as=entries["name"][0].text if entries["name"] else None,
        history=ordered(entries["outcome"]),
        notes=ordered(entries["note"]),
        stale=ordered(entries["stale"]),
        ended_at=ended_at,
        claim_lease=None,
    )


def _row(task: TaskCopy) -> Row:
    """A task's values, in the order of the temporary table's columns."""
    is_over = task.state in ("done", "failed", "cancelled")
    ended_at = None
    if is_over:
        ended_at = task.ended_at or (task.history[-1].at if task.history else ids.created(task.id))
        if task.state == "done":
            ended_at = task.history[-1].at
    reason = task.reason()
    result = (task.result or "null") if task.state == "done" else None
    return (
        task.id, task.kind, task.state, task.priority, task.assignee, task.fence, task.errors, task.crashes,
        task.max_attempts, _seconds(task.lease), _list(task.uses), task.due, task.worker, task.nonce,
        _seconds(task.held_for), task.progress, ended_at, task.title, task.mission, task.key, _list(task.after),
        task.verify, task.not_before, task.data, result, None if reason is None else compact(reason), task.added,
        _list(task.needs), _records(task),
    )  # fmt: skip


def _records(task: TaskCopy) -> str | None:
    """What claims left, and a dropped file's name, as rows of the record table, in the order of time; the task's own row tells a done."""
    rows: list[list[Any]] = []
    if task.dropped_as is not None:
        rows.append(["name", 0, "", None, ids.created(task.id), None, compact(task.dropped_as), None])
    for sort, entries in (("outcome", task.history), ("note", task.notes), ("stale", task.stale)):
        for entry in entries:
            if sort == "outcome" and entry.outcome == "done":
                continue
            said = None if entry.text is None else compact(entry.text)
            brought = (entry.result or "null") if sort == "stale" else None
            rows.append([sort, entry.fence, entry.nonce, entry.worker, entry.at, entry.outcome, said, brought])
    return compact(sorted(rows, key=lambda row: row[4])) if rows else None


def _brought(text: str | None) -> str | None:
    """A result; null is none."""
    said = None if text is None else plain(value(text))
    return None if said == "null" else said


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _list(texts: Iterable[str]) -> str | None:
    return compact(list(texts)) if texts else None


def _json(more: dict[str, Any]) -> str:
    """As it is; with escapes where a text holds what no UTF-8 can carry."""
    text = compact(more)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(more)
    return text
