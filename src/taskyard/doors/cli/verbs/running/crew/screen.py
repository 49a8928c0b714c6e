"""The terminal: draws on the alternate screen, only lines that have changed, and restores it at the end."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from taskyard.doors.cli import replies

if TYPE_CHECKING:
    from taskyard.doors.cli.verbs.running.crew.activity import CrewEvent
    from taskyard.doors.cli.verbs.running.crew.view import View
    from taskyard.doors.cli.verbs.running.top import TopView

FRAME = 0.25  # seconds between two frames, at the least
TICK = 1.0  # and at the most, because clocks advance
_LATEST = 200
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
_SIZE = (80, 24)
_FLUSH_SECONDS = 1.0  # seconds until the terminal must have taken the last output


class Screen:
    """Shows a view until it is closed."""

    looks_up_titles = False  # not at every event: titles on the screen are looked up when it is drawn

    def __init__(self, view: View | TopView) -> None:
        self._view = view
        self._latest: deque[CrewEvent] = deque(maxlen=_LATEST)
        self._shown: list[str] = []
        self._entered = 0
        """How often the terminal was taken: after each time, everything is drawn anew."""
        self._size = (0, 0)
        self._drawn = 0.0
        self._changed = True
        self._modes: Any = None
        self._terminal = _opened()
        self._unwritten = b""
        self._before = signal.signal(signal.SIGTSTP, self._on_suspend)
        self._enter()

    def show(self, crew_event: CrewEvent) -> None:
        """Add an event to the screen."""
        if crew_event.more.get("text", "").startswith(" "):
            return  # the details of a message
        self._latest.append(crew_event)
        self._view.keep(crew_event)
        self._changed = True

    def is_due(self, now: float) -> bool:
        """Whether a frame is to be drawn now."""
        return now - self._drawn >= (FRAME if self._changed or self._size != _terminal_size() else TICK)

    def draw(self, footer: str, now: float) -> None:
        """Draw what has changed since the last frame, unless the terminal has not taken that one yet."""
        self._drawn, self._changed = now, False
        self._write("")
        if self._unwritten:
            return
        size, entered = _terminal_size(), self._entered
        if size != self._size:
            self._size, self._shown = size, []
        lines = self._view.frame(self._latest, footer, size, now)
        before = self._shown or ["\0"] * len(lines)
        changes = [
            f"\x1b[{row};1H{line}\x1b[K"
            for row, (line, old) in enumerate(zip(lines, before, strict=True), 1)
            if line != old
        ]
        if changes:
            self._write(("" if self._shown else "\x1b[2J") + "".join(changes))
        if self._entered == entered:  # else Ctrl-Z came in the middle of it
            self._shown = lines

    def delay(self, now: float) -> float:
        """Return the seconds until the next frame, if nothing else happens."""
        return max(0.0, self._drawn + (FRAME if self._changed else TICK) - now)

    def close(self) -> None:
        """Restore the terminal."""
        signal.signal(signal.SIGTSTP, self._before)
        self._leave()
        os.close(self._terminal)

    def _enter(self) -> None:
        import termios

        try:
            self._modes = termios.tcgetattr(sys.stdin.fileno())
            quiet = termios.tcgetattr(sys.stdin.fileno())
            quiet[3] &= ~(termios.ECHO | termios.ICANON)  # typed characters must not be echoed over the picture
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
        except (termios.error, OSError, ValueError, AttributeError):
            self._modes = None  # standard input is no terminal of ours
        self._shown = []
        self._entered += 1
        self._write(_ENTER)

    def _leave(self) -> None:
        import termios

        try:
            self._write(_LEAVE)
            end = time.monotonic() + _FLUSH_SECONDS
            while self._unwritten and time.monotonic() < end:
                select.select([], [self._terminal], [], 0.1)
                self._write("")
        except replies.OutputLost:
            pass  # the terminal is gone
        if self._modes is not None:
            try:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSAFLUSH, self._modes)
            except (termios.error, OSError, ValueError):
                return

    def _on_suspend(self, *_: object) -> None:
        """Handle Ctrl-Z: restore the terminal for the shell, and draw anew when continued."""
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._enter()
        self._changed = True

    def _write(self, text: str) -> None:
        """Write as much as the terminal takes now: one that is held (Ctrl-S) or hangs must not block the supervisor."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self._unwritten += text.encode(encoding, "backslashreplace")
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(self._terminal, self._unwritten) :]
        except BlockingIOError:
            return
        except OSError:
            self._unwritten = b""
            raise replies.OutputLost(1) from None


def _opened() -> int:
    """Open the terminal again: the non-blocking mode must not affect other programs that have it open."""
    try:
        return os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.dup(sys.stdout.fileno())


def _terminal_size() -> tuple[int, int]:
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return _SIZE
    return (columns, lines) if columns > 0 and lines > 1 else _SIZE
