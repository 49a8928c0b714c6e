"""Variables whose value is in a file: `$TASKYARD_FILE` for `$TASKYARD`, so that no environment holds a password."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST = 1 << 16  # bytes of such a file: a URL with certificates' paths and hosts is far shorter


def given(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the variable `name`, else what is in the file that `<name>_FILE` names; None if neither is set.

    The variable wins: a worker sets `$TASKYARD` for its commands, which inherit `$TASKYARD_FILE` too.
    """
    value = environment.get(name)
    if value:
        return value
    path = environment.get(f"{name}_FILE")
    return _content(f"${name}_FILE", path) if path else None


def _content(variable: str, path: str) -> str:
    """Return the one line of a file. No message shows any of it."""
    shown = f"{variable} names {ascii(path)[:200]}"
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST + 1)
    except OSError as error:
        raise Unavailable(
            f"{shown}, which cannot be read: {error.strerror or error}",
            hint="check the path, that it is mounted, and that this user may read it",
        ) from None
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if len(content) > _MOST or not text.isprintable() or not text:
        raise Invalid(
            f"{shown}, which does not hold one line of text", hint="write the value into it, and nothing else"
        )
    return text
