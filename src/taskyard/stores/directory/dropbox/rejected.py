"""Rejected files: `failed/<stem>.json` as it came, and `failed/<stem>.reason` beside it in words.

No file is ever deleted: corrected by hand, it returns to the drop box with `retry <stem>`.
"""

from __future__ import annotations

from taskyard.core.errors import Conflict, NotFound
from taskyard.core.ids import base32, chance
from taskyard.core.times import rfc3339
from taskyard.stores.directory.names import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

BOX = ".drop"
_STEM_MOST = 190  # bytes: leaves space for the suffixes within a file name

_REASON_MOST = 1 << 14  # bytes of a reason that are shown; ours are one line


class Rejected:
    """Rejects files, lists them and returns them to the drop box."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root

    def put(self, path: str, stem: str, reason: str) -> str | None:
        """Move the file to failed/ under its own stem, or one like it; None if another process was first."""
        taken = self.box(stem)
        try:
            self._disk.rename(path, taken)
        except FileNotFoundError:
            if not self._context.mover.was_mine(*taken.rsplit("/", 1)):
                return None
        name = stem = stem_of(taken)
        try:
            while not self.renamed(taken, f"{self._root}/failed/{name}{SUFFIX}"):
                name = f"{stem}~{base32(chance(20), 4)}"
        except OSError:
            self.undo(taken, path)
            raise
        draft = self._context.draft()
        try:
            self._disk.create(draft, f"{reason}\n".encode("utf-8", "backslashreplace"), sync=False)
            self._disk.rename(draft, f"{self._root}/failed/{name}.reason")
        except OSError:
            self._disk.remove(draft)  # no space even for the reason; the file itself is safe, and the log has it
        return name

    def undo(self, box: str, path: str) -> None:
        """Move the file back to where it was, by a plain rename, which needs no space."""
        if self._disk.exists(box) and not self._disk.exists(path):
            self._disk.rename(box, path)

    def box(self, stem: str) -> str:
        """Return a name in tmp/ for a file that is being taken in; if this process dies, the file returns under its stem."""
        while len(stem.encode("utf-8", "surrogateescape")) > _STEM_MOST:
            stem = stem[:-1]
        return f"{self._context.draft()}.{stem}{BOX}"

    def is_placed(self, box: str) -> bool:
        """Whether the file under this name has another one already, in failed/ or back in the drop box."""
        stem = stem_of(box)
        for folder in ("failed", "todo"):
            for name in self._context.locator.names(f"{self._root}/{folder}"):
                if name.startswith(stem) and self._disk.same_file(box, f"{self._root}/{folder}/{name}"):
                    return True
        return False

    def list(self) -> list[dict[str, str | None]]:
        """Return the rejected files: name, reason and time, by name."""
        entries = []
        for name in sorted(self._context.locator.names(f"{self._root}/failed")):
            if name.endswith(SUFFIX):
                stem = name[: -len(SUFFIX)]
                entries.append({"name": shown(stem), "reason": self._reason(stem), "at": self._at(name)})
        return entries

    def give_back(self, stem: str) -> str:
        """Move the file back to the drop box and return its path there."""
        stem = self._stem(stem)
        path = f"{self._root}/todo/{stem}{SUFFIX}"
        if "/" in stem or not self._disk.exists(f"{self._root}/failed/{stem}{SUFFIX}"):
            raise NotFound(f"no task has the id {stem!a}, and no file of that name is set aside")
        try:
            if not self.renamed(f"{self._root}/failed/{stem}{SUFFIX}", path):
                raise Conflict(
                    f"the drop box has a file of this name already: {path}", hint="wait until it is taken in"
                )
        except FileNotFoundError:
            raise NotFound(f"{stem!a} was given back by somebody else just now") from None
        self._disk.remove(f"{self._root}/failed/{stem}.reason")
        return path

    def _stem(self, name: str) -> str:
        """Return the stem that `shown` prints as this name."""
        if not self._disk.exists(f"{self._root}/failed/{name}{SUFFIX}"):
            for other in self._context.locator.names(f"{self._root}/failed"):
                if other.endswith(SUFFIX) and shown(other[: -len(SUFFIX)]) == name:
                    return other[: -len(SUFFIX)]
        return name

    def renamed(self, path: str, target: str) -> bool:
        """Rename the file unless the name is taken, which a rename would overwrite; return whether it has it now."""
        if self._disk.is_file(path):
            return self._disk.move_new(path, target)
        if self._disk.exists(target):
            return False
        self._disk.rename(path, target)
        return True

    def _reason(self, stem: str) -> str | None:
        try:
            kept = self._disk.inspect(f"{self._root}/failed/{stem}.reason", _REASON_MOST)[1]
            return kept.decode("utf-8", "replace").strip()
        except OSError:
            return None

    def _at(self, name: str) -> str | None:
        try:
            return rfc3339(self._disk.changed_at(f"{self._root}/failed/{name}"))
        except OSError:
            return None


def stem_of(box: str) -> str:
    """Return the stem from a temporary name of `Rejected.box`."""
    return box.rpartition("/")[2].split(".", 2)[2][: -len(BOX)]


def shown(stem: str) -> str:
    """Return the stem as people can read and repeat it: if it is not UTF-8, its invalid bytes, and %, become %XX."""
    try:
        stem.encode()
    except UnicodeEncodeError:
        return "".join(
            f"%{ord(letter) & 0xFF:02X}" if letter == "%" or "\udc80" <= letter <= "\udcff" else letter
            for letter in stem
        )
    return stem
