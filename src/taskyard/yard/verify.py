"""The check that a task names: it runs before the task is done, for a done through any door."""

from __future__ import annotations

import json
import os

from taskyard.core.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from taskyard.core.task import Handle, Task

_TAIL = 2000  # characters of the check's output in the error


def check(task: Task, handle: Handle, result: Any, checks: Mapping[str, Sequence[str]]) -> None:
    """Run the task's check on its result; raise `Conflict` if it does not pass, and leave the claim as it is."""
    import subprocess

    name = str(task.verify)
    argv = _command(name, handle, checks)
    given = json.dumps({**task.as_dict(), "result": result}).encode()
    try:
        ran = subprocess.run(argv, input=given, capture_output=True, check=False)  # noqa: S603  from the yard's or the worker's settings
        code, complaint = ran.returncode, ran.stderr.decode("utf-8", "replace").strip()[-_TAIL:]
    except OSError as error:
        code, complaint = 127, f"{argv[0]}: {error.strerror}"
    if code:
        raise Conflict(
            f"the check {name!r} did not pass: exit {code}" + (f": {complaint}" if complaint else ""),
            hint="the task is still yours: correct it and call done again, or fail",
        )


def _command(name: str, handle: Handle, checks: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the command of the worker's own check if this process runs under its claim, else of the yard's."""
    given = os.environ.get("TASKYARD_CHECK") if os.environ.get("TASKYARD_CLAIM") == str(handle) else None
    argv: Sequence[str] | None = json.loads(given) if given else checks.get(name)
    if argv is None:
        raise Conflict(
            f"the task asks for the check {name!r}, which this yard does not know",
            hint=f"have its command put into yard.json (settings, checks, {name}) by this user or root, or let a worker that knows it do the task",
        )
    return argv
