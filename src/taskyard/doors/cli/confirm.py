"""Asking before a verb changes many tasks at once."""

from __future__ import annotations

import sys

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.replies import Call


def confirmed(call: Call, count: int, what: str) -> None:
    """Return if the caller agrees: by `--yes`, or at the terminal. `what` names the act: `cancel 12 tasks`."""
    if call.given.flag("yes") or count == 0:
        return
    if call.as_json or sys.stdin is None or sys.stderr is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid(f"this would {what}, and there is no terminal to ask at", hint="add --yes if that is meant")
    sys.stderr.write(f"{what[:1].upper()}{what[1:]}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Invalid("nothing was changed", hint="answer y, or add --yes, if that is meant")
