"""The main thread's sleep until there is something to do."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class MainThreadWakeup:
    """Wakes the main thread: from other threads, and from signal handlers, which must not touch a lock.

    The pipe is closed when the last reference is gone, and not before. A handler may outlive the run, and must not write to
    another file that has the number of our pipe by then.
    """

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        for descriptor in (self._reading, self.writing):
            os.set_blocking(descriptor, False)

    def __del__(self) -> None:
        os.close(self._reading)
        os.close(self.writing)

    def tell(self) -> None:
        """Wake the main thread."""
        try:
            os.write(self.writing, b"!")
        except BlockingIOError:
            return  # the pipe is full of wakeups

    def wait(self, seconds: float | None, others: Iterable[int] = ()) -> list[int]:
        """Return after a wakeup, when one of `others` can be read, or after `seconds`."""
        poll = select.poll()  # not select.select, which takes no descriptor over 1023
        for descriptor in (self._reading, *others):
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(None if seconds is None else max(0.0, seconds) * 1000)]
        if self._reading in ready:
            os.read(self._reading, 4096)
        return [descriptor for descriptor in ready if descriptor != self._reading]
