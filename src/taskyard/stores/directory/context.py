"""What the parts of the directory store share: one yard's disk, clock, log and settings."""

from __future__ import annotations

import itertools
import os
import threading

from taskyard.core import forks, ids
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.directory.filesystem.clock import StoreClock
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.links import Links
from taskyard.stores.directory.filesystem.sharing import SharedDisk
from taskyard.stores.directory.log.intents import Writer, Writers
from taskyard.stores.directory.log.writer import LogWriter
from taskyard.stores.directory.recovery.liveness import Liveness
from taskyard.stores.directory.tasks.edits import Edits
from taskyard.stores.directory.tasks.locate import Locator
from taskyard.stores.directory.tasks.mover import Mover
from taskyard.stores.directory.tasks.ready_cache import ReadyCache
from taskyard.stores.directory.tasks.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.names import Lane

# milliseconds without a change, after which a dropped file that does not parse is rejected
_SETTLE, _SETTLE_NETWORK = 5_000, 60_000


class Context:
    """Shared by the parts of one open store."""

    def __init__(self, root: str, durability: str | None, disk: Disk | None, links: bool) -> None:
        settings, self.settings_error = layout.load_for_check(root) if links else (layout.load(root), None)
        self.root = root
        self.processing = f"{root}/processing"
        self.policy = settings.policy
        self.retention = settings.retention
        self.checks = settings.checks
        self.copy_of = settings.copy_of
        self.local = safety.is_local(root)
        self.settle = settings.settle if settings.settle is not None else _SETTLE if self.local else _SETTLE_NETWORK
        self.durability = durability or settings.durability
        self.durable = self.durability != "fast"
        self.shared = settings.shared
        self.disk = disk or _disk(root, shared=self.shared, local=self.local)
        self.clock = StoreClock(self.disk, f"{root}/tmp/clock")
        self.links = Links(self.disk, root)
        self.mover = Mover(self.disk, self.links, root, self.local, self.durable)
        self.locator = Locator(self.disk, self.links, root, self.policy.lease)
        # Mapped with durability fast: 8 system calls for a claim and a done, and 10 otherwise.
        self.writer = Writer(self.disk, f"{root}/writers", self.local, mapped=not self.durable)
        self.records = Records(self.disk, self.links, root, self.draft, self.mover.ensure)
        self.edits = Edits(self.disk, self.links, root, self.draft, self.mover.ensure)
        # On a network filesystem two clients must never append to one file, and containers share their kernel's name.
        self.kernel = kernel = _kernel()
        self.log = LogWriter(
            self.disk, root, lambda: kernel if self.local else f"{kernel}-{self.writer.open()}", self.writer
        )
        self.ready_cache = ReadyCache(self.disk, root, self.clock.now)
        self.liveness = Liveness(self.disk, root, self.local, self.draft, self.mover.ensure)
        self._drafts = itertools.count(1)
        self.renew()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Make new locks and a new source of ids; a forked child must not share its parent's."""
        self.claiming = threading.Lock()  # for the lists of what may be claimed next
        self.adding = threading.Lock()  # one adder at a time, while claims go on
        self.mint = ids.Mint()
        self.log.renew()

    def writers(self) -> Writers:
        """Return the files of all processes that have this yard open, or had."""
        return Writers(self.disk, f"{self.root}/writers", self.local, self.kernel)

    def draft(self) -> str:
        """Return a new name in tmp/ that shows which process uses it."""
        return f"{self.root}/tmp/{self.writer.open()}.{next(self._drafts)}"

    def recheck_lane(self, lane: Lane) -> None:
        """Make the next claim of this process look at this lane: an older task was put there."""
        with self.claiming:
            self.ready_cache.forget(lane.text)

    def sync_move(self, folder: str, name: str) -> None:
        """Make a rename survive a power cut: sync the directory, and the file, because btrfs may keep both names."""
        try:
            self.disk.sync(f"{folder}/{name}")
            self.disk.sync(folder)
        except (FileNotFoundError, PermissionError):
            # Moved on already, or another user's file that cannot be opened; wherever the task is now, it has to
            # survive.
            self.disk.sync_all(self.root)

    def sync_again(self, folder: str, name: str) -> None:
        """The same before an answer is repeated: the process that made the move may have failed to sync it or its folders."""
        if not self.durable:
            return
        self.sync_move(folder, name)
        try:
            while len(folder := os.path.dirname(folder)) > len(self.root):
                self.disk.sync(folder)
        except (FileNotFoundError, PermissionError):
            self.disk.sync_all(self.root)


def _disk(root: str, *, shared: bool, local: bool) -> Disk:
    """Return the disk that such a yard needs."""
    if local:
        return SharedDisk(root) if shared else Disk()
    from taskyard.stores.directory.filesystem.network import NetworkDisk, SharedNetworkDisk

    return SharedNetworkDisk(root) if shared else NetworkDisk(root)


def _kernel() -> str:
    """Return a short name of the running kernel: the same in all its containers, another one after every boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return f"pid{os.getpid()}"
