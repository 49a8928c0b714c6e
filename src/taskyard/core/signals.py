"""Signals that ask a process to end: SIGTERM, Ctrl-C, and the end of the terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import Signals
    from typing import Any


INTERRUPTED = 130  # the exit code after a Ctrl-C, as shells have it: 128 and the signal's number


class Interrupted(KeyboardInterrupt):
    """A signal ended the command; the text describes what that left behind."""

    def __init__(self, number: int | None, text: str) -> None:
        super().__init__(text)
        self.code = 128 + number if number else INTERRUPTED


def stops() -> list[Signals]:
    """Return the signals that end a process in order, without those that its parent set to be ignored, as `nohup` does."""
    import signal

    asked = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return [number for number in asked if signal.getsignal(number) is not signal.SIG_IGN]


class Stopping:
    """Call `act` with the number of each such signal during a `with` block; in any thread but the main one it does nothing."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self._act = act
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            return
        for number in stops():
            self._before[number] = signal.signal(number, lambda number, _: self._act(number))

    def __exit__(self, *_: object) -> None:
        import signal

        for number, handler in self._before.items():
            signal.signal(number, handler)
