"""The limits of kinds: how many claims are in processing/, and in pace/ when the next one is allowed.

A claim of a kind with a limit of concurrency is put into processing/ first; a process that then sees too many of its kind there
gives its own back. A kind with a rate has as many slots in pace/ as can be claimed in a minute. Each slot's name has the moment
from which it can be used again. To use it is one rename, which one process wins.
"""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.limits import CONCURRENCY, RATE, WINDOW, Reached
from taskyard.stores.directory.names import Token, paused_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

SLOTS = 64
"""How many slots are made at a time, as one folder."""
_APART = 20  # milliseconds by which the clocks of two processes may differ
_LOOK_EVERY = 1000  # milliseconds after which slots are listed anew though none was free: some may have been given back
_KNOWN_MOST = 10_000


class Slot:
    """The slot that a claim has taken, and how it was before; without a name if its kind has no rate."""

    __slots__ = ("before", "path")

    def __init__(self, path: str = "", before: str = "") -> None:
        self.path = path
        self.before = before


class Limits:
    """Finds out which limits are reached, and counts claims."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kinds: dict[str, str | None] = {}
        self._free: dict[str, list[str]] = {}
        self._due: dict[str, int] = {}
        self._full: dict[str, int] = {}

    def forget(self) -> None:
        """Look at the slots anew: the limits have changed."""
        for known in (self._free, self._due, self._full):
            known.clear()

    def closed(self, wanted: frozenset[str] | None = None) -> frozenset[str]:
        """Return those of these kinds, or of all, of which no task can be claimed now."""
        return frozenset(one.kind for one in self.reached(wanted))

    def reached(self, wanted: frozenset[str] | None = None) -> list[Reached]:
        """Return the limits of these kinds, or of all, that are reached now."""
        found = []
        limited = self._context.kinds
        held: dict[str, int] | None = None
        for kind, limits in limited.items():
            if wanted is not None and kind not in wanted:
                continue
            if limits.concurrency is not None:
                held = self._held() if held is None else held
                if held.get(kind, 0) >= limits.concurrency:
                    found.append(Reached(kind, CONCURRENCY, limits.concurrency))
                    continue
            if limits.rate is not None and not self._slots(kind, limits.rate, self._context.clock.now()):
                found.append(Reached(kind, RATE, limits.rate, self._due[kind]))
        return found

    def alarm(self) -> float | None:
        """Return the seconds until a slot is free of a kind that had none at the last look; None if there is no such kind."""
        dues = [due for kind, due in self._due.items() if kind in self._context.kinds and not self._free.get(kind)]
        return max(0, min(dues) - self._context.clock.now() + 1) / 1000 if dues else None

    def exceeded(self, kind: str, name: str) -> bool:
        """Whether the claim that was put into processing/ under this name is one too many of its kind.

        Two listings, because one may miss a claim that its own worker takes over, under another name, at that moment.
        """
        limits = self._context.kinds.get(kind)
        if limits is None or limits.concurrency is None:
            return False
        others = {other[: ids.LENGTH] for _ in range(2) for other in self._names(kind) if other != name}
        return len(others) >= limits.concurrency

    def enter(self, kind: str, now: int) -> Slot | None:
        """Take a slot for a claim that is logged with this time; None if the rate allows none now."""
        limits = self._context.kinds.get(kind)
        if limits is None or limits.rate is None:
            return Slot()
        while self._slots(kind, limits.rate, now):
            free = self._free[kind]
            before = free.pop(ids.chance(16) % len(free))
            block, _, name = before.rpartition("/")
            number, generation, *_ = name.split(".")
            after = f"{block}/{number}.{int(generation) + 1}.{now + WINDOW + _APART}.{_own()}"
            if self._moved(before, after):
                return Slot(after, before)
        return None

    def leave(self, slot: Slot) -> None:
        """Give back the slot of a claim that was not made."""
        if not slot.path:
            return
        block, _, name = slot.path.rpartition("/")
        number, generation, *_ = name.split(".")
        moment = slot.before.rsplit(".", 2)[1]
        self._moved(slot.path, f"{block}/{number}.{int(generation) + 1}.{moment}.{_own()}")

    def _moved(self, before: str, after: str) -> bool:
        try:
            self._context.disk.rename(before, after)
        except FileNotFoundError:
            return self._context.disk.exists(after)  # mine, if only the reply was lost
        return True

    def _held(self) -> dict[str, int]:
        """Return how many claims of each kind are in processing/."""
        counts: dict[str, int] = {}
        for name in self._context.disk.listdir(self._context.processing):
            kind = self._kind(name)
            if kind is not None:
                counts[kind] = counts.get(kind, 0) + 1
        return counts

    def _names(self, kind: str) -> list[str]:
        names = self._context.disk.listdir(self._context.processing)
        return [name for name in names if self._kind(name) == kind]

    def _kind(self, name: str) -> str | None:
        """Return the kind of the claim with this name; None if it is none of ours."""
        if name not in self._kinds:
            token = Token.parse(name)
            if len(self._kinds) > _KNOWN_MOST:
                self._kinds.clear()
            self._kinds[name] = None if token is None else token.lane.kind
        return self._kinds[name]

    def _slots(self, kind: str, rate: int, now: int) -> list[str]:
        """Return slots that were free at the last look; look again if none is left, and one may be free by now."""
        free = self._free.setdefault(kind, [])
        if free or now < min(self._due.get(kind, 0), self._full.get(kind, 0) + _LOOK_EVERY):
            return free
        used, dues = 0, []
        folder = f"{self._context.root}/pace/{paused_name(kind)}"
        for block in range((rate + SLOTS - 1) // SLOTS):
            for name in self._block(f"{folder}/{block}", block):
                number, _, text, _ = name.split(".")
                until = int(text)
                if now < until <= now + WINDOW + 1000:  # later than that: the clock was set back
                    used += 1
                    dues.append(until)
                elif int(number) < rate:
                    free.append(f"{folder}/{block}/{name}")
        del free[max(0, rate - used) :]
        self._due[kind] = min(dues, default=now + _LOOK_EVERY)
        # Slots that others took meanwhile may be free again, if their claims were not made: only a listing without any says so.
        self._full[kind] = 0 if free else now
        return free

    def _block(self, folder: str, block: int) -> list[str]:
        """Return the names of the slots of one block; make it, as a whole, if it is not there."""
        context = self._context
        try:
            found = context.disk.listdir(folder)
        except FileNotFoundError:
            draft = context.draft()
            context.mover.ensure(draft, sync=False)
            for number in range(block * SLOTS, (block + 1) * SLOTS):
                context.disk.create(f"{draft}/{number}.0.0.0", b"", False)
            context.mover.ensure(folder.rpartition("/")[0], sync=False)
            try:
                context.disk.rename(draft, folder)
            except OSError:
                context.disk.remove_tree(draft)  # another process has made it
            found = context.disk.listdir(folder)
        return [name for name in found if _is_slot(name)]


def _is_slot(name: str) -> bool:
    parts = name.split(".")
    return len(parts) == 4 and all(part.isdigit() and part.isascii() for part in parts[:3])


def _own() -> str:
    """Return a word that no other process makes: two that take a slot in one millisecond must not find one another's name."""
    return ids.base32(ids.chance(40), 8)
