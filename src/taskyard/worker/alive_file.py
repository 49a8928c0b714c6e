"""A file whose time is a process's last sign of life: `taskyard alive FILE` asks for it, as health checks of containers do."""

from __future__ import annotations

import os
import time

from taskyard.core.errors import Invalid

_EVERY = 1.0  # seconds between two signs at least: a quick worker claims thousands of times in one


class AliveFile:
    """Touched at each sign of life; nothing but success may be one, so that a deaf process is found out."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._signed_at = -_EVERY
        try:
            self._create()
            os.utime(path, (0, 0))  # no sign yet
        except OSError as error:
            raise Invalid(
                f"the file {ascii(path)[:200]} cannot be written: {error.strerror or error}",
                hint="name a file in a folder that this process may write, such as /tmp/alive",
            ) from None

    def _create(self) -> None:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))

    def age(self) -> float:
        """Return seconds since the last sign that this process gave."""
        return time.monotonic() - self._signed_at

    def sign(self) -> None:
        """Note that the process is alive now."""
        if self.age() < _EVERY:
            return
        self._signed_at = time.monotonic()
        try:
            if not os.path.exists(self._path):
                self._create()  # a cleaner of /tmp removed it
            os.utime(self._path)
        except OSError:
            return  # a full or read-only disk: the file grows old, and the check fails, as it should

    def close(self) -> None:
        """Remove the file: a process that has ended is not alive."""
        try:
            os.unlink(self._path)
        except OSError:
            return
