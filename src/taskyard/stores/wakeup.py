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

    from taskyard.core.store_records import Heard, Want
else:
    Protocol = object

_FIRST_PAUSE, _PAUSE_GROWS = 0.005, 1.5  # seconds between two looks where there is no source
_GROWING_PAUSES = 20
FLOOR = 30.0  # seconds until a look without a wakeup: a process may have been killed before it could send one
WATCHERS = 2  # a change that is worth a look, but not to those who only wait for a task to claim


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

    def descriptors(self) -> list[int]:
        """Return what is readable when there are changes to receive; nothing where none are reported."""

    def receive(self) -> int:
        """Read what has arrived; return whether it is worth a look (1), or one for `WATCHERS` only (2)."""

    def close(self) -> None:
        """Stop receiving changes."""

    def abandon(self) -> None:
        """The same in a forked child, which must not read what is meant for the parent."""


class Wakeup:
    """Lets all threads of a store sleep."""

    def __init__(self, source: ChangeSource) -> None:
        self.source = source
        self._changes = 0
        self._quiet = 0
        """How many of the changes are no reason to try a claim."""
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

    def floor(self) -> float:
        """Return the seconds until a look is worth it, though nothing was reported."""
        return FLOOR

    def is_hinted(self) -> bool:
        """Return False: every change wakes all who wait."""
        return False

    def listen(self, want: Want | None = None) -> Heard:
        """Return the number of changes so far; every later change ends a `wait` that is given it.

        With a `want`: changes that may let such a claim be served.
        """
        with self._condition:
            self._open()
            if self.source.mark():
                self._changes += 1
            return self._count(want), 0

    def _count(self, want: Want | None) -> int:
        return self._changes if want is None else self._changes - self._quiet

    def wait(self, seconds: float, heard: Heard, want: Want | None = None) -> Heard:
        """Sleep until something changed since `heard`, or for `seconds`; without a source, until the next look is due."""
        changes, pauses = heard
        with self._condition:
            self._open()
            pause = seconds if self.source.descriptors() else min(seconds, self._pause(pauses))
            end = time.monotonic() + pause
            self._waiting += 1
            try:
                while self._count(want) == changes and (left := end - time.monotonic()) > 0:
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
            if self._count(want) != changes:
                return self._count(want), 0
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
        pipe = self._pipe[0]
        for watched in (pipe, *self.source.descriptors()):
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
                worth = 1 if descriptor == pipe else self.source.receive()
                self._changes += bool(worth)
                self._quiet += worth == WATCHERS
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
