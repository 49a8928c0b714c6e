"""Lists what lies in todo/ and will never be a task, with the reason, for the people who wait for it."""

from __future__ import annotations

from taskyard.stores.directory.dropbox.guest_names import carried
from taskyard.stores.directory.dropbox.rejected import shown
from taskyard.stores.directory.names import SUFFIX, Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

_NO_JSON = "its name does not end in .json"


def others(context: Context) -> list[dict[str, str | None]]:
    """Return the names in todo/ that are no lanes and that no sweep takes in, each with the reason."""
    entries: list[dict[str, str | None]] = []
    for name in sorted(context.locator.names(f"{context.root}/todo")):
        reason = None if name.startswith(".") else why(context, name)
        if reason is not None:
            entries.append({"name": shown(name), "reason": reason})
    return entries


def why(context: Context, name: str) -> str | None:
    """Return why this file or folder in todo/ is no task; None if it is a lane, or may become a task."""
    path = f"{context.root}/todo/{name}"
    if context.disk.is_folder(path):
        return None if Lane.of_folder(name) is not None else "a folder"
    if not name.endswith(SUFFIX):
        return _NO_JSON
    return None if carried(name) is not None else _no_object(context, path)


def _no_object(context: Context, path: str) -> str | None:
    """Return why a file is no task yet; one that is not a JSON object is rejected when it has not changed for a while."""
    from taskyard.core.errors import Invalid
    from taskyard.stores.directory.dropbox import file_format
    from taskyard.stores.directory.dropbox.intake import FILE_MOST

    try:
        look = context.disk.examine(path, FILE_MOST)
        if look.oddity is None:
            file_format.parse(look.content)
        return look.oddity
    except Invalid as error:
        return error.message
    except OSError as error:
        return None if isinstance(error, FileNotFoundError) else f"it cannot be read: {error.strerror}"
