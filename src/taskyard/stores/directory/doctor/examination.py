"""One check after the other, and what they found."""

from __future__ import annotations

from taskyard.core.diagnosis import Diagnosis, Finding, Verdict, refuse
from taskyard.core.errors import Unavailable
from taskyard.stores.directory.doctor import access, clocks, durability, inspection, names, renames, space
from taskyard.stores.directory.doctor.place import Corner, Place, look
from taskyard.stores.directory.filesystem import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    S = TypeVar("S")

_LOOKS = (
    ("yard", inspection.yard),
    ("filesystem", inspection.filesystem),
    ("mounts", inspection.mounts),
    ("folders", inspection.folders),
    ("permissions", access.permissions),
    ("sharing", access.sharing),
    ("space", space.space),
    ("inodes", space.inodes),
)
_TRIALS = (
    ("writing", space.writing),
    ("rename", renames.across),
    ("descriptor", renames.descriptor),
    ("cost", renames.cost),
    ("times", renames.times),
    ("sync", durability.syncing),
    ("links", durability.links),
    ("case", names.case),
    ("letters", names.letters),
    ("length", names.length),
    ("clock", clocks.skew),
    ("granularity", clocks.granularity),
)
# What `init` asks before it makes a yard: milliseconds, and no other process.
_QUICK_LOOKS = (("mounts", inspection.mounts), ("filesystem", inspection.filesystem))
_QUICK_TRIALS = (
    ("rename", renames.across),
    ("descriptor", renames.descriptor),
    ("links", durability.links),
    ("case", names.case),
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
                from taskyard.stores.directory.doctor import peers

                findings += peers.examine(corner, wait, tell)
    except OSError as error:
        findings.append(space.unwritable(error))
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
    from taskyard.stores.directory.doctor import races  # brings subprocess, which init has no use for

    yield from races.race(corner, processes)
    yield _tried("locks", races.locks, corner)


def _tried(name: str, check: Callable[[S], Finding], subject: S) -> Finding:
    """What the check found; an error of the filesystem is a finding too."""
    try:
        return check(subject)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return refuse(name, f"it could not be tried: {error.strerror or error}{where}", errors.hint(error))
