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
        import time

        from taskyard.core import ids, times, tokens, words

        called = words.worker(f"token-{ids.base32(ids.chance(30), 6)}" if name is None else name, "name")
        request, salt = tokens.chance() if key is None else words.text(key, "key"), tokens.chance()
        wanted = {"scope": tokens.scope(scope), "project": None if project is None else words.text(project, "project")}
        made_at = times.rfc3339(round(time.time() * 1000))
        fields = {**wanted, "created_at": made_at, "salt": salt, "sha256": tokens.digest(tokens.secret(salt, request))}
        made: dict[str, Any] = {}

        def with_it(written: dict[str, Any]) -> dict[str, Any]:
            before = tokens.made_before(written, request, name, wanted)
            after = tokens.added(written, called, fields) if before is None else written
            now = before or called
            made.update(name=now, is_new=before is None, **after[tokens.KEY][now])
            return after

        self._store.settings.change(with_it)
        if made["is_new"]:
            self._store.log.write("token_made", self.by, more={"token": called, "scope": made["scope"]})
        return {**tokens.shown(made["name"], made), "token": tokens.secret(made["salt"], request)}

    def tokens(self) -> list[dict[str, Any]]:
        """Return every token by name, without secrets."""
        from taskyard.core import tokens

        kept = self.token_digests() or {}
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
        """Return each token with its digest, for a gateway to check; None if none was ever made."""
        from taskyard.core import tokens

        return tokens.kept(self._store.settings.read())
