"""A model filesystem: what every process sees now, and what a power cut may leave of it.

Every change of a name is kept as one version of that name until it is synced, so that a power cut can take back any of
them that a real filesystem might lose. The rules, each as it was measured or is promised by a filesystem:

- fsync of a file keeps its content and, as ext4, xfs and btrfs do, what became of its names by rename;
- fsync of a folder keeps the names in it, but not that a name which was renamed into it is gone where it came from
  (btrfs came back with both names);
- of a rename the old name never goes unless the new one comes;
- everything else may be kept or lost, each change by itself.
"""

from __future__ import annotations

import itertools
from errno import EEXIST, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY
from os import strerror
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

MASK = (1 << 64) - 1
CLOCK = "the clock"
PAGE = 1 << 16  # bytes of a log, and
MARKER = (
    1 << 10
)  # bytes of a segment's marker after its line: sizes are told in steps of these, because all ask only if it is full


class Node:
    """A file or a folder."""

    __slots__ = (
        "content",
        "ctime",
        "folder",
        "ino",
        "is_log",
        "is_marker",
        "locks",
        "mark",
        "mtime",
        "nlink",
        "synced",
    )

    def __init__(self, ino: int, folder: bool, now: int) -> None:
        self.ino = ino
        self.folder = folder
        self.content = b""
        self.synced: bytes | None = None
        """What a power cut leaves at least; None if the file was never synced."""
        self.ctime = self.mtime = now
        self.nlink = 0
        self.locks: dict[int, bool] = {}
        """Open files that hold a lock, each with whether it is exclusive."""
        self.is_log = False
        self.is_marker = False
        self.mark = 0
        """The number for all that can be seen of it, when it was last counted."""

    def copy(self) -> Node:
        twin = Node.__new__(Node)
        twin.ino, twin.folder, twin.content, twin.synced = self.ino, self.folder, self.content, self.synced
        twin.ctime, twin.mtime, twin.nlink = self.ctime, self.mtime, self.nlink
        twin.locks, twin.mark, twin.is_log, twin.is_marker = dict(self.locks), self.mark, self.is_log, self.is_marker
        return twin

    def counted(self) -> int:
        """A number for all that can be seen of it; the lines of a log count in any order."""
        content = sum(map(hash, self.content.split(b"\n"))) if self.is_log else hash(self.content)
        self.mark = hash((self.ino, content, self.ctime, self.nlink, tuple(sorted(self.locks.items()))))
        return self.mark

    @property
    def grows(self) -> bool:
        """Whether it is appended to by many, who do not mind one another."""
        return self.is_log or self.is_marker

    @property
    def told(self) -> int:
        """How long it is, as far as anybody asks."""
        size = len(self.content)
        if self.is_log:
            return size - size % PAGE
        line = self.content.find(b"\n") + 1
        return size - (size - line) % MARKER if self.is_marker else size


Versions = list[tuple[int, int | None]]


