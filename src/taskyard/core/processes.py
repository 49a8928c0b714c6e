"""Processes of this machine, each identified by its pid and its start time, because the system reuses pids."""

from __future__ import annotations

import os

from taskyard.core.words import encoded


class Process:
    """One process; it is never mistaken for a later one with the same pid."""

    __slots__ = ("pid", "started")

    def __init__(self, pid: int, started: str = "") -> None:
        self.pid = pid
        self.started = started
        """Clock ticks between the boot and its start; empty where the system has no /proc."""

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """Return the running process with this pid, or None."""
        return cls(pid, _started(pid)) if _exists(pid) else None

    def lives(self) -> bool:
        """Return whether the same process still runs."""
        return _exists(self.pid) and _started(self.pid) == self.started

    def parent(self) -> Process | None:
        """Return the process that started this one; None for the first, or where the system does not tell."""
        pid = "".join(_stat(self.pid)[1:2])
        return Process.of(int(pid)) if pid and int(pid) > 0 else None

    def worker_name(self) -> str:
        """Return the name of a worker that is this process: the same for all that it starts, and no other process's."""
        host = encoded(os.uname().nodename.split(".")[0])[:24].rstrip("%")
        return "-".join(part for part in (host or "agent", str(self.pid), self.started) if part)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's process, but alive
    return _stat(pid)[:1] not in (["Z"], ["X"])  # a dead process that its parent has not waited for yet


def _started(pid: int) -> str:
    return "".join(_stat(pid)[19:20])


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third (its state) on; none if the system has no such file."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []
