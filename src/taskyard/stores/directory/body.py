"""What is in a task's file: one JSON object, written once and never changed."""

from __future__ import annotations

import json

from taskyard.draft import compact
from taskyard.errors import Invalid
from taskyard.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.draft import Draft

# Every whole file begins and ends so: cheap enough to be asked at every claim.
MARK = b'{"taskyard":1,'
END = b"}\n"
# The scanner alone, without the search for white space around the text, which takes as long again.
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def encode(id: str, draft: Draft, due: int | None) -> bytes:
    """The file's content for a new task; fields at their default are left out."""
    parts = [f'{{"taskyard":1,"id":"{id}","kind":{compact(draft.kind)},"priority":{draft.priority}']
    for name in ("title", "assignee", "mission", "max_attempts", "lease"):
        value = getattr(draft, name)
        if value is not None:
            parts.append(f'"{name}":{compact(value)}')
    not_before = due if draft.not_before is None else draft.not_before
    if not_before is not None:
        parts.append(f'"not_before":"{rfc3339(not_before)}"')
    parts.append(f'"data":{draft.payload}}}\n')
    return ",".join(parts).encode()


def decode(content: bytes) -> dict[str, Any]:
    """The task's fields that the file holds, or `Invalid` with what is wrong with it."""
    try:
        fields, _ = _scan(content.decode(), 0)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the task's file is not JSON: {error}") from None
    except StopIteration:
        raise Invalid("the task's file is not JSON") from None
    if not isinstance(fields, dict) or fields.pop("taskyard", None) != 1 or "data" not in fields:
        raise Invalid("the task's file was not written by Taskyard")
    fields.pop("lease", None)  # the name holds it, where every reaper sees it
    return fields
