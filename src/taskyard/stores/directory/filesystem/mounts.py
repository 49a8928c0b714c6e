"""What is mounted where, from /proc/self/mountinfo."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOUNTINFO = "/proc/self/mountinfo"
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\"))


class Mount:
    """One mount: where, of which type, what is mounted there, and the options of the mount and of its filesystem."""

    __slots__ = ("kind", "options", "point", "source")

    def __init__(self, point: str, kind: str, source: str, options: frozenset[str]) -> None:
        self.point = point
        self.kind = kind
        self.source = source
        self.options = options

    @classmethod
    def parse(cls, line: str) -> Mount | None:
        """Parse one line of mountinfo; None if it is no mount."""
        left, dash, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if not dash or len(before) < 6 or not after[0]:
            return None
        source = _plain(after[1]) if len(after) > 1 else ""
        options = f"{before[5]},{after[2] if len(after) > 2 else ''}".split(",")
        return cls(_plain(before[4]), after[0], source, frozenset(filter(None, options)))

    def holds(self, path: str) -> bool:
        """Whether the path is the mount's point or below it."""
        return path == self.point or path.startswith(self.point.rstrip("/") + "/")


def mounts() -> list[Mount]:
    """Return all mounts, later ones last; nothing where the system has no mountinfo."""
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    return [mount for mount in map(Mount.parse, lines) if mount is not None]


def around(path: str, known: Iterable[Mount]) -> Mount | None:
    """Return the mount that holds this path; of two on one point, the later one lies on top."""
    best = None
    for mount in known:
        if mount.holds(path) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def within(path: str, known: Iterable[Mount]) -> list[str]:
    """Return the points of other mounts below this path, in order."""
    inner = {mount.point for mount in known if mount.point.startswith(path.rstrip("/") + "/")}
    return sorted(inner - {path})


def _plain(text: str) -> str:
    """Undo the kernel's escapes."""
    if "\\" in text:
        for code, letter in _ESCAPES:
            text = text.replace(code, letter)
    return text
