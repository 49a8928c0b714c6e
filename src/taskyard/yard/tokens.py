"""A yard's verbs about tokens: who may use it through a gateway."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.tokens import Tokens
    from taskyard.store import Store


class TokenVerbs:
    """Makes, lists and revokes tokens. They are a part of the yard's settings, so every store changes them in one step."""

    _store: Store
    by: str

    def new_token(
        self, name: str | None = None, *, scope: str = "work", project: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Make a token, and return it with its secret `token`, which is kept nowhere.

        With a `project`, it is good only where a gateway serves the yard under this name. From the first token on, gateways
        refuse requests without one. Under the same `key` again it is the same token: choose one that others cannot guess.
        """
        new = NewToken(name, scope, project, key)
        self._store.settings.change(new.put_into)
        if new.is_new:
            self._store.log.write("token_made", self.by, more={"token": new.name, "scope": new.fields["scope"]})
        return new.shown()

    def tokens(self) -> list[dict[str, Any]]:
        """Return every token by name, without secrets."""
        from taskyard.core import tokens

        kept = tokens.kept(self._store.settings.read()) or {}
        return [tokens.shown(name, fields) for name, fields in sorted(kept.items())]

    def revoke_token(self, name: str) -> dict[str, Any]:
        """Revoke a token, and return what it was. Gateways refuse it within seconds."""
        from taskyard.core import tokens

        before: dict[str, Any] = {}

        def without(written: dict[str, Any]) -> dict[str, Any]:
            after = tokens.revoked(written, name)
            before.update(written[tokens.KEY][name])
            return after

        self._store.settings.change(without)
        revoked = tokens.shown(name, before)
        self._store.log.write("token_revoked", self.by, more={"token": name, "scope": revoked["scope"]})
        return revoked

    def token_digests(self) -> Tokens | None:
        """Return each token with its digest, for a gateway to check; None if none was ever made.

        A token of the yard's team is called TEAM/NAME here, and in the log.
        """
        from taskyard.core import tokens

        own = tokens.kept(self._store.settings.read())
        shared = None if self._store.teams is None else self._store.teams.own_tokens()
        of_team = None if shared is None else tokens.kept(shared[1])
        if shared is None or of_team is None:
            return own
        return {**(own or {}), **{f"{shared[0]}/{name}": fields for name, fields in of_team.items()}}


class NewToken:
    """A token that is being made; under the same key again it is the one that the key has made."""

    def __init__(self, name: str | None, scope: str, project: str | None, key: str | None) -> None:
        import time

        from taskyard.core import ids, times, tokens, words

        self._asked = name
        self.name = words.worker(f"token-{ids.base32(ids.chance(30), 6)}" if name is None else name, "name")
        self._key = tokens.chance() if key is None else words.text(key, "key")
        self._wanted = {
            "scope": tokens.scope(scope),
            "project": None if project is None else words.text(project, "project"),
        }
        salt, made_at = tokens.chance(), times.rfc3339(round(time.time() * 1000))
        digest = tokens.digest(tokens.secret(salt, self._key))
        self.fields: dict[str, Any] = {**self._wanted, "created_at": made_at, "salt": salt, "sha256": digest}
        self.is_new = True

    def put_into(self, written: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with this token added; unchanged if its key made a token before, which this object then stands for."""
        from taskyard.core import tokens

        before = tokens.made_before(written, self._key, self._asked, self._wanted)
        self.is_new = before is None
        if before is None:
            return tokens.added(written, self.name, self.fields)
        self.name, self.fields = before, written[tokens.KEY][before]
        return written

    def shown(self) -> dict[str, Any]:
        """Return the token with its secret, which is kept nowhere."""
        from taskyard.core import tokens

        return {**tokens.shown(self.name, self.fields), "token": tokens.secret(self.fields["salt"], self._key)}
