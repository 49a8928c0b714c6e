"""What a process is about to do, written where its death cannot reach it: `writers/<tag>`, one small file per process.

Before every move the process puts the move's event there, and the kernel keeps it when the process is killed. Each
thread has a slot of its own in the file, because several make moves at once. The file is locked for as long as the
process lives. So an unlocked file means that its writer is dead, and shows the events that it may have failed to log.

A shell cannot hold a lock. It opens its file, `writers/<name>.sh`, before a move. It closes the file when the event is
logged and the first line is blank again. So an event in a file that no process has open belongs to a dead shell. A
shell leaves what it has found out about the yard's filesystem and clock for the next one in `writers/<name>.look`.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident

from taskyard.core import forks, ids
from taskyard.core.times import is_moment, rfc3339
from taskyard.stores.directory.dropbox import json_text
from taskyard.stores.directory.names import NO_FILE, UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap
    from typing import Any

    from taskyard.stores.directory.filesystem.disk import Disk, Shared

    Move = tuple[str, int, bool]

SIZE = 16_384  # bytes of a slot
SHELL, LOOK = ".sh", ".look"
ROOM = SIZE - 256  # for the event; the rest of the first slot names the log pages that the process writes to
# Milliseconds until another machine has written out its cache: by default 35 s at the most.
UNSEEN = 60_000
_SLOTS = 256  # threads with a slot of their own: 4 MiB; the others share the last one


def is_event(value: Any) -> bool:
    """Whether this has the form of an event: any program may write into the log's files."""
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(name), str) for name in ("event", "task", "kind"))
        and is_moment(value.get("at"))
        and type(value.get("fence")) is int
        and all(isinstance(value.get(name), str | None) for name in ("worker", "by"))
    )


def _is_batch(value: Any) -> bool:
    """Whether this is the note of an add: several tasks, by their ids."""
    return (
        isinstance(value, dict)
        and value.get("event") == "added"
        and isinstance(value.get("by"), str)
        and isinstance(value.get("tasks"), list)
        and all(isinstance(id, str) and ids.is_id(id) for id in value["tasks"])
    )


def is_ending(event: dict[str, Any]) -> bool:
    """Whether this event is a claim's own ending, which keeps the claim's fence."""
    return bool(event["event"] == "done" or (event["event"] == "failed" and event.get("final")))


def moves(event: dict[str, Any]) -> set[Move]:
    """Return the moves of an event, or of the note of an add: task, new fence, and whether it ends a claim."""
    if "tasks" in event:
        return {(id, 0, False) for id in event["tasks"]}
    return {(event["task"], event["fence"], is_ending(event))}


