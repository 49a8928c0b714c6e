"""The file itself: read as it is, and replaced in one step, never over a save that came between."""

from __future__ import annotations

import ctypes
import os

from taskyard.core.errors import Conflict, Invalid, Unavailable

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_HERE = -100  # AT_FDCWD


class Changed(Exception):
    """Another program saved the file during the sync."""


def read(path: str) -> str | None:
    """Return the text of the file, to the byte; None if there is none. Raise `Invalid` if it is no UTF-8."""
    try:
        with open(path, "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}",
            hint="save it as UTF-8, and sync again; nothing was changed",
        ) from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror or error}") from None


def refuse_cut(before: str, now: str) -> None:
    """Raise `Conflict` if the file ends in the middle of a line that was whole: its writer was killed, or is not done."""
    if not now or len(now) >= len(before) or not before.startswith(now):
        return
    mid_line = now[-1] != "\n" and before[len(now)] not in "\r\n"
    if mid_line and "\n" in before[len(now) :]:
        raise Conflict(
            f"the file ends in the middle of line {now.count(chr(10)) + 1}: it was cut off, or is still being written",
            hint="save it again as a whole, and sync again; nothing was changed",
        )


def replace(path: str, before: str | None, text: str) -> None:
    """Put this text in place of what was read before; raise `Changed`, and leave the file as it is, if it has other words now."""
    beside = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.taskyard.text")
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            if before is not None:
                os.fchmod(file.fileno(), os.stat(path).st_mode & 0o7777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if before is None:
            _put_new(beside, path)
        elif read(path) != before:
            raise Changed
        elif not _exchanged(beside, path):
            os.replace(beside, path)
        elif read(beside) != before:
            # Another program saved between the last look and the exchange: its text goes back, and ours was never there.
            _exchanged(beside, path)
            if read(beside) != text:  # and once more meanwhile: the last save stays
                _exchanged(beside, path)
            raise Changed
    except FileNotFoundError:
        raise Changed from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        _forget(beside)


def _put_new(beside: str, path: str) -> None:
    """Give the file its name, unless there is one of this name by now."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise Changed from None


def _exchanged(one: str, other: str) -> bool:
    """Whether two files have changed names, in one step; not every system and filesystem can."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _forget(beside: str) -> None:
    try:
        os.unlink(beside)
    except FileNotFoundError:
        pass
