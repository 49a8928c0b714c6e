"""What a sync has done, and what it wants a person to know."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Report:
    """The answer of one sync of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.dialect = ""
        self.mission: str | None = None
        self.made = False
        """Whether there was no file of this name."""
        self.rows = 0
        self.added: list[str] = []
        """Rows that have become tasks, by their ids in the file."""
        self.edited: list[str] = []
        """Tasks of which an edit of the file has changed something in the yard."""
        self.ended: list[str] = []
        """Tasks that an edit of the file has ended."""
        self.removed: list[str] = []
        """Tasks whose rows a person has deleted."""
        self.shown: list[str] = []
        """Rows that show something new from the yard."""
        self.notices: list[dict[str, Any]] = []
        self.conflicts: list[dict[str, Any]] = []
        self.written = False

    def notice(self, code: str, row: str, message: str, line: int | None = None) -> None:
        """Add something that a person should read."""
        new = {"code": code, "row": row, "line": line, "message": message}
        if new not in self.notices:
            self.notices.append(new)

    def rename(self, names: dict[str, str]) -> None:
        """Name tasks that an edit has changed by their ids in the file."""
        self.edited = [names.get(id, id) for id in self.edited]
        self.ended = [names.get(id, id) for id in self.ended]

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return bool(self.written or self.added or self.edited or self.ended or self.removed)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as the JSON has it."""
        names = (
            "path",
            "dialect",
            "mission",
            "made",
            "rows",
            "added",
            "edited",
            "ended",
            "removed",
            "shown",
            "written",
            "conflicts",
            "notices",
        )
        return {name: getattr(self, name) for name in names}
