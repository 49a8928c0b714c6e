"""Write archive/: compressed files of pruned tasks and events. Only fsck and copy read them again."""

from __future__ import annotations

from zlib import compressobj

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.filesystem.disk import Disk

FILE_MOST = 1 << 20  # bytes of one file that are archived; of a larger one only its name, and why
FILES_MOST = 1 << 22  # bytes of all files of one task
_IN_THE_RECORD = ("notes.jsonl", "progress.json")  # the task's record has their content
_GZIP = 31  # zlib's number for a gzip file
_LEVEL = 4  # level 9 takes three times as long, and saves a tenth


def write_archive(context: Context, name: str, chunks: Iterable[bytes]) -> None:
    """Write and sync an archive, before the caller removes what is in it."""
    draft = context.draft()
    context.disk.create(draft, _packed(chunks), sync=True)
    context.disk.rename(draft, f"{context.root}/archive/{name}")
    context.disk.sync(f"{context.root}/archive")


def _packed(chunks: Iterable[bytes]) -> bytes:
    """Return all chunks as one gzip file, without having them in memory together."""
    packer = compressobj(_LEVEL, wbits=_GZIP)
    return b"".join([*map(packer.compress, chunks), packer.flush()])


def files(disk: Disk, folder: str) -> list[dict[str, Any]]:
    """Return the files of a task's attempts: each path with its text, or with its bytes in base64.

    Raise `OSError` if a file cannot be read, because there is no other copy of it.
    """
    kept: list[dict[str, Any]] = []
    room = FILES_MOST
    for path in _below(disk, folder, ""):
        examined = disk.examine(f"{folder}/{path}", min(FILE_MOST, room))
        if examined.is_folder:
            continue
        room -= len(examined.content)
        kept.append(
            {"path": path, "left_out": examined.oddity}
            if examined.oddity
            else {"path": path, **_encoded(examined.content)}
        )
    return kept


def _encoded(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(content).decode()}


def _below(disk: Disk, folder: str, path: str) -> Iterator[str]:
    """Yield every path in the folder and below it; links are not followed."""
    for name in sorted(disk.listdir(f"{folder}/{path}")):
        if name not in _IN_THE_RECORD:
            yield f"{path}{name}"
        if disk.is_folder(f"{folder}/{path}{name}"):
            yield from _below(disk, folder, f"{path}{name}/")
