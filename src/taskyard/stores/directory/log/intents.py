"""What a process is about to do, written where its death cannot reach it: `writers/<tag>`, one small file a process.

Before every move the process puts the move's event there, and the kernel keeps it when the process is killed. Each thread
has a slot of its own in the file, because several make moves at once. The file is locked for as long as the process
lives. So whoever finds it unlocked knows that its writer is dead, and the events that it may have failed to log.

A shell cannot hold a lock. It keeps its file, `writers/<name>.sh`, open from before a move until its event is logged and
the first line is blank again: what stands there while nobody has the file open is of one that is dead. What it has
found out about the yard's place and time it leaves for the next in `writers/<name>.look`.
"""

from __future__ import annotations

import os
import threading
from threading import get_ident

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
ROOM = SIZE - 256  # for the event; behind the first slot's stand the pages of the log that the process writes to
UNSEEN = (
    60_000  # milliseconds in which another machine writes out what it has in its cache: by default 35 s at the most
)
_SLOTS = 256  # threads that have one of their own: 4 MiB; what is beyond that shares the last


def is_event(value: Any) -> bool:
    """Whether this is an event, by its form: anybody may write into the log's files."""
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
    """Whether this is of a claim's own ending, which keeps the claim's number."""
    return bool(event["event"] == "done" or (event["event"] == "failed" and event.get("final")))


def moves(event: dict[str, Any]) -> set[Move]:
    """The moves that an event, or the note of an add, tells of: which task, to which number, and whether it ends a claim."""
    if "tasks" in event:
        return {(id, 0, False) for id in event["tasks"]}
    return {(event["task"], event["fence"], is_ending(event))}


