"""Copy a paused yard into another store, and compare the two at the end.

One pass compares all of both yards and writes what differs. The first pass into an empty yard writes everything. A pass
that finds no difference proves that both are equal; only then can clients open the target. So the same command, run
again, finishes a copy that was killed, and copies nothing twice.
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

    from taskyard.core.transfer import Endpoint, Facts, Source

    Progress = Callable[[str, int, int], None]
    """Called with the name of the current step, how much of it is done, and the total (0: not known)."""

_PASSES = 4
_EXAMPLES = 5  # names that a message lists at most
_FILES = {
    "attempts": "left by attempts (attempts/)",
    "failed": "set aside (failed/)",
    "archive": "in the archive (archive/)",
}


class Copied:
    """The result of a copy: counts and warnings."""

    __slots__ = (
        "events", "files", "left_behind", "passes", "segments", "source", "target", "tasks", "warnings", "was_complete",
    )  # fmt: skip

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.tasks = self.segments = self.events = self.files = self.passes = 0
        self.left_behind: dict[str, int] = {}
        """The number of files that the target cannot keep, by the source's folder."""
        self.was_complete = False
        """Whether the target was equal to the source before the copy."""
        self.warnings: list[str] = []

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def copy(source: Source, target: Endpoint, with_claims: bool = False, progress: Progress | None = None) -> Copied:
    """Make the target equal to the source, which is not changed; both are paused at the end."""
    if source.identity == target.identity:
        raise Invalid(f"{source.label} and {target.label} are one yard", hint="name another yard to copy to")
    facts = ready(source, with_claims)
    before = target.facts()
    if before.copy_of is None and not before.is_empty:
        return _compared(source, target, progress)
    if before.copy_of not in (None, source.label):
        raise Conflict(
            f"{target.label} is an unfinished copy of another yard, {before.copy_of}",
            hint=f"finish that one (taskyard copy {quoted(before.copy_of or '')} ...), or name an empty yard",
        )
    target.begin(source.label, facts)
    resumed = before.copy_of is not None
    for number in range(1, _PASSES + 1):
        run = _Pass(source, target, resumed or number > 1, progress)
        run.copied.passes = number
        if not run.run():
            break
    else:
        raise run.still_differs()
    facts = ready(source, with_claims)
    target.finish(facts)
    if target.facts().compared() != facts.compared():
        raise TaskyardError(f"{target.label} has not kept the settings of {source.label}", hint="compare them by hand")
    return _with_warnings(run.copied, source, target, facts)


def ready(source: Source, with_claims: bool = False) -> Facts:
    """Return the facts about the source; raise `Conflict` if it cannot be copied in its current state."""
    facts = source.facts()
    if not facts.paused:
        raise Conflict(
            f"{source.label} is not paused, and would go on while it is copied",
            hint=f"pause it first: taskyard pause --yard {quoted(source.label)}",
        )
    if facts.held and not with_claims:
        some = ", ".join(facts.held[:_EXAMPLES]) + (", ..." if len(facts.held) > _EXAMPLES else "")
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


def _compared(source: Source, target: Endpoint, progress: Progress | None) -> Copied:
    """Compare a target that has content with the source, write nothing, and raise `Conflict` if they differ."""
    run = _Pass(source, target, True, progress, writes=False)
    if run.run() or source.facts().compared() != target.facts().compared():
        raise Conflict(
            f"{target.label} is not empty, and not the same as {source.label}",
            hint="name an empty yard, or a new one; what is in this one was not touched",
        )
    run.copied.passes, run.copied.was_complete = 1, True
    return _with_warnings(run.copied, source, target, source.facts())


def _with_warnings(copied: Copied, source: Source, target: Endpoint, facts: Facts) -> Copied:
    """Add what a user should know before deleting the source."""
    copied.warnings = [*facts.warnings, *source.warnings(), *target.warnings()]
    if copied.left_behind:
        counts = ", ".join(f"{number} {_FILES[folder]}" for folder, number in sorted(copied.left_behind.items()))
        copied.warnings.append(
            f"{target.label} keeps no files: these are not copied and stay in {source.label}: {counts}"
        )
    return copied


