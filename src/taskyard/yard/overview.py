"""What a board shows, as verbs of a yard: each reads a bounded number of tasks and events, and writes nothing."""

from __future__ import annotations

from taskyard.yard.reading import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class OverviewVerbs(Reading):
    """The verbs of a yard that sum it up."""

    def overview(self) -> dict[str, Any]:
        """Return what waits for a person (`needs`, and how many things that is), counts, rates and pauses."""
        from taskyard.yard import attention

        return attention.overview(self._store, self._name, self.set_aside())

    def lanes(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        assignee: str | None = None,
        text: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Return the tasks of each state that match: some of them with what a card shows, and how many there are.

        `text` is a part of the title, or the beginning of an id or short name. Open tasks come oldest first, ended ones with the
        last first. With a cursor, the one state that is asked for goes on from there, oldest first. A lane's `count` is None
        where a worker, an assignee or a text is asked for and there may be more than are shown.
        """
        from taskyard.core import times
        from taskyard.yard import arguments, lanes

        query = arguments.query(state, kind, mission, worker)
        query.cursor = arguments.cursor(cursor)
        found = lanes.Lanes(self._store, self._name, query, lanes.choice(assignee, text, limit)).gathered()
        return {"now": times.rfc3339(self._store.reasons.now()), "lanes": found}

    def output(self, id: str, most: int = 16_384) -> list[dict[str, Any]]:
        """Return the end of what the commands of the task's last attempt have printed: name, fence, size and text of each log."""
        from taskyard.yard import agents

        if self._store.files is None:
            return []
        return agents.output(self._store, self._store.files, self.report(id), most)

    def agents(self) -> dict[str, Any]:
        """Return each worker that holds a task or did something in the last hour: its tasks, claims, mishaps and rates."""
        from taskyard.yard import agents

        return agents.agents(self._store, self._name)

    def series(self) -> dict[str, Any]:
        """Return the last hour by the minute: how many tasks were added, claimed, done, failed; backlog; median wait and run."""
        from taskyard.yard import agents

        return agents.series(self._store)
