"""A draft as JSON, which `Draft.of` takes again: for what is added elsewhere, or later."""

from __future__ import annotations

from taskyard.core import json_codec, needs, times
from taskyard.core.draft import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.needs import Need

_MOMENTS = ("not_before", "expires")


def fields(draft: Draft) -> dict[str, Any]:
    """Return kind, data and every option that is set."""
    found: dict[str, Any] = {"kind": draft.kind, "data": json_codec.decode(draft.payload.encode())}
    for name in OPTIONS:
        value = getattr(draft, name)
        if value in (None, (), False, 0.0) and name != "priority":
            continue
        if name == "after":
            value = [_need(need) for need in map(needs.parse, value)]
        elif name in _MOMENTS and isinstance(value, int):
            value = times.rfc3339(value)
        found[name] = value
    return found


def fix_moments(draft: Draft, now: int) -> None:
    """Make moments of the times that the draft counts from now on."""
    draft.set_deadline(now)
    if draft.not_before is None:
        draft.not_before = draft.due(now)
    draft.delay = 0.0


def _need(need: Need) -> str | dict[str, str]:
    if need.by is None:
        return f"{need}:{need.on_failure}"
    return {need.by: str(need), "on_failure": need.on_failure}
