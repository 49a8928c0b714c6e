"""One check after the other, and what they found."""

from __future__ import annotations

from taskyard.diagnosis import Diagnosis, Finding, Verdict, refuse
from taskyard.errors import Unavailable
from taskyard.stores.directory import trouble
from taskyard.stores.directory.doctor import access, clocks, keeping, looks, naming, renames, room
from taskyard.stores.directory.doctor.place import Corner, Place, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    S = TypeVar("S")

_LOOKS = (
    ("yard", looks.yard),
    ("filesystem", looks.filesystem),
    ("mounts", looks.mounts),
    ("folders", looks.folders),
    ("permissions", access.permissions),
    ("sharing", access.sharing),
    ("space", room.space),
    ("inodes", room.inodes),
)
_TRIALS = (
    ("writing", room.writing),
    ("rename", renames.across),
    ("descriptor", renames.descriptor),
    ("cost", renames.cost),
    ("times", renames.times),
    ("sync", keeping.syncing),
    ("links", keeping.links),
    ("case", naming.case),
    ("letters", naming.letters),
    ("length", naming.length),
    ("clock", clocks.skew),
    ("granularity", clocks.granularity),
)
# What `init` asks before it makes a yard: milliseconds, and no other process.
_QUICK_LOOKS = (("mounts", looks.mounts), ("filesystem", looks.filesystem))
_QUICK_TRIALS = (
    ("rename", renames.across),
    ("descriptor", renames.descriptor),
    ("links", keeping.links),
    ("case", naming.case),
)


def examine(path: str, processes: int, wait: float | None, tell: Callable[[str], None] = lambda _: None) -> Diagnosis:
    """All that can be found out about this place; with `wait` also what a second doctor and this one see of each other."""
    place = look(path)
    findings = [_tried(name, check, place) for name, check in _LOOKS]
    try:
        with Corner(place) as corner:
            findings += [_tried(name, check, corner) for name, check in _TRIALS]
            findings += _with_others(corner, processes)
            if wait is not None:
                from taskyard.stores.directory.doctor import peering

                findings += peering.examine(corner, wait, tell)
    except OSError as error:
        findings.append(room.unwritable(error))
    return Diagnosis(place.root, findings)


def quick(path: str) -> list[str]:
    """Warnings about a place in which a yard is being made; `Unavailable` if tasks would not be safe there."""
    place = Place(path)
    findings = [_tried(name, check, place) for name, check in _QUICK_LOOKS]
    if all(finding.verdict is not Verdict.REFUSE for finding in findings):
        with Corner(place) as corner:
            findings += [_tried(name, check, corner) for name, check in _QUICK_TRIALS]
    for finding in findings:
        if finding.verdict is Verdict.REFUSE:
            raise Unavailable(f"{place.root} is not safe for a yard: {finding.reason}", hint=finding.hint)
    return [finding.reason for finding in findings if finding.verdict is Verdict.WARN]


def _with_others(corner: Corner, processes: int) -> Iterator[Finding]:
    from taskyard.stores.directory.doctor import racing  # brings subprocess, which init has no use for

    yield from racing.race(corner, processes)
    yield _tried("locks", racing.locks, corner)


def _tried(name: str, check: Callable[[S], Finding], subject: S) -> Finding:
    """What the check found; an error of the filesystem is a finding too."""
    try:
        return check(subject)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return refuse(name, f"it could not be tried: {error.strerror or error}{where}", trouble.hint(error))
