"""archive/: what has left the yard, compressed. Nothing here is read again by the yard."""

from __future__ import annotations

from gzip import compress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.ground import Ground

_LEVEL = 4  # level 9 takes three times as long, and saves a tenth


def keep(ground: Ground, name: str, content: bytes) -> None:
    """Keep this, whole and safe from a power cut, before whatever it was made from goes."""
    draft = ground.draft()
    ground.disk.create(draft, compress(content, _LEVEL, mtime=0), sync=True)
    ground.disk.rename(draft, f"{ground.root}/archive/{name}")
    ground.disk.sync(f"{ground.root}/archive")
