"""The content of a task's file: one JSON object, written once and never changed."""

from __future__ import annotations

from taskyard.core import needs
from taskyard.core.draft import Draft, compact
from taskyard.core.errors import Invalid
from taskyard.core.times import is_moment, moment, rfc3339
from taskyard.stores.directory.dropbox import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = b'{"taskyard":1,'  # every file that Taskyard writes begins with it; one from the drop box does not
_PLAIN = frozenset(("id", "kind", "priority", "data"))  # the fields of most tasks
_LISTS = ("after", "uses")
_MOMENTS = ("not_before", "expires")
_TEXTS = (
    "id", "kind", "title", "assignee", "mission", "key", "verify", "parent", "discovered_from", "not_before", "expires",
)  # fmt: skip
_FORMS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    "priority": (int,),
    "max_attempts": (int,),
    "lease": (int, float),
    "timeout": (int, float),
    "data": (object,),
}


def encode(id: str, draft: Draft, due: int | None, added: str | None = None) -> bytes:
    """Return the file's content for a new task; fields at their default are left out.

    `added` is the digest of the data that its key stands for, if that is not the data in this file.
    """
    parts = [f'{{"taskyard":1,"id":"{id}","kind":{compact(draft.kind)},"priority":{draft.priority}']
    for name, value in (
        ("title", draft.title), ("assignee", draft.assignee), ("mission", draft.mission), ("key", draft.key),
        ("max_attempts", draft.max_attempts), ("lease", draft.lease), ("timeout", draft.timeout), ("verify", draft.verify),
        ("parent", draft.parent), ("discovered_from", draft.discovered_from),
    ):  # fmt: skip
        if value is not None:
            parts.append(f'"{name}":{compact(value)}')
    if added is not None:
        parts.append(f'"added":"{added}"')
    if draft.after:
        parts.append(f'"after":{compact(draft.after)}')
        mild = {need: policy for need in draft.after if (policy := needs.on_failure(need)) != needs.BLOCK}
        if mild:  # a field of its own: a reader that does not know it takes every need for one that blocks
            parts.append(f'"on_failure":{compact(mild)}')
    if draft.uses:
        parts.append(f'"uses":{compact(draft.uses)}')
    not_before = due if draft.not_before is None else draft.not_before
    if not_before is not None:
        parts.append(f'"not_before":"{rfc3339(not_before)}"')
    if draft.expires is not None:
        parts.append(f'"expires":"{rfc3339(int(draft.expires))}"')
    parts.append(f'"data":{draft.payload}}}\n')
    return ",".join(parts).encode()


def decode(content: bytes, dropped: bool = True) -> dict[str, Any]:
    """Return the task's fields in the file; raise `Invalid` with what is wrong with it.

    A file that is not `dropped` came from Taskyard, and must begin as all of those do.
    """
    if not content.startswith(MARK):
        if not dropped:
            raise Invalid("the task's file was not written by Taskyard")
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
        if b"\\" in content:  # else there is no escape in it
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
    policies = fields.pop("on_failure", None)
    for name, value in fields.items():
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
                raise ValueError(f"{name} is no list of texts")
        elif not isinstance(value, _FORMS.get(name, object)) or (name in _MOMENTS and not is_moment(value)):
            raise ValueError(f"{name} is a {type(value).__name__}")
    if policies is not None:
        fields["after"] = _with_policies(fields.get("after", []), policies)
    return {name: value for name, value in fields.items() if name in _FORMS or name in _LISTS}


def _with_policies(after: list[str], policies: object) -> list[str]:
    if not isinstance(policies, dict) or not all(policy in needs.POLICIES for policy in policies.values()):
        raise ValueError("on_failure is no object of policies")
    return [needs.Need(id, policies.get(id, needs.BLOCK)) for id in after]


def draft(content: bytes) -> Draft:
    """Return the task in the file as a draft, to be added or changed."""
    if not content.startswith(MARK):
        from taskyard.stores.directory.dropbox import file_format

        return file_format.draft(file_format.parse(content))
    fields = _written(content)
    fields.pop("id", None)
    expires = fields.pop("expires", None)
    found = Draft.of(fields)
    if expires is not None:  # set by itself: a delay and a moment are not compared when a task is added
        found.expires = moment(expires, "expires")
    return found


def _dropped_fields(content: bytes) -> dict[str, Any]:
    from taskyard.stores.directory.dropbox import file_format

    made = file_format.draft(file_format.parse(content))
    fields = {
        "title": made.title,
        "mission": made.mission,
        "key": made.key,
        "verify": made.verify,
        "data": made.data,
        "uses": made.uses,
        "timeout": made.timeout,
    }
    if isinstance(made.expires, int):
        fields["expires"] = rfc3339(made.expires)
    if made.not_before is not None:
        fields["not_before"] = rfc3339(made.not_before)
    return fields
