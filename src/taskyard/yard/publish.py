"""Put a file in place under a claim's fence: never over what a later claim of the same task has put there.

Beside the destination lies a hidden record, `.NAME.fence`: for each task that published there, its highest fence. The
record is also the lock. A publisher raises its fence in the record first and renames the file then. So a kill in between
shuts out older claims, and the same claim says it again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time

from taskyard.core import ids
from taskyard.core.errors import ClaimLost, Conflict, Invalid, Unavailable
from taskyard.core.task import Handle
from taskyard.core.times import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.yard.claim import Claim

TASKS_MOST = 1000  # tasks that a record remembers: those that published last
PATIENCE = 60.0  # seconds to wait for another publisher
_CHUNK = 1 << 20
_NAME_MOST = 80  # bytes that always fit: a file's name has 255 at most, and a handle up to 160


def publish(claim: Claim, source: str, destination: str) -> str:
    """Put a copy of `source` at `destination`, and return its real path; raise `ClaimLost` if the claim is late.

    Readers see the old content or the new, whole. At the return the new one survives a power cut.
    """
    for name, text in (("SRC", source), ("DST", destination)):
        if not text:
            raise Invalid(f"{name} is empty", hint="name the file to publish, and the file that is to be there")
    path = os.path.realpath(destination)
    if os.path.isdir(path) or not os.path.basename(destination):
        raise Invalid(f"{destination} is a folder", hint="name the file that is to be there")
    if os.path.lexists(path) and not os.path.isfile(path):
        raise Invalid(
            f"{destination} is no regular file", hint="publish beside it: a pipe or a device stays what it is"
        )
    given = _opened(source)
    try:
        _must_hold(claim)
        return _published(claim, given, path)
    except FileNotFoundError as error:
        raise Invalid(f"{os.path.dirname(path)} is no folder: {error.strerror}", hint="make it first") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise Invalid(
                f"the name {os.path.basename(path)[:40]}... is too long to keep a record beside it",
                hint=f"the claim's handle has to fit beside it: take a name of at most {_NAME_MOST} bytes",
            ) from None
        raise Unavailable(f"{path} cannot be published: {error.strerror or error}") from None
    finally:
        os.close(given)


def _published(claim: Claim, given: int, path: str) -> str:
    folder, name = os.path.split(path)
    record = os.path.join(folder, f".{name}.fence")
    held = [_locked(record)]
    try:
        known = _read(held[0], record)
        _must_be_newer(claim, known.get(claim.id), path)
        for left in _leftovers(folder, name):  # written under this lock, by a publisher that is dead now
            os.unlink(left)
        new = os.path.join(folder, f".{name}.{claim.handle}.part")
        _copy(given, new)
        _must_hold(claim)  # again: a long copy may have outlasted the lease
        known.pop(claim.id, None)
        known[claim.id] = claim.fence
        held.append(_replace(record, dict(list(known.items())[-TASKS_MOST:])))
        os.rename(new, path)
        _sync(folder)
    finally:
        for descriptor in held:
            os.close(descriptor)
    return path


def _locked(record: str) -> int:
    """Open and lock the record of a destination; it is made if it is not there."""
    end = ticks() + PATIENCE
    while True:
        descriptor = os.open(record, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_in_place(descriptor, record):
                return descriptor
        except BlockingIOError:
            if ticks() > end:
                os.close(descriptor)
                raise Unavailable(
                    f"another process has been publishing there for {PATIENCE:g} s",
                    hint=f"if it stands still, let it go on or end; it holds the lock on {record}",
                ) from None
            time.sleep(0.01)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # held by another, or replaced by it since it was opened


def _is_in_place(descriptor: int, record: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(record))
    except FileNotFoundError:
        return False


def _replace(record: str, known: dict[str, int]) -> int:
    """Put a new record in place, locked before anybody else can open it; return its descriptor."""
    part = f"{record}.part"
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps({"taskyard": 1, "fences": known}).encode() + b"\n")
        os.fsync(descriptor)
        os.rename(part, record)
        _sync(os.path.dirname(record))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _read(descriptor: int, record: str) -> dict[str, int]:
    """Return the highest fence of each task, the task that published last at the end."""
    content = b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
    if not content:
        return {}  # made by somebody who published nothing
    try:
        fences: dict[str, Any] = json.loads(content)["fences"]
        return {str(id): int(fence) for id, fence in fences.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Conflict(
            f"{record} is no record of what was published", hint="another program wrote that file; publish elsewhere"
        ) from None


def _must_be_newer(claim: Claim, before: int | None, path: str) -> None:
    if before is not None and before > claim.fence:
        raise ClaimLost(
            f"{path} was published under fence {before} of task {ids.short(claim.id)}, and this claim has fence {claim.fence}"
        )


def _must_hold(claim: Claim) -> None:
    if not claim.holds():
        claim.settled()  # which raises `Invalid` for a mistyped handle
        raise ClaimLost(f"the claim {claim.handle} is over: nothing was published")


def _leftovers(folder: str, name: str) -> Iterator[str]:
    begin, end = f".{name}.", ".part"
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(begin) and entry.name.endswith(end):
                try:
                    Handle.parse(entry.name[len(begin) : -len(end)])
                except Invalid:
                    continue  # another destination's, or a person's
                yield entry.path


def _opened(source: str) -> int:
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Invalid(f"cannot read {source}: {error.strerror or error}", hint="name a file that is there") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid(f"{source} is no regular file", hint="publish files one by one, or an archive of them")
    return descriptor


def _copy(given: int, path: str) -> None:
    mode = stat.S_IMODE(os.fstat(given).st_mode) & 0o777
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        while chunk := os.read(given, _CHUNK):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, mode)  # whatever the umask is: the source's own mode counts
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
