"""How a main thread sleeps until there is something to do."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class MainThreadWakeup:
    """Wakes the main thread: from other threads, and from signal handlers, which must not touch a lock.

    It is closed when nobody has it any more, and not before: a handler may outlive the run, and what it tells then must
    not be written to whatever has the number of our pipe by that time.
    """

    def __init__(self) -> None:
        self._heard, self.told = os.pipe()
        for descriptor in (self._heard, self.told):
            os.set_blocking(descriptor, False)

    def __del__(self) -> None:
        os.close(self._heard)
        os.close(self.told)

    def tell(self) -> None:
        """There is something to look at."""
        try:
            os.write(self.told, b"!")
        except BlockingIOError:
            return  # full of the same

    def wait(self, seconds: float | None, others: Iterable[int] = ()) -> list[int]:
        """Return when there is something to look at, or to read from one of these others, or after so many seconds."""
        ready = select.select([self._heard, *others], [], [], None if seconds is None else max(0.0, seconds))[0]
        if self._heard in ready:
            os.read(self._heard, 4096)
        return [descriptor for descriptor in ready if descriptor != self._heard]
