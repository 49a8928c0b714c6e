"""The missions of a yard: a file for what was said about each, and its tasks in numbers, by their names alone.

`missions/<digest>.json` is written once. `missions/<digest>.cancelled` is replaced by each cancel. `missions/since` has the
moment from which on every task of a mission is in a lane of the mission; 0 is the yard's beginning.
"""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.core.draft import compact
from taskyard.core.errors import Invalid
from taskyard.core.mission import Cancelled, Mission, Tally
from taskyard.core.transfer import MISSION_FIELDS
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import UNREADABLE, mission_digest
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from taskyard.core.task import State
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.names import Lane
    from taskyard.stores.directory.tasks.listing import Listing

SAID = ".json"
CANCELLED = ".cancelled"
_MOST = 1 << 20  # bytes of one file


class DirectoryMissions:
    """What was said about missions, and their tasks in numbers."""

    def __init__(self, context: Context, listing: Listing) -> None:
        self._context = context
        self._disk = context.disk
        self._listing = listing
        self._folder = f"{context.root}/{layout.MISSIONS}"
        self.url = context.root

    @explains_errors
    def put(self, mission: Mission) -> Mission | None:
        """Keep what is said about a mission; if something was said before, return that."""
        self._context.know_missions()
        mission.created_at = self._context.clock.now()
        said = {"name": mission.name, "brief": mission.brief, "owner": mission.owner, "created_at": mission.created_at}
        path = self._path(mission.name, SAID)
        draft = self._write(said)
        if self._disk.publish(draft, path):
            self._sync()
            return None
        self._sync()  # the process that wrote it may have failed to
        return self.get(mission.name)

    @explains_errors
    def get(self, name: str) -> Mission | None:
        """Return what was said about this mission."""
        digest = mission_digest(name)
        return self._read(digest, self._names())

    @explains_errors
    def all(self) -> list[Mission]:
        """Return what was said about every mission."""
        names = self._names()
        digests = dict.fromkeys(name.partition(".")[0] for name in sorted(names) if name != layout.SINCE)
        return [mission for digest in digests if (mission := self._read(digest, names)) is not None]

    @explains_errors
    def cancel(self, name: str, mark: Cancelled) -> None:
        """Mark the mission as cancelled now."""
        self._context.know_missions()
        at = self._context.clock.now()
        said = {"name": name, "at": at, "reason": mark.reason, "done": mark.done, "failed": mark.failed}
        self._disk.rename(self._write(said), self._path(name, CANCELLED))
        self._sync()

    @explains_errors
    def tally(self, name: str | None = None) -> dict[str, Tally]:
        """Return the tasks of this mission, or of each, in numbers."""
        digest = None if name is None else mission_digest(name)
        tasks: dict[str, dict[str, tuple[State, str, str, Lane]]] = {}
        for place in self._listing.by_lane():
            _, folder, task, lane = place
            of = lane.mission if lane.mission is not None else self._from_before(folder, task)
            if of is not None and digest in (None, of):
                tasks.setdefault(of, {})[task[: ids.LENGTH]] = place  # where it was seen last
        if name is not None and digest is not None:
            return {name: self._counted(tasks[digest], with_end=True)} if digest in tasks else {}
        known = {mission_digest(mission.name): mission.name for mission in self.all()}
        return {
            known.get(of) or self._name_of(some.values()) or of: self._counted(some, with_end=False)
            for of, some in tasks.items()
        }

    def _counted(self, tasks: dict[str, tuple[State, str, str, Lane]], *, with_end: bool) -> Tally:
        tally = Tally()
        for id, (state, _, _, lane) in tasks.items():
            tally.count(lane.kind, state, 1, ids.created(id))
        if with_end and all(state.ended for state, *_ in tasks.values()):
            for _, folder, name, _ in tasks.values():
                try:
                    tally.ended(self._disk.changed_at(f"{folder}/{name}"))
                except FileNotFoundError:
                    continue  # retried, or pruned, a moment ago
        return tally

    def _name_of(self, tasks: Iterable[tuple[State, str, str, Lane]]) -> str | None:
        """Return the mission's name, out of the first file of its tasks that can be read."""
        names = (self._name_in(folder, name) for _, folder, name, _ in tasks)
        return next(filter(None, names), None)

    def _from_before(self, folder: str, name: str) -> str | None:
        """Return the mission's digest of a task whose lane cannot show it; None if it has no mission."""
        if not self._context.is_before_missions(name[: ids.LENGTH]):
            return None
        mission = self._name_in(folder, name)
        return None if mission is None else mission_digest(mission)

    def _name_in(self, folder: str, name: str) -> str | None:
        """Return the mission that the task's file names; None if it cannot be read."""
        try:
            mission = task_file.decode(self._context.edits.read(folder, name)).get("mission")
        except Invalid:
            return None
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return None
        return mission if isinstance(mission, str) else None

    def _read(self, digest: str, names: set[str]) -> Mission | None:
        said = self._content(f"{digest}{SAID}") if f"{digest}{SAID}" in names else None
        mark = self._content(f"{digest}{CANCELLED}") if f"{digest}{CANCELLED}" in names else None
        name = (said or mark or {}).get("name")
        if not isinstance(name, str):
            return None
        given = said or {}
        cancelled = None if mark is None else Cancelled(mark["at"], mark["reason"], mark["done"], mark["failed"])
        return Mission(name, given.get("brief"), given.get("owner"), given.get("created_at"), cancelled)

    def _content(self, name: str) -> dict[str, Any] | None:
        """Return what the file says; None if that is not what Taskyard writes there, which fsck reports."""
        return parsed(self._disk.read_at(f"{self._folder}/{name}", 0, _MOST), name)

    def _names(self) -> set[str]:
        return set(self._context.locator.names(self._folder))

    def _path(self, name: str, suffix: str) -> str:
        return f"{self._folder}/{mission_digest(name)}{suffix}"

    def _write(self, said: dict[str, Any]) -> str:
        self._context.mover.ensure(self._folder)
        draft = self._context.draft()
        self._disk.create(draft, f"{compact(said)}\n".encode(), self._context.durable)
        return draft

    def _sync(self) -> None:
        if self._context.durable:
            self._disk.sync(self._folder)


