"""archive/: what has left the yard, compressed. Nothing here is read again by the yard."""

from __future__ import annotations

from zlib import compressobj

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.filesystem.disk import Disk

FILE_MOST = 1 << 20  # bytes of one file that are kept; of a larger one only its name, and why
FILES_MOST = 1 << 22  # bytes of all files of one task
_OURS = ("notes.jsonl", "progress.json")  # told in the task's line already
_GZIP = 31  # the form of a gzip file, without a name or a time
_LEVEL = 4  # level 9 takes three times as long, and saves a tenth


def keep(context: Context, name: str, pieces: Iterable[bytes]) -> None:
    """Keep this, whole and safe from a power cut, before whatever it was made from goes."""
    draft = context.draft()
    context.disk.create(draft, _packed(pieces), sync=True)
    context.disk.rename(draft, f"{context.root}/archive/{name}")
    context.disk.sync(f"{context.root}/archive")


def _packed(pieces: Iterable[bytes]) -> bytes:
    """All of them as one gzip file, without ever having them in memory together."""
    packer = compressobj(_LEVEL, wbits=_GZIP)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def files(disk: Disk, folder: str) -> list[dict[str, Any]]:
    """What the attempts at a task left in their folders: each file's path with its text, or its bytes in base64.

    An error if one of them cannot be read: it is the only one there is.
    """
    kept: list[dict[str, Any]] = []
    room = FILES_MOST
    for path in _below(disk, folder, ""):
        look = disk.examine(f"{folder}/{path}", min(FILE_MOST, room))
        if look.is_folder:
            continue
        room -= len(look.content)
        kept.append({"path": path, "left_out": look.oddity} if look.oddity else {"path": path, **_told(look.content)})
    return kept


def _told(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(content).decode()}


def _below(disk: Disk, folder: str, path: str) -> Iterator[str]:
    """Every name in the folder and in those below it, links not followed."""
    for name in sorted(disk.listdir(f"{folder}/{path}")):
        if name not in _OURS:
            yield f"{path}{name}"
        if disk.is_folder(f"{folder}/{path}{name}"):
            yield from _below(disk, folder, f"{path}{name}/")
