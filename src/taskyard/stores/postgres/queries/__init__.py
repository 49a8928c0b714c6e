"""Named SQL: each statement stands in a .sql file under `-- name: NAME`; a file is read when it is first used."""

from __future__ import annotations

import os

_files: dict[str, dict[str, str]] = {}
_MARK = "-- name: "


def load(file: str) -> dict[str, str]:
    """Return the statements of one file, by name."""
    if file not in _files:
        with open(os.path.join(os.path.dirname(__file__), f"{file}.sql"), encoding="utf-8") as stream:
            _files[file] = named(stream.read())
    return _files[file]


def named(text: str) -> dict[str, str]:
    """Return the statements in this text: each ends where the next name begins."""
    found = {}
    for part in text.split(f"\n{_MARK}")[1:] if not text.startswith(_MARK) else f"\n{text}".split(f"\n{_MARK}")[1:]:
        name, _, statement = part.partition("\n")
        lines = [line for line in statement.split("\n") if not line.lstrip().startswith("--")]
        found[name.strip()] = "\n".join(lines).strip()
    return found
