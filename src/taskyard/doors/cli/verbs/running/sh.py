"""`sh`: the shell client, for places without Python."""

from __future__ import annotations

import os

from taskyard.core.errors import Unavailable
from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

_PARTS = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "sh", "parts")


def client() -> str:
    """Join the parts of taskyard.sh, in the order of their names."""
    text = ""
    for name in sorted(entry for entry in os.listdir(_PARTS) if entry.endswith(".sh")):
        with open(os.path.join(_PARTS, name), encoding="utf-8") as part:
            text += part.read()
    return text


def sh(_: Call) -> Reply:
    """Print taskyard.sh."""
    try:
        text = client()
    except OSError as error:
        raise Unavailable(
            f"the shell client cannot be read: {error.strerror} ({error.filename})", hint="install Taskyard anew"
        ) from None
    return Reply({"script": text}, lambda: text.removesuffix("\n"))


COMMANDS = {
    "sh": Command(
        sh,
        "Print taskyard.sh, a worker in plain POSIX shell: one file that needs no Python, no jq and no daemon, runs under dash and busybox, and shares a yard with all other workers. It is run with a verb (add_task, claim_task, heartbeat, "
        "note_task, verify_ownership, complete_task, fail_task, release_task, resume, process_loop, reap_stale), or sourced by a script that calls these as functions. Its exit codes are those of this command.",
        (
            ("taskyard sh > taskyard.sh", "keep it beside the yard, or in an image without Python"),
            ("sh taskyard.sh process_loop --drain -- ./build.sh", "then run a command for each task, without Python"),
        ),
    ),
}
