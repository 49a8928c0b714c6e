"""Removes entries of `children/` whose parent or child is gone: the parent was pruned, or the child was never added."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.stores.directory.layout import CHILDREN
from taskyard.stores.directory.recovery.segments import PATIENCE, is_left
from taskyard.stores.directory.tasks.children import Children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.recovery.missing import Missing

_PER_ROUND = 5_000  # milliseconds: each sweep takes the next segment
_LOOKUPS = 50  # parents, and children, that one round looks up


class ChildRecovery:
    """Tidies some entries of one segment, chosen by the clock and by chance."""

    def __init__(self, context: Context, missing: Missing) -> None:
        self._context = context
        self._top = f"{context.root}/{CHILDREN}"
        self._names = context.locator.names
        self._children = Children(context)
        self._missing = missing

    def walk(self, now: int) -> int:
        """Tidy this round's segment; return how many entries and folders were removed."""
        segments = sorted(filter(ids.is_segment, self._names(self._top)))
        if not segments:
            return 0
        segment = segments[now // _PER_ROUND % len(segments)]
        try:
            removed = self._tidy(segment, now)
        except PermissionError:
            return 0  # another user's folder: its content is unknown, so nothing counts as gone
        self._context.mover.drop(f"{self._top}/{segment}")
        return removed

    def _tidy(self, segment: str, now: int) -> int:
        parents = _some(filter(ids.is_id, self._names(f"{self._top}/{segment}")))
        gone = self._gone({parent: self._children.folder(parent) for parent in parents}, now)
        for parent in gone:
            self._children.forget_all(parent)
        entries = {
            child: parent for parent in parents if parent not in gone for child in _some(self._children.entries(parent))
        }
        some = _some(entries)
        lost = self._gone({child: f"{self._children.folder(entries[child])}/{child}" for child in some}, now)
        for child in lost:
            self._children.forget(entries[child], child)
        for parent in parents:
            self._context.mover.drop(self._children.folder(parent))
        return len(gone) + len(lost)

    def _gone(self, paths: dict[str, str], now: int) -> list[str]:
        """Return those of these tasks that are gone, and whose entries have not changed for long."""
        old = [id for id, path in paths.items() if is_left(self._context.disk, path, now)]
        there = self._context.locator.several(old) if old else {}
        return [id for id in old if id not in there and not self._is_coming(id) and self._is_gone(id, now)]

    def _is_coming(self, id: str) -> bool:
        return self._context.disk.exists(f"{self._context.root}/tmp/{id}.json")

    def _is_gone(self, id: str, now: int) -> bool:
        return self._missing.is_gone(id, now, PATIENCE)


def _some(names: Iterable[str]) -> list[str]:
    """Return a few of these names, by chance: other sweeps take others."""
    return sorted(names, key=lambda _: ids.chance(16))[:_LOOKUPS]
