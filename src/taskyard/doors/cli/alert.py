"""`janitor --alert-above`: run a command when many tasks were given back, by any process, within a minute."""

from __future__ import annotations

import os
import time

from taskyard.core import times
from taskyard.core.errors import Invalid
from taskyard.doors.cli import replies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Thread
    from typing import Any

    from taskyard.port import YardPort

WINDOW = 60.0  # seconds
_PATIENCE = 60.0  # seconds that the command may take
_NAMED = 20  # reaped tasks that an alert names
_PAGE = 1000


class ReaperAlert:
    """Counts the tasks that were reaped in the last minute, and runs the command once a minute at most."""

    def __init__(self, yard: YardPort, above: int, command: Sequence[str]) -> None:
        if above < 0:
            raise Invalid("--alert-above must be 0 or more")
        self._yard = yard
        self._above = above
        self._command = list(command)
        self._cursor: str | None = None
        self._seen: list[tuple[float, dict[str, Any]]] = []  # the reaped events, each with when it was read
        self._quiet_until = 0.0
        self._running: Thread | None = None

    def look(self) -> dict[str, Any]:
        """Read the log on, and start the command if too much was reaped; return the facts, and whether it was started."""
        now = time.monotonic()
        # The first look goes back by this machine's clock, as 'log --since' does; later ones need no clock.
        since = None if self._cursor is not None else times.rfc3339(round((time.time() - WINDOW) * 1000))
        while True:
            page = self._yard.events(event="reaped", since=since, cursor=self._cursor, limit=_PAGE)
            self._seen += [(now, event) for event in page]
            self._cursor, since = page.cursor, None
            if len(page) < _PAGE:
                break
        self._seen = [entry for entry in self._seen if now - entry[0] < WINDOW]
        facts = self._facts()
        alerted = facts["reaped"] > self._above and now >= self._quiet_until
        if alerted:
            self._quiet_until = now + WINDOW
            self._start(facts)
        return {**facts, "alerted": alerted}

    def wait(self) -> None:
        """Wait for a command that runs."""
        if self._running is not None:
            self._running.join()

    def _facts(self) -> dict[str, Any]:
        events = [event for _, event in self._seen]
        return {
            "yard": self._yard.label,
            "reaped": len(events),
            "above": self._above,
            "window": WINDOW,
            "tasks": [
                {name: event.get(name) for name in ("task", "kind", "worker", "at")} for event in events[-_NAMED:]
            ],
        }

    def _start(self, facts: dict[str, Any]) -> None:
        """Run the command beside the janitor, whose sweeps go on."""
        from threading import Thread

        self._running = Thread(target=self._run, args=(facts,), daemon=True)
        self._running.start()

    def _run(self, facts: dict[str, Any]) -> None:
        failure = _failure(self._command, facts)
        if failure is not None:
            replies.remark(f"taskyard: warning: the alert's command {ascii(self._command[0])[:60]} {failure}")


def _failure(command: list[str], facts: dict[str, Any]) -> str | None:
    """Run the command with the facts; return what went wrong, or None. It is an argument list, and no shell reads it."""
    import json
    import signal
    import subprocess

    variables = {f"TASKYARD_ALERT_{name.upper()}": f"{facts[name]:g}" for name in ("reaped", "above", "window")}
    try:
        # Its output goes to stderr: stdout has the janitor's own lines, which may be JSON.
        process = subprocess.Popen(  # noqa: S603  the janitor's own command
            command, stdin=subprocess.PIPE, stdout=2, env={**os.environ, **variables}, start_new_session=True
        )
    except OSError as error:
        return f"cannot be run: {error.strerror or error}"
    try:
        process.communicate(json.dumps(facts).encode(), _PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"took longer than {_PATIENCE:g} s and was stopped"
    return f"ended with exit code {process.returncode}" if process.returncode else None