class _Pass:
    """One comparison of both yards, which writes what differs, or with `writes=False` stops at the first difference."""

    def __init__(
        self, source: Source, target: Endpoint, known: bool, progress: Progress | None, writes: bool = True
    ) -> None:
        self._source = source
        self._target = target
        self._known = known
        """Whether the target may have tasks already."""
        self._writes = writes
        self._progress = progress or (lambda *_: None)
        self._step = "comparing" if known else "copying"
        self.copied = Copied(source.label, target.label)
        self._differing: list[str] = []

    def run(self) -> bool:
        """Compare and write; return whether anything differed."""
        differed = self._tasks()
        if differed and not self._writes:
            return True
        differed |= self._events()
        return (differed and not self._writes) or self._files() or differed

    def still_differs(self) -> TaskyardError:
        """Make the error for yards that still differ after the last pass."""
        some = ", ".join(self._differing[:_EXAMPLES]) or "its log or its files"
        return TaskyardError(
            f"{self._target.label} is not the same as {self._source.label} after {_PASSES} passes: {some}",
            hint="stop every process that adds to, edits or sweeps the source, and repeat the command; the source was not touched",
        )

    # Tasks

    def _tasks(self) -> bool:
        segments = self._source.segments()
        in_target = set(self._target.segments())
        extra = sorted(in_target.difference(segments))
        if extra and not self._writes:
            return True
        if extra:
            raise self._only_in_target("tasks", [task.id for task in islice(self._target.tasks(extra[0]), _EXAMPLES)])
        differed = False
        for number, segment in enumerate(segments):
            self._progress(f"{self._step} tasks", number, len(segments))
            if segment not in in_target or not self._is_equal(segment):
                differed = True
                if not self._writes:
                    return True
                self.copied.tasks += self._target.replace(segment, self._source.tasks(segment), self._known)
            self.copied.segments += 1
        return differed

    def _is_equal(self, segment: str) -> bool:
        in_source = {task.id: task.digest() for task in self._source.tasks(segment)}
        in_target = {task.id: task.digest() for task in self._target.tasks(segment)}
        if self._writes and not in_target.keys() <= in_source.keys():
            raise self._only_in_target("tasks", sorted(in_target.keys() - in_source.keys()))
        if in_source == in_target:
            self.copied.tasks += len(in_source)
            return True
        self._differing += [id for id in in_source if in_source[id] != in_target.get(id)][:_EXAMPLES]
        return False

    def _only_in_target(self, what: str, some: list[str]) -> TaskyardError:
        """Make the error for content that did not come from the source: another program wrote it, so it is never removed."""
        examples = ", ".join(map(shown, some[:_EXAMPLES]))
        return Conflict(
            f"{self._target.label} has {what} that {self._source.label} has not: {examples}",
            hint="they were added there by somebody, or pruned from the source meanwhile; name an empty yard, or a new one",
        )

    # Events

    def _events(self) -> bool:
        equal, copied, is_prefix = self._compare_logs()
        self.copied.events = copied
        if equal or not self._writes:
            return not equal
        if not is_prefix:
            self._target.clear_events()
            copied = 0
        skip = copied
        for window in transfer.windows(self._source.events()):
            rest = window[skip:] if skip < len(window) else []
            skip = max(0, skip - len(window))
            if rest:
                self._target.append_events(rest)
                copied += len(rest)
                self._progress("copying events", copied, 0)
        self.copied.events = copied
        return True

    def _compare_logs(self) -> tuple[bool, int, bool]:
        """Return whether both logs are equal, how many events are, and whether the target's log begins the source's."""
        in_source, in_target = transfer.windows(self._source.events()), transfer.windows(self._target.events())
        count = 0
        try:
            for window in in_source:
                other = next(in_target, [])
                if window != other:
                    is_prefix = window[: len(other)] == other and next(in_target, None) is None
                    return False, count + len(other) if is_prefix else count, is_prefix
                count += len(window)
                self._progress(f"{self._step} events", count, 0)
            equal = next(in_target, None) is None
            return equal, count, equal
        finally:
            in_source.close()
            in_target.close()

    # Files

    def _files(self) -> bool:
        if not self._target.keeps_files:
            for path in self._source.files(with_progress=False):
                folder = path.partition("/")[0]
                self.copied.left_behind[folder] = self.copied.left_behind.get(folder, 0) + 1
            return False
        differed = False
        extra = set(self._target.files(with_progress=True))
        for path in self._source.files(with_progress=True):
            self.copied.files += 1
            extra.discard(path)
            if _are_equal(self._source.chunks(path), self._target.chunks(path)):
                continue
            differed = True
            if not self._writes:
                return True
            self._target.write_file(path, self._source.chunks(path))
            self._progress("copying files", self.copied.files, 0)
        if extra and self._writes:
            raise self._only_in_target("files", sorted(extra))
        return differed or bool(extra)


def quoted(label: str) -> str:
    """Quote a yard's label for a shell."""
    from shlex import quote

    return quote(label)


def _are_equal(chunks: Iterator[bytes], others: Iterator[bytes]) -> bool:
    from itertools import zip_longest

    return all(chunk == other for chunk, other in zip_longest(chunks, others))
