"""What two doctors do together: both go through the same steps, and each tells what it saw."""

from __future__ import annotations

import errno
import os
import time

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.inspection import ELSEWHERE
from taskyard.stores.directory.doctor.meeting import HOST, PATIENCE, PeerLost
from taskyard.stores.directory.doctor.place import locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.doctor.meeting import Meeting

FILES, LINES, ROUNDS = 500, 300, 10
_LATE = 5.0  # seconds after which the other machine's move is called slow to be seen
_ONE_MOUNT = (
    "have both machines use the same mount: where one is the file server itself, let it mount its own export too"
)


class Pair:
    """A meeting, and who is who."""

    __slots__ = ("me", "meeting", "other")

    def __init__(self, meeting: Meeting, me: dict[str, Any], other: dict[str, Any]) -> None:
        self.meeting = meeting
        self.me = me
        self.other = other

    @property
    def same_kernel(self) -> bool:
        """Whether both run on one machine, be it in two containers."""
        return bool(self.me["kernel"] == self.other["kernel"])


def race(pair: Pair) -> Finding:
    """Both go for the same files in the same order: each must be one side's alone."""
    meeting = pair.meeting
    pool, won = meeting.folder("pool"), meeting.folder("won")
    if meeting.role == HOST:
        for count in range(FILES):
            os.close(os.open(os.path.join(pool, str(count)), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.swap("race")
    mine = []
    for count in range(FILES):
        try:
            os.rename(os.path.join(pool, str(count)), os.path.join(won, f"{count}.{meeting.role}"))
        except FileNotFoundError:
            continue
        mine.append(count)
    theirs = meeting.swap("won", mine)
    listed = os.listdir(won)
    twice = set(mine) & set(theirs)
    told = {"files": FILES, "won": len(mine), "won_by_peer": len(theirs), "won_twice": len(twice)}
    told["lost"] = FILES - len(set(mine) | set(theirs))
    meeting.swap("raced")
    if twice:
        reason = f"{len(twice)} of {FILES} files were won by both machines: two workers would get one task"
        return refuse("peer_race", reason, ELSEWHERE, **told)
    wanted = {f"{count}.{meeting.role}" for count in mine} | {f"{count}.{meeting.other}" for count in theirs}
    if told["lost"] or set(listed) != wanted:
        reason = (
            f"of {FILES} files {len(mine) + len(theirs)} were won and {len(listed)} are listed: tasks would be lost"
        )
        return refuse("peer_race", reason, ELSEWHERE, **told)
    return green("peer_race", f"{FILES} files, each won by one machine ({len(mine)} here, {len(theirs)} there)", **told)


def visibility(pair: Pair) -> Finding:
    """How soon a new name and a rename of one machine are listed on the other, there and back."""
    meeting = pair.meeting
    folder = meeting.folder("seen")
    meeting.swap("visibility")
    spent = _called(meeting, folder) if meeting.role == HOST else _answered(meeting, folder)
    both = spent if meeting.role == HOST else meeting.hear("spent")
    if meeting.role == HOST:
        meeting.say("spent", spent)
    new, moved = max(both["new"]) / 2, max(both["moved"]) / 2
    told = {"seconds_new": round(new, 4), "seconds_moved": round(moved, 4), "rounds": ROUNDS}
    reason = (
        f"a new name is listed on the other machine after {_brief(new)}, a rename after {_brief(moved)}, at the most"
    )
    if max(new, moved) > _LATE:
        hint = (
            "shorten how long this mount remembers folders (NFS: acdirmax), or let workers wait; nothing is done twice"
        )
        return warn("peer_visibility", f"{reason}: work is begun late", hint, **told)
    return green("peer_visibility", reason, **told)


def _called(meeting: Meeting, folder: str) -> dict[str, list[float]]:
    """Make a name and wait for the answer; then rename it and wait for that."""
    spent: dict[str, list[float]] = {"new": [], "moved": []}
    for count in range(ROUNDS):
        began = time.monotonic()
        os.close(os.open(os.path.join(folder, f"call.{count}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        meeting.see(folder, f"answer.{count}")
        spent["new"].append(time.monotonic() - began)
        began = time.monotonic()
        os.rename(os.path.join(folder, f"call.{count}"), os.path.join(folder, f"called.{count}"))
        _see_moved(meeting, folder, f"answer.{count}", f"answered.{count}")
        spent["moved"].append(time.monotonic() - began)
    return spent


def _answered(meeting: Meeting, folder: str) -> dict[str, list[float]]:
    for count in range(ROUNDS):
        meeting.see(folder, f"call.{count}")
        os.close(os.open(os.path.join(folder, f"answer.{count}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        _see_moved(meeting, folder, f"call.{count}", f"called.{count}")
        os.rename(os.path.join(folder, f"answer.{count}"), os.path.join(folder, f"answered.{count}"))
    return {}


def _see_moved(meeting: Meeting, folder: str, old: str, new: str) -> None:
    """Wait until the new name is listed and the old one is not."""
    end = time.monotonic() + PATIENCE
    while old in meeting.see(folder, new):
        if time.monotonic() > end:
            raise PeerLost(f"a name that was moved away is still listed after {PATIENCE:g} s")
        clocks.pause(0.001)


def late_names(pair: Pair) -> Finding:
    """What a machine can still do to a name that the other has just renamed away: it must not get it by a rename."""
    meeting = pair.meeting
    folder = meeting.folder("late")
    meeting.swap("late")
    own, theirs = (os.path.join(folder, name) for name in (meeting.role, meeting.other))
    os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.swap("made")
    meeting.see(folder, meeting.other)
    os.close(os.open(theirs, os.O_RDONLY))  # so that this kernel remembers the name
    meeting.swap("known")
    os.rename(own, f"{own}.moved")
    meeting.swap("moved")
    touched, opened = _works(os.utime, theirs), _works(_open_and_close, theirs)
    stolen = _works(lambda path: os.rename(path, f"{path}.stolen"), theirs)
    meeting.swap("tried")
    told = {"late_touch_works": touched, "late_open_works": opened, "late_rename_works": stolen}
    if stolen:
        reason = (
            "a name that the other machine had renamed away could be renamed once more: two workers would get one task"
        )
        return refuse("peer_late", reason, ELSEWHERE, **told)
    if touched or opened:
        reason = "a late touch or open of a moved name still works here (it is remembered), a late rename does not: that decides"
        return green("peer_late", reason, **told)
    return green("peer_late", "a name that the other machine has moved is gone here at once", **told)


def missing_names(pair: Pair) -> Finding:
    """Whether a machine that looked for a name in vain finds it once the other has made it, by its name and by a listing."""
    meeting = pair.meeting
    folder = meeting.folder("missing")
    meeting.swap("missing")
    own, theirs = (os.path.join(folder, name) for name in (meeting.role, meeting.other))
    os.path.lexists(os.path.join(theirs, "file"))  # so that this kernel remembers that it was missing
    meeting.swap("sought")
    os.mkdir(own)
    os.close(os.open(os.path.join(own, "file"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.swap("there")
    found = os.path.lexists(os.path.join(theirs, "file"))
    listed = meeting.other in os.listdir(folder)
    found_then = os.path.lexists(os.path.join(theirs, "file"))
    meeting.swap("found")
    told = {"found_at_once": found, "listed": listed, "found_after_listing": found_then}
    if not found_then:
        reason = "a folder that the other machine has made cannot be found here, even after a listing: tasks would seem to be gone"
        return refuse("peer_missing", reason, ELSEWHERE, **told)
    if not found:
        reason = (
            "a folder that the other machine has made seems to be missing here to those who looked for it before; a yard lists "
            "the folder above to be sure, which takes time, and other programs are misled"
        )
        return warn(
            "peer_missing", reason, "mount it so that no missing names are remembered (NFS: lookupcache=pos)", **told
        )
    return green("peer_missing", "a name that was missing is found as soon as the other machine has made it", **told)


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
    """Whether each sees the other's locks, and whether anybody would rely on them."""
    meeting = pair.meeting
    own, theirs = meeting.path(f"lock.{meeting.role}"), meeting.path(f"lock.{meeting.other}")
    held = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        locked(held)
        meeting.swap("locked")
        tried = os.open(theirs, os.O_RDWR)
        try:
            seen = not locked(tried)
        finally:
            os.close(tried)
        meeting.swap("unlocked")
    finally:
        os.close(held)
    told = {"seen": seen, "relied_on": pair.me["local"]}
    if not pair.me["local"]:
        reason = f"the other's lock is {'seen' if seen else 'not seen'} here; nobody relies on it, leases decide over a network"
        return green("peer_locks", reason, **told)
    if not seen:
        reason = "this machine takes the place for its own disk, and does not see the other's locks: it would take the living for dead"
        return refuse("peer_locks", reason, _ONE_MOUNT, **told)
    return green("peer_locks", "each sees the other's locks", **told)


def append(pair: Pair) -> Finding:
    """Whether lines that both append to one file all arrive; over a network they need not."""
    meeting = pair.meeting
    path = meeting.path("log")
    if meeting.role == HOST:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    meeting.swap("log")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        for count in range(LINES):
            os.write(descriptor, f"{meeting.role} {count} {'.' * 80}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    meeting.swap("logged")
    with open(path, "rb") as file:
        lines = set(file.read().split(b"\n"))
    wanted = {f"{role} {count} {'.' * 80}".encode() for role in (meeting.role, meeting.other) for count in range(LINES)}
    lost = len(wanted - lines)
    told = {"lines": 2 * LINES, "lost": lost}
    if not lost:
        return green("peer_append", f"{2 * LINES} lines that both appended to one file have all arrived", **told)
    reason = f"{lost} of {2 * LINES} lines that both appended to one file are lost"
    if pair.same_kernel and pair.me["local"]:
        return warn("peer_append", f"{reason}: the log would have gaps", ELSEWHERE, **told)
    return green("peer_append", f"{reason}; no two machines write to one log, so that none of a yard's are", **told)


def _brief(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
