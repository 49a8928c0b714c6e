"""A `done` whose task names a check: that may take longer than a client waits for the answer of a call."""

from __future__ import annotations

from threading import Event, Lock, Thread

from taskyard.core.times import ticks
from taskyard.doors.mcp.replies import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Done = Callable[[], dict[str, Any]]

_SLICE = 5.0  # seconds of a wait after which a closing server is noticed


class Checks:
    """The checks that run now, by handle: each goes on though no call waits for it, and runs once for the same done."""

    def __init__(self, closing: Event) -> None:
        self._closing = closing
        self._lock = Lock()
        self._running: dict[str, _Check] = {}

    def done(self, handle: str, result: Any, done: Done, seconds: float) -> dict[str, Any] | None:
        """Return what `done` does, or raise what it raises; None if its check still runs after so many seconds."""
        with self._lock:
            check = self._running.get(handle)
            if check is None:
                check = self._running[handle] = _Check(result, done)
        if check.result != result:
            raise Refusal(
                "another result is being checked", "done with that result again; fail(reason) gives the task up"
            )
        if not self._is_over(check, seconds):
            return None
        with self._lock:
            self._running.pop(handle, None)
        return check.told()

    def _is_over(self, check: _Check, seconds: float) -> bool:
        """Wait for the check and return whether it has ended. If the client goes, no later call can ask for it."""
        end = ticks() + seconds
        while not check.over.is_set():
            left = _SLICE if self._closing.is_set() else end - ticks()
            if left <= 0:
                return False
            check.over.wait(min(_SLICE, left))
        return True


class _Check:
    """One done, in a thread of its own."""

    def __init__(self, result: Any, done: Done) -> None:
        self.result = result
        self.over = Event()
        self._done = done
        self._told: dict[str, Any] = {}
        self._error: BaseException | None = None
        Thread(target=self._run, name="taskyard check", daemon=True).start()

    def _run(self) -> None:
        try:
            self._told = self._done()
        except BaseException as error:
            self._error = error
        self.over.set()

    def told(self) -> dict[str, Any]:
        """Return the answer, or raise the error in its place."""
        if self._error is not None:
            raise self._error
        return self._told
