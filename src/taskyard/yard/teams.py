"""A yard's verbs about teams: which projects of its database a team owns, the team's quotas, and its tokens."""

from __future__ import annotations

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.store import Store, Teams


class TeamVerbs:
    """Makes, shows and changes teams. Only a store with several yards in one place has them."""

    _store: Store
    by: str

    def new_team(
        self, name: str, *, max_todo: int | None = None, max_running: int | None = None, rate: int | None = None
    ) -> dict[str, Any]:
        """Make a team with these quotas; the same words again change nothing, and others raise `Conflict`.

        `created` in the answer is whether the team is new. Projects that are called TEAM/NAME are its own.
        """
        from taskyard.core import teams

        called = teams.name(name)
        quotas = teams.quotas({"max_todo": max_todo, "max_running": max_running, "rate": rate})
        created = self._teams().make(called, {quota: n for quota, n in quotas.items() if n is not None}, self.by)
        found = self._team_called(called)
        if not created and any(found[quota] != number for quota, number in quotas.items()):
            raise teams.different(called)
        return {**found, "created": created}

    def teams(self, *, fill: bool = False) -> list[dict[str, Any]]:
        """Return every team by name, with its quotas and projects; with `fill` also how full it is now."""
        part = self._teams()
        return [_shown(part, team, fill) for team in part.all()]

    def team(self) -> dict[str, Any] | None:
        """Return the team of this yard with its quotas, and how full it is now; None if it has none."""
        part = self._store.teams
        team = None if part is None else part.own()
        return None if team is None or part is None else _shown(part, team, fill=True)

    def set_team(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Change quotas of a team, of which None takes one away; return the team. Claims heed them at once, adds within seconds."""
        from taskyard.core import teams

        if not changes:
            raise Invalid("a team is changed by its quotas", hint=f"name some of {', '.join(teams.QUOTAS)}")
        self._teams().change(teams.name(name), teams.quotas(changes), self.by)
        return self._team_called(name)

    def give_team(self, name: str, project: str) -> dict[str, Any]:
        """Make a project of this database the team's, and return the team; raise `Conflict` if another team has it."""
        from taskyard.core import teams, words

        self._teams().give(teams.name(name), words.text(project, "project"), self.by)
        return self._team_called(name)

    def take_team(self, name: str, project: str) -> dict[str, Any]:
        """Take a project from the team, and return the team; one that is called TEAM/NAME stays the team's."""
        from taskyard.core import teams, words

        self._teams().take(teams.name(name), words.text(project, "project"), self.by)
        return self._team_called(name)

    def new_team_token(
        self, team: str, name: str | None = None, *, scope: str = "work", key: str | None = None
    ) -> dict[str, Any]:
        """Make a token that is good for every project of a team, now and later, and for no other; its secret is `token`.

        Under the same `key` again it is the same token, as with `new_token`.
        """
        from taskyard.core import teams, tokens
        from taskyard.yard.tokens import NewToken

        part, owner = self._teams(), teams.name(team)
        if scope == tokens.TEAMS:
            raise Invalid(
                "a token of a team cannot change teams: its own quotas would be its holder's",
                hint="'taskyard token new --scope teams' makes one of the yard",
            )
        new = NewToken(name, scope, None, key)
        part.tokens(owner, new.put_into)
        if new.is_new:
            more = {"token": new.name, "scope": new.fields["scope"], "team": owner}
            part.tell(owner, "token_made", self.by, more)
        return {**new.shown(), "team": owner}

    def team_tokens(self, team: str) -> list[dict[str, Any]]:
        """Return every token of a team by name, without secrets."""
        from taskyard.core import teams, tokens

        owner = teams.name(team)
        kept = tokens.kept(self._teams().tokens(owner)) or {}
        return [{**tokens.shown(name, fields), "team": owner} for name, fields in sorted(kept.items())]

    def revoke_team_token(self, team: str, name: str) -> dict[str, Any]:
        """Revoke a token of a team, and return what it was. Gateways refuse it within seconds."""
        from taskyard.core import teams, tokens

        part, owner = self._teams(), teams.name(team)
        before: dict[str, Any] = {}

        def without(written: dict[str, Any]) -> dict[str, Any]:
            after = tokens.revoked(written, name)
            before.update(written[tokens.KEY][name])
            return after

        part.tokens(owner, without)
        revoked = tokens.shown(name, before)
        part.tell(owner, "token_revoked", self.by, {"token": name, "scope": revoked["scope"], "team": owner})
        return {**revoked, "team": owner}

    def _teams(self) -> Teams:
        part = self._store.teams
        if part is None:
            raise Invalid(
                f"the yard {self._store.label} has no teams: it shares its place with no other yard",
                hint="teams own projects of one database: use a yard in PostgreSQL (postgresql://...?project=NAME)",
            )
        return part

    def _team_called(self, name: str) -> dict[str, Any]:
        """Return the team of this name."""
        from taskyard.core import teams

        for team in self.teams():
            if team["name"] == name:
                return team
        raise teams.unknown(name)


def _shown(part: Teams, team: dict[str, Any], fill: bool) -> dict[str, Any]:
    from taskyard.core import times

    shown = {**team, "made_at": times.rfc3339(team["made_at"])}
    return {**shown, "fill": part.fill(team["name"])} if fill else shown