class Files:
    """All names and files; a path is absolute, and its folder is known by its path because folders are never renamed."""

    def __init__(self) -> None:
        self.now = 0
        self.names: dict[str, dict[str, int]] = {"": {}}
        self.nodes: dict[int, Node] = {}
        self.mark = 0
        self.seen: list[tuple[str, object]] = []
        """What the last call read ("r"), changed ("w") or appended to ("a")."""
        self.overwritten: str | None = None
        """The path at which the last rename has put an end to another file."""
        self._versions: dict[tuple[str, str], Versions] = {}
        self._renames: list[tuple[int, tuple[str, str], tuple[str, str], int]] = []
        self._changes = itertools.count(1)
        self._own_nodes = {0}
        self._own_folders = {""}
        """What no other copy of this disk has as well: it can be changed where it is."""
        self.nodes[0] = Node(0, True, 0)

    def copy(self) -> Files:
        """The same, to go on from; as if all of it were synced."""
        for ino in self.nodes:
            node = self._own(ino)
            node.synced = node.content
        return self.fork()

    def fork(self) -> Files:
        """The same, to go on from; but for what a power cut could undo. What neither changes they have in common."""
        twin = Files.__new__(Files)
        twin.now, twin.mark = self.now, self.mark
        twin.names, twin.nodes = self.names.copy(), self.nodes.copy()
        twin.seen, twin.overwritten = [], None
        twin._versions, twin._renames, twin._changes = {}, [], itertools.count(1)
        self._own_nodes, self._own_folders = set(), set()
        twin._own_nodes, twin._own_folders = set(), set()
        return twin

    def _own(self, ino: int) -> Node:
        """The file, to be changed here and nowhere else."""
        if ino not in self._own_nodes:
            self._own_nodes.add(ino)
            self.nodes[ino] = self.nodes[ino].copy()
        return self.nodes[ino]

    def _names(self, folder: str) -> dict[str, int]:
        """The names in a folder, to be changed here and nowhere else."""
        if folder not in self._own_folders:
            self._own_folders.add(folder)
            self.names[folder] = self.names[folder].copy()
        return self.names[folder]

    # Reader

    def split(self, path: str) -> tuple[str, str]:
        """The folder, which must be there, and the name in it."""
        folder, _, name = path.rpartition("/")
        self.seen.append(("r", ("name", folder)))
        if folder not in self.names:
            over, _, last = folder.rpartition("/")
            is_file = last in self.names.get(over, ())
            raise OSError(ENOTDIR if is_file else ENOENT, strerror(ENOTDIR if is_file else ENOENT), path)
        return folder, name

    def find(self, path: str) -> Node:
        """What has this name."""
        node = self.look(path)
        if node is None:
            raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
        return node

    def look(self, path: str) -> Node | None:
        """What has this name, or None."""
        if path == "/":
            return self.nodes[0]
        folder, name = self.split(path)
        self.seen.append(("r", ("name", path)))
        ino = self.names[folder].get(name)
        return None if ino is None else self.nodes[ino]

    def read(self, node: Node) -> None:
        """Somebody looks at the file itself."""
        self.seen.append(("r", ("file", node.ino)))

    def listed(self, path: str) -> list[str]:
        """The names in a folder."""
        node = self.find(path)
        if not node.folder:
            raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR), path)
        self.seen.append(("r", ("list", path)))
        return sorted(self.names[path])

    def picture(self) -> object:
        """All that can be seen of it, whatever numbers its files have."""
        numbers: dict[int, int] = {}
        seen = []
        for folder in sorted(self.names):
            for name, ino in sorted(self.names[folder].items()):
                node = self.nodes[ino]
                content = tuple(sorted(node.content.split(b"\n"))) if node.is_log else node.content
                seen.append((folder, name, numbers.setdefault(ino, len(numbers)), content, node.mtime, node.ctime))
        return hash(tuple(seen))

    # Changing

    def touched(self, node: Node, content: bytes | None = None, how: str = "w") -> None:
        """Something was done to the file: its time is now; perhaps with this new content."""
        self.seen.append(("r", CLOCK))
        if content is None and node.ctime == self.now:
            return
        node = self._own(node.ino)
        if content is not None:
            node.content = content
        if not (node.grows and how == "a"):
            node.ctime = self.now
            node.mtime = node.mtime if content is None else self.now
        self._note(node)
        self.seen.append((how if node.grows else "w", ("file", node.ino)))

    def locked(self, node: Node, holder: int, exclusive: bool | None) -> bool:
        """Whether this open file has the lock now; None lets go of it."""
        self.read(node)
        others = [kind for other, kind in node.locks.items() if other != holder]
        if exclusive is not None and (any(others) or (exclusive and others)):
            return False
        node = self._own(node.ino)
        if exclusive is None:
            if node.locks.pop(holder, None) is not None:
                self.seen.append(("w", ("file", node.ino)))
        else:
            node.locks[holder] = exclusive
            self.seen.append(("w", ("file", node.ino)))
        self._note(node)
        return True

    def made(self, path: str, ino: int, folder: bool) -> Node:
        """A new file or folder of this name."""
        at, name = self.split(path)
        if self.look(path) is not None:
            raise FileExistsError(EEXIST, strerror(EEXIST), path)
        node = self.nodes[ino] = Node(ino, folder, self.now)
        self._own_nodes.add(ino)
        node.is_log = "/events/" in path
        self._note(node)
        if folder:
            self.names[path] = {}
            self._own_folders.add(path)
        self._enter(at, name, ino)
        return node

    def linked(self, path: str, second: str) -> None:
        """A second name for a file."""
        node = self.find(path)
        at, name = self.split(second)
        if self.look(second) is not None:
            raise FileExistsError(EEXIST, strerror(EEXIST), second)
        self._enter(at, name, node.ino)

    def renamed(self, path: str, target: str) -> None:
        """Another name for a file; whatever had it is gone."""
        node = self.find(path)
        source, (at, name) = self.split(path), self.split(target)
        there = self.look(target)
        self.overwritten = None
        if there is node:
            return  # two names of one file: nothing happens, and both stay
        if there is not None and there.folder:
            raise IsADirectoryError(EISDIR, strerror(EISDIR), target)
        change = next(self._changes)
        if there is not None:
            self.overwritten = target
            self._leave(at, name, change)
        self._enter(at, name, node.ino, change)
        self._leave(*source, change)
        self._renames.append((change, source, (at, name), node.ino))
        self.touched(self.nodes[node.ino])

    def unlinked(self, path: str) -> None:
        """The name is gone."""
        node = self.find(path)
        if node.folder:
            raise IsADirectoryError(EISDIR, strerror(EISDIR), path)
        self._leave(*self.split(path))

    def removed(self, path: str) -> None:
        """An empty folder is gone."""
        node = self.find(path)
        if not node.folder:
            raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR), path)
        self.seen.append(("r", ("list", path)))
        if self.names[path]:
            raise OSError(ENOTEMPTY, strerror(ENOTEMPTY), path)
        self._leave(*self.split(path))
        del self.names[path]

    def _enter(self, folder: str, name: str, ino: int, change: int = 0) -> None:
        node = self._own(ino)
        node.nlink += 1
        node.ctime = self.now
        node.is_marker = folder.endswith("/segments") and "-" not in name
        self._note(node)
        self._names(folder)[name] = ino
        self._changed(folder, name, ino, change)

    def _leave(self, folder: str, name: str, change: int = 0) -> None:
        ino = self._names(folder).pop(name)
        node = self._own(ino)
        node.nlink -= 1
        node.ctime = self.now
        self._note(node)
        self._changed(folder, name, None, change, ino)

    def _changed(self, folder: str, name: str, ino: int | None, change: int, old: int | None = None) -> None:
        self.seen.append(("r", CLOCK))
        entry = hash((folder, name, ino if ino is not None else old))
        self.mark = (self.mark + (entry if ino is not None else -entry)) & MASK
        kept = self._versions.setdefault((folder, name), [(0, None if old is None else old)])
        kept.append((change or next(self._changes), ino))
        path = f"{folder}/{name}"
        # Two changes of different names in one folder do not mind one another; whoever lists the folder does.
        self.seen += [("w", ("name", path)), ("a", ("list", folder))]
        touched = ino if ino is not None else old
        if touched is not None:
            self.seen.append(("w", ("file", touched)))
        if folder:
            above, _, last = folder.rpartition("/")
            node = self.nodes[self.names[above][last]]
            if node.ctime != self.now:
                node = self._own(node.ino)
                node.mtime = node.ctime = self.now
                self._note(node)
                self.seen.append(("a", ("file", node.ino)))

    def _note(self, node: Node) -> None:
        """The file was changed: its number counts anew."""
        before = node.mark
        self.mark = (self.mark + node.counted() - before) & MASK

    # Power

    def sync(self, node: Node, path: str) -> None:
        """What was written to this file, and what became of its names; or the names in this folder."""
        if node.folder:
            for slot in [slot for slot in self._versions if slot[0] == path]:
                self._versions[slot] = self._versions[slot][-1:]
            return
        node = self._own(node.ino)
        node.synced = node.content
        for change, source, target, ino in self._renames:
            if ino == node.ino:
                for slot in (source, target):
                    self._keep(slot, change)

    def sync_all(self) -> None:
        """Everything."""
        self._versions.clear()
        self._renames.clear()
        for ino in self.nodes:
            node = self._own(ino)
            node.synced = node.content

    def _keep(self, slot: tuple[str, str], change: int) -> None:
        versions = self._versions.get(slot)
        if versions is not None:
            at = max((i for i, (number, _) in enumerate(versions) if number <= change), default=0)
            self._versions[slot] = versions[at:]

    def unsynced(self) -> int:
        """In how many ways a power cut could come out, at the most."""
        ways = 1
        for versions in self._versions.values():
            ways *= len(versions)
        for node in self.nodes.values():
            ways *= len(self._contents(node))
        return ways

    def after_power_cut(self, most: int, chance: Random) -> Iterator[Files]:
        """What a power cut may leave: every way if there are not too many, else so many of them by chance."""
        slots = [slot for slot, versions in self._versions.items() if len(versions) > 1]
        loose = [node for node in self.nodes.values() if len(self._contents(node)) > 1]
        if self.unsynced() <= most:
            names = itertools.product(*(range(len(self._versions[slot])) for slot in slots))
            for picked in names:
                chosen = dict(zip(slots, picked, strict=True))
                if self._is_possible(chosen):
                    for contents in itertools.product(*map(self._contents, loose)):
                        yield self._left(chosen, {n.ino: c for n, c in zip(loose, contents, strict=True)})
            return
        for number in range(most):
            weight = (0.1, 0.5, 0.9)[number % 3]  # most is lost, half of it, little of it
            chosen = {}
            for slot in slots:
                last = len(self._versions[slot]) - 1
                chosen[slot] = last if chance.random() > weight else chance.randint(0, last)
            if self._is_possible(chosen):
                yield self._left(chosen, {node.ino: chance.choice(self._contents(node)) for node in loose})

    def _contents(self, node: Node) -> list[bytes]:
        """What may be left of a file's content."""
        if node.folder or node.synced == node.content or not node.nlink:
            return [node.content]
        if node.synced is None:
            return list(dict.fromkeys((node.content, b"", node.content[: len(node.content) // 2])))
        return [node.content, node.synced]

    def _is_possible(self, chosen: dict[tuple[str, str], int]) -> bool:
        """Of a rename the old name never goes unless the new one comes; and a name needs its folder."""
        for change, source, target, _ in self._renames:
            if self._reached(source, chosen) >= change > self._reached(target, chosen):
                return False
        return True

    def _reached(self, slot: tuple[str, str], chosen: dict[tuple[str, str], int]) -> int:
        """The last change of this name that the power cut has left."""
        versions = self._versions.get(slot)
        if versions is None:
            return 1 << 60
        at = chosen.get(slot, len(versions) - 1)
        return versions[at][0] if at < len(versions) - 1 else 1 << 60

    def _left(self, chosen: dict[tuple[str, str], int], contents: dict[int, bytes]) -> Files:
        left = Files()
        left.now = self.now
        left.nodes[0] = self.nodes[0].copy()
        left.nodes[0].mark = 0
        slots: dict[str, dict[str, int]] = {folder: dict(names) for folder, names in self.names.items()}
        for (folder, name), at in chosen.items():
            ino = self._versions[folder, name][at][1]
            names = slots.setdefault(folder, {})
            names.pop(name, None)
            if ino is not None:
                names[name] = ino
        left._fill("", slots, self, contents)
        return left

    def _fill(self, folder: str, slots: dict[str, dict[str, int]], old: Files, contents: dict[int, bytes]) -> None:
        """Only what can be reached from the top is left."""
        self.names[folder] = {}
        self._own_folders.add(folder)
        for name, ino in slots.get(folder, {}).items():
            node = self.nodes.get(ino)
            if node is None:
                node = self.nodes[ino] = old.nodes[ino].copy()
                node.nlink, node.locks, node.mark = 0, {}, 0
                self._own_nodes.add(ino)
                node.content = node.synced = contents.get(ino, node.content)
            node.nlink += 1
            self.names[folder][name] = ino
            self.mark = (self.mark + hash((folder, name, ino))) & MASK
            if node.folder:
                self._fill(f"{folder}/{name}", slots, old, contents)
        if not folder:
            for node in self.nodes.values():
                self._note(node)
