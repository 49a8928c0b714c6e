"""The schedules of a yard: a folder for each, whose one token says where the schedule stands. A tick is added exactly once.

    schedules/<name>/said.json                                              what was said about it, never changed
    schedules/<name>/<identity>.<number>.<due>.<last tick>.<last task>.<on|off|add>    the token
    schedules/<name>/<id>.json                                              a task that is about to be added

The folder appears, and goes, by one rename. Each move of the token is a rename to a name with the next number.

A tick writes its task beside the token, then has the token select it by its id (`add`), then puts it in its place. The file of
a task that was not selected is never put anywhere, and that of one that was can be moved only once, by any process: so a
tick is added exactly once, also if its key was pruned meanwhile, and it is not lost with a killed process.
"""

from __future__ import annotations

from errno import EEXIST, ENOTEMPTY

from taskyard.core import ids, json_codec, words
from taskyard.core.draft import compact
from taskyard.core.schedule import FIELDS, Schedule
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import SUFFIX, UNREADABLE
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.task import Task
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.store import DirectoryStore

SAID = "said.json"
ON, OFF, ADD = "on", "off", "add"
_STATES = (ON, OFF, ADD)
_NONE = "-"  # in a token: no tick yet
SAID_MOST = 2 << 20  # bytes of said.json
LOOKS = 20  # listings that may miss a token which is being renamed


class DirectorySchedules:
    """Which tasks are added again and again, and when."""

    def __init__(self, context: Context, store: DirectoryStore) -> None:
        self._context = context
        self._disk = context.disk
        self._store = store
        self._top = f"{context.root}/{layout.SCHEDULES}"
        self.url = context.root

    @explains_errors
    def put(self, schedule: Schedule) -> Schedule | None:
        """Keep a new schedule; if there is one of this name, return that."""
        context, disk = self._context, self._disk
        context.mover.ensure(self._top)
        folder = self._folder(schedule.name)
        while True:
            draft = context.draft()
            disk.mkdir(draft)
            disk.create(f"{draft}/{SAID}", content(schedule), context.durable)
            disk.create(f"{draft}/{token(schedule)}", b"", sync=False)
            if context.durable:
                disk.sync(draft)
            try:
                context.links.keep(folder)
                disk.rename(draft, folder)
            except OSError as error:
                empty_out(disk, draft)
                context.mover.drop(draft)
                if error.errno not in (EEXIST, ENOTEMPTY):
                    raise
                known = self._read(folder)
                if known is not None:
                    return known[0]
                context.mover.drop(folder)  # what was there is being removed
                continue
            if context.durable:
                disk.sync(self._top)
            return None

    @explains_errors
    def get(self, name: str) -> Schedule | None:
        """Return the schedule of this name."""
        found = self._read(self._folder(name))
        return None if found is None else found[0]

    @explains_errors
    def all(self, *, mend: bool = False) -> list[Schedule]:
        """Return every schedule; with `mend`, finish what killed processes have left of a tick on the way."""
        found = []
        for name in self._context.locator.names(self._top):
            folder = f"{self._top}/{name}"
            read = self._read(folder)
            if read is None:
                continue
            try:
                if mend:
                    self._tidy(folder, *read)
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
            found.append(read[0])
        return found

    @explains_errors
    def move(self, at: Schedule, to: Schedule) -> bool:
        """Move the schedule if it still stands there. A tick that its adder has not finished is finished first."""
        folder = self._folder(at.name)
        if self._move(folder, token(at), to, OFF if to.paused else ON):
            return True
        read = self._read(folder)
        if read is not None and read[1] == ADD:
            self._tidy(folder, *read)
        return False

    @explains_errors
    def tick(self, at: Schedule, to: Schedule, draft: Draft, by: str) -> Task | None:
        """Write the task, have the token select it, put it in its place; any process finishes what this one begins."""
        folder, store = self._folder(at.name), self._store
        with self._context.adding:
            self._context.mark_features([draft])
            store.adder.reserve([draft])
            new = store.adder.place(draft)
            new.written = f"{folder}/{new.id}{SUFFIX}"
            store.adder.index([new], self._context.durable)
            try:
                self._disk.create(new.written, task_file.encode(new.id, draft, new.due), self._context.durable)
            except FileNotFoundError:
                return None  # the schedule was removed
            to.last_task = new.id
            if not self._move(folder, token(at), to, ADD):
                self._disk.remove(new.written)
                return None
            self._finish(folder, to, by)
        return new.task(store.policy) if to.last_task == new.id else store.reader.known(to.last_task)

    @explains_errors
    def remove(self, at: Schedule) -> bool:
        """Remove the schedule if it is still the same one: its folder goes by one rename, and is emptied then."""
        folder = self._folder(at.name)
        known = self._read(folder)
        if known is None or known[0].identity != at.identity:
            return False
        draft = self._context.draft()
        try:
            self._disk.rename(folder, draft)
        except FileNotFoundError:
            return False
        if self._context.durable:
            self._disk.sync(self._top)
        empty_out(self._disk, draft)
        self._context.mover.drop(draft)
        return True

    def _move(self, folder: str, name: str, to: Schedule, state: str) -> bool:
        """Give the token the name of the new standing; the process that comes second finds it under no name that it knows."""
        if not self._context.mover.move(f"{folder}/{name}", folder, token(to, state)):
            return False
        if self._context.durable:
            self._disk.sync(folder)  # a tick that came back after a power cut would be added again
        return True

    def _finish(self, folder: str, selected: Schedule, by: str) -> None:
        """Put the task that the token selects in its place, and have the token go on; any process may do it, at any time."""
        id = selected.last_task or ""
        path = f"{folder}/{id}{SUFFIX}"
        try:
            written = self._disk.read(path)
        except FileNotFoundError:
            pass  # another process has put it in its place
        else:
            selected.last_task = self._placed(id, path, written, by)
        after = selected.moved()
        if self._move(folder, token(selected, ADD, last_task=id), after, OFF if after.paused else ON):
            selected.number = after.number

    def _placed(self, id: str, path: str, written: bytes, by: str) -> str:
        """Put this task in its place under its key; return the id of the task that has the key."""
        adder = self._store.adder
        key = task_file.decode(written)["key"]
        try:
            taken = adder.keys.take(key, path, sync=self._context.durable)
        except FileNotFoundError:
            return id
        if not taken and not adder.keys.is_of(key, id):
            holder = adder.keys.find(key)
            if holder is not None:  # a person has added a task under the tick's own key: that stands for it
                self._disk.remove(path)
                return holder
        adder.help_in(id, written, path, by)
        return id

    def _tidy(self, folder: str, schedule: Schedule, state: str, names: Iterable[str]) -> None:
        """Finish a tick that a killed process has left, and remove tasks that no token has selected."""
        if state == ADD:
            with self._context.adding:
                self._finish(folder, schedule, f"schedule:{schedule.name}")
            return
        from taskyard.stores.directory.recovery.segments import PATIENCE

        now, left = self._context.clock.now(), []
        for name in names:
            if ids.is_id(name.removesuffix(SUFFIX)):
                try:
                    if now - self._disk.changed_at(f"{folder}/{name}") > PATIENCE:
                        left.append(name)
                except FileNotFoundError:
                    continue
        # First a new number: a slow process that has written one of these can no longer select it.
        if left and self._move(folder, token(schedule), schedule.moved(), state):
            schedule.number += 1
            for name in left:
                self._disk.remove(f"{folder}/{name}")

    def _folder(self, name: str) -> str:
        return f"{self._top}/{words.encoded(name)}"

    def _read(self, folder: str) -> tuple[Schedule, str, list[str]] | None:
        """Return the schedule in this folder, the state of its token, and the names there; None if there is no schedule."""
        for _ in range(LOOKS):
            names = self._context.locator.names(folder)
            if SAID not in names:
                return None
            found = parsed(self._disk.read_at(f"{folder}/{SAID}", 0, SAID_MOST), names, folder.rpartition("/")[2])
            if found is not None:
                return (*found, names)
        return None


