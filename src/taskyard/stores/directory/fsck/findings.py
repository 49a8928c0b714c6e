"""The suspects of an audit; a suspect that still holds when it is checked again is a finding."""

from __future__ import annotations

from taskyard.stores.directory.fsck.codes import ALONE, CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.names import Token


class Suspect:
    """A possible damage: its code, its place, and how to check it again."""

    __slots__ = (
        "code",
        "did",
        "folder",
        "left_because",
        "logged_ended",
        "logged_fence",
        "name",
        "repaired",
        "still_holds",
        "task",
        "token",
        "what",
    )

    def __init__(
        self,
        code: str,
        place: tuple[str, str],
        what: str,
        still_holds: Callable[[], object],
        task: str | None = None,
        token: Token | None = None,
    ) -> None:
        self.code = code
        self.folder, self.name = place
        self.what = what
        self.still_holds = still_holds
        """Checks the suspect again."""
        self.task = task
        self.token = token
        self.logged_fence = 0
        """The highest fence of the task in the log."""
        self.logged_ended = False
        """Whether the last move in the log ended the task."""
        self.repaired = False
        self.did: str | None = None
        """What a repair did about it."""
        self.left_because: str | None = None
        """Why a repair left it to a person, or what the person must do."""

    @property
    def path(self) -> str:
        """The file or folder that the suspect is about."""
        return f"{self.folder}/{self.name}"

    @property
    def severity(self) -> str:
        """Damage, pending (the next sweep repairs it), or notice."""
        return CODES[self.code].severity

    @property
    def key(self) -> tuple[str, str]:
        """Equal for the same damage in two audits, although a repair may have moved the file in between."""
        return self.code, self.task or self.path

    @property
    def identity(self) -> tuple[str, str, str | None]:
        """Different for all findings of one audit; several findings of one task may have the same `key`."""
        return self.code, self.path, self.task

    def _hint(self) -> str:
        """Return what to do about it."""
        code = CODES[self.code]
        if self.left_because is not None or self.repaired or code.repair.startswith(ALONE):
            return self.left_because or code.by_hand
        return f"'taskyard fsck --repair': {code.repair}"

    def as_dict(self, root: str) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "code": self.code,
            "class": self.severity,
            "where": shown(self.path.removeprefix(root).lstrip("/") or "."),
            "task": self.task,
            "what": shown(self.what),
            "hint": self._hint(),
            "repaired": self.repaired,
            "did": None if self.did is None else shown(self.did),
        }


def shown(text: str) -> str:
    """Return the text for terminals and JSON: bytes that are not UTF-8 become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
