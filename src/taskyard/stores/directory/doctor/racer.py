"""A process that races others for files, or holds a lock: started by the doctor, and told when to begin.

It imports nothing of Taskyard, so that several of them are there at once soon.
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


def main(words: list[str]) -> None:
    """Do as the words say, after the first line on stdin."""
    task, folder, number = words
    if task == "hold":
        descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        say("held")
        sys.stdin.readline()
        return
    say("ready")
    if not sys.stdin.readline():
        return  # whoever started this is gone
    say(race(folder, int(number)))


def say(value: object) -> None:
    """One JSON value a line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def race(folder: str, number: int) -> dict[str, list[int]]:
    """Try to get every file and every name before the others do; which ones were got."""

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
    """Those that were this process's: all begin at the same end, so that they meet."""
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
