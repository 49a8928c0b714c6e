"""A spool on disk: one JSON file for each entry, written whole before it has its name.

todo/<number>.json      to be replayed, in the order of the numbers; the folder is there only while it has entries
failed/<number>.json    what the yard has refused, with the error, for a person to read
ids/<id>                the id that the yard gave to a task, where that is another than the one that was promised
tmp/                    what is being written
last                    the last number; locked while one is drawn
replay.lock             locked by the one process that replays
"""

from __future__ import annotations

import fcntl
import os
import time

from taskyard.core import ids, json_codec, times
from taskyard.core.errors import Invalid, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

_SUFFIX = ".json"
_TMP_KEPT = 86_400.0  # seconds until what a killed writer left is removed: it was never acknowledged
_WRITABLE_BY_OTHERS = 0o022


class Folder:
    """The spool of one yard."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._todo = f"{path}/todo"
        self._failed = f"{path}/failed"

    def has_entries(self) -> bool:
        """Whether there may be something to replay: one stat, which every command pays for."""
        try:
            os.stat(self._todo)
        except OSError:
            return False
        return True

    def is_there(self) -> bool:
        """Whether the yard was reached from this machine before, or something was kept for it."""
        return os.path.isdir(self.path)

    def note_yard(self) -> None:
        """Note that the yard was reached from this machine; a place that cannot be written is left alone."""
        try:
            os.makedirs(self.path, 0o700, exist_ok=True)
        except OSError:
            return

    def put(self, entry: Entry) -> str:
        """Keep an entry behind all that were kept before, and return its name; at the return it is on the disk."""
        try:
            self._prepare()
            number = self._next_number()
            name = f"{number:020d}"
            self._publish({"v": 1, "at": times.rfc3339(number // 1_000_000), **entry}, self._todo, name)
        except OSError as error:
            raise Unavailable(
                f"the spool in {self.path} cannot be written: {error.strerror or error}",
                hint="make that place writable, or name another one with $TASKYARD_SPOOL",
            ) from None
        return name

    def _prepare(self) -> None:
        for name in ("", "tmp", "failed", "ids"):
            os.makedirs(f"{self.path}/{name}", 0o700, exist_ok=True)
        self._refuse_others()

    def _refuse_others(self) -> None:
        """Raise `Invalid` if somebody else could have written what is in this folder: it would be replayed as this user's."""
        about = os.stat(self.path)
        if about.st_uid not in (os.geteuid(), 0) or about.st_mode & _WRITABLE_BY_OTHERS:
            raise Invalid(
                f"the spool in {self.path} belongs to another user, or others can write there",
                hint="name a folder of your own with $TASKYARD_SPOOL",
            )

    def _next_number(self) -> int:
        """Draw a number higher than any before: the time in nanoseconds, also where the clock was set back."""
        file = os.open(f"{self.path}/last", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            last = os.pread(file, 32, 0)
            number = max(time.time_ns(), int(last) + 1 if last.isdigit() else 0)
            os.pwrite(file, b"%020d" % number, 0)
            return number
        finally:
            os.close(file)

    def _publish(self, entry: Entry, folder: str, name: str) -> None:
        """Write a file whole, and then give it its name."""
        draft = f"{self.path}/tmp/{name}.{ids.base32(ids.chance(40), 8)}"
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            content = memoryview(_encoded(entry))
            while content:
                content = content[os.write(file, content) :]
            os.fsync(file)
        finally:
            os.close(file)
        while True:
            try:
                os.rename(draft, f"{folder}/{name}{_SUFFIX}")
                break
            except FileNotFoundError:
                if not os.path.lexists(draft):
                    raise  # another process has cleaned up here
                # a replay that found nothing more has removed the folder
                os.makedirs(folder, 0o700, exist_ok=True)
                _sync(self.path)
        _sync(folder)

    # Replaying

    def replaying(self) -> _Replaying:
        """A block in which this caller may replay, if it is the only one."""
        self._refuse_others()
        return _Replaying(f"{self.path}/replay.lock")

    def names(self, *, failed: bool = False) -> list[str]:
        """Return the names of the entries that wait, or that were refused, in their order."""
        try:
            listed = os.listdir(self._failed if failed else self._todo)
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(_SUFFIX) for name in listed if name.endswith(_SUFFIX))

    def read(self, name: str, *, failed: bool = False) -> Entry | None:
        """Return an entry; None if another process has removed it. Raise `Invalid` for one that cannot be read."""
        try:
            with open(f"{self._failed if failed else self._todo}/{name}{_SUFFIX}", "rb") as file:
                entry = json_codec.decode(file.read())
        except FileNotFoundError:
            return None
        except ValueError:
            raise Invalid("the file is no JSON") from None
        if not isinstance(entry, dict):
            raise Invalid("the file is no JSON object")
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry that the yard has taken in."""
        os.unlink(f"{self._todo}/{name}{_SUFFIX}")

    def refuse(self, name: str, entry: Entry | None, error: dict[str, Any]) -> None:
        """Keep an entry that the yard has refused, with the error; one that cannot be read is kept as it is."""
        if entry is None:
            os.rename(f"{self._todo}/{name}{_SUFFIX}", f"{self._failed}/{name}{_SUFFIX}")
            return
        self._publish({**entry, "error": error}, self._failed, name)
        self.remove(name)

    def give_back(self) -> None:
        """Have all entries that were refused replayed again, in their old places; only by the one who replays.

        An entry that is being refused has both names for a moment, and to move the one would lose it with the other.
        """
        for name in self.names(failed=True):
            os.makedirs(self._todo, 0o700, exist_ok=True)
            os.rename(f"{self._failed}/{name}{_SUFFIX}", f"{self._todo}/{name}{_SUFFIX}")

    def tidy(self) -> None:
        """Remove the folder of entries if it is empty, and what killed writers left long ago."""
        try:
            os.rmdir(self._todo)
        except OSError:
            pass  # a new entry has come
        for name in os.listdir(f"{self.path}/tmp"):
            path = f"{self.path}/tmp/{name}"
            try:
                if time.time() - os.stat(path).st_mtime > _TMP_KEPT:
                    os.unlink(path)
            except FileNotFoundError:
                continue

    def note_id(self, promised: str, given: str) -> None:
        """Keep under which id the yard has a task that was promised another one."""
        path = f"{self.path}/ids/{promised}"
        if not os.path.lexists(path):
            os.symlink(given, path)  # a text in one call, which leads nowhere

    def id_of(self, promised: str) -> str:
        """Return the id that the yard has given to a task, which is the promised one unless another was noted."""
        try:
            return os.readlink(f"{self.path}/ids/{promised}")
        except OSError:
            return promised


def _encoded(entry: Entry) -> bytes:
    """Return an entry as JSON; a path need not be UTF-8, and comes back from escapes as it was."""
    try:
        return json_codec.compact(entry).encode()
    except UnicodeEncodeError:
        import json

        return json.dumps(entry).encode()


def _sync(folder: str) -> None:
    """Put the names in this folder onto the disk; a replay that took in the last of them has removed the folder."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(file)
    finally:
        os.close(file)


class _Replaying:
    """Gives whether this caller alone may replay now; the lock goes with the process, also if it is killed."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> bool:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except BaseException:
            os.close(self._file)
            raise
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