def token(at: Schedule, state: str | None = None, *, last_task: str | None = None) -> str:
    """Return the name of the token of a schedule that stands there."""
    last_at = _NONE if at.last_at is None else at.last_at
    state = state or (OFF if at.paused else ON)
    return f"{at.identity}.{at.number}.{at.due:013d}.{last_at}.{last_task or at.last_task or _NONE}.{state}"


def content(schedule: Schedule) -> bytes:
    """Return what is written into `said.json`."""
    fields = {"name": schedule.name, "identity": schedule.identity, "created_at": schedule.created_at, **schedule.said}
    return f"{compact(fields)}\n".encode()


def parsed(written: bytes, names: Iterable[str], folder: str) -> tuple[Schedule, str] | None:
    """Return the schedule that these files make, and the state of its token; None if they make none.

    A listing may show a token under two names: the one with the higher number is newer.
    """
    try:
        said = json_codec.decode(written)
        name, identity, created_at = said.pop("name"), said.pop("identity"), said.pop("created_at")
        if sorted(said) != sorted(FIELDS) or words.encoded(name) != folder or not isinstance(created_at, int):
            return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    tokens = [parts for each in names if (parts := _parts(each)) is not None and parts[0] == identity]
    if not tokens:
        return None
    _, number, due, last_at, last_task, state = max(tokens, key=lambda parts: int(parts[1]))
    schedule = Schedule(
        name,
        identity,
        said,
        int(due),
        created_at,
        int(number),
        state == OFF,
        None if last_at == _NONE else int(last_at),
        None if last_task == _NONE else last_task,
    )
    return schedule, state


def _parts(name: str) -> list[str] | None:
    """Return the parts of a token's name; None if it is none."""
    parts = name.split(".")
    if len(parts) != 6 or parts[5] not in _STATES:
        return None
    identity, number, due, last_at, last_task, _ = parts
    numbers = (number, due) if last_at == _NONE else (number, due, last_at)
    legal = (
        len(identity) == 8
        and ids.is_word(identity)
        and all(each.isascii() and each.isdigit() and len(each) <= 13 for each in numbers)
        and len(due) == 13
        and (last_task == _NONE or ids.is_id(last_task))
    )
    return parts if legal else None


def is_legal(name: str) -> bool:
    """Whether a file in the folder of a schedule can have this name."""
    return name == SAID or _parts(name) is not None or ids.is_id(name.removesuffix(SUFFIX))


def empty_out(disk: Disk, folder: str) -> None:
    """Remove the files of a schedule from a folder that has left its place, or never was in it."""
    for name in sorted(disk.listdir(folder), key=SAID.__eq__):
        if is_legal(name):
            disk.remove(f"{folder}/{name}")


def copied(schedules: Iterable[Schedule]) -> list[dict[str, Any]]:
    """Return schedules in the form in which they are copied between stores."""
    from taskyard.core.transfer import SCHEDULE_FIELDS

    listed = sorted(schedules, key=lambda each: each.name)
    return [{field: getattr(each, field) for field in SCHEDULE_FIELDS} for each in listed]
