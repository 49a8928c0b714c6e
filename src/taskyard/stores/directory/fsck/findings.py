"""What an audit finds: a suspect, which is a finding once it has held still under a second look."""

from __future__ import annotations

from taskyard.stores.directory.fsck.codes import ALONE, MEANINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.names import Token


class Suspect:
    """Something that looks wrong, where it is, and how to look at it again."""

    __slots__ = (
        "again",
        "code",
        "did",
        "ended",
        "folder",
        "known",
        "left",
        "name",
        "repaired",
        "task",
        "token",
        "what",
    )

    def __init__(
        self,
        code: str,
        place: tuple[str, str],
        what: str,
        again: Callable[[], object],
        task: str | None = None,
        token: Token | None = None,
    ) -> None:
        self.code = code
        self.folder, self.name = place
        self.what = what
        self.again = again
        """Whether it still looks the same."""
        self.task = task
        self.token = token
        self.known = 0
        """The highest fence that the log knows of the task."""
        self.ended = False
        """Whether the log says that the task has ended."""
        self.repaired = False
        self.did: str | None = None
        """What a repair did about it."""
        self.left: str | None = None
        """Why a repair left it to a person."""

    @property
    def path(self) -> str:
        """The file or folder that is meant."""
        return f"{self.folder}/{self.name}"

    @property
    def severity(self) -> str:
        """Whether it is damage, the next sweep's business, or only worth knowing."""
        return MEANINGS[self.code].severity

    @property
    def key(self) -> tuple[str, str]:
        """The same thing in two audits, although a repair may have moved it in between."""
        return self.code, self.task or self.path

    @property
    def spot(self) -> tuple[str, str, str | None]:
        """What tells this finding from all others: of one task there may be several that are alike."""
        return self.code, self.path, self.task

    def _hint(self) -> str:
        """What to do next."""
        meaning = MEANINGS[self.code]
        if self.left is not None or self.repaired or meaning.repair.startswith(ALONE):
            return self.left or meaning.by_hand
        return f"'taskyard fsck --repair': {meaning.repair}"

    def as_dict(self, root: str) -> dict[str, Any]:
        """The finding as the JSON shows it."""
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
    """The text as any terminal and any JSON can carry it: bytes that are no UTF-8 become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
