"""Run all checks, one after the other, and return their findings."""

from __future__ import annotations

from taskyard.core.diagnosis import Diagnosis, Finding, Verdict, refuse
from taskyard.core.errors import Unavailable
from taskyard.stores.directory.doctor import access, clocks, durability, inspection, names, renames, space
from taskyard.stores.directory.doctor.directory import ExaminedDirectory, ProbeFolder, open_directory
from taskyard.stores.directory.filesystem import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    S = TypeVar("S")

_INSPECTIONS = (
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
# What `init` checks before it makes a yard: it takes milliseconds, and starts no process.
_QUICK_INSPECTIONS = (("mounts", inspection.mounts), ("filesystem", inspection.filesystem))
_QUICK_TRIALS = (
    ("rename", renames.across),
    ("descriptor", renames.descriptor),
    ("links", durability.links),
    ("case", names.case),
)


def examine(path: str, processes: int, wait: float | None, report: Callable[[str], None] = lambda _: None) -> Diagnosis:
    """Run all checks on this directory; with `wait`, also those that need a second doctor on another machine."""
    directory = open_directory(path)
    findings = [_tried(name, check, directory) for name, check in _INSPECTIONS]
    try:
        with ProbeFolder(directory) as probes:
            findings += [_tried(name, check, probes) for name, check in _TRIALS]
            findings += _with_others(probes, processes)
            if wait is not None:
                from taskyard.stores.directory.doctor import peers

                findings += peers.examine(probes, wait, report)
    except OSError as error:
        findings.append(space.unwritable(error))
    return Diagnosis(directory.root, findings)


def quick(path: str) -> list[str]:
    """Return warnings about a directory for a new yard; raise `Unavailable` if tasks would not be safe there."""
    directory = ExaminedDirectory(path)
    findings = [_tried(name, check, directory) for name, check in _QUICK_INSPECTIONS]
    if all(finding.verdict is not Verdict.REFUSE for finding in findings):
        with ProbeFolder(directory) as probes:
            findings += [_tried(name, check, probes) for name, check in _QUICK_TRIALS]
    for finding in findings:
        if finding.verdict is Verdict.REFUSE:
            raise Unavailable(f"{directory.root} is not safe for a yard: {finding.reason}", hint=finding.hint)
    return [finding.reason for finding in findings if finding.verdict is Verdict.WARN]


def _with_others(probes: ProbeFolder, processes: int) -> Iterator[Finding]:
    from taskyard.stores.directory.doctor import races  # imports subprocess, which init does not need

    yield from races.race(probes, processes)
    yield _tried("locks", races.locks, probes)


def _tried(name: str, check: Callable[[S], Finding], subject: S) -> Finding:
    """Run the check; an error of the file system becomes a finding."""
    try:
        return check(subject)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return refuse(name, f"it could not be tried: {error.strerror or error}{where}", errors.hint(error))
