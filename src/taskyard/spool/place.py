"""Where the spool of a yard lies: at $TASKYARD_SPOOL, else in the user's state folder; a folder for each yard."""

from __future__ import annotations

import os

OFF = "off"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")
_NAME_MOST = 60  # characters of a folder's name that are for people


def folder(identity: str | None, *, asked: bool = False) -> str | None:
    """Return the spool's folder of the yard with this identity; None if it has no spool.

    With `asked`, it has one only where $TASKYARD_SPOOL names a place.
    """
    if identity is None:
        return None
    given = os.environ.get("TASKYARD_SPOOL", "")
    if given == OFF or (asked and not given):
        return None
    root = os.path.abspath(given) if given else f"{_state_folder()}/taskyard/spool"
    return f"{root}/{_name(identity)}"


def _state_folder() -> str:
    given = os.environ.get("XDG_STATE_HOME", "")
    return given if os.path.isabs(given) else os.path.expanduser("~/.local/state")


def _name(identity: str) -> str:
    """Return a name that people recognise, and that no other yard has."""
    words = "".join(letter if letter in _PLAIN else "-" for letter in identity).strip("-.")
    while "--" in words:
        words = words.replace("--", "-")
    return f"{words[-_NAME_MOST:].lstrip('-.')}-{_digest(identity)}"


def _digest(identity: str) -> str:
    for module in ("_sha2", "_sha256", "hashlib"):  # the last one loads OpenSSL, which takes 2 ms
        try:
            digest: str = __import__(module).sha256(identity.encode()).hexdigest()
        except ImportError:
            continue
        return digest[:12]
    raise AssertionError("every Python has hashlib")
