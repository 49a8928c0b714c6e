"""The claims that one agent holds through this server, and their renewal: agents never send heartbeats."""

from __future__ import annotations

from threading import Lock

from taskyard.core.errors import ClaimLost, NotFound, TaskyardError
from taskyard.core.times import ticks
from taskyard.yard.claim import BEATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

LEASE = 60.0  # seconds, where the task has no lease of its own: as for a worker, because this server heartbeats as one
_MEMORY = 100  # lost claims that are remembered


class Held:
    """One claim, what its agent calls its task, and when the next heartbeat is due."""

    __slots__ = ("beat_at", "claim", "every", "handle", "id", "is_lent", "name")

    def __init__(self, claim: Claim, is_lent: bool = False) -> None:
        self.claim = claim
        self.is_lent = is_lent
        """Whether a worker made it and has this agent as its command: the agent may end it, and never gives it back."""
        self.handle = claim.handle
        self.id = claim.id
        task = claim.task
        self.name = f"{task.short} ({task.title or task.kind})"
        self.every = claim.lease / BEATS
        self.beat_at = ticks() + self.every


class Claims:
    """The held claims by handle, for requests in several threads and one that renews."""

    def __init__(self, yard: YardPort, idle: float) -> None:
        self._yard = yard
        self._idle = idle
        self._lock = Lock()
        self._held: dict[str, Held] = {}
        self._lost: dict[str, Held] = {}
        self._called = ticks()

    def called(self) -> None:
        """Note that the agent has made a call: it lives."""
        self._called = ticks()

    def is_awake(self) -> bool:
        """Whether the last call is not older than the limit."""
        return ticks() - self._called <= self._idle

    def take(self, claim: Claim, *, is_lent: bool = False) -> Held:
        """Hold and renew this claim from now on; an earlier claim on the same task is over."""
        held = Held(claim, is_lent)
        with self._lock:
            for old in [old for old in self._held.values() if old.id == held.id]:
                del self._held[old.handle]
            self._held[held.handle] = held
        return held

    def drop(self, handle: str) -> None:
        """Renew this claim no longer, and forget it."""
        with self._lock:
            self._held.pop(handle, None)
            self._lost.pop(handle, None)

    def all(self) -> list[Held]:
        """Return the claims that are held, oldest first."""
        with self._lock:
            return list(self._held.values())

    def own(self) -> list[Held]:
        """Return those that this server has to give back."""
        return [held for held in self.all() if not held.is_lent]

    def get(self, handle: str) -> Held | None:
        """Return the claim with this handle, if it is held here."""
        return self._held.get(handle)

    def on(self, id: str) -> Held | None:
        """Return the claim on the task with this id, if it is held here."""
        return next((held for held in self.all() if held.id == id), None)

    def last_lost(self) -> Held | None:
        """Return the claim that was lost last, if the agent holds nothing since."""
        with self._lock:
            return next(reversed(self._lost.values()), None)

    def forget_lost(self) -> None:
        """Forget lost claims: the agent has claimed again."""
        with self._lock:
            self._lost.clear()

    def beat(self) -> None:
        """Renew what is due, unless the agent has made no call for so long that it must be taken for gone.

        Then the leases end, and a sweep gives the tasks back; until that, the agent can still end them.
        """
        if not self.is_awake():
            return
        now = ticks()
        for held in self.all():
            if now < held.beat_at:
                continue
            try:
                held.claim.heartbeat()
            except (ClaimLost, NotFound):
                self._lose(held)
            except Exception:  # whatever it is: a thread that ended here would let every claim go
                held.beat_at = now + min(2.0, held.every)  # the yard may be back before the lease ends
            else:
                held.beat_at = now + held.every

    def pause(self, most: float) -> float:
        """Return the seconds until the next heartbeat is due, `most` at the most."""
        due = [held.beat_at - ticks() for held in self.all()] if self.is_awake() else []
        return max(0.05, min([most, *due]))

    def _lose(self, held: Held) -> None:
        with self._lock:
            if self._held.pop(held.handle, None) is not None:  # else its agent has just ended it
                self._lost[held.handle] = held
                if len(self._lost) > _MEMORY:
                    del self._lost[next(iter(self._lost))]

    def give_back(self, reason: str, *, died: bool) -> None:
        """Give back all of our own: as a crash if the agent died, else uncounted."""
        for held in self.own():
            try:
                if died:
                    held.claim.crash(reason)
                else:
                    held.claim.release(reason=reason)
            except TaskyardError:
                pass  # it is another's by now; or the yard is away, and the lease gives it back
            self.drop(held.handle)
