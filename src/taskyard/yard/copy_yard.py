"""Copying a yard: everything that a paused yard tells, into another store, and compared at the end.

One pass goes over all of both yards and carries what differs. The first pass into an empty yard carries everything; a pass
that finds nothing to carry is the proof that both are the same, and only then is the copy let out of its quarantine. So
a copy that was killed is finished by saying it again, and nothing comes twice.
"""

from __future__ import annotations

from itertools import islice

from taskyard.core import transfer
from taskyard.core.errors import Conflict, Invalid, TaskyardError
from taskyard.core.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.core.transfer import Facts, Port

    Progress = Callable[[str, int, int], None]
    """Is told what is under way, how much of it is done, and how much there is (0: not known)."""

_PASSES = 4
_SOME = 5
_FILES = {
    "attempts": "left by attempts (attempts/)",
    "failed": "set aside (failed/)",
    "archive": "in the archive (archive/)",
}


class Copied:
    """What a copy has brought over."""

    __slots__ = (
        "events", "files", "left_behind", "passes", "segments", "source", "target", "tasks", "warnings", "was_complete",
    )  # fmt: skip

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.tasks = self.segments = self.events = self.files = self.passes = 0
        self.left_behind: dict[str, int] = {}
        """Files that the target has no place for, by the folder that they stay in."""
        self.was_complete = False
        """Whether all was there already."""
        self.warnings: list[str] = []

    def as_dict(self) -> dict[str, Any]:
        """The counts by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def copy(source: Port, target: Port, with_claims: bool = False, progress: Progress | None = None) -> Copied:
    """Make the target the same as the source, which is not changed; both are paused in the end."""
    if source.identity == target.identity:
        raise Invalid(f"{source.label} and {target.label} are one yard", hint="name another yard to copy to")
    facts = ready(source, with_claims)
    there = target.facts()
    if there.copy_of is None and not there.is_empty:
        return _compared(source, target, progress)
    if there.copy_of not in (None, source.label):
        raise Conflict(
            f"{target.label} is an unfinished copy of another yard, {there.copy_of}",
            hint=f"finish that one (taskyard copy {quoted(there.copy_of or '')} ...), or name an empty yard",
        )
    target.begin(source.label, facts)
    resumed = there.copy_of is not None
    for number in range(1, _PASSES + 1):
        run = _Pass(source, target, resumed or number > 1, progress)
        run.copied.passes = number
        if not run.carry():
            break
    else:
        raise run.still_differs()
    facts = ready(source, with_claims)
    target.finish(facts)
    if target.facts().same() != facts.same():
        raise TaskyardError(f"{target.label} has not kept the settings of {source.label}", hint="compare them by hand")
    return _warned(run.copied, source, target, facts)


def ready(source: Port, with_claims: bool = False) -> Facts:
    """What is true of the source, if it can be copied as it is; else `Conflict`."""
    facts = source.facts()
    if not facts.paused:
        raise Conflict(
            f"{source.label} is not paused, and would go on while it is copied",
            hint=f"pause it first: taskyard pause --yard {quoted(source.label)}",
        )
    if facts.held and not with_claims:
        some = ", ".join(facts.held[:_SOME]) + (", ..." if len(facts.held) > _SOME else "")
        raise Conflict(
            f"{len(facts.held)} tasks of {source.label} are still being worked on: {some}",
            hint="wait until they have ended (a paused yard hands out no more); --with-claims copies them as they are held",
        )
    if facts.dropped:
        raise Conflict(
            f"{facts.dropped} files lie in the drop box of {source.label}, and are no tasks yet",
            hint=f"have them taken in: taskyard janitor --yard {quoted(source.label)}",
        )
    return facts


def _compared(source: Port, target: Port, progress: Progress | None) -> Copied:
    """The counts, if a yard that is no unfinished copy is the same as the source; nothing is written."""
    run = _Pass(source, target, True, progress, carries=False)
    if run.carry() or source.facts().same() != target.facts().same():
        raise Conflict(
            f"{target.label} is not empty, and not the same as {source.label}",
            hint="name an empty yard, or a new one; what is in this one was not touched",
        )
    run.copied.passes, run.copied.was_complete = 1, True
    return _warned(run.copied, source, target, source.facts())


def _warned(copied: Copied, source: Port, target: Port, facts: Facts) -> Copied:
    """The same, with all that somebody should know who is about to give the source up."""
    copied.warnings = [*facts.warnings, *source.warnings(), *target.warnings()]
    if copied.left_behind:
        counts = ", ".join(f"{number} {_FILES[folder]}" for folder, number in sorted(copied.left_behind.items()))
        copied.warnings.append(
            f"{target.label} keeps no files: these are not copied and stay in {source.label}: {counts}"
        )
    return copied


class _Pass:
    """One look at all of both yards."""

    def __init__(
        self, source: Port, target: Port, known: bool, progress: Progress | None, carries: bool = True
    ) -> None:
        self._source = source
        self._target = target
        self._known = known
        self._carries = carries
        self._progress = progress or (lambda *_: None)
        self._word = "comparing" if known else "copying"
        self.copied = Copied(source.label, target.label)
        self._differing: list[str] = []

    def carry(self) -> bool:
        """Whether anything differed; it was carried over."""
        differed = self._tasks()
        if differed and not self._carries:
            return True
        differed |= self._events()
        return (differed and not self._carries) or self._files() or differed

    def still_differs(self) -> TaskyardError:
        """What to say when passes don't come to an end."""
        some = ", ".join(self._differing[:_SOME]) or "its log or its files"
        return TaskyardError(
            f"{self._target.label} is not the same as {self._source.label} after {_PASSES} passes: {some}",
            hint="see that nobody adds to, edits or sweeps the source meanwhile, and say it again; the source was not touched",
        )

    # Tasks

    def _tasks(self) -> bool:
        segments = self._source.segments()
        theirs = set(self._target.segments())
        strange = sorted(theirs.difference(segments))
        if strange and not self._carries:
            return True
        if strange:
            raise self._stranger("tasks", [parcel.id for parcel in islice(self._target.tasks(strange[0]), _SOME)])
        differed = False
        for place, segment in enumerate(segments):
            self._progress(f"{self._word} tasks", place, len(segments))
            if segment not in theirs or not self._is_same(segment):
                differed = True
                if not self._carries:
                    return True
                self.copied.tasks += self._target.replace(segment, self._source.tasks(segment), self._known)
            self.copied.segments += 1
        return differed

    def _is_same(self, segment: str) -> bool:
        ours = {parcel.id: parcel.digest() for parcel in self._source.tasks(segment)}
        theirs = {parcel.id: parcel.digest() for parcel in self._target.tasks(segment)}
        if self._carries and not theirs.keys() <= ours.keys():
            raise self._stranger("tasks", sorted(theirs.keys() - ours.keys()))
        if ours == theirs:
            self.copied.tasks += len(ours)
            return True
        self._differing += [id for id in ours if ours[id] != theirs.get(id)][:_SOME]
        return False

    def _stranger(self, what: str, some: list[str]) -> TaskyardError:
        """What did not come from the source is somebody's, and is never removed."""
        return Conflict(
            f"{self._target.label} has {what} that {self._source.label} has not: {', '.join(map(shown, some[:_SOME]))}",
            hint="they were added there by somebody, or pruned from the source meanwhile; name an empty yard, or a new one",
        )

    # Events

    def _events(self) -> bool:
        same, told, is_prefix = self._compare_logs()
        self.copied.events = told
        if same or not self._carries:
            return not same
        if not is_prefix:
            self._target.forget()
            told = 0
        skip = told
        for window in transfer.windows(self._source.events()):
            rest = window[skip:] if skip < len(window) else []
            skip = max(0, skip - len(window))
            if rest:
                self._target.tell(rest)
                told += len(rest)
                self._progress("copying events", told, 0)
        self.copied.events = told
        return True

    def _compare_logs(self) -> tuple[bool, int, bool]:
        """Whether both logs are the same; how many events the target has; whether they are the first of the source's."""
        ours, theirs = transfer.windows(self._source.events()), transfer.windows(self._target.events())
        told = 0
        try:
            for window in ours:
                other = next(theirs, [])
                if window != other:
                    is_prefix = window[: len(other)] == other and next(theirs, None) is None
                    return False, told + len(other) if is_prefix else told, is_prefix
                told += len(window)
                self._progress(f"{self._word} events", told, 0)
            same = next(theirs, None) is None
            return same, told, same
        finally:
            ours.close()
            theirs.close()

    # Files

    def _files(self) -> bool:
        if not self._target.keeps_files:
            for path in self._source.files(whole=False):
                folder = path.partition("/")[0]
                self.copied.left_behind[folder] = self.copied.left_behind.get(folder, 0) + 1
            return False
        differed = False
        theirs = set(self._target.files(whole=True))
        for path in self._source.files(whole=True):
            self.copied.files += 1
            theirs.discard(path)
            if _same(self._source.pieces(path), self._target.pieces(path)):
                continue
            differed = True
            if not self._carries:
                return True
            self._target.put(path, self._source.pieces(path))
            self._progress("copying files", self.copied.files, 0)
        if theirs and self._carries:
            raise self._stranger("files", sorted(theirs))
        return differed or bool(theirs)


def quoted(label: str) -> str:
    """A yard's label as a word for a shell."""
    from shlex import quote

    return quote(label)


def _same(ours: Iterator[bytes], theirs: Iterator[bytes]) -> bool:
    from itertools import zip_longest

    return all(one == other for one, other in zip_longest(ours, theirs))
