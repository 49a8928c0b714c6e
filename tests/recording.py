"""A disk that writes down what the directory store does to it: what PROTOCOL.md says is compared with this."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast

from taskyard import init
from taskyard.core import ids
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard

from .conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from taskyard import Claim

# What changes the disk, or makes a change survive; looking is left out.
WRITES = frozenset(
    (
        "create",
        "link",
        "move_new",
        "publish",
        "rename",
        "mkdir",
        "rmdir",
        "unlink",
        "remove",
        "remove_tree",
        "touch",
        "append",
    )
) | {"write", "sync", "sync_all", "share", "hold"}
_ID = rf"[0-9a-hjkmnp-tv-z]{{{ids.LENGTH}}}"
_SHAPES = (
    (r"tmp/\d+-[0-9a-z]{8}\.\d+", "tmp/DRAFT"),
    (r"writers/\d+-[0-9a-z]{8}", "writers/WRITER"),
    (r"keys/[0-9a-f]{2}\b", "keys/XX"),
    (r"keys/XX/[0-9a-f]{40}", "keys/XX/DIGEST"),
    (r"archive/tasks-[-T0-9]{19}-[0-9a-z]{4}", "archive/tasks-TIME-WORD"),
    (r"dead/[0-9a-hjkmnp-tv-z]{8}$", "dead/WORD"),
    (r"dead/[0-9a-f]{40}\.json\.[0-9a-hjkmnp-tv-z]{8}", "dead/DIGEST.json.WORD"),
    (rf"\b{_ID}\b", "ID"),
    (r"/[0-9a-hjkmnp-tv-z]{8}\.\d+\.\d{13}\.(\d+|-)\.(ID|-)\.", "/IDENTITY.NUMBER.DUE.TICK.TASK."),
    (r"(waiting|deadlines)/\d{4}-\d\d-\d\d(T\d\d(-\d\d)?)?", r"\1/BUCKET"),
    (r"(deadlines/BUCKET/.*)\.\d{12,13}\b", r"\1.DUE"),
    (r"/[0-9a-hjkmnp-tv-z]{4}(?=/|$)", "/SEG"),
    (r"\bID\.(\d+)\.[0-9a-z]{8}\d+", r"ID.\1.NONCE"),
    (r"\b(ada|bob)-[0-9a-z]{8}\d+", r"\1-NONCE"),
    (r"\bID\.[0-9a-hjkmnp-tv-z]{8}\.json", "ID.BODY.json"),
    (r"\.b[0-9a-hjkmnp-tv-z]{8}\b", ".bBODY"),
    (r"\.d\d{13}\b", ".dDUE"),
    (r"\.l\d+\b", ".lLEASE"),
    (r"stale-[0-9a-f]{12}", "stale-DIGEST"),
    (r"\+[0-9a-f]{16}\b", "+DIGEST"),
    (r"turns/\d+", "turns/N"),
)


class Recorder:
    """Passes every call on to a real disk; `lines` are the writing ones, in PROTOCOL.md's words."""

    def __init__(self, root: str) -> None:
        self.lines: list[str] = []
        self._root = root
        self._disk = Disk()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._disk, name)

        def recorded(*args: Any, **options: Any) -> Any:
            # Written down after the call: one that failed has changed nothing, nor has one that found nothing to remove.
            vain = name in ("remove", "remove_tree") and not os.path.lexists(args[0])
            answer = call(*args, **options)
            if name in WRITES and not vain and not (name == "link" and not answer):
                self.lines.append(self._line(name, args, options))
            return answer

        return recorded

    def _line(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
        paths = [self._path(arg) for arg in args if isinstance(arg, str)]
        if name == "sync_all":
            paths = []  # it is always the whole filesystem
        if name == "write":
            paths = ["events/HOUR.KERNEL.jsonl"]
        if name in ("remove", "remove_tree"):
            name = "unlink" if name == "remove" else "remove"
        if name == "create" and (options.get("sync") or args[-1] is True):
            paths.append("+ fsync")
        return " ".join((name, *paths))

    def _path(self, path: str) -> str:
        text = os.path.relpath(path, self._root)
        for shape, word in _SHAPES:
            text = re.sub(shape, word, text)
        return text


class Stage:
    """A yard in which each verb has been played once already, so that a second time shows what it takes by itself."""

    def __init__(self, path: Path, durability: str) -> None:
        init(path, durability=durability).close()
        self.path = path
        self.disk = Recorder(str(path))
        self.store = DirectoryStore(str(path), None, cast("Disk", self.disk))
        self.store.policy.sweep_every = 1e6  # no sweep but those that are asked for
        self.yard = Yard(self.store, "ada")

    def claimed(self, lease: float | None = None) -> Claim:
        self.yard.add("build")
        claim = self.yard.claim(lease=lease)
        assert claim is not None
        return claim

    def lapsed(self) -> Claim:
        claim = self.claimed(lease=0.001)
        self.until_overdue(1)
        return claim

    def drop(self, text: str) -> None:
        """Put a file into the drop box, as anybody may."""
        (self.path / "todo" / "order.json").write_text(text)

    def until_overdue(self, number: int) -> None:
        """Wait until so many moves are due to the janitor."""
        wait_until(lambda: len(self.store.upkeep.overdue(number)) == number)

    def record(self, play: Callable[[], object]) -> list[str]:
        self.disk.lines.clear()
        play()
        return list(self.disk.lines)
