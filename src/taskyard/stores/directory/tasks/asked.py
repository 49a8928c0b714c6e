"""Which kinds claims ask for, and when: an empty file `asked/<kind>` for each, and `asked/@` for any kind.

A file's mtime is the moment. One process touches it once a minute, so a busy worker pays next to nothing for it.
"""

from __future__ import annotations

import time

from taskyard.core.words import decoded
from taskyard.stores.directory.names import PAUSED_ALL, paused_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

EVERY = 60.0  # seconds between two notes of the same kinds by one process
_SORTS_MOST = 1000  # sets of kinds that one process remembers
_KINDS_MOST = 1000  # files in asked/: kinds without tasks must not fill a disk


class Asked:
    """Notes what claims ask for, and reads what all processes have noted."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._folder = f"{context.root}/asked"
        self._noted: dict[frozenset[str] | None, float] = {}

    def note(self, kinds: frozenset[str] | None) -> None:
        """Note that a claim asks for these kinds, or for any; a yard that cannot be written is no reason to fail."""
        now = time.monotonic()
        if now - self._noted.get(kinds, -EVERY) < EVERY:
            return
        if len(self._noted) >= _SORTS_MOST:
            self._noted.clear()
        self._noted[kinds] = now
        try:
            for kind in (None,) if kinds is None else sorted(kinds):
                self._touch(f"{self._folder}/{paused_name(kind)}")
        except OSError:
            return

    def _touch(self, path: str) -> None:
        disk = self._context.disk
        try:
            disk.touch(path)
        except FileNotFoundError:
            if not disk.is_folder(self._folder):
                self._context.mover.ensure(self._folder, sync=False)  # a version before has made this yard
            if len(disk.listdir(self._folder)) < _KINDS_MOST:
                disk.append(path, b"")

    def read(self) -> dict[str | None, int]:
        """Return when a claim of any process last asked for each kind, and under None for any."""
        found: dict[str | None, int] = {}
        for name in self._context.locator.names(self._folder):
            try:
                kind = None if name == PAUSED_ALL else decoded(name)
                found[kind] = self._context.disk.status(f"{self._folder}/{name}").st_mtime_ns // 1_000_000
            except (ValueError, FileNotFoundError):
                continue  # not ours, or gone
        return found
