"""Three-way merge of one field: what the file says, what the yard says, and what they last agreed on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Agreed = tuple[str, str | None]
    """What the file and the yard said when they agreed: a file may not be able to show a yard's words as they are."""

KEEP, PUSH, PULL, CONFLICT = "keep", "push", "pull", "conflict"


def decided(file: str, yard: str, agreed: Sequence[Agreed], same: bool, settled: bool = False) -> str:
    """Return what is to be done: keep both, push the file's value to the yard, pull the yard's, or call it a conflict.

    Several entries of `agreed`, oldest first, mean that a sync was killed on the way to the last one: a side that has any of
    these values was not edited. `same` is whether both values mean the same. `settled` is whether a person has just removed the
    remark about a conflict from the file: then the file's value counts.
    """
    if same:
        return KEEP
    if not agreed:
        return CONFLICT if file and yard else PUSH if file else PULL
    if settled:
        return PUSH
    ours = {at for at, (said, _) in enumerate(agreed) if said == file}
    theirs = {at for at, (_, said) in enumerate(agreed) if said == yard}
    if not ours and not theirs:
        return CONFLICT
    if ours & theirs:
        return KEEP
    edited = len(agreed)  # an edit is later than all that was agreed on
    return PUSH if max(ours, default=edited) > max(theirs, default=edited) else PULL
