"""Lines of a page of the log, whoever wrote them: none that can be no event's fills the memory, and no page is read for ever."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.filesystem.disk import Disk

PAGE_MOST = (
    1 << 28
)  # bytes: hundreds of times what a page has; whatever is larger is no log, and any file can be made so
LINE_MOST = 1 << 22  # bytes that an event can have; the longest has a reason of 65,536 characters


def is_huge(disk: Disk, path: str) -> bool:
    """Whether this is larger than any page of a log."""
    try:
        return disk.size(path) > PAGE_MOST
    except FileNotFoundError:
        return False


def pieces(disk: Disk, path: str, size: int, offset: int = 0) -> Iterator[bytes]:
    """What the page holds from here on, some at a time; nothing, if it is no log's."""
    if is_huge(disk, path):
        return
    while piece := disk.read_at(path, offset, size):
        yield piece
        offset += len(piece)


def whole(disk: Disk, path: str, size: int, offset: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Where each whole line that is not empty begins, the line, and where the next one does; one that is too long is cut short."""
    begin, cut = offset, b""  # the line that a piece has broken off, as far as it is worth keeping
    for piece in pieces(disk, path, size, offset):
        if not cut and not piece.strip(b"\n"):
            begin = offset = offset + len(piece)  # nothing but ends of lines: there may be millions
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
    """The same of lines that hold this word; then an empty one, where the last whole line of the page ends.

    The page is searched, not split: the log of a day has a hundred thousand lines, and a task a handful of them.
    """
    kept, endless = b"", False  # the beginning of a line that goes on; one that is too long is passed over
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