def parsed(content: bytes, name: str) -> dict[str, Any] | None:
    """Return what a file in missions/ says; None if it is none that Taskyard wrote under this name."""
    digest, dot, suffix = name.partition(".")
    try:
        said = json.loads(content)
    except ValueError:
        return None
    forms = _FORMS.get(dot + suffix)
    if forms is None or not isinstance(said, dict) or said.keys() != forms.keys():
        return None
    if not all(isinstance(said[field], form) for field, form in forms.items()):
        return None
    return said if mission_digest(said["name"]) == digest else None


def copied(files: Iterable[tuple[str, bytes]]) -> list[dict[str, Any]]:
    """Return what these files say about missions, in the form in which it is copied between stores."""
    missions: dict[str, dict[str, Any]] = {}
    for name, content in files:
        said = parsed(content, name)
        if said is not None:
            if "at" in said:
                said["cancelled_at"] = said.pop("at")
            missions.setdefault(said["name"], dict.fromkeys(MISSION_FIELDS)).update(said)
    return [missions[name] for name in sorted(missions)]


def written(mission: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the contents of the files for a mission that is copied from another store."""
    fields = {**mission, "at": mission["cancelled_at"]}
    for suffix, when in ((SAID, "created_at"), (CANCELLED, "at")):
        if fields[when] is not None:
            content = {name: fields[name] for name in _FORMS[suffix]}
            yield f"{mission_digest(mission['name'])}{suffix}", f"{compact(content)}\n".encode()


_TEXT = (str, type(None))
_FORMS: dict[str, dict[str, tuple[type, ...]]] = {
    SAID: {"name": (str,), "brief": _TEXT, "owner": _TEXT, "created_at": (int,)},
    CANCELLED: {"name": (str,), "at": (int,), "reason": _TEXT, "done": (int,), "failed": (int,)},
}