def _intent(content: bytes, slot: int, noted: str | None) -> dict[str, Any] | None:
    """The event in the slot that begins here; with the time of the note, where that is given."""
    try:
        event = json_text.read(content[slot : slot + SIZE].split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return None
    if noted is not None and isinstance(event, dict):
        event["at"] = noted
    return event if is_event(event) or _is_batch(event) else None


class Writer:
    """The file of the process itself."""

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
        self._opening = threading.Lock()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Let go of the parent's file in a forked child: with the child's copy open, a dead parent would seem to live."""
        shared, self._shared, self.memory = self._shared, None, None
        self._opening = threading.Lock()
        self.slots = {}
        if shared is not None:
            shared.let_go()

    def intend(self, line: bytes) -> None:
        """Note the event of a move that is about to be made; `LogWriter.line` does the same without the call."""
        if self.forks != forks.count:
            self.open()
        shared = self._shared
        if shared is not None:
            try:
                slot = self.slots.get(get_ident())
                shared.put(line if len(line) <= ROOM else b"\n", self._slot(shared) if slot is None else slot)
            except OSError:
                return  # the disk is full; the move itself will say so

    def _slot(self, shared: Shared) -> int:
        """A slot for this thread: one of a thread that has ended, or a new one."""
        with self._opening:
            living = {thread.ident for thread in threading.enumerate()}
            taken = {slot for thread, slot in self.slots.items() if thread in living}
            slot = next((slot for slot in range(0, SIZE * _SLOTS, SIZE) if slot not in taken), SIZE * (_SLOTS - 1))
            shared.grow(slot + SIZE)
            self.memory = shared.memory
            self.slots = {thread: slot for thread, slot in self.slots.items() if thread in living}
            self.slots[get_ident()] = slot
            return slot

    def hold(self, *pages: str) -> None:
        """Note which pages of the log this process may write to: no janitor takes them away as long as it lives."""
        self.open()
        shared = self._shared
        if shared is not None:
            try:
                shared.put(f"{' '.join(pages)}\n".encode(), ROOM)
            except OSError:
                return  # what is written to a page that is taken away is lost, and no more

    def open(self) -> str:
        """Make sure that this process has its file, and give the tag that names it."""
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

    def stay(self, page: str) -> None:
        """Make the file anew where another machine has taken a long silence for death, and removed it."""
        if self._local or self._shared is None or self.forks != forks.count:
            return
        if self.tag in self._disk.listdir(self._folder):
            return
        with self._opening:
            gone = self._shared
            self._begin(self.tag)
        self.hold(page)
        if gone is not None:
            gone.close()

    def close(self) -> None:
        """Everything is logged; the file is not needed any more."""
        shared, self._shared, self.memory = self._shared, None, None
        if shared is not None and self.forks == forks.count:
            try:
                shared.close()
            finally:
                self._disk.remove(f"{self._folder}/{self.tag}")
        self.forks = -1


class Writers:
    """The files of all processes, for whoever cleans up after the dead."""

    def __init__(self, disk: Disk, folder: str, local: bool, kernel: str) -> None:
        self._disk = disk
        self._folder = folder
        self._local = local
        self._kernel = kernel

    def is_alive(self, tag: str, now: int) -> bool:
        """Whether the process of this tag lives, as far as can be told from here."""
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
            return True  # nothing of ours, or nothing that we may look at, or no locks here: left alone

    def _is_of_this_kernel(self, tag: str) -> bool:
        """Whether the process runs here, by the page that it writes to: locks within one kernel tell the truth on NFS too."""
        return any(f".{self._kernel}-{tag}." in page for page in self._pages(tag))

    def is_known(self, tag: str) -> bool:
        """Whether the process of this tag has left a file to judge it by."""
        return self._local and self._disk.exists(f"{self._folder}/{tag}")

    def dead(self, own: str, now: int, patience: int) -> list[str]:
        """The tags of processes that are gone."""
        tags = [tag for tag in self._disk.listdir(self._folder) if tag != own and "-" in tag]
        tags = [tag for tag in tags if not tag.endswith((SHELL, LOOK))]
        return [tag for tag in tags if not self._is_young(tag, now, patience) and not self.is_alive(tag, now)]

    def _is_young(self, tag: str, now: int, patience: int) -> bool:
        """Whether this is a file that is only just being made, and is not locked yet."""
        try:
            return tag.endswith(".new") and now - self._disk.changed_at(f"{self._folder}/{tag}") < patience
        except FileNotFoundError:
            return True

    def shells(self) -> list[str]:
        """The tags of shells, the living and the dead."""
        return [tag for tag in self._disk.listdir(self._folder) if tag.endswith((SHELL, LOOK))]

    def is_left(self, tag: str, noted: bool, now: int, patience: int) -> bool:
        """Whether a shell that had noted something has died since, or this file of a shell is of no use any more."""
        path = f"{self._folder}/{tag}"
        try:
            if self._local and noted and not self._disk.is_written_to(path):
                return True
            return now - self._disk.changed_at(path) > patience
        except OSError:
            return False  # another janitor was quicker; or it is not for us to read

    def take(self, tag: str) -> int | None:
        """Hold the file of a dead process, so that one janitor alone logs for it; None if another holds it."""
        return self._disk.lock(f"{self._folder}/{tag}")

    def intents(self, tag: str) -> list[dict[str, Any]]:
        """The events that the threads of this process noted last; a shell leaves the time out, which is that of its note."""
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
        """Those of these moves that others, who live, have noted: they may have made them and not logged them yet."""
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
        """The pages of the log that any process may be writing to."""
        pages: set[str] = set()
        for tag in self._disk.listdir(self._folder):
            pages.update(self._pages(tag))
        return pages

    def _pages(self, tag: str) -> list[str]:
        """The pages of the log that this process has noted."""
        note = self._disk.read_at(f"{self._folder}/{tag}", ROOM, SIZE - ROOM)
        return note.split(b"\n", 1)[0].decode("ascii", "replace").split()

    def forget(self, tag: str) -> None:
        """All that this process left is put right."""
        self._disk.remove(f"{self._folder}/{tag}")
