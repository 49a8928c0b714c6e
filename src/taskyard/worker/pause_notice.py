"""Report that no tasks come because the yard, or a kind that the worker serves, is paused: once for each pause."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.port import YardPort


class Pauses:
    """The pauses of one yard that were reported already."""

    def __init__(self, yard: YardPort, kinds: frozenset[str] | None, tell: Callable[[str], None]) -> None:
        self._yard = yard
        self._kinds = kinds
        self._tell = tell
        self._told = ""

    def look(self) -> None:
        """Report what is paused, if that is new."""
        now = self._yard.paused()
        everything, some = now["yard"], frozenset(now["kinds"])
        held_back = sorted(some if self._kinds is None else some & self._kinds)
        what = "the whole yard" if everything else ", ".join(held_back)
        if what and what != self._told:
            word = "" if everything else f" {held_back[0]}"
            self._tell(f"paused: {what}; nothing of it is handed out before 'taskyard unpause{word}'")
        self._told = what
