"""The resources that running tasks use: read only from processing/, so that there is no lock to lose.

A claim of a task that uses a resource needs a check afterwards. The task is put into processing/ first; a process that then
sees another task there whose resources conflict with its own gives its own back. Of two simultaneous claims at least one sees the
other. The name shows whether a task uses anything (`u`, `w`), its body lists what.
"""

from __future__ import annotations

from taskyard.core import resources
from taskyard.core.errors import Invalid
from taskyard.core.ids import LENGTH, age_key
from taskyard.core.order import is_old
from taskyard.stores.directory.names import NO_FILE, Token, uses_something
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.uses_index import UsesIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from taskyard.core.resources import InUse
    from taskyard.stores.directory.context import Context

_KNOWN_MOST = 100_000
_NOT_ITS_OWN = "bx"  # the content is an edit, or a file that a person may still change
_RECENT = 50  # milliseconds for which a claim trusts that nothing conflicts; the look after its move decides
_LOOKS = 20  # listings in which every task may have moved before its file was read; after that the claim stands back
_WARY = 100  # claims that look first, after one that met a conflict


class Uses:
    """Finds out which resources tasks use."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._index = UsesIndex(context)
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}
        self._read: tuple[str, dict[str, Any]] | None = None
        self._seen_at, self._wary = -_RECENT, 0
        self._own: dict[
            str, frozenset[str]
        ] = {}  # claims of this process, each with the marks of what conflicts with it

    def of(self, folder: str, name: str) -> tuple[str, ...]:
        """Return the resources of the task with this name; none if it has moved, or is broken and will never run."""
        try:
            return self._there(folder, name)
        except FileNotFoundError:
            return ()

    def _there(self, folder: str, name: str) -> tuple[str, ...]:
        """Return the same; raise `FileNotFoundError` if the task has moved."""
        id, _, _, _, part = name.split(".", 5)[:5]
        known = self._known.get((id, part))  # only an edit changes a body, and it changes the name too
        if known is None:
            try:
                fields = task_file.decode(self._context.edits.read(folder, name))
            except FileNotFoundError:
                if not self._context.disk.exists(f"{folder}/{name}"):
                    raise
                return ()  # the edit that replaced its file is gone
            except Invalid:
                return ()
            except OSError as error:
                if error.errno not in NO_FILE:
                    raise  # as with too many open files: a resource that cannot be checked now must not count as free
                return ()
            known = tuple(fields.get("uses") or ())
            if len(self._known) > _KNOWN_MOST:
                self._known.clear()
            self._known[id, part] = known
            self._read = None if part[0] in _NOT_ITS_OWN else (id, fields)
        return known

    def read(self, id: str) -> dict[str, Any] | None:
        """Return the content of the task's own file, if it was the last to be read; only once, because the caller may change it."""
        read, self._read = self._read, None
        return None if read is None or read[0] != id else read[1]

    def taken(self) -> InUse:
        """Return the resources in use now, each with the name in processing/ of the task that uses it."""
        self._seen_at = self._context.clock.now()
        taken = resources.InUse()
        for name in filter(uses_something, self._held()):
            for resource in self.of(self._context.processing, name):
                taken.add(resource, name)
        return taken

    def glance(self, name: str, kept: dict[str, str]) -> InUse | None:
        """Return the resources in use; None if a claim need not look before it moves this task, because of late nothing conflicts.

        Of workers that race for a task only the one that gets it then looks around. That look decides.
        """
        self._wary -= self._wary > 0
        calm = not self._wary and not kept and 0 <= self._context.clock.now() - self._seen_at < _RECENT
        return None if calm and self._context.policy.ageing is None and self._is_apart(name) else self.taken()

    def _is_apart(self, name: str) -> bool:
        """Whether it is known, without a look at the task's file, that it conflicts with no claim of this process."""
        marks = self._indexed(name)
        return marks is not None and all(sought.isdisjoint(marks) for sought in self._own.values())

    def beware(self) -> None:
        """Look before the next claims: tasks conflict now."""
        self._wary = _WARY

    def _held(self) -> list[str]:
        return self._context.disk.listdir(self._context.processing)

    def kept(self, *, fresh: bool = False) -> dict[str, str]:
        """Return the resources that are kept for a task, each with the age key of the oldest task that it is kept for.

        That is with ageing, for a task that uses several or a folder, was passed over, and is old: its turn would not come
        before all of them happen to be free at once. Only the oldest task of each lane that waits for a resource counts, so that a
        backlog is not read: the tasks behind it are younger.
        """
        context, kept = self._context, dict[str, str]()
        if context.policy.ageing is None:
            return kept
        with context.claiming:
            first = context.ready_cache.passed_over(fresh=fresh)
        for folder, name in first:
            self.keep(kept, name, self.of(folder, name))
        return kept

    def keep(self, kept: dict[str, str], name: str, own: tuple[str, ...]) -> None:
        """Add the resources of a task that was passed over to those that are kept, if it may starve and is old."""
        if resources.may_starve(own) and is_old(name[:LENGTH], self._context.clock.now(), self._context.policy.ageing):
            age = age_key(name[:LENGTH])
            for resource in own:
                key = resources.key(resource)
                kept[key] = min(age, kept.get(key, age))

    @staticmethod
    def first_kept(kept: dict[str, str], own: Iterable[str], id: str) -> str | None:
        """Return a key that conflicts with one of these, and is kept for a task older than the one with this id; or None."""
        age = age_key(id)
        older = [key for key, since in kept.items() if since < age]
        return next((key for name in own for key in older if resources.conflict(name, key)), None)

    def clash(self, name: str) -> bool:
        """Whether a resource of the task that was put into processing/ under this name conflicts with another's there.

        Two listings, because one may miss a claim that its own worker takes over, under another name, at that moment.
        """
        sought = resources.sought(self.of(self._context.processing, name))
        clashes, held = True, set[str]()
        for _ in range(_LOOKS):
            held = {*self._held(), *self._held()} - {name}
            try:
                clashes = any(not sought.isdisjoint(self._marks(other)) for other in filter(uses_something, held))
                break
            except FileNotFoundError:
                continue  # one of them has moved since: perhaps to the name that a resume has given it
        own = {other: its for other, its in self._own.items() if other in held}
        self._own = own if clashes else {**own, name: sought}
        if clashes:
            self.beware()
        self._seen_at = self._context.clock.now()
        return clashes

    def _marks(self, name: str) -> Collection[str]:
        """Return the marks of what a running task uses; raise `FileNotFoundError` if it has moved."""
        marks = self._indexed(name)
        return resources.marks(self._there(self._context.processing, name)) if marks is None else marks

    def _indexed(self, name: str) -> Collection[str] | None:
        """Return the marks of what a task uses, if the index has them and they still apply."""
        id, _, _, _, part = name.split(".", 5)[:5]
        return None if part[0] in _NOT_ITS_OWN else self._index.marks(id)

    def first_taken(self, own: tuple[str, ...]) -> tuple[str, str, Token] | None:
        """Return one of these resources that is not free, what is in its way, and the task that uses that; None if all are free."""
        found = self.taken().first(own)
        token = None if found is None else Token.parse(found[2])
        return None if found is None or token is None else (found[0], found[1], token)
