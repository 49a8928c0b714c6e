"""The display of a crew without a screen: one line for each event, for people or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.doors.cli import replies
from taskyard.doors.cli.verbs.running.crew import view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.doors.cli.verbs.running.crew.activity import CrewEvent
    from taskyard.doors.cli.verbs.running.crew.process import CrewProcess

TICK = 1.0


class Lines:
    """Prints each event as it happens."""

    looks_up_titles = True

    def __init__(self, processes: Sequence[CrewProcess], as_json: bool) -> None:
        self._as_json = as_json
        self._names = max(len(process.name) for process in processes)

    def show(self, crew_event: CrewEvent) -> None:
        """Print the event."""
        replies.say(
            replies.encoded(crew_event.as_dict()) if self._as_json else view.line(crew_event, self._names, None)
        )

    def is_due(self, now: float) -> bool:  # noqa: ARG002  a screen needs it
        """Return False: nothing is drawn."""
        return False

    def draw(self, footer: str, now: float) -> None:
        """Do nothing: nothing is drawn."""

    def delay(self, now: float) -> float:  # noqa: ARG002  a screen needs it
        """Return the seconds until the next check of the workers."""
        return TICK

    def close(self) -> None:
        """Do nothing: no terminal was taken."""
