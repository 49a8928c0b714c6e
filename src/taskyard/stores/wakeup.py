"""The bell: whoever waits sleeps until something tells of a change, and where nothing can, looks ever less often.

One for each open store, shared by its threads: one of those that wait listens, and tells the others. Each store has an
ear of its own that hears what others do. What rings is only ever a hint: whoever wakes looks at the yard itself.
"""

from __future__ import annotations

import os
import select
import threading
import time

from taskyard.core import forks, ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from taskyard.core.store_records import Heard
else:
    Protocol = object

_NAP_FIRST, _NAP_GROWS = 0.005, 1.5  # seconds between two looks where nobody rings
_NAPS_THAT_GROW = 20


class Ear(Protocol):
    """What hears of changes, if it can; asked by one thread at a time."""

    longest_nap: float
    """Seconds between two looks of somebody who has waited for long, where nothing can be heard."""

    def open(self) -> bool:
        """Begin to hear, if that can be; whether it is a new beginning, so that whoever looked before must look again."""

    def mark(self) -> bool:
        """Have all that happens from here on be heard, or found by `stirred`; whether others who look must look again."""

    def stirred(self) -> bool:
        """Just before a sleep: whether something may have happened that it could not hear."""

    def wary(self) -> float:
        """Seconds after which that is to be asked once more."""

    def rise(self) -> None:
        """Nobody sleeps any more."""

    def descriptor(self) -> int | None:
        """What is readable when there is something to hear; None where nothing can be heard."""

    def trusted(self) -> float:
        """Seconds of silence that it can be believed for."""

    def heed(self) -> bool:
        """Take what there is to hear; whether it is worth a look."""

    def close(self) -> None:
        """Let go of what it hears by."""

    def abandon(self) -> None:
        """The same in a forked child: what it read there, the parent would not hear."""


class Wakeup:
    """Sleeps for all threads of a store."""

    def __init__(self, ear: Ear) -> None:
        self.ear = ear
        self._rings = 0
        self._pipe: tuple[int, int] | None = None
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._turn = threading.Condition()  # its lock may be taken twice: a signal may come while it is held
        self._listening = False
        self._waiting = 0
        self._closing = False

    def renew(self) -> None:
        """A forked child lets go of its parent's bell."""
        self.ear.abandon()
        self._begin()
        self._let_go()

    def listen(self) -> Heard:
        """What was heard so far; all that happens from here on will end a wait that is given this."""
        with self._turn:
            self._open()
            if self.ear.mark():
                self._rings += 1
            return self._rings, 0

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Until the bell has rung since then, or for so long; where nothing can be heard, until it is time to look."""
        rings, naps = heard
        with self._turn:
            self._open()
            trusted = self._nap(naps) if self.ear.descriptor() is None else self.ear.trusted()
            nap = min(seconds, trusted)
            end = time.monotonic() + nap
            self._waiting += 1
            try:
                while self._rings == rings and (left := end - time.monotonic()) > 0:
                    if self._listening:
                        self._turn.wait(left)
                    elif self.ear.stirred():
                        self._rings += 1
                        self._turn.notify_all()
                    else:
                        self._hear(min(left, self.ear.wary()))
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._leave()
            if self._rings != rings:
                return self._rings, 0
            return (rings, naps + 1) if nap < seconds else heard

    def _leave(self) -> None:
        """The last of those who waited."""
        if self._closing:
            self._let_go()
        else:
            self.ear.rise()

    def wake(self) -> None:
        """End every wait now; also from a signal handler, which may come while this thread itself waits."""
        with self._turn:
            if self._pipe is not None:
                try:
                    os.write(self._pipe[1], b"!")
                except BlockingIOError:
                    return  # full of the same

    def close(self) -> None:
        """Let go of everything, once those who wait have been told; a later wait begins anew."""
        with self._turn:
            if self._waiting:
                self._closing = True
                self.wake()
            else:
                self._let_go()

    def rest(self) -> None:
        """Stop listening, if nobody waits."""
        with self._turn:
            if not self._waiting:
                self.ear.close()

    def __del__(self) -> None:
        self._let_go()

    def _nap(self, naps: int) -> float:
        """Seconds until the next look, a little less at random, so that those who look drift apart."""
        nap = min(_NAP_FIRST * _NAP_GROWS ** min(naps, _NAPS_THAT_GROW), self.ear.longest_nap)
        return nap * (0.75 + ids.chance(8) / 1024)

    def _open(self) -> None:
        """Begin to listen: at first, after a fork or a close; or what could not be had may be had by now."""
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._rings += 1
        if not self._listening and self.ear.open():
            self._rings += 1

    def _hear(self, seconds: float) -> None:
        """Listen on behalf of all who wait, with the lock let go, and tell them."""
        assert self._pipe is not None  # made by whoever waits, before
        listener = select.poll()
        pipe, line = self._pipe[0], self.ear.descriptor()
        listener.register(pipe, select.POLLIN)
        if line is not None:
            listener.register(line, select.POLLIN)
        self._listening = True
        self._turn.release()
        ready: list[tuple[int, int]] = []
        try:
            ready = listener.poll(seconds * 1000)
        finally:
            self._turn.acquire()
            self._listening = False
            for descriptor, _ in ready:
                if descriptor == pipe or self.ear.heed():
                    self._rings += 1
                if descriptor == pipe:
                    self._drain(pipe)
            self._turn.notify_all()  # of a ring; or somebody else has to listen now

    @staticmethod
    def _drain(pipe: int) -> None:
        try:
            os.read(pipe, 4096)
        except BlockingIOError:
            pass  # somebody else has read it

    def _let_go(self) -> None:
        self._closing = False
        self.ear.close()
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            self._rings += 1
            for end in pipe:
                os.close(end)
