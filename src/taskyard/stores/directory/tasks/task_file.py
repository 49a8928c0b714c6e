"""The content of a task's file: one JSON object, written once and never changed."""

from __future__ import annotations

from taskyard.core.draft import Draft, compact
from taskyard.core.errors import Invalid
from taskyard.core.times import is_moment, rfc3339
from taskyard.stores.directory.dropbox import file_format, json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = b'{"taskyard":1,'  # every file that Taskyard writes begins with it; one from the drop box does not
_PLAIN = frozenset(("id", "kind", "priority", "data"))  # the fields of most tasks
_LISTS = ("after", "uses")
_TEXTS = ("id", "kind", "title", "assignee", "mission", "key", "verify", "not_before")
_FORMS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    "priority": (int,),
    "max_attempts": (int,),
    "lease": (int, float),
    "data": (object,),
}


def encode(id: str, draft: Draft, due: int | None, added: str | None = None) -> bytes:
    """Return the file's content for a new task; fields at their default are left out.

    `added` is the digest of the data that its key stands for, if that is not the data in this file.
    """
    parts = [f'{{"taskyard":1,"id":"{id}","kind":{compact(draft.kind)},"priority":{draft.priority}']
    for name in ("title", "assignee", "mission", "key", "max_attempts", "lease", "verify"):
        value = getattr(draft, name)
        if value is not None:
            parts.append(f'"{name}":{compact(value)}')
    if added is not None:
        parts.append(f'"added":"{added}"')
    if draft.after:
        parts.append(f'"after":{compact(draft.after)}')
    if draft.uses:
        parts.append(f'"uses":{compact(draft.uses)}')
    not_before = due if draft.not_before is None else draft.not_before
    if not_before is not None:
        parts.append(f'"not_before":"{rfc3339(not_before)}"')
    parts.append(f'"data":{draft.payload}}}\n')
    return ",".join(parts).encode()


def decode(content: bytes) -> dict[str, Any]:
    """Return the task's fields in the file; raise `Invalid` with what is wrong with it."""
    if not content.startswith(MARK):
        return _dropped_fields(content)
    fields = _written(content)
    fields.pop("lease", None)  # the name holds it, so that every reaper sees it
    return fields


def added(content: bytes) -> str | None:
    """Return the digest of the data that the task's key stands for, if the file does not hold that data."""
    if not content.startswith(MARK):
        return None
    stands_for = json_text.scan(content.decode(), 0)[0].get("added")
    return stands_for if isinstance(stands_for, str) else None


def _written(content: bytes) -> dict[str, Any]:
    """Return what Taskyard wrote; anything that another program appended to the file does not count."""
    try:
        fields, _ = json_text.scan(content.decode(), 0)
        json_text.refuse_halves(content, fields)
        del fields["taskyard"]
        fields["data"]
        if fields.keys() != _PLAIN:
            fields = _known(fields)
    except (ValueError, RecursionError, StopIteration, KeyError, TypeError) as error:
        raise Invalid(f"the task's file is not whole: {error}") from None
    return fields  # type: ignore[no-any-return]


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Return only the fields of a task: a program that writes into the file cannot add others."""
    for name, value in fields.items():
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
                raise ValueError(f"{name} is no list of texts")
        elif not isinstance(value, _FORMS.get(name, object)) or (name == "not_before" and not is_moment(value)):
            raise ValueError(f"{name} is a {type(value).__name__}")
    return {name: value for name, value in fields.items() if name in _FORMS or name in _LISTS}


def draft(content: bytes) -> Draft:
    """Return the task in the file as a draft, to be added or changed."""
    if not content.startswith(MARK):
        return file_format.draft(file_format.parse(content))
    fields = _written(content)
    fields.pop("id", None)
    return Draft.of(fields)


def _dropped_fields(content: bytes) -> dict[str, Any]:
    made = file_format.draft(file_format.parse(content))
    fields = {
        "title": made.title,
        "mission": made.mission,
        "key": made.key,
        "verify": made.verify,
        "data": made.data,
        "uses": made.uses,
    }
    if made.not_before is not None:
        fields["not_before"] = rfc3339(made.not_before)
    return fields
