"""A terminal small enough to be read: a program runs on a real pty, and what it draws is put on a screen of characters."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A session's leader has to ask for its terminal, or no Ctrl-C would ever come from there.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
_PARTS = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|([^\x1b]+)")
_UNFINISHED = re.compile(r"\x1b(\[\??[\d;]*)?$")


class Terminal:
    """A program on a terminal of so many columns and lines."""

    def __init__(
        self,
        argv: Sequence[str],
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(size)
        self.modes_before = self.modes()
        self.drawn = 0
        """How many bytes it has written."""
        self.painted = False
        """Whether it has used colours."""
        self._hidden_cursor = False
        self._own_screen = False
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        self._theirs = theirs
        self._rest = ""

    def resize(self, size: tuple[int, int]) -> None:
        self.size = size
        self.cells = [[" "] * size[0] for _ in range(size[1])]
        self._row = self._column = 0
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    def modes(self) -> list[Any]:
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._ours)

    def is_taken(self) -> bool:
        """Whether a program has a screen of its own there, without a cursor."""
        assert self._own_screen == self._hidden_cursor
        return self._own_screen

    def screen(self) -> str:
        """What stands there now."""
        while select.select([self._ours], [], [], 0)[0]:
            chunk = os.read(self._ours, 1 << 16)
            self.drawn += len(chunk)
            self._put(self._rest + chunk.decode("utf-8", "replace"))
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def until(self, *texts: str, timeout: float = 20.0) -> str:
        """The screen once all of these stand there; each is a pattern."""
        end = time.monotonic() + timeout
        while True:
            screen = self.screen()
            missing = [text for text in texts if not re.search(text, screen)]
            if not missing:
                return screen
            assert time.monotonic() < end, f"{missing} did not come up:\n{screen}"
            time.sleep(0.02)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self, timeout: float = 30.0) -> int:
        """Its exit code, once it has ended."""
        stop = time.monotonic() + timeout
        while self.process.poll() is None:
            self.screen()
            assert time.monotonic() < stop, f"it does not end:\n{self.screen()}"
            time.sleep(0.02)
        self.screen()
        return self.process.returncode

    def hang_up(self) -> None:
        """As when its window is closed."""
        os.close(self._theirs)
        os.close(self._ours)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _put(self, text: str) -> None:
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished[0] if unfinished else ""
        for private, numbers, letter, plain in _PARTS.findall(text[: len(text) - len(self._rest)]):
            if plain:
                self._write(plain)
            else:
                self._obey(private, [int(number or 0) for number in numbers.split(";")], letter)

    def _write(self, text: str) -> None:
        for letter in text:
            if letter == "\n":
                self._row = min(self._row + 1, self.size[1] - 1)
            elif letter == "\r":
                self._column = 0
            elif self._column < self.size[0]:
                self.cells[self._row][self._column] = letter
                self._column += 1

    def _obey(self, private: str, numbers: list[int], letter: str) -> None:
        if private:
            if numbers[0] == 25:
                self._hidden_cursor = letter == "l"
            elif numbers[0] == 1049:
                self._own_screen = letter == "h"
                self.cells = [[" "] * self.size[0] for _ in range(self.size[1])]
        elif letter == "H":
            self._row, self._column = min(numbers[0], self.size[1]) - 1, numbers[1] - 1
        elif letter == "K":
            self.cells[self._row][self._column :] = [" "] * (self.size[0] - self._column)
        elif letter == "J":
            self.cells = [[" "] * self.size[0] for _ in range(self.size[1])]
        else:
            assert letter == "m", f"an escape that this terminal does not know: {letter}"
            self.painted = True
