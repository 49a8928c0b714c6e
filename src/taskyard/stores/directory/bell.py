"""The bell: whoever waits sleeps until the kernel tells of a change, and where it cannot tell, looks ever less often.

Every move is logged after it is made, so one watch on `events/` hears of all that any process on this kernel does; the
other few hear of what is no move. What rings is only ever a hint: whoever wakes looks at the yard itself.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time

from taskyard import forks, ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.store import Heard
    from taskyard.stores.directory.disk import Disk

_MODIFIED, _WRITTEN, _MOVED_OUT, _MOVED_IN, _MADE, _REMOVED = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
_ITSELF = 0x400 | 0x800  # the folder was removed, or moved
_FOLDER = 0x40000000  # it happened to a folder
_GONE = _ITSELF | 0x2000 | 0x8000  # also: unmounted, or not watched any more
WATCHED = {
    "events": _MODIFIED | _MADE | _MOVED_IN,
    "todo": _WRITTEN | _MADE | _MOVED_IN,  # the drop box
    "paused": _MADE | _REMOVED | _MOVED_IN | _MOVED_OUT,
    "workers": _WRITTEN | _REMOVED,  # a living worker has its file open for writing: the kernel closes it at its death
}
_HEADER = 16  # bytes of an inotify event before its name

_NAP_FIRST, _NAP_GROWS = 0.005, 1.5
_NAP_MOST, _NAP_MOST_NETWORK = 1.0, 2.0  # seconds between two looks where nobody rings
_NAPS_THAT_GROW = 20


class Bell:
    """One for each open store, shared by its threads: one of those that wait listens, and tells the others."""

    def __init__(self, disk: Disk, root: str, local: bool) -> None:
        self._disk = disk
        self._root = root
        self._local = local
        self._rings = 0
        self._watch: int | None = None
        self._pipe: tuple[int, int] | None = None
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._turn = threading.Condition()  # its lock may be taken twice: a signal may come while it is held
        self._listening = False
        self._waiting = 0
        self._closing = False

    def renew(self) -> None:
        """A forked child lets go of its parent's bell: what it read there, the parent would not hear."""
        self._begin()
        self._let_go()

    def listen(self) -> Heard:
        """What was heard so far; all that happens from here on will end a wait that is given this."""
        with self._turn:
            if self._watch is None:
                self._arm()
            return self._rings, 0

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Until the bell has rung since then, or for so long; without a watch, until it is time for another look."""
        rings, naps = heard
        with self._turn:
            if self._pipe is None or (self._watch is None and naps > _NAPS_THAT_GROW):
                self._arm()  # at first, after a fork or a close; or what could not be had may be had by now
            blind = self._watch is None
            nap = min(seconds, self._nap(naps)) if blind else seconds
            end = time.monotonic() + nap
            self._waiting += 1
            try:
                while self._rings == rings and (left := end - time.monotonic()) > 0:
                    if self._listening:
                        self._turn.wait(left)
                    else:
                        self._hear(left)
            finally:
                self._waiting -= 1
                if self._closing and not self._waiting:
                    self._let_go()
            if self._rings != rings:
                return self._rings, 0
            return (rings, naps + 1) if blind and nap < seconds else heard

    def wake(self) -> None:
        """End every wait now; also from a signal handler, which may come while this thread itself waits."""
        with self._turn:
            if self._pipe is not None:
                try:
                    os.write(self._pipe[1], b"!")
                except BlockingIOError:
                    return  # full of the same

    def close(self) -> None:
        """Let go of the descriptors, once those who wait have been told; a later wait begins anew."""
        with self._turn:
            if self._waiting:
                self._closing = True
                self.wake()
            else:
                self._let_go()

    def __del__(self) -> None:
        self._let_go()

    def _nap(self, naps: int) -> float:
        """Seconds until the next look, a little less at random, so that pollers drift apart."""
        most = _NAP_MOST if self._local else _NAP_MOST_NETWORK
        nap = min(_NAP_FIRST * _NAP_GROWS ** min(naps, _NAPS_THAT_GROW), most)
        return nap * (0.75 + ids.chance(8) / 1024)

    def _arm(self) -> None:
        """Begin to listen. Whoever looked before must look again, so this rings."""
        if self._pipe is None:
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[0], False)
            os.set_blocking(self._pipe[1], False)
            self._rings += 1
        if self._local and not self._listening:
            try:
                self._watch = self._disk.watcher()
                self._add_watches()
                self._rings += 1
            except OSError:
                # No such thing on this system, or too many of them (128 for each user, by default): look now and then.
                self._unwatch()

    def _add_watches(self) -> None:
        assert self._watch is not None
        self._disk.watch(self._watch, self._root, _MADE | _MOVED_IN | _ITSELF)  # a folder that is not there yet
        for folder, happenings in WATCHED.items():
            try:
                self._disk.watch(self._watch, f"{self._root}/{folder}", happenings | _ITSELF)
            except FileNotFoundError:
                if folder == "events":
                    raise

    def _hear(self, seconds: float) -> None:
        """Wait for the kernel on behalf of all who wait, and tell them."""
        assert self._pipe is not None
        listener = select.poll()
        for descriptor in (self._pipe[0], self._watch):
            if descriptor is not None:
                listener.register(descriptor, select.POLLIN)
        self._listening = True
        self._turn.release()
        ready: list[tuple[int, int]] = []
        try:
            ready = listener.poll(seconds * 1000)
        finally:
            self._turn.acquire()
            self._listening = False
            if ready:
                self._rings += 1
                self._drain({descriptor for descriptor, _ in ready})
            self._turn.notify_all()  # of a ring; or somebody else has to listen now

    def _drain(self, ready: set[int]) -> None:
        for descriptor in ready:
            try:
                told = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                continue
            if descriptor == self._watch:
                self._heed(told)

    def _heed(self, told: bytes) -> None:
        """A folder that is gone or new changes what has to be watched; anything else need not be told apart."""
        at = all_masks = 0
        while at < len(told):
            all_masks |= int.from_bytes(told[at + 4 : at + 8], sys.byteorder)
            at += _HEADER + int.from_bytes(told[at + 12 : at + 16], sys.byteorder)
        if all_masks & _GONE:
            self._unwatch()
            self._arm()
        elif all_masks & _FOLDER and self._watch is not None:
            try:
                self._add_watches()
            except OSError:
                self._unwatch()

    def _unwatch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            self._disk.close(watch)

    def _let_go(self) -> None:
        self._closing = False
        self._unwatch()
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            self._rings += 1
            os.close(pipe[0])
            os.close(pipe[1])
