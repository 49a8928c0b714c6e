"""The files beside the tasks of one segment: a reader of many tasks lists each place once, and not once for each task."""

from __future__ import annotations

from taskyard.core.ids import LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.tasks.locate import Locator

PLACES = ("results", "edits", "attempts", "names")


class SegmentIndex:
    """Names in results/, edits/, attempts/ and names/ of one segment, by the id that they begin with.

    The index of a task is complete if the task was in its ended place before, and still is under the same name after. For
    every output of a claim that counts is written before the move. Late output may be missed, and is an orphan then.
    """

    def __init__(self, lookup: Locator, root: str, segment: str) -> None:
        self.folders = {place: f"{root}/{place}/{segment}" for place in PLACES}
        self._names: dict[str, dict[str, list[str]]] = {}
        for place, folder in self.folders.items():
            by_id: dict[str, list[str]] = {}
            self._names[place] = by_id
            for name in lookup.names(folder):
                by_id.setdefault(name[:LENGTH], []).append(name)

    def of(self, place: str, id: str) -> list[str]:
        """Return the names in this place that belong to the task."""
        return self._names[place].get(id, [])
