"""Lets threads wait for changes: woken by a source of changes, or, where there is none, polling ever less often.

One for each open store, shared by its threads: one of the waiting threads listens, and wakes the others. Each store has
its own source, which reports what other processes do. A wakeup is only a hint: the woken thread looks at the yard
itself.
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

_FIRST_PAUSE, _PAUSE_GROWS = 0.005, 1.5  # seconds between two looks where there is no source
_GROWING_PAUSES = 20


class ChangeSource(Protocol):
    """Reports changes, where it can; used by one thread at a time."""

    longest_pause: float
    """Seconds between two looks of a thread that has waited for long, where no changes are reported."""

    def open(self) -> bool:
        """Begin to receive changes, if possible; return whether it began anew, so that earlier looks do not count."""

    def mark(self) -> bool:
        """Note the present state, so that every later change is received, or found by `missed`.

        Returns whether threads that have looked already must look again.
        """

    def missed(self) -> bool:
        """Called just before a sleep: whether something may have changed that was not received."""

    def recheck_after(self) -> float:
        """Return the seconds after which `missed` must be called again."""

    def end_sleep(self) -> None:
        """Called when no thread sleeps any more."""

    def descriptor(self) -> int | None:
        """Return a descriptor that is readable when there are changes to receive; None where none are reported."""

    def trusted_for(self) -> float:
        """Return the seconds of silence for which the source is longest."""

    def receive(self) -> bool:
        """Read what has arrived; return whether it is worth a look."""

    def close(self) -> None:
        """Stop receiving changes."""

    def abandon(self) -> None:
        """The same in a forked child, which must not read what is meant for the parent."""


class Wakeup:
    """Lets all threads of a store sleep."""

    def __init__(self, source: ChangeSource) -> None:
        self.source = source
        self._changes = 0
        self._pipe: tuple[int, int] | None = None
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._condition = threading.Condition()  # its lock is reentrant: a signal may come while it is held
        self._listening = False
        self._waiting = 0
        self._closing = False

    def renew(self) -> None:
        """Drop the parent's pipe and source in a forked child."""
        self.source.abandon()
        self._begin()
        self._release()

    def listen(self) -> Heard:
        """Return the number of changes so far; every later change ends a `wait` that is given it."""
        with self._condition:
            self._open()
            if self.source.mark():
                self._changes += 1
            return self._changes, 0

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Sleep until something changed since `heard`, or for `seconds`; without a source, until the next look is due."""
        changes, pauses = heard
        with self._condition:
            self._open()
            longest = self._pause(pauses) if self.source.descriptor() is None else self.source.trusted_for()
            pause = min(seconds, longest)
            end = time.monotonic() + pause
            self._waiting += 1
            try:
                while self._changes == changes and (left := end - time.monotonic()) > 0:
                    if self._listening:
                        self._condition.wait(left)
                    elif self.source.missed():
                        self._changes += 1
                        self._condition.notify_all()
                    else:
                        self._poll(min(left, self.source.recheck_after()))
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._last_returns()
            if self._changes != changes:
                return self._changes, 0
            return (changes, pauses + 1) if pause < seconds else heard

    def _last_returns(self) -> None:
        """Called by the last waiting thread."""
        if self._closing:
            self._release()
        else:
            self.source.end_sleep()

    def wake(self) -> None:
        """End every wait now; also from a signal handler, which may interrupt a waiting thread."""
        with self._condition:
            if self._pipe is not None:
                try:
                    os.write(self._pipe[1], b"!")
                except BlockingIOError:
                    return  # full of earlier wakes

    def close(self) -> None:
        """Close everything, once the waiting threads have returned; a later wait opens it again."""
        with self._condition:
            if self._waiting:
                self._closing = True
                self.wake()
            else:
                self._release()

    def stop_listening(self) -> None:
        """Close the source, if no thread waits."""
        with self._condition:
            if not self._waiting:
                self.source.close()

    def __del__(self) -> None:
        self._release()

    def _pause(self, pauses: int) -> float:
        """Return the seconds until the next look, a little less at random, so that waiting processes drift apart."""
        pause = min(_FIRST_PAUSE * _PAUSE_GROWS ** min(pauses, _GROWING_PAUSES), self.source.longest_pause)
        return pause * (0.75 + ids.chance(8) / 1024)

    def _open(self) -> None:
        """Open the pipe and the source: at first, after a fork or a close, or if the source failed before."""
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._changes += 1
        if not self._listening and self.source.open():
            self._changes += 1

    def _poll(self, seconds: float) -> None:
        """Listen on behalf of all waiting threads, with the lock released, and wake them."""
        assert self._pipe is not None  # `_open` made it
        listener = select.poll()
        pipe, watched = self._pipe[0], self.source.descriptor()
        listener.register(pipe, select.POLLIN)
        if watched is not None:
            listener.register(watched, select.POLLIN)
        self._listening = True
        self._condition.release()
        ready: list[tuple[int, int]] = []
        try:
            ready = listener.poll(seconds * 1000)
        finally:
            self._condition.acquire()
            self._listening = False
            for descriptor, _ in ready:
                if descriptor == pipe or self.source.receive():
                    self._changes += 1
                if descriptor == pipe:
                    self._drain(pipe)
            self._condition.notify_all()  # of a change; or another thread has to listen now

    @staticmethod
    def _drain(pipe: int) -> None:
        try:
            os.read(pipe, 4096)
        except BlockingIOError:
            pass  # another thread has read it

    def _release(self) -> None:
        self._closing = False
        self.source.close()
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            self._changes += 1
            for end in pipe:
                os.close(end)
