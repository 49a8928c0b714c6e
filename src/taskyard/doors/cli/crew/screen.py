"""The terminal: a screen of its own, drawn in place where a line has changed, and given back as it was."""

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
    from taskyard.doors.cli.crew.activity import Happening
    from taskyard.doors.cli.crew.view import View

FRAME = 0.25  # seconds between two frames, at the least
TICK = 1.0  # and at the most, because times of day go on
_LATEST = 200
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
_SIZE = (80, 24)
_LAST_WORD = 1.0  # seconds that a terminal has to take the last of it


class Screen:
    """Shows a view until it is closed."""

    looks_up_titles = False  # at every event: those that are on the screen are looked up when it is drawn

    def __init__(self, view: View) -> None:
        self._view = view
        self._latest: deque[Happening] = deque(maxlen=_LATEST)
        self._shown: list[str] = []
        self._entered = 0
        """How often the terminal was taken: what was drawn before is not there any more."""
        self._size = (0, 0)
        self._drawn = 0.0
        self._changed = True
        self._modes: Any = None
        self._terminal = _opened()
        self._unwritten = b""
        self._before = signal.signal(signal.SIGTSTP, self._on_suspend)
        self._enter()

    def tell(self, happening: Happening) -> None:
        """Something has happened."""
        if happening.more.get("text", "").startswith(" "):
            return  # the small print of a message
        self._latest.append(happening)
        self._view.keep(happening)
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
        """Seconds until the next frame, if nothing else happens."""
        return max(0.0, self._drawn + (FRAME if self._changed else TICK) - now)

    def close(self) -> None:
        """Give the terminal back."""
        signal.signal(signal.SIGTSTP, self._before)
        self._leave()
        os.close(self._terminal)

    def _enter(self) -> None:
        import termios

        try:
            self._modes = termios.tcgetattr(sys.stdin.fileno())
            quiet = termios.tcgetattr(sys.stdin.fileno())
            quiet[3] &= ~(termios.ECHO | termios.ICANON)  # what is typed must not be written over the picture
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, quiet)
        except (termios.error, OSError, ValueError, AttributeError):
            self._modes = None  # somebody else's input
        self._shown = []
        self._entered += 1
        self._write(_ENTER)

    def _leave(self) -> None:
        import termios

        try:
            self._write(_LEAVE)
            end = time.monotonic() + _LAST_WORD
            while self._unwritten and time.monotonic() < end:
                select.select([], [self._terminal], [], 0.1)
                self._write("")
        except replies.OutputLost:
            pass  # there is no terminal any more
        if self._modes is not None:
            try:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSAFLUSH, self._modes)
            except (termios.error, OSError, ValueError):
                return

    def _on_suspend(self, *_: object) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and we draw anew when we go on."""
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._enter()
        self._changed = True

    def _write(self, text: str) -> None:
        """Write as much as the terminal takes now: one that is held (Ctrl-S) or hangs must hold up nobody else."""
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
    """The terminal once more, for us alone: others who have it open must not find it changed to never block."""
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
