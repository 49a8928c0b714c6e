"""Tokens for a gateway, as a yard's settings keep them: name, scope, salt and digest, never the secret. Pure functions."""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Conflict, Invalid, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Tokens = dict[str, dict[str, Any]]

KEY = "tokens"
"""The name of the setting; `yard.settings` leaves it out."""
READ, WORK, MANAGE, TEAMS = "read", "work", "manage", "teams"
SCOPES = (READ, WORK, MANAGE, TEAMS)
"""Who may look, who may also add and work, who may do everything in the yard, and who may also change the teams of its
database: each includes those before it."""
_SHOWN = ("scope", "project", "created_at")
_SECRET_MOST = 200  # characters of a text that can be a token


def chance() -> str:
    """Return 256 random bits, for a salt, or for the key of a request that has none."""
    import os

    return os.urandom(32).hex()


def secret(salt: str, key: str) -> str:
    """Return the token that a request with this key makes: the same one again, for those alone who know salt and key."""
    import hashlib
    import hmac

    return f"ty_{hmac.new(salt.encode(), key.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


def digest(secret: str) -> str:
    """Return what is kept of a token."""
    import hashlib

    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def kept(written: dict[str, Any]) -> Tokens | None:
    """Return the tokens in a yard's settings, by name; None if none was ever made, so that none is asked for."""
    given = written.get(KEY)
    if given is None:
        return None
    if not isinstance(given, dict):
        return {}  # broken by hand: closed, not open
    return {name: fields for name, fields in given.items() if isinstance(fields, dict)}


def shown(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a token for people: all but its digest."""
    return {"name": name, **{field: fields.get(field) for field in _SHOWN}}


def added(written: dict[str, Any], name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with one more token."""
    tokens = kept(written) or {}
    if name in tokens:
        raise Conflict(
            f"there is a token {words.shown(name)} already", hint="choose another --name, or revoke that one first"
        )
    return {**written, KEY: {**tokens, name: fields}}


def made_before(written: dict[str, Any], key: str, called: str | None, wanted: dict[str, Any]) -> str | None:
    """Return the name of the token that this key has made; raise `Conflict` if it is not called so, or not as wanted."""
    for name, fields in (kept(written) or {}).items():
        if found({name: fields}, secret(str(fields.get("salt")), key)) is None:
            continue
        if called not in (None, name) or any(fields.get(field) != value for field, value in wanted.items()):
            raise Conflict(
                f"this key has made another token, {words.shown(name)}", hint="use a new key for a new token"
            )
        return name
    return None


def revoked(written: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the settings without this token. Without any, the yard stays closed to those who have none."""
    tokens = kept(written) or {}
    if name not in tokens:
        raise NotFound(f"there is no token {words.shown(name)}", hint="'taskyard token list' has their names")
    return {**written, KEY: {other: fields for other, fields in tokens.items() if other != name}}


def scope(value: object) -> str:
    """Return a legal scope."""
    if value not in SCOPES:
        raise Invalid(f"{words.shown(value)} is no scope", hint=f"choose one of {', '.join(SCOPES)}")
    return str(value)


def found(tokens: Tokens, secret: str) -> str | None:
    """Return the name of the token that this is. How long it takes tells nothing about those that are kept."""
    import hmac

    if not secret or len(secret) > _SECRET_MOST:
        return None
    asked, match = digest(secret), None
    for name, fields in tokens.items():
        if hmac.compare_digest(asked, str(fields.get("sha256")).encode("ascii", "replace").decode()):
            match = name
    return match


def allows(fields: dict[str, Any], wanted: str) -> bool:
    """Whether a token has this scope; one with a scope that this version does not know has none."""
    own = fields.get("scope")
    return own in SCOPES and SCOPES.index(own) >= SCOPES.index(wanted)
