"""The worker's side of a guard: run one command at a time behind it, and stop it from any thread."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from taskyard.worker import guard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOG_MOST = 1 << 20  # bytes of each stream that are kept with the attempt: the first half and the last
_CHUNK = 1 << 16


class GuardLost(Exception):
    """The guard was killed, and the command with it."""


class Ended:
    """How a command ended."""

    __slots__ = ("code", "cut", "deserted", "errno", "error", "stderr", "stdout", "stopped", "timed_out")

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.error: str | None = message.get("error")
        """Why the command could not be started, or None."""
        self.errno: int | None = message.get("errno")
        self.code: int = message.get("code", -1)
        """Its exit code; below zero the number of the signal that killed it."""
        self.stopped: bool = message.get("stopped", False)
        """Whether it was stopped before it exited: its exit code then answers the stop, and does not describe the task."""
        self.deserted: bool = message.get("deserted", False)
        """Whether it was stopped because the worker itself was stopped for too long."""
        self.timed_out: bool = message.get("timed_out", False)
        self.stdout: str = message.get("stdout", "")
        self.cut: bool = message.get("cut", False)
        """Whether standard output was longer, and this is only its end."""
        self.stderr: str = message.get("stderr", "")


class GuardClient:
    """Runs the commands of one slot of a worker, behind one guard that is started with the first.

    In the `foreground` a command has this process's own streams and terminal: with `stdout`, that descriptor as its output.
    """

    def __init__(self, lock: int | None, *, foreground: bool = False, stdout: int | None = None) -> None:
        self._lock = lock
        self._foreground = foreground
        self._stdout = stdout
        self._sending = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Start a guard ahead of time; that takes a moment, which a worker has while it waits for tasks."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        handed = [theirs.fileno()] + ([] if self._lock is None else [self._lock])
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
                [sys.executable, "-I", "-S", guard.__file__, *map(str, handed)],
                pass_fds=handed,
                start_new_session=not self._foreground,  # only the worker handles Ctrl-C
                stdin=None if self._foreground else subprocess.DEVNULL,
                stdout=self._stdout,
            )
        self._socket = ours

    def begin(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str | None],
        folder: str | None = None,
        stdin: str = "",
        logs: str | None = None,
        name: str = "",
        timeout: float | None = None,
        grace: float,
        patience: float | None = None,
    ) -> None:
        """Start a command, in this folder if one is given; its output is kept in the folder `logs`."""
        self.start()
        streams = {
            stream: None if logs is None else os.path.join(logs, f"{name}{stream}.log")
            for stream in ("stdout", "stderr")
        }
        what = {"argv": list(argv), "environment": dict(environment), "stdin": stdin, **streams}
        limits = {"timeout": timeout, "grace": grace, "patience": patience, "log_most": LOG_MOST}
        self._send({"run": {**what, **limits, "foreground": self._foreground, "folder": folder}})

    def end(self) -> Ended:
        """Wait until the command and all of its processes have ended."""
        return Ended(self._answer()["ended"])

    def stop(self, grace: float) -> None:
        """Stop the command: TERM now, KILL after `grace` seconds, or its own grace if that is shorter.

        The command has ended once `end` returns.
        """
        try:
            self._send({"stop": grace})
        except GuardLost:
            return  # the guard is dead, so `end` raises

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            try:
                if self._socket is not None:
                    self._socket.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                raise GuardLost("the guard is gone") from None

    def _answer(self) -> dict[str, Any]:
        answers = self._socket
        assert answers is not None  # a command was sent through it
        received = bytearray()
        while not received.endswith(b"\n"):
            try:
                chunk = answers.recv(_CHUNK)
            except ConnectionError:
                chunk = b""
            if not chunk:
                self.close()
                raise GuardLost("the guard is gone")
            received += chunk
        answer: dict[str, Any] = json.loads(received)
        return answer

    def close(self) -> None:
        """Close the connection to the guard, which stops what still runs."""
        with self._sending:
            if self._socket is not None:
                self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.wait()
        self._process = None


def stop_strays(name: str, value: str) -> None:
    """Kill what a killed guard left: processes that have this variable in their environment, under any parent."""
    import signal
    import time

    mark = f"{name}={value}".encode()
    for _ in range(200):
        strays = [pid for pid in guard.processes() or () if mark in _environment(pid)]
        if not strays:
            return
        for pid in strays:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except (ProcessLookupError, PermissionError, ChildProcessError):
                continue
        time.sleep(0.005)


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
