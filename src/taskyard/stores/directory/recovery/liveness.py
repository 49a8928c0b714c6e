"""Which workers are dead: a living worker holds a lock on its file, `workers/<worker>-<incarnation>`.

A lock is trusted only where it cannot be wrong: on the same boot of the same kernel, on one and the same file. The
filesystem must be used by this kernel only. Everywhere else, and where there is no such file, leases alone count. A
lock that is held does not extend a lease.
"""

from __future__ import annotations

import os

from taskyard.core import forks
from taskyard.core.json_codec import decode, encode
from taskyard.core.words import encoded
from taskyard.stores.directory.filesystem import safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.filesystem.disk import Disk

INCARNATION = 8  # characters of a nonce that all claims of one process share
BOOT = "/proc/sys/kernel/random/boot_id"


class Liveness:
    """The lock of this process, and a look at those of others."""

    def __init__(
        self, disk: Disk, root: str, local: bool, draft: Callable[[], str], ensure: Callable[[str], None]
    ) -> None:
        self._disk = disk
        self._folder = f"{root}/workers"
        self._local = local
        self._draft = draft
        self._ensure = ensure
        self._own: tuple[str, int] | None = None
        self._trusted: str | None = None
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Close the child's copy of the lock after a fork: it must not outlive its parent's death, nor be released."""
        own, self._own = self._own, None
        if own is not None:
            os.close(own[1])

    def vouch(self, worker: str, incarnation: str) -> int | None:
        """Lock this process's own file, and return the descriptor; None where locks are not trusted."""
        kernel = self._kernel()
        if not kernel:
            return None
        if self._own is None:
            path = f"{self._folder}/{encoded(worker)}-{incarnation}"

            def content(status: os.stat_result) -> bytes:
                note = {"kernel": kernel, "device": status.st_dev, "inode": status.st_ino, "pid": os.getpid()}
                return encode(note).encode() + b"\n"

            self._ensure(self._folder)
            self._own = (path, self._disk.hold(self._draft(), path, content))
        return self._own[1]

    def is_dead(self, worker: str | None, nonce: str | None) -> bool:
        """Whether the process that made this claim is certainly dead."""
        if worker is None or nonce is None:
            return False
        path = f"{self._folder}/{encoded(worker)}-{nonce[:INCARNATION]}"
        try:
            held, status, content = self._disk.held(path)
            note = {} if held else decode(content)
            same = (note.get("device"), note.get("inode")) == (status.st_dev, status.st_ino)
        except (OSError, ValueError, AttributeError, RecursionError):
            return False  # no file, or none that can be read: the lease decides
        return not held and same and note.get("kernel") == self._kernel() != ""

    def cached_is_dead(self) -> Callable[[str | None, str | None], bool]:
        """Return a cached `is_dead` for many claims, with one look at each process."""
        known: dict[tuple[str | None, str], bool] = {}

        def is_dead(worker: str | None, nonce: str | None) -> bool:
            key = (worker, (nonce or "")[:INCARNATION])
            if key not in known:
                known[key] = self.is_dead(worker, nonce)
            return known[key]

        return is_dead

    def remove_dead(self, claimed: Callable[[str], bool]) -> int:
        """Remove the files of dead workers that no claim refers to any more; return how many."""
        removed = 0
        for name in self._disk.listdir(self._folder):
            worker, _, incarnation = name.rpartition("-")
            path = f"{self._folder}/{name}"
            try:
                held = self._disk.held(path)[0]
            except OSError:
                continue
            if not held and self._kernel() and worker and not claimed(incarnation):
                self._disk.remove(path)
                removed += 1
        return removed

    def _kernel(self) -> str:
        """Return the id of this boot, or "" where locks are not trusted."""
        if self._trusted is None:
            self._trusted = ""
            if self._local and safety.filesystem(os.path.realpath(self._folder)) in safety.LOCAL:
                try:
                    with open(BOOT, encoding="ascii") as file:
                        self._trusted = file.read().strip()
                except OSError:
                    pass
        return self._trusted

    def close(self) -> None:
        """Release the lock: claims that this process still holds are judged by their leases alone."""
        own, self._own = self._own, None
        if own is not None:
            try:
                self._disk.remove(own[0])
            finally:
                self._disk.close(own[1])
