"""Replay a spool: say each entry to the yard, in order. Every step may be repeated, so a replay may be killed anywhere."""

from __future__ import annotations

import os
import time

from taskyard.core import needs, times
from taskyard.core.errors import ClaimLost, Denied, Full, Invalid, NotFound, TaskyardError, Unavailable
from taskyard.spool import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.spool.folder import Entry, Folder
    from taskyard.yard import Yard

REPLAYED, STALE, FAILED, LEFT = "replayed", "stale", "failed", "left"


class Replay:
    """One pass through a spool; `acting_for` returns the yard as the one who said an entry uses it."""

    def __init__(
        self, folder: Folder, acting_for: Callable[[str, str], Yard], *, with_checks: bool, with_failed: bool
    ) -> None:
        self._folder = folder
        self._acting_for = acting_for
        self._with_checks = with_checks
        self._with_failed = with_failed
        self._full: set[str | None] = set()
        """The kinds that have no room, None for the whole yard: adds of those wait, and endings make room."""
        self.denied: dict[str, str] = {}
        """The verbs that a gateway does not allow with this token, and why: what says one of these waits for another token."""
        self._has_left = False
        """Whether an add has to wait: what comes after its tasks waits with it."""
        self.counts = dict.fromkeys((REPLAYED, STALE, FAILED, LEFT), 0)
        self.refused: list[dict[str, Any]] = []
        """What the yard has refused, as `taskyard spool` shows it."""
        self.is_locked = False
        """Whether another process replays at this moment."""

    def go(self, most: int | None = None, seconds: float | None = None) -> None:
        """Replay up to `most` entries, for as long as `seconds`; raise `Unavailable` if the yard goes away meanwhile."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            with self._folder.replaying() as alone:
                if not alone:
                    self.is_locked = True
                    return
                if self._with_failed:
                    self._folder.give_back()
                for name in self._folder.names():
                    if self._is_enough(most, end):
                        break
                    self.counts[self._one(name)] += 1
                self._folder.tidy()
        except OSError as error:
            raise Unavailable(
                f"the spool in {self._folder.path} cannot be replayed: {error.strerror or error}",
                hint="make that place readable and writable for this user",
            ) from None

    def _is_enough(self, most: int | None, end: float | None) -> bool:
        """Whether this share is done; what has to wait does not count, so that it holds up nothing behind it."""
        said = sum(self.counts.values()) - self.counts[LEFT]
        return (most is not None and said >= most) or (end is not None and time.monotonic() >= end)

    def _one(self, name: str) -> str:
        """Replay one entry, and return what became of it."""
        entry: Entry | None = None
        try:
            entry = self._folder.read(name)
            if entry is None:
                return REPLAYED
            if not self._tried(entry):
                return LEFT
        except ClaimLost:  # the yard has kept what it brought as a stale result
            self._folder.remove(name)
            return STALE
        except Unavailable:
            raise
        except TaskyardError as error:
            if entry is not None and self._has_to_wait(entry, error):
                return LEFT
            refusal = {"code": error.code, "message": error.message, "hint": error.hint}
            self._folder.refuse(name, entry, refusal)
            self.refused.append({**entries.shown(name, entry, failed=True), "error": refusal})
            return FAILED
        self._folder.remove(name)
        return REPLAYED

    def _has_to_wait(self, entry: Entry, error: TaskyardError) -> bool:
        """Whether the yard may take later what it refuses now: for want of room, of a right, or of what it comes after."""
        if isinstance(error, Denied):
            self.denied[str(entry.get("verb"))] = error.message
            self._has_left = True
            return True
        if isinstance(error, Full) and error.wanted <= error.most:
            self._full.add(error.kind)
            self._has_left = True
            return True
        return isinstance(error, NotFound) and self._has_left and entry.get("verb") == entries.ADD

    def _tried(self, entry: Entry) -> bool:
        """Say an entry to the yard; whatever is wrong with it must not keep this process from its own work."""
        try:
            return self._said(entry)
        except TaskyardError:
            raise
        except Exception as error:
            raise TaskyardError(f"it cannot be said: {type(error).__name__}: {error}") from error

    def _said(self, entry: Entry) -> bool:
        """Say an entry to the yard; return False if it has to wait."""
        by = str(entry.get("by") or "")
        if entry.get("verb") in self.denied:
            return False
        if entry.get("verb") == entries.ADD:
            return self._added(entry, by)
        handle = entries.claim(entry)
        yard = self._acting_for(str(entry.get("worker") or by), by)
        if entry.get("verb") == entries.FAIL:
            yard.fail(handle, str(entry.get("reason")), bool(entry.get("retry", True)))
        elif entry.get("verb") == entries.DONE:
            verified = bool(entry.get("verified")) or yard.get(handle.id).verify is None
            if not verified and not self._with_checks:
                return False  # a check may take long, and the caller has not asked for it
            with _Within(None if verified else entry.get("cwd")):
                yard.done(handle, entry.get("result"), verified=verified)
        else:
            raise Invalid(f"this entry has no verb that is known here: {ascii(entry.get('verb'))[:40]}")
        return True

    def _added(self, entry: Entry, by: str) -> bool:
        drafts = entries.drafts(entry)
        if not self._full.isdisjoint((None, *(draft.kind for draft in drafts))):
            self._has_left = True
            return False
        for draft in drafts:
            self._rename(draft)
        sent = entry.get("sent")
        if isinstance(sent, dict):
            ago = time.time() * 1000 - times.moment(entry.get("at"), "at")
            sent = {**sent, "ago": max(0, round(ago))}
        added = self._acting_for(by, by).add_spooled(drafts, str(entry["token"]), sent)
        for draft, id in zip(drafts, added, strict=True):
            if draft.id is not None and id != draft.id:
                self._folder.note_id(draft.id, id)
        return True

    def _rename(self, draft: Draft) -> None:
        """Put the ids that the yard has given into what this task refers to."""
        for name in ("parent", "discovered_from"):
            value = getattr(draft, name)
            if value is not None:
                setattr(draft, name, self._folder.id_of(value))
        draft.after = tuple(
            needs.Need(self._folder.id_of(str(need)), need.on_failure, need.by)
            for need in map(needs.parse, draft.after)
        )


class _Within:
    """A block that runs in another working directory; with None, in this one."""

    def __init__(self, folder: object) -> None:
        self._folder = folder if isinstance(folder, str) else None
        self._before = -1

    def __enter__(self) -> None:
        if self._folder is None:
            return
        self._before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.chdir(self._folder)
        except OSError as error:
            os.close(self._before)
            self._before = -1
            raise Invalid(
                f"the task names a check, and {self._folder}, where it was done, cannot be entered: {error.strerror}"
            ) from None

    def __exit__(self, *_: object) -> None:
        if self._before >= 0:
            os.fchdir(self._before)
            os.close(self._before)
