"""A crew that nobody watches on a screen: one line for everything that happens, for people or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.doors.cli import replies
from taskyard.doors.cli.crew import view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.doors.cli.crew.activity import Happening
    from taskyard.doors.cli.crew.process import CrewProcess

TICK = 1.0


class Lines:
    """Tells as it happens."""

    looks_up_titles = True

    def __init__(self, processes: Sequence[CrewProcess], as_json: bool) -> None:
        self._as_json = as_json
        self._names = max(len(process.name) for process in processes)

    def tell(self, happening: Happening) -> None:
        """Print it."""
        replies.say(replies.encoded(happening.as_dict()) if self._as_json else view.line(happening, self._names, None))

    def is_due(self, now: float) -> bool:  # noqa: ARG002  a screen asks
        """Nothing is drawn."""
        return False

    def draw(self, footer: str, now: float) -> None:
        """Nothing is drawn."""

    def delay(self, now: float) -> float:  # noqa: ARG002  a screen asks
        """Seconds until somebody should look whether all are well."""
        return TICK

    def close(self) -> None:
        """Nothing to give back."""
