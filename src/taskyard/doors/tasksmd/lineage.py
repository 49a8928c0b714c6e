"""What a file proves about the version that it comes from: an id that a sync has written is in no earlier one.

Every text that a sync reads or writes has a number. A row that is missing was deleted for certain if the file has an id that came
into it later than the last version without that row. Else an editor that saves an older buffer looks the same, and nothing ends.
"""

from __future__ import annotations

from taskyard.core import ids
from taskyard.doors.tasksmd import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.doors.tasksmd.base import Base, Entry
    from taskyard.doors.tasksmd.rows import Row

ENDED = (rows.DONE, rows.FAILED, rows.CANCELLED)
_FORMER_MOST = 5_000
CERTAIN = 1 << 60
"""Later than every version: what a person says expressly needs no proof."""


def since(known: Iterable[tuple[Row, str]], base: Base) -> int:
    """Return the number of the oldest version that a file with these rows can come from."""
    found = 1
    for row, id in known:
        entry = base.entries.get(id) or base.incoming.get(id)
        if entry is not None and entry.row == row.id:
            found = max(found, entry.first)
    return found


def is_gone(entry: Entry, since: int) -> bool:
    """Whether a row that is missing was deleted, because every version that the file can come from had it."""
    return since > entry.absent


def is_ended(entry: Entry, status: str, since: int) -> bool:
    """Whether a person has given the row this ending, and it is not left from a version that showed it before."""
    return since > entry.endings.get(status, -1)


def begun(base: Base, id: str, name: str, with_id: bool) -> tuple[int, int]:
    """Return `first` and `absent` of a row that is new in the base; `with_id` if the version that was read had its id.

    An id of people's own may have been in versions that no sync has read; one that a sync wrote, and forgot, in old ones.
    """
    read, noted = base.version, base.incoming.get(id)
    if noted is not None:
        first = noted.first
    elif not with_id:
        first = read + 1
    else:
        first = base.former.get(name, 0 if ids.pattern(name) is not None else read - 1)
    return first, read - 1 if with_id else read


def forget(base: Base, entries: dict[str, Entry]) -> None:
    """Note the ids of rows that are no entries any more, so that they prove nothing if an older buffer brings them back."""
    dropped = {entry.row: entry.first for id, entry in base.entries.items() if id not in entries}
    kept = list({**base.former, **dropped}.items())
    base.former = dict(kept[-_FORMER_MOST:])