def _intent(content: bytes, slot: int, noted: str | None) -> dict[str, Any] | None:
    """Return the event in the slot that begins here; with `noted` as its time, if that is given."""
    try:
        event = json_text.read(content[slot : slot + SIZE].split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return None
    if noted is not None and isinstance(event, dict):
        event["at"] = noted
    return event if is_event(event) or _is_batch(event) else None


def _living() -> set[int | None]:
    """Return the numbers of all threads; only a process with several comes here, and pays for the import."""
    import threading

    return {thread.ident for thread in threading.enumerate()}


class Writer:
    """The file of this process."""

    def __init__(self, disk: Disk, folder: str, local: bool, mapped: bool) -> None:
        self._disk = disk
        self._folder = folder
        self._local = local
        self._mapped = mapped
        self._shared: Shared | None = None
        self.memory: mmap | None = None
        self.slots: dict[int, int] = {}
        """Where the slot of each thread begins, by the thread's number."""
        self.forks = -1
        self.tag = ""
        self._opening = allocate_lock()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Close the parent's file in a forked child: with the child's copy open, a dead parent would seem to live."""
        shared, self._shared, self.memory = self._shared, None, None
        self._opening = allocate_lock()
        self.slots = {}
        if shared is not None:
            shared.close_copy()

    def intend(self, line: bytes) -> None:
        """Note the event of a move before it is made; `LogWriter.line` does the same without the call."""
        if self.forks != forks.count:
            self.open()
        shared = self._shared
        if shared is not None:
            try:
                slot = self.slots.get(get_ident())
                shared.put(line if len(line) <= ROOM else b"\n", self._slot(shared) if slot is None else slot)
            except OSError:
                return  # the disk is full; the move itself will raise

    def _slot(self, shared: Shared) -> int:
        """Return a slot for this thread: that of a thread that has ended, or a new one."""
        with self._opening:
            living = _living() if self.slots else set()
            taken = {slot for thread, slot in self.slots.items() if thread in living}
            slot = next((slot for slot in range(0, SIZE * _SLOTS, SIZE) if slot not in taken), SIZE * (_SLOTS - 1))
            shared.grow(slot + SIZE)
            self.memory = shared.memory
            self.slots = {thread: slot for thread, slot in self.slots.items() if thread in living}
            self.slots[get_ident()] = slot
            return slot

    def note_pages(self, *pages: str) -> None:
        """Note which log pages this process may write to: no janitor removes them while it lives."""
        self.open()
        shared = self._shared
        if shared is not None:
            try:
                shared.put(f"{' '.join(pages)}\n".encode(), ROOM)
            except OSError:
                return  # a page may be removed, and lines with it; no more than that

    def open(self) -> str:
        """Make this process's file if there is none yet, and return the tag that names it."""
        if self.forks != forks.count:
            with self._opening:
                if self.forks != forks.count:
                    self._begin(f"{os.getpid()}-{ids.base32(ids.chance(40), 8)}")
        return self.tag

    def _begin(self, tag: str) -> None:
        """Make the file of this tag."""
        self.tag = tag
        self.slots = {}
        try:
            self._shared = self._disk.share(f"{self._folder}/{tag}", SIZE, self._mapped)
            self.memory = self._shared.memory
        except OSError:
            self._shared = self.memory = None  # the disk is full, or read-only: an event may be lost, no more
        self.forks = forks.count

    def remake(self, page: str) -> None:
        """Make the file again if another machine has taken a long silence for death, and removed it."""
        if self._local or self._shared is None or self.forks != forks.count:
            return
        if self.tag in self._disk.listdir(self._folder):
            return
        with self._opening:
            gone = self._shared
            self._begin(self.tag)
        self.note_pages(page)
        if gone is not None:
            gone.close()

    def close(self) -> None:
        """Remove the file: everything is logged."""
        shared, self._shared, self.memory = self._shared, None, None
        if shared is not None and self.forks == forks.count:
            try:
                shared.close()
            finally:
                self._disk.remove(f"{self._folder}/{self.tag}")
        self.forks = -1


class Writers:
    """The files of all processes, for the cleanup after dead ones."""

    def __init__(self, disk: Disk, folder: str, local: bool, kernel: str) -> None:
        self._disk = disk
        self._folder = folder
        self._local = local
        self._kernel = kernel

    def is_alive(self, tag: str, now: int) -> bool:
        """Whether the process of this tag lives, as far as this machine can judge."""
        path = f"{self._folder}/{tag}"
        try:
            if self._local or self._is_of_this_kernel(tag):
                return self._disk.is_locked(path)
            return now - self._disk.stamp(path) < UNSEEN
        except FileNotFoundError:
            return False
        except OSError as error:
            if self._local and error.errno not in NO_FILE:
                raise
            return True  # not our file, or not readable, or no locks here: left alone

    def _is_of_this_kernel(self, tag: str) -> bool:
        """Whether the process runs on this kernel, by its log page: locks within one kernel are right on NFS too."""
        return any(f".{self._kernel}-{tag}." in page for page in self._pages(tag))

    def is_known(self, tag: str) -> bool:
        """Whether the process of this tag has left a file to judge it by."""
        return self._local and self._disk.exists(f"{self._folder}/{tag}")

    def dead(self, own: str, now: int, patience: int) -> list[str]:
        """Return the tags of dead processes."""
        tags = [tag for tag in self._disk.listdir(self._folder) if tag != own and "-" in tag]
        tags = [tag for tag in tags if not tag.endswith((SHELL, LOOK))]
        return [tag for tag in tags if not self._is_young(tag, now, patience) and not self.is_alive(tag, now)]

    def _is_young(self, tag: str, now: int, patience: int) -> bool:
        """Whether this file is just being made, and not locked yet."""
        try:
            return tag.endswith(".new") and now - self._disk.changed_at(f"{self._folder}/{tag}") < patience
        except FileNotFoundError:
            return True

    def shells(self) -> list[str]:
        """Return the tags of shells, living and dead."""
        return [tag for tag in self._disk.listdir(self._folder) if tag.endswith((SHELL, LOOK))]

    def is_left(self, tag: str, noted: bool, now: int, patience: int) -> bool:
        """Whether a shell has died that had noted something, or its file has been of no use for `patience` milliseconds."""
        path = f"{self._folder}/{tag}"
        try:
            if self._local and noted and not self._disk.is_written_to(path):
                return True
            return now - self._disk.changed_at(path) > patience
        except OSError:
            return False  # another janitor was quicker, or it is not readable for this user

    def take(self, tag: str) -> int | None:
        """Lock the file of a dead process, so that only one janitor logs for it; None if another holds it."""
        return self._disk.lock(f"{self._folder}/{tag}")

    def intents(self, tag: str) -> list[dict[str, Any]]:
        """Return the events that the threads of this process noted last; a shell's note has no time but that of its file."""
        path = f"{self._folder}/{tag}"
        try:
            content = self._disk.read(path)
            noted = rfc3339(self._disk.changed_at(path)) if tag.endswith(SHELL) else None
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return []
        slots = 1 if noted else _SLOTS
        found = (_intent(content, slot, noted) for slot in range(0, min(len(content), slots * SIZE), SIZE))
        return [event for event in found if event is not None]

    def noted(self, wanted: set[Move], but: str, now: int, patience: int) -> set[Move]:
        """Return those of these moves that other, living processes have noted: they may have made them but not logged them."""
        found: set[Move] = set()
        for tag in self._disk.listdir(self._folder):
            intents = [] if tag == but or tag.endswith(LOOK) else self.intents(tag)
            same = {move for intent in intents for move in moves(intent)} & wanted
            if same and self._lives(tag, now, patience):
                found |= same
        return found

    def _lives(self, tag: str, now: int, patience: int) -> bool:
        return not self.is_left(tag, True, now, patience) if tag.endswith(SHELL) else self.is_alive(tag, now)

    def pages(self) -> set[str]:
        """Return the log pages that any process may be writing to."""
        pages: set[str] = set()
        for tag in self._disk.listdir(self._folder):
            pages.update(self._pages(tag))
        return pages

    def _pages(self, tag: str) -> list[str]:
        """Return the log pages that this process has noted."""
        note = self._disk.read_at(f"{self._folder}/{tag}", ROOM, SIZE - ROOM)
        return note.split(b"\n", 1)[0].decode("ascii", "replace").split()

    def forget(self, tag: str) -> None:
        """Remove the file of a process, once everything that it left is put right."""
        self._disk.remove(f"{self._folder}/{tag}")
