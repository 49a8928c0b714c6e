"""The backend of paths and `file:` URLs: a yard in a directory."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.core.store_records import Scratch
    from taskyard.core.transfer import Endpoint
    from taskyard.stores.directory.store import DirectoryStore


def place(url: str) -> str:
    """The yard's absolute path."""
    path = _path(url) if url.startswith("file:") else url
    if not path or "\0" in path:
        raise Invalid("the yard's path is empty or holds a NUL", hint="name a directory")
    return os.path.abspath(os.path.expanduser(path))


def _path(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise Invalid(
            f"a file: URL names a path on this machine, not a host: {url!a}",
            hint="write file:///absolute/path, or just the path",
        )
    return unquote(parts.path)


def open(place: str, durability: str | None, *, brief: bool = False) -> DirectoryStore:  # noqa: ARG001  it loads little
    """Open the yard in this directory."""
    from taskyard.stores.directory.store import DirectoryStore

    return DirectoryStore(place, durability)


def server(place: str) -> tuple[str, str] | None:  # noqa: ARG001
    """A directory has no server that could be away."""
    return None


def make(place: str, durability: str | None, shared: bool | None, group: str | None) -> tuple[bool, list[str]]:
    """Make the folders and yard.json, if the place is safe."""
    from taskyard.stores.directory import layout

    made = layout.make(place, durability, shared, group)
    return made.created, made.warnings


def open_to_audit(place: str) -> DirectoryStore:
    """Open it also where links or settings keep it from being worked in."""
    from taskyard.stores.directory.store import DirectoryStore

    return DirectoryStore(place, links=True)


def adopt(place: str) -> bool:
    """Whether a yard was made of a directory with the four folders of a queue, and no yard.

    So containers that share such a volume need no step before the first worker. An empty or missing directory is more
    likely a slip, and stays an error.
    """
    from taskyard.stores.directory import layout

    return layout.is_made_by_hand(place) and bool(layout.make(place))


def contains(place: str, other: str) -> bool:
    """Whether the other directory lies below this one."""
    return os.path.realpath(other).startswith(os.path.realpath(place) + os.sep)


def endpoint(place: str, *, target: bool) -> Endpoint:
    """The directory as the source or the target of a copy."""
    from taskyard.stores.directory.transfer.endpoint import DirectoryEndpoint

    return DirectoryEndpoint(place, target)


def examine(place: str, processes: int, wait: float | None, tell: Callable[[str], None]) -> Diagnosis:
    """Try out whether this place is safe for a yard."""
    from taskyard.stores.directory.doctor.examination import examine as examined

    return examined(place, processes, wait, tell)


def scratch(place: str, settings: Mapping[str, object], *, exists: bool) -> Scratch:
    """Make a yard beside this one, on the same filesystem."""
    from taskyard.stores.directory import scratch_yard

    return scratch_yard.make(place, settings, exists=exists)


def migrate(place: str, *, check: bool, new_epoch: bool) -> dict[str, Any]:
    """A directory has one format so far; one that is newer is refused."""
    from taskyard.stores.directory import layout

    if new_epoch:
        raise Invalid("only a yard in PostgreSQL has epochs", hint="name one with --yard postgresql://...")
    layout.load(place)
    return {"version": 1, "known": 1, "pending" if check else "applied": []}
