"""The file name under which a task was dropped: an empty file `names/<segment>/<id>.<stem>`, to find the task by it."""

from __future__ import annotations

from taskyard.core import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

FOLDER = "names"
_STEM_MOST = 190  # bytes, as for a rejected file


def note(context: Context, id: str, stem: str) -> None:
    """Keep the name of a task's dropped file, without its suffix."""
    while len(stem.encode("utf-8", "surrogateescape")) > _STEM_MOST:
        stem = stem[:-1]
    folder = f"{context.root}/{FOLDER}/{id[: ids.SEGMENT]}"
    while True:
        context.links.keep(folder)
        try:
            context.disk.append(f"{folder}/{id}.{stem}", b"")
        except FileNotFoundError:
            context.mover.ensure(folder)  # missing; or just made, and removed by a sweep because it was empty
        else:
            return


def read(name: str) -> str:
    """Return the dropped file's name from the name of its note."""
    from taskyard.stores.directory.dropbox.rejected import shown  # every report looks for such a name, and few find one

    return shown(name[ids.LENGTH + 1 :])


def of(context: Context, id: str) -> str | None:
    """Return the name under which the task was dropped; None if it was not."""
    for name in context.locator.names(f"{context.root}/{FOLDER}/{id[: ids.SEGMENT]}"):
        if name.startswith(f"{id}."):
            return read(name)
    return None


def find(context: Context, stem: str) -> list[str]:
    """Return the tasks that were dropped under this name.

    If there is none, return those whose name ends in `_` and this name: an agent's own prefix may stand before it.
    """
    exact, carried = [], []
    top = f"{context.root}/{FOLDER}"
    for segment in filter(ids.is_segment, context.locator.names(top)):
        for name in context.locator.names(f"{top}/{segment}"):
            own = read(name)
            if own == stem:
                exact.append(name[: ids.LENGTH])
            elif own.endswith(f"_{stem}"):
                carried.append(name[: ids.LENGTH])
    return sorted(exact or carried, key=ids.age_key)
