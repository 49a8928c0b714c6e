"""The base: what a file and its yard last agreed on, in a hidden file beside the file, under a lock.

It belongs to one copy of the file. In the yard it would be wrong for every other clone of a repository; in the file itself, or in
git, it would conflict at every merge. A copy without one is compared with the yard as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from taskyard.core.errors import Conflict, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

VERSION = 2
NEVER = "\0"  # what no file says
_PATIENCE = 30.0  # seconds for another sync of the same file
_PAUSE = 0.02
_KEPT = ("yard", "mission", "dialect", "text", "pending", "steps", "unseen", "published", "version", "former")


class Entry:
    """One row: its id in the file, where its task stood, and the pairs of values that were agreed on, the last one last."""

    __slots__ = ("absent", "conflicts", "endings", "fence", "first", "held", "pairs", "row", "state")

    def __init__(
        self,
        row: str,
        state: str,
        fence: int,
        pairs: list[list[dict[str, Any]]],
        conflicts: list[str],
        first: int = 0,
        absent: int = 0,
        endings: dict[str, int] | None = None,
        held: dict[str, str] | None = None,
    ) -> None:
        self.row = row
        self.state = state
        self.fence = fence
        self.pairs = pairs
        """The fields of the file and those of the yard; more than one pair only between an intention and its end."""
        self.conflicts = conflicts
        self.first = first
        """A version that had the row with its id; no earlier one had it."""
        self.absent = absent
        """The last version that had no such row."""
        self.endings = {} if endings is None else endings
        """The last version that showed the task as ended, for each such status."""
        self.held = {} if held is None else held
        """Edits of the file that the yard has refused, and that are to be tried again."""

    def agreed(self, name: str) -> list[tuple[str, str | None]]:
        """Return what was agreed on about one field; the file's value is none that the yard has refused."""
        pairs = [(file.get(name, ""), yard.get(name, "")) for file, yard in self.pairs]
        return [(NEVER if self.held.get(name) == said else said, known) for said, known in pairs]

    def known(self, state: str, fence: int) -> dict[str, str] | None:
        """Return the fields of the yard, if the task stands where it stood when they were read; None if it may have others."""
        yard = self.pairs[0][1]  # later ones are intentions
        unmoved = (self.state, self.fence) == (state, fence) and None not in yard.values()
        return dict(yard) if unmoved else None

    @property
    def file(self) -> dict[str, Any]:
        """The fields of the file, as they were last agreed on."""
        return self.pairs[-1][0]

    @property
    def yard(self) -> dict[str, Any]:
        """The fields of the yard, as they were last agreed on."""
        return self.pairs[-1][1]

    def intention(self, before: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the pair to note before the file is written.

        A conflict is none until its remark is in the file, and what the yard has refused is not agreed on.
        """
        said, known = (dict(fields) for fields in self.pairs[-1])
        for name in (*self.conflicts, *self.held):
            said[name] = before[-1][0].get(name, "") if before else NEVER
            known[name] = before[-1][1].get(name, "") if before else None
        return [said, known]

    def date_back(self, name: str, said: str, now: str | None) -> None:
        """Have the entry know that the file comes from a version which said this; what the yard said then may not be known.

        If the file says something else `now`, a person has edited those words, and has not seen what was agreed on since.
        """
        if said == self.file.get(name, ""):
            return
        older = [
            [{**file, name: said}, {**yard, name: said if yard.get(name) == said else None}]
            for file, yard in self.pairs
        ]
        self.pairs = [older[-1], *self.pairs] if now in (None, said) else older

    def announced(self, pairs: list[list[dict[str, Any]]]) -> Entry:
        """Return the row as it is noted before it is in the file, with these pairs, and without remarks about conflicts."""
        return Entry(self.row, self.state, self.fence, pairs, [], self.first, self.absent, dict(self.endings))

    def packed(self) -> list[Any]:
        """Return the entry as JSON has it."""
        return [
            self.row, self.state, self.fence, self.pairs, self.conflicts, self.first, self.absent, self.endings,
            self.held,
        ]  # fmt: skip


class Base:
    """Everything that is kept about one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.yard = ""
        self.mission: str | None = None
        self.dialect: str | None = None
        self.text: str | None = None
        """The file as the last sync left it; None if there was none."""
        self.entries: dict[str, Entry] = {}
        """By task id."""
        self.pending: dict[str, dict[str, Any]] = {}
        """By the key under which a new row is about to become a task: the `pairs` of its entry, and the rows `beside` it."""
        self.incoming: dict[str, Entry] = {}
        """Rows that are about to be in the file with an id, by task id: no entries, until they are."""
        self.version = 0
        """The number of the newest version of the file: each text that was read or written has one."""
        self.steps: list[dict[str, Any]] = []
        """What the last syncs changed in the file, the newest last (`versions`)."""
        self.unseen: list[str] | None = None
        """Tasks that an older version of the file did not have, while a sync of that version is under way."""
        self.former: dict[str, int] = {}
        """Ids of rows that were in the file once, each with the version that had it first (`lineage`)."""
        self.published: list[list[str]] | None = None
        """The conflicts that the yard was given to list (`sync.published`); None if that is not known."""
        self._read()

    @property
    def is_new(self) -> bool:
        """Whether the file was never synced here."""
        return self.text is None and not self.pending

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8", newline="") as file:
                kept = json.load(file)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self.path} cannot be read: {error}", hint=_BROKEN) from None
        if not isinstance(kept, dict) or kept.get("v") != VERSION:
            raise Unavailable(f"{self.path} is not of this version of Taskyard", hint=_BROKEN)
        for name in _KEPT:
            setattr(self, name, kept.get(name, getattr(self, name)))
        self.entries = {id: Entry(*fields) for id, fields in kept["entries"].items()}
        self.incoming = {id: Entry(*fields) for id, fields in kept["incoming"].items()}

    def save(self) -> None:
        """Write everything down, safely: a killed sync leaves the base as it was, or as it is now."""
        kept = {
            "v": VERSION,
            **{name: getattr(self, name) for name in _KEPT},
            "entries": {id: entry.packed() for id, entry in self.entries.items()},
            "incoming": {id: entry.packed() for id, entry in self.incoming.items()},
        }
        beside = f"{self.path}.new"
        try:
            with open(beside, "w", encoding="utf-8", newline="") as file:
                file.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except OSError as error:
            raise Unavailable(
                f"{self.path} cannot be written: {error.strerror or error}",
                hint="a sync keeps its notes beside the file: make the folder writable",
            ) from None


_BROKEN = (
    "it has what was agreed on with the yard; move it away and sync again: rows that differ are then shown as conflicts"
)


def beside(path: str) -> str:
    """Return where the base of the file at this path is."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.taskyard")


@contextlib.contextmanager
def locked(path: str, patience: float = _PATIENCE) -> Iterator[Base]:
    """Yield the base of the file at this path, which no other sync uses meanwhile; raise `Conflict` if one does for too long."""
    import fcntl

    name, notes = os.path.basename(path), beside(path)
    try:
        lock = os.open(f"{notes}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Unavailable(
            f"{notes}.lock cannot be made: {error.strerror or error}",
            hint="a sync keeps its notes beside the file: the folder must be there, and writable",
        ) from None
    try:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Conflict(f"another sync of {name} is under way", hint="wait for it, and sync again") from None
                time.sleep(_PAUSE)
        yield Base(notes)
    finally:
        os.close(lock)
