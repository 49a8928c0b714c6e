"""Teams of a database: rows that own projects. Claims and adds heed their quotas by functions of the schema."""

from __future__ import annotations

from taskyard.core import json_codec, teams
from taskyard.core.draft import compact
from taskyard.core.limits import Reached
from taskyard.core.tokens import KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.teams import Quotas
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context

_FIELDS = ("name", *teams.QUOTAS, "made_at", "projects")


class PostgresTeams:
    """The `Teams` part of the PostgreSQL store."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def make(self, name: str, quotas: Quotas, by: str) -> bool:
        """Make a team, and return whether it is new; projects that are called TEAM/NAME and are no team's become its own."""

        def once(connection: Statements) -> bool:
            with connection.transaction():
                if not self._context.on(connection, "teams", "make", {**_all(quotas), "name": name}):
                    return False
                self._tell(connection, name, "team_made", by, {"team": name, **quotas})
                return True

        made: bool = self._context.pool.attempt(once)
        return made

    def all(self) -> list[dict[str, Any]]:
        """Return every team that this role sees, by name."""
        return [dict(zip(_FIELDS, row, strict=True)) for row in self._context.run("teams", "all")]

    def own(self) -> dict[str, Any] | None:
        """Return the team of this project; None if it has none."""
        for row in self._context.run("teams", "own"):
            return dict(zip(_FIELDS, row, strict=True))
        return None

    def fill(self, name: str) -> dict[str, Any]:
        """Return how full a team is, in all and by project."""
        found = self._context.run("teams", "fill", {"name": name}) or [(0, 0, 0)]
        shares = self._context.run("teams", "shares", {"name": name})
        return {
            **dict(zip(("todo", "running", "claimed"), found[0], strict=True)),
            "by_project": {project: {"todo": todo, "running": running} for project, todo, running in shares},
        }

    def change(self, name: str, changes: Quotas, by: str) -> None:
        """Change these quotas, and wake the processes that wait for room."""

        def changed(connection: Statements, team: int, before: Quotas) -> None:
            self._context.on(connection, "teams", "change", {**before, **changes, "team": team})
            self._tell(connection, name, "team_changed", by, {"team": name, "changes": changes})

        self._within(
            name, lambda connection, row: changed(connection, row[0], dict(zip(teams.QUOTAS, row[1:4], strict=True)))
        )

    def give(self, name: str, project: str, by: str) -> None:
        """Make a project the team's; raise `Conflict` if another team has it."""

        def given(connection: Statements, team: int) -> None:
            moved, owner = self._project(connection, project)
            if owner not in (None, name):
                raise teams.owned(project, owner)
            if owner is None:
                self._context.on(connection, "teams", "move", {"team": team, "to": team, "moved": moved})
                self._tell(connection, name, "team_given", by, {"team": name, "project": project}, moved)

        self._within(name, lambda connection, row: given(connection, row[0]))

    def take(self, name: str, project: str, by: str) -> None:
        """Take a project from the team; raise `Conflict` if it is not the team's, or is so by its name."""

        def taken(connection: Statements, team: int) -> None:
            moved, owner = self._project(connection, project)
            if owner != name:
                raise teams.not_owned(project, name)
            if project.startswith(f"{name}/"):
                raise teams.named_for(project, name)
            self._context.on(connection, "teams", "move", {"team": team, "to": None, "moved": moved})
            self._tell(connection, name, "team_taken", by, {"team": name, "project": project}, moved)

        self._within(name, lambda connection, row: taken(connection, row[0]))

    def tokens(self, name: str, changed: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> dict[str, Any]:
        """Return a team's tokens as settings have them; replaced first, as one step, by what `changed` makes of them."""
        if changed is None:
            for (text,) in self._context.run("teams", "tokens_of", {"name": name}):
                return _written(text)
            raise teams.unknown(name)
        after: dict[str, Any] = {}

        def replaced(connection: Statements, team: int, text: str | None) -> None:
            import json

            after.clear()
            after.update(changed(_written(text)))
            self._context.on(connection, "teams", "change_tokens", {"team": team, "tokens": json.dumps(after[KEY])})

        self._within(name, lambda connection, row: replaced(connection, row[0], row[4]))
        return after

    def own_tokens(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and the tokens of the project's team; None if it has no team."""
        for name, text in self._context.run("teams", "tokens"):
            return name, _written(text)
        return None

    def tell(self, name: str, event: str, by: str, more: dict[str, Any]) -> None:
        """Log an event about a team in this project and in all of the team's."""

        def once(connection: Statements) -> None:
            with connection.transaction():
                self._tell(connection, name, event, by, more)

        self._context.pool.attempt(once)

    def reached(self) -> list[Reached]:
        """Return the quotas of the project's team that hold claims back now."""
        return [Reached(*row) for row in self._context.run("teams", "reached")]

    def _within(self, name: str, change: Callable[[Statements, tuple[Any, ...]], None]) -> None:
        """Call `change` in a transaction that has locked the team, with its row."""

        def once(connection: Statements) -> None:
            with connection.transaction():
                for row in self._context.on(connection, "teams", "lock", {"name": name}):
                    return change(connection, row)
                raise teams.unknown(name)

        self._context.pool.attempt(once)

    def _project(self, connection: Statements, project: str) -> tuple[int, str | None]:
        for number, owner in self._context.on(connection, "teams", "lock_project", {"named": project}):
            return number, owner
        raise teams.unknown_project(project)

    def _tell(
        self,
        connection: Statements,
        name: str,
        event: str,
        by: str,
        more: dict[str, Any],
        moved: int | None = None,
    ) -> None:
        values = {"name": name, "event": event, "by": by, "more": compact(more), "moved": moved}
        self._context.on(connection, "teams", "tell", values)


def _all(quotas: Quotas) -> Quotas:
    return {quota: quotas.get(quota) for quota in teams.QUOTAS}


def _written(text: str | None) -> dict[str, Any]:
    """Return the tokens in the form that `core.tokens` has; without the key if none was ever made."""
    return {} if text is None else {KEY: json_codec.read(text)}
