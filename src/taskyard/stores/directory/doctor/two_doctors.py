"""Checks that two doctors run together: both take the same steps, and each returns its own findings."""

from __future__ import annotations

import errno
import os
import time

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.directory import locked
from taskyard.stores.directory.doctor.inspection import ELSEWHERE
from taskyard.stores.directory.doctor.meeting import HOST, TIMEOUT, PeerLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.doctor.meeting import Meeting

FILES, LINES, ROUNDS = 500, 300, 10
_LATE = 5.0  # seconds after which a change is visible too late on the other machine
_ONE_MOUNT = (
    "have both machines use the same mount: where one is the file server itself, let it mount its own export too"
)


class Pair:
    """A meeting with the identities of both doctors."""

    __slots__ = ("me", "meeting", "other")

    def __init__(self, meeting: Meeting, me: dict[str, Any], other: dict[str, Any]) -> None:
        self.meeting = meeting
        self.me = me
        self.other = other

    @property
    def same_kernel(self) -> bool:
        """Whether both run on one machine, perhaps in two containers."""
        return bool(self.me["kernel"] == self.other["kernel"])


def race(pair: Pair) -> Finding:
    """Rename the same files in the same order on both machines, and check that only one gets each."""
    meeting = pair.meeting
    pool, won = meeting.folder("pool"), meeting.folder("won")
    if meeting.role == HOST:
        for count in range(FILES):
            os.close(os.open(os.path.join(pool, str(count)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.exchange("race")
    mine = []
    for count in range(FILES):
        try:
            os.rename(os.path.join(pool, str(count)), os.path.join(won, f"{count}.{meeting.role}"))
        except FileNotFoundError:
            continue
        mine.append(count)
    theirs = meeting.exchange("won", mine)
    listed = os.listdir(won)
    twice = set(mine) & set(theirs)
    measured = {"files": FILES, "won": len(mine), "won_by_peer": len(theirs), "won_twice": len(twice)}
    measured["lost"] = FILES - len(set(mine) | set(theirs))
    meeting.exchange("raced")
    if twice:
        reason = f"{len(twice)} of {FILES} files were won by both machines: two workers would get one task"
        return refuse("peer_race", reason, ELSEWHERE, **measured)
    wanted = {f"{count}.{meeting.role}" for count in mine} | {f"{count}.{meeting.other}" for count in theirs}
    if measured["lost"] or set(listed) != wanted:
        reason = (
            f"of {FILES} files {len(mine) + len(theirs)} were won and {len(listed)} are listed: tasks would be lost"
        )
        return refuse("peer_race", reason, ELSEWHERE, **measured)
    return green(
        "peer_race", f"{FILES} files, each won by one machine ({len(mine)} here, {len(theirs)} there)", **measured
    )


def visibility(pair: Pair) -> Finding:
    """Measure how soon the other machine lists a new name and a rename."""
    meeting = pair.meeting
    folder = meeting.folder("seen")
    meeting.exchange("visibility")
    spent = _call(meeting, folder) if meeting.role == HOST else _answer(meeting, folder)
    both = spent if meeting.role == HOST else meeting.receive("spent")
    if meeting.role == HOST:
        meeting.send("spent", spent)
    new, moved = max(both["new"]) / 2, max(both["moved"]) / 2
    measured = {"seconds_new": round(new, 4), "seconds_moved": round(moved, 4), "rounds": ROUNDS}
    reason = (
        f"a new name is listed on the other machine after {_brief(new)}, a rename after {_brief(moved)}, at the most"
    )
    if max(new, moved) > _LATE:
        hint = (
            "shorten how long this mount remembers folders (NFS: acdirmax), or let workers wait; nothing is done twice"
        )
        return warn("peer_visibility", f"{reason}: work is begun late", hint, **measured)
    return green("peer_visibility", reason, **measured)


def _call(meeting: Meeting, folder: str) -> dict[str, list[float]]:
    """Make a file and wait for the other's answer; then rename it and wait for the answer to that."""
    spent: dict[str, list[float]] = {"new": [], "moved": []}
    for count in range(ROUNDS):
        began = time.monotonic()
        os.close(os.open(os.path.join(folder, f"call.{count}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        meeting.wait_for(folder, f"answer.{count}")
        spent["new"].append(time.monotonic() - began)
        began = time.monotonic()
        os.rename(os.path.join(folder, f"call.{count}"), os.path.join(folder, f"called.{count}"))
        _wait_for_move(meeting, folder, f"answer.{count}", f"answered.{count}")
        spent["moved"].append(time.monotonic() - began)
    return spent


def _answer(meeting: Meeting, folder: str) -> dict[str, list[float]]:
    for count in range(ROUNDS):
        meeting.wait_for(folder, f"call.{count}")
        os.close(os.open(os.path.join(folder, f"answer.{count}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        _wait_for_move(meeting, folder, f"call.{count}", f"called.{count}")
        os.rename(os.path.join(folder, f"answer.{count}"), os.path.join(folder, f"answered.{count}"))
    return {}


def _wait_for_move(meeting: Meeting, folder: str, old: str, new: str) -> None:
    """Wait until the new name is listed and the old one is not."""
    end = time.monotonic() + TIMEOUT
    while old in meeting.wait_for(folder, new):
        if time.monotonic() > end:
            raise PeerLost(f"a name that was moved away is still listed after {TIMEOUT:g} s")
        clocks.pause(0.001)


def late_names(pair: Pair) -> Finding:
    """Check what works on a name that the other machine has just renamed: a second rename must fail."""
    meeting = pair.meeting
    folder = meeting.folder("late")
    meeting.exchange("late")
    own, theirs = (os.path.join(folder, name) for name in (meeting.role, meeting.other))
    os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.exchange("made")
    meeting.wait_for(folder, meeting.other)
    os.close(os.open(theirs, os.O_RDONLY))  # so that this kernel remembers the name
    meeting.exchange("known")
    os.rename(own, f"{own}.moved")
    meeting.exchange("moved")
    touched, opened = _works(os.utime, theirs), _works(_open_and_close, theirs)
    stolen = _works(lambda path: os.rename(path, f"{path}.stolen"), theirs)
    meeting.exchange("tried")
    measured = {"late_touch_works": touched, "late_open_works": opened, "late_rename_works": stolen}
    if stolen:
        reason = (
            "a name that the other machine had renamed away could be renamed once more: two workers would get one task"
        )
        return refuse("peer_late", reason, ELSEWHERE, **measured)
    if touched or opened:
        reason = "a late touch or open of a moved name still works here (it is remembered), a late rename does not: that decides"
        return green("peer_late", reason, **measured)
    return green("peer_late", "a name that the other machine has moved is gone here at once", **measured)


def missing_names(pair: Pair) -> Finding:
    """Check that a machine finds a name that it missed before the other machine made it, directly and by a listing."""
    meeting = pair.meeting
    folder = meeting.folder("missing")
    meeting.exchange("missing")
    own, theirs = (os.path.join(folder, name) for name in (meeting.role, meeting.other))
    os.path.lexists(os.path.join(theirs, "file"))  # so that this kernel remembers that it was missing
    meeting.exchange("sought")
    os.mkdir(own)
    os.close(os.open(os.path.join(own, "file"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.exchange("there")
    found = os.path.lexists(os.path.join(theirs, "file"))
    listed = meeting.other in os.listdir(folder)
    found_then = os.path.lexists(os.path.join(theirs, "file"))
    meeting.exchange("found")
    measured = {"found_at_once": found, "listed": listed, "found_after_listing": found_then}
    if not found_then:
        reason = "a folder that the other machine has made cannot be found here, even after a listing: tasks would seem to be gone"
        return refuse("peer_missing", reason, ELSEWHERE, **measured)
    if not found:
        reason = (
            "a folder that the other machine has made seems to be missing here to those who looked for it before; a yard lists "
            "the folder above to be sure, which takes time, and other programs are misled"
        )
        return warn(
            "peer_missing",
            reason,
            "mount it so that no missing names are remembered (NFS: lookupcache=pos)",
            **measured,
        )
    return green(
        "peer_missing", "a name that was missing is found as soon as the other machine has made it", **measured
    )


def _open_and_close(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def _works(call: Any, path: str) -> bool:
    try:
        call(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):
            raise
        return False
    return True


def locks(pair: Pair) -> Finding:
    """Check whether each machine sees the other's locks, and whether workers here rely on locks."""
    meeting = pair.meeting
    own, theirs = meeting.path(f"lock.{meeting.role}"), meeting.path(f"lock.{meeting.other}")
    held = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        locked(held)
        meeting.exchange("locked")
        tried = os.open(theirs, os.O_RDWR)
        try:
            seen = not locked(tried)
        finally:
            os.close(tried)
        meeting.exchange("unlocked")
    finally:
        os.close(held)
    measured = {"seen": seen, "relied_on": pair.me["local"]}
    if not pair.me["local"]:
        reason = f"the other's lock is {'seen' if seen else 'not seen'} here; Taskyard does not rely on it, leases decide over a network"
        return green("peer_locks", reason, **measured)
    if not seen:
        reason = "this machine takes the place for its own disk, and does not see the other's locks: it would take the living for dead"
        return refuse("peer_locks", reason, _ONE_MOUNT, **measured)
    return green("peer_locks", "each sees the other's locks", **measured)


def append(pair: Pair) -> Finding:
    """Check whether all lines arrive that both append to one file; over a network they need not."""
    meeting = pair.meeting
    path = meeting.path("log")
    if meeting.role == HOST:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.exchange("log")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        for count in range(LINES):
            os.write(descriptor, f"{meeting.role} {count} {'.' * 80}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    meeting.exchange("logged")
    with open(path, "rb") as file:
        lines = set(file.read().split(b"\n"))
    wanted = {f"{role} {count} {'.' * 80}".encode() for role in (meeting.role, meeting.other) for count in range(LINES)}
    lost = len(wanted - lines)
    measured = {"lines": 2 * LINES, "lost": lost}
    if not lost:
        return green("peer_append", f"{2 * LINES} lines that both appended to one file have all arrived", **measured)
    reason = f"{lost} of {2 * LINES} lines that both appended to one file are lost"
    if pair.same_kernel and pair.me["local"]:
        return warn("peer_append", f"{reason}: the log would have gaps", ELSEWHERE, **measured)
    return green("peer_append", f"{reason}; no two machines write to one log, so that none of a yard's are", **measured)


def _brief(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
