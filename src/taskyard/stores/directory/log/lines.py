"""Read log lines, bounded: 4 MiB a line, 256 MiB a page, whatever other programs have written there."""

from __future__ import annotations

from taskyard.core import abandonment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.filesystem.disk import Disk

PAGE_MOST = 1 << 28  # bytes: hundreds of times a full page; a larger file is no log
LINE_MOST = 1 << 22  # bytes of an event, at the most; the longest has a reason of 65,536 characters
BEGIN = b'{"at":"'  # of every event; within one the quotes of a text are escaped


def is_huge(disk: Disk, path: str) -> bool:
    """Whether this is larger than any page of a log."""
    try:
        return disk.size(path) > PAGE_MOST
    except FileNotFoundError:
        return False


def pieces(disk: Disk, path: str, size: int, offset: int = 0) -> Iterator[bytes]:
    """Read the page from `offset` on, in pieces of `size` bytes; nothing if it is too large for a log."""
    if is_huge(disk, path):
        return
    while piece := disk.read_at(path, offset, size):
        abandonment.check()
        yield piece
        offset += len(piece)


def after_torn(line: bytes, begin: bytes = BEGIN) -> bytes:
    """Return the event, or whatever begins so, that stands behind a torn one in the same line; nothing if there is none.

    SIGKILL tears an append where it crosses a page of memory (34 of 1,500 kills of a process that did nothing else). The
    next process cannot know that, and its line begins behind the torn one.
    """
    at = line.rfind(begin)
    return line[at:] if at > 0 else b""


def whole(disk: Disk, path: str, size: int, offset: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Read whole lines that are not empty: where each begins, the line, and where the next begins. Long ones are cut short."""
    begin, cut = offset, b""  # the line that a piece has broken off, up to LINE_MOST
    for piece in pieces(disk, path, size, offset):
        if not cut and not piece.strip(b"\n"):
            begin = offset = offset + len(piece)  # only line ends: there may be millions
            continue
        first, *lines = piece.split(b"\n")
        offset += len(first) + bool(lines)
        if len(cut) < LINE_MOST:
            cut += first
        if not lines:
            continue
        if cut:
            yield begin, cut, offset
        cut = lines.pop()
        for line in lines:
            begin, offset = offset, offset + len(line) + 1
            if line:
                yield begin, line, offset
        begin, offset = offset, offset + len(cut)


def holding(disk: Disk, path: str, size: int, word: bytes, offset: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Read the lines that hold this word; then an empty one, where the last whole line of the page ends.

    The page is searched, not split: the log of a day has a hundred thousand lines, and a task a handful of them.
    """
    kept, endless = b"", False  # the beginning of a line that continues; one that is too long is skipped
    for piece in pieces(disk, path, size, offset):
        block = kept + piece
        cut = block.rfind(b"\n") + 1
        at = block.find(b"\n") + 1 if endless else 0
        endless = endless and not cut
        while (at := block.find(word, at, cut)) >= 0:
            begin, end = block.rfind(b"\n", 0, at) + 1, block.index(b"\n", at) + 1
            yield offset - len(kept) + begin, block[begin : end - 1], offset - len(kept) + end
            at = end
        offset += len(piece)
        kept = block[cut:]
        if len(kept) > LINE_MOST:
            kept, endless = b"", True
    yield offset - len(kept), b"", offset - len(kept)
