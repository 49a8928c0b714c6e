"""What the parts of the directory store share: one yard's disk, clock, log and settings."""

from __future__ import annotations

import functools
import itertools
import os
from _thread import allocate_lock

from taskyard.core import forks, ids
from taskyard.core.errors import Unavailable
from taskyard.core.resources import is_plain
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.directory.filesystem.clock import StoreClock
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.links import Links
from taskyard.stores.directory.log.intents import Writer, Writers
from taskyard.stores.directory.log.writer import LogWriter
from taskyard.stores.directory.names import Lane
from taskyard.stores.directory.tasks.locate import Locator
from taskyard.stores.directory.tasks.mover import Mover
from taskyard.stores.directory.tasks.ready_cache import ReadyCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.recovery.liveness import Liveness
    from taskyard.stores.directory.tasks.edits import Edits
    from taskyard.stores.directory.tasks.records import Records

# milliseconds without a change, after which a dropped file that does not parse is rejected
_OVERLAP = 60_000  # milliseconds in which a process of an older version may still add tasks
_SETTLE, _SETTLE_NETWORK = 5_000, 60_000


class Context:
    """Shared by the parts of one open store."""

    def __init__(self, root: str, durability: str | None, disk: Disk | None, links: bool) -> None:
        self._stamp = None if links else _stamp(root)
        settings, self.settings_error = layout.load_for_check(root) if links else (layout.load(root), None)
        self.root = root
        self.processing = f"{root}/processing"
        self.policy = settings.policy
        self.retention = settings.retention
        self.checks = settings.checks
        self.copy_of = settings.copy_of
        self.features = settings.features
        self.max_todo = settings.max_todo
        self.kinds = settings.kinds
        """The limits of kinds that have some."""
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
        # On a network filesystem two clients must never append to one file, and containers share their kernel's name.
        self.kernel = kernel = _kernel()
        self.log = LogWriter(
            self.disk, root, lambda: kernel if self.local else f"{kernel}-{self.writer.open()}", self.writer
        )
        self.ready_cache = ReadyCache(self.disk, root, self.clock.now, self.policy)
        self._drafts = itertools.count(1)
        self._missions_since: int | None = None
        self.renew()
        forks.renew_in_child(self)

    # A claim needs none of these parts. Each is imported at its first use.

    @functools.cached_property
    def records(self) -> Records:
        """How claims ended."""
        from taskyard.stores.directory.tasks.records import Records

        return Records(self.disk, self.links, self.root, self.draft, self.mover.ensure)

    @functools.cached_property
    def edits(self) -> Edits:
        """New bodies of edited tasks."""
        from taskyard.stores.directory.tasks.edits import Edits

        return Edits(self.disk, self.links, self.root, self.draft, self.mover.ensure)

    @functools.cached_property
    def liveness(self) -> Liveness:
        """Which workers are dead."""
        from taskyard.stores.directory.recovery.liveness import Liveness

        # Two threads may get here at once, and must share one instance: it has the lock of this process.
        liveness: Liveness = self.__dict__.setdefault(
            "liveness", Liveness(self.disk, self.root, self.local, self.draft, self.mover.ensure)
        )
        return liveness

    def release(self) -> None:
        """Release the lock of this process, if it holds one."""
        if "liveness" in self.__dict__:
            self.liveness.close()

    def renew(self) -> None:
        """Make new locks and a new source of ids; a forked child must not share its parent's."""
        self.claiming = allocate_lock()  # for the lists of what may be claimed next
        self.adding = allocate_lock()  # one adder at a time, while claims go on
        self.mint = ids.Mint()
        self.log.renew()

    def heed_settings(self) -> bool:
        """Work by the settings that another process has changed since they were read; return whether they have changed.

        The durability stays, and so does what other parts know of the place. Broken settings are for the next opening to refuse.
        """
        now = _stamp(self.root)
        if now == self._stamp or self._stamp is None:
            return False
        self._stamp = now
        try:
            settings = layout.load(self.root)
        except Unavailable:
            return False
        self.policy.become(settings.policy)
        self.retention, self.checks = settings.retention, settings.checks
        self.max_todo, self.kinds, self.features = settings.max_todo, settings.kinds, settings.features
        return True

    def mark_features(self, drafts: Iterable[Draft]) -> None:
        """Before a task is added that an older client would miss or misunderstand, mark the yard: that client must refuse it."""
        for draft in drafts:  # most need nothing, and a set would cost each of them more than this
            if draft.mission is not None and layout.MISSION_LANES not in self.features:
                self._mark(layout.MISSION_LANES)
            if draft.uses and layout.FOLDERS_USED not in self.features and not all(map(is_plain, draft.uses)):
                self._mark(layout.FOLDERS_USED)

    def mark_lanes(self) -> None:
        """Mark a yard that has lanes of missions without the feature: a shell made them, or a version before the feature."""
        if layout.MISSION_LANES in self.features:
            return
        lanes = (Lane.of_folder(name) for name in self.locator.names(f"{self.root}/todo"))
        if any(lane is not None and lane.text != lane.plain for lane in lanes):
            try:
                self._mark(layout.MISSION_LANES)
            except Unavailable:
                return  # another user's settings: a sweep of the owner does it

    def _mark(self, feature: str) -> None:
        layout.revised(self.root, self.disk, dict, (feature,))
        self.heed_settings()

    def writers(self) -> Writers:
        """Return the files of all processes that have this yard open, or had."""
        return Writers(self.disk, f"{self.root}/writers", self.local, self.kernel)

    def draft(self) -> str:
        """Return a new name in tmp/ that shows which process uses it."""
        return f"{self.root}/tmp/{self.writer.open()}.{next(self._drafts)}"

    def is_before_missions(self, id: str) -> bool:
        """Whether this task may be of a mission that its lane does not show: a version that knew no lanes of missions added it."""
        if self._missions_since is None:
            self._missions_since = self._read_missions_since()
        since = self._missions_since
        return since is None or (since > 0 and ids.created(id) < since)

    def has_tasks_before_missions(self) -> bool:
        """Whether there may be such tasks."""
        return self.is_before_missions("0" * ids.LENGTH)

    def know_missions(self) -> None:
        """Note, in a yard that was made before there were lanes of missions, that every task from now on is in its lane."""
        if self._missions_since is None:
            self._missions_since = self._read_missions_since()
        if self._missions_since is not None:
            return
        self.mover.ensure(f"{self.root}/{layout.MISSIONS}")
        draft = self.draft()
        self.disk.create(draft, f"{self.clock.now() + _OVERLAP}\n".encode(), self.durable)
        self.disk.publish(draft, f"{self.root}/{layout.MISSIONS}/{layout.SINCE}")

    def _read_missions_since(self) -> int | None:
        text = self.disk.read_at(f"{self.root}/{layout.MISSIONS}/{layout.SINCE}", 0, 32).strip()
        return int(text) if text.isdigit() else None

    def recheck_lane(self, lane: Lane) -> None:
        """Make the next claim of this process look at this lane: an older task was put there."""
        with self.claiming:
            self.ready_cache.forget(lane.text)

    def show_ready(self, lane: Lane, folder: str, name: str) -> None:
        """Have the next claim of this process see a task that was put into this lane."""
        with self.claiming:
            self.ready_cache.insert(lane.text, folder, name)

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


def _stamp(root: str) -> tuple[int, int, int]:
    try:
        return layout.stamp(root)
    except (OSError, ValueError):  # a path that is not UTF-8 is refused with the settings
        return 0, 0, 0


def _disk(root: str, *, shared: bool, local: bool) -> Disk:
    """Return the disk that such a yard needs."""
    if local and not shared:
        return Disk()
    if local:
        from taskyard.stores.directory.filesystem.sharing import SharedDisk

        return SharedDisk(root)
    from taskyard.stores.directory.filesystem.network import NetworkDisk, SharedNetworkDisk

    return SharedNetworkDisk(root) if shared else NetworkDisk(root)


def _kernel() -> str:
    """Return a short name of the running kernel: the same in all its containers, another one after every boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:  # the codec that is loaded already
            return file.read(8)
    except OSError:
        return f"pid{os.getpid()}"
