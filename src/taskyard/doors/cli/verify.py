"""The check that a task has named, for a `done` that is said by hand: as a worker would run it before its own."""

from __future__ import annotations

import json
import os

from taskyard.core.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.yard import Yard
    from taskyard.yard.claim import Claim

_TAIL = 2000  # characters of what the check complains of


def check(yard: Yard, held: Claim, result: Any) -> None:
    """Run the check that this claim's task asks for; `Conflict` if it does not pass, and the claim is left as it is."""
    import subprocess

    name = held.task.verify
    words = _words(yard, held, str(name))
    task = {**held.task.as_dict(), "result": result}
    try:
        ran = subprocess.run(words, input=json.dumps(task).encode(), capture_output=True, check=False)  # noqa: S603  from the yard's or the worker's settings
        code, told = ran.returncode, ran.stderr.decode("utf-8", "replace").strip()[-_TAIL:]
    except OSError as error:
        code, told = 127, f"{words[0]}: {error.strerror}"
    if code:
        raise Conflict(
            f"the check {name!r} did not pass: exit {code}" + (f": {told}" if told else ""),
            hint="the task is still yours: put it right and say done again, or say fail",
        )


def _words(yard: Yard, held: Claim, name: str) -> list[str]:
    """The worker's own check, if this runs under its claim, else the yard's."""
    given = os.environ.get("TASKYARD_CHECK") if os.environ.get("TASKYARD_CLAIM") == held.handle else None
    words: list[str] | None = json.loads(given) if given else yard.checks.get(name)
    if words is None:
        raise Conflict(
            f"the task asks for the check {name!r}, which this yard does not know",
            hint=f"have its command put into yard.json (settings, checks, {name}) by this user or root, or let a worker that knows it do the task",
        )
    return words
