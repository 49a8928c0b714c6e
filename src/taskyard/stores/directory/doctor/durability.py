"""Check that files and folders can be synced, and that a file can have two names."""

from __future__ import annotations

import os
import time

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor.inspection import ELSEWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.directory import ProbeFolder

_ROUNDS = 5


def syncing(probes: ProbeFolder) -> Finding:
    """Check that a file and a folder can be synced, as an add and an ending do before they are acknowledged."""
    draft, folder = probes.path("draft"), probes.folder("synced")
    spent = []
    for number in range(_ROUNDS):
        began = time.perf_counter()
        try:
            _sync_new(draft, os.path.join(folder, str(number)), folder)
        except OSError as error:
            reason = f"a new name cannot be synced: {error.strerror}"
            if probes.directory.durability == "fast":
                hint = "nothing to do in this yard, which is 'fast': a power cut may undo what was acknowledged"
                return warn("sync", reason, hint)
            return refuse(
                "sync", f"{reason}; no add or done could be acknowledged", f"{ELSEWHERE}; or a yard of durability fast"
            )
        spent.append(time.perf_counter() - began)
    middle = sorted(spent)[_ROUNDS // 2] * 1000
    return green(
        "sync", f"files and folders can be synced, {middle:.2f} ms for a new file", milliseconds=round(middle, 3)
    )


def _sync_new(draft: str, path: str, folder: str) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b"{}\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(draft, path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def links(probes: ProbeFolder) -> Finding:
    """Check that hard links work, which keys need, and that a link does not replace a name."""
    first, second, other = probes.file("first", content=b"1"), probes.path("second"), probes.file("other", content=b"2")
    try:
        os.link(first, second)
    except OSError as error:
        return warn(
            "links",
            f"no hard links: {error.strerror}; keys cannot be taken, and records are made by a look and a rename",
            "do without add --key and taskId here, or choose a place with hard links",
            hard_links=False,
        )
    try:
        os.link(other, second)
    except FileExistsError:
        pass
    else:
        return refuse("links", "a hard link replaced a name that was taken: one key could have two tasks", ELSEWHERE)
    one, two = os.stat(first), os.stat(second)
    if (one.st_nlink, two.st_nlink) != (2, 2):
        reason = f"names of one file are counted wrong ({one.st_nlink} and {two.st_nlink} for two)"
        return refuse("links", f"{reason}: a janitor could take a key's task for gone", ELSEWHERE)
    os.rename(second, probes.path("third"))
    if os.stat(first).st_nlink != 2:
        return refuse("links", "a rename makes a copy: after it a file has lost its other name", ELSEWHERE)
    if one.st_ino != two.st_ino:
        return warn(
            "links",
            "two names of one file have different inode numbers: what is left of a crash is not known again for what it is",
            "if this is FUSE, have it pass inode numbers on (use_ino)",
            hard_links=True,
        )
    return green("links", "a file can have two names, and a taken name is refused", hard_links=True)
