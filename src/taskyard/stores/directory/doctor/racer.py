"""A process that races others for files, or holds a lock; the doctor starts it and signals when to begin.

It imports nothing of Taskyard, so that several of them start quickly.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RENAMES, NAMES, LINES = 1000, 200, 500
POOL, WON, MADE, LINKED, LOG, LOCK = "pool", "won", "made", "linked", "log", "lock"


def main(arguments: list[str]) -> None:
    """Run the task in the first argument, after the first line on stdin."""
    task, folder, number = arguments
    if task == "hold":
        descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        send("held")
        sys.stdin.readline()
        return
    send("ready")
    if not sys.stdin.readline():
        return  # the doctor has ended
    send(race(folder, int(number)))


def send(value: object) -> None:
    """Print a JSON value on one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def race(folder: str, number: int) -> dict[str, list[int]]:
    """Try to get every file and every name before the others; return the numbers of those that were won."""

    def moved(count: int) -> None:
        os.rename(f"{folder}/{POOL}/{count}", f"{folder}/{WON}/{count}.{number}")

    def made(count: int) -> None:
        os.close(os.open(f"{folder}/{MADE}/{count}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    own = f"{folder}/{number}.own"
    os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def linked(count: int) -> None:
        os.link(own, f"{folder}/{LINKED}/{count}")

    got = {WON: won(moved, RENAMES), MADE: won(made, NAMES), LINKED: won(linked, NAMES)}
    log = os.open(f"{folder}/{LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for count in range(LINES):
        os.write(log, f"{number} {count} {'.' * 80}\n".encode())
    return got


def won(attempt: Callable[[int], None], most: int) -> list[int]:
    """Return the numbers for which the attempt succeeded; all processes start at 0, so that they collide."""
    mine = []
    for count in range(most):
        try:
            attempt(count)
        except (FileNotFoundError, FileExistsError):
            continue
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                break  # no hard links here
            raise
        mine.append(count)
    return mine


if __name__ == "__main__":
    main(sys.argv[1:])
