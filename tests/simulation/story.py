"""A failure, told: who did what with which answer, what went wrong, which part of the promise was broken, and how to see it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .actors import BEFORE, KILL, LOST
from .power import CUT

if TYPE_CHECKING:
    from .found import Found

_WRONG = {KILL: "<- killed here", LOST: "<- it was made, and the answer was lost"}


def told(found: Found, command: str) -> str:
    """The whole story, one line a call."""
    world = found.world
    lines = [f"{found.violation.kind}: {found.violation.what}", ""]
    cleaning = False
    for actor, name, args, answer, wrong in world.trace or ():
        if actor.name == "janitor" and not cleaning:
            cleaning = True
            lines.append("  -- everybody is gone; a janitor sweeps, and all that is left is done --")
        if name == CUT:
            lines.append("  == power cut ==")
            continue
        mark = "" if wrong == BEFORE else _WRONG.get(wrong, f"<- {wrong}" if wrong else "")
        ready = "(getting ready) " if wrong == BEFORE and not cleaning else ""
        lines.append(f"  {actor.name:8} {ready}{name} {_short(world.root, args)} -> {_cut(answer)} {mark}".rstrip())
    lines += ["", "what they were told:"]
    for note in world.told:
        rest = {
            key: value
            for key, value in note.items()
            if key not in ("by", "number", "verb", "answer") and value is not None
        }
        lines.append(f"  {note['by']:8} {note['verb']}: {note['answer'] or 'no answer'} {rest}")
    return "\n".join([*lines, "", f"broken: {found.violation}", f"again:  {command}", ""])


def _short(root: str, args: tuple[Any, ...]) -> str:
    return " ".join(
        _cut(arg[len(root) + 1 :] or "." if isinstance(arg, str) and arg.startswith(root) else arg) for arg in args
    )


def _cut(value: Any) -> str:
    text = (
        value.decode("utf-8", "replace")
        if isinstance(value, bytes)
        else str(bytes(value), "utf-8", "replace")
        if isinstance(value, memoryview)
        else str(value)
    )
    text = text.replace("\x00", "").strip("\n")
    return text if len(text) <= 150 else f"{text[:150]}..."
