"""Makes a scratch yard for a trial: on the same filesystem as another yard, in a folder of its own."""

from __future__ import annotations

import os

from taskyard.core import ids
from taskyard.core.errors import Unavailable
from taskyard.core.store_records import Scratch
from taskyard.stores import run_lock
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = 8


def make(path: str, settings: Mapping[str, object], *, exists: bool) -> Scratch:
    """Make a scratch yard beside this path, as durable as the yard there if one `exists`."""
    durability = layout.load(path).durability if exists else None
    cleared, left = _clear(path, exists)
    folder = _folder(path, exists)
    keep = run_lock.lock(folder)
    yard = os.path.join(folder, "yard")
    try:
        layout.make(yard, durability, more=settings)
    except Unavailable:
        from shutil import rmtree

        keep()
        rmtree(folder, ignore_errors=True)  # half a yard of our own, which no process has used
        raise
    return Scratch(
        yard, folder, os.path.join(yard, "todo"), safety.is_local(yard), keep=keep, cleared=cleared, left=left
    )


def _clear(path: str, exists: bool) -> tuple[list[str], list[str]]:
    """Remove what killed runs have left here; also return what may be such, where a free lock proves nothing."""
    parent, name = os.path.split(path)
    places = [(parent, f"{name}-torture-"), *([(os.path.join(path, "tmp"), "torture-")] if exists else [])]
    cleared: list[str] = []
    left: list[str] = []
    for place, start in places:
        try:
            found = sorted(os.path.join(place, one) for one in os.listdir(place) if one.startswith(start))
        except OSError:
            continue  # not readable; whether a folder can be made here is tried next
        for folder in run_lock.dead(found):
            (cleared if safety.is_local(folder) and run_lock.clear(folder) else left).append(folder)
    return cleared, left


def _folder(path: str, exists: bool) -> str:
    """Make a folder on the filesystem of this path: a sibling, or else one in the yard's own tmp/.

    A yard may be a whole volume, whose parent is another disk: to try that one would prove nothing. All clients ignore
    names in tmp/ that are none of the yard's.
    """
    word = f"torture-{ids.base32(ids.chance(5 * _DIGITS), _DIGITS)}"
    parent, name = os.path.split(path)
    sibling = os.path.join(parent, f"{name}-{word}")
    try:
        os.mkdir(sibling)
    except OSError as error:
        if not exists:
            raise Unavailable(
                f"no folder can be made in {parent}: {error.strerror}",
                hint="go to a directory that you can write to, or name a yard with --yard",
            ) from None
        return _inside(path, word)
    if exists and os.stat(sibling).st_dev != os.stat(path).st_dev:
        os.rmdir(sibling)
        return _inside(path, word)
    return sibling


def _inside(path: str, word: str) -> str:
    folder = os.path.join(path, "tmp", word)
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Unavailable(
            f"no folder can be made beside the yard {path}, nor in its tmp/: {error.strerror}",
            hint="make a folder on the same filesystem that you can write to, and 'taskyard init' a yard there to try",
        ) from None
    return folder
