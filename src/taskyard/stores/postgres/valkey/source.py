"""The source of changes of a store with Valkey: messages and popped hints, and the database's own notifications without it.

A process that waits for any change subscribes to all messages. One that waits for a task to claim pops hints: each hint wakes
one process. It also subscribes to the messages that concern every claim.

Every process proves at each beat that it is still served: a message and a hint of its own must come back. One process
leads, and looks in the log every second for changes that were not sent: of clients without Valkey, of callers' own
transactions, and of processes that were killed between commit and message.
"""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.stores.postgres.valkey.server import Trouble, is_wrong_type
from taskyard.stores.wakeup import WATCHERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Want
    from taskyard.stores.postgres.listener import Listener
    from taskyard.stores.postgres.valkey.hints import Hints

BEAT = 3.0  # seconds between two proofs
LEADERS_BEAT = 1.0
PATIENCE = 1.0  # seconds until a proof must be back
_LEAD = 2500  # milliseconds for which a leader leads without a beat
_REFILL_EVERY = 5.0  # seconds after which what is ready is put into the lists again, though nothing happened
_PROBE_KEPT = 30_000  # milliseconds


class HintSource:
    """The changes of one open project."""

    longest_pause = 1.0

    def __init__(self, hints: Hints, listener: Listener) -> None:
        self._hints, self._listener = hints, listener
        self._keys, self._server = hints.keys, hints.server
        self._ear: Any = None
        self._pop: Any = None
        self._wants: list[Want | None] = []
        self._hears_all = False
        self._popping: frozenset[str] = frozenset()
        """The lists that the blocking pop under way waits for."""
        self._generation = b""
        self._incarnation = ""
        self._beat_at = self._prove_by = self._refill_at = float("inf")
        self._unproved: set[str] = set()
        self._leads = self._heard_event = False

    @property
    def is_live(self) -> bool:
        """Whether Valkey serves this process."""
        return self._ear is not None

    # What `Wakeup` calls

    def open(self) -> bool:
        """Begin to receive; return whether it began anew, so that earlier looks do not count."""
        if self._ear is not None:
            return False
        if not self._server.rests():
            try:
                self._begin()
                self._listener.close()
                return True
            except Exception as error:
                self._give_up(error)
        return self._listener.open()

    def mark(self) -> bool:
        """Receive every change from now on."""
        return False if self.is_live else self._listener.mark()

    def hear_all(self) -> bool:
        """Receive every message from now on; return whether looks before this do not count."""
        if self._hears_all:
            return False
        self._hears_all = True
        if not self.is_live or self._leads:
            return False
        try:
            return self._subscribe(self._keys.events)
        except Exception as error:
            self._give_up(error)
            return True

    def enter(self, want: Want | None) -> bool:
        """A thread begins to wait, for a task that it could claim or for any change; return whether it must look again."""
        self._wants.append(want)
        try:
            if self._popping and not self._popping.issuperset(self._lists()):
                self._interrupt_pop()
        except Trouble as error:
            self._give_up(error)
            return True
        return False

    def leave(self, want: Want | None) -> None:
        """The thread waits no more."""
        self._wants.remove(want)

    def missed(self) -> bool:
        """Called just before a sleep: do what is due; return whether something may have changed that was not received."""
        if not self.is_live:
            if not self._server.rests() and self.open():
                return True
            return self._listener.missed()
        try:
            worth = bool(self.receive()) or self._beat()
            if not worth:
                self._begin_pop()
            return worth
        except Exception as error:
            self._give_up(error)
            return True

    def recheck_after(self) -> float:
        """Return the seconds until `missed` must be called again."""
        if not self.is_live:
            return min(self._listener.recheck_after(), max(0.05, self._server.rests()))
        return max(0.0, min(self._beat_at, self._prove_by) - time.monotonic())

    def end_sleep(self) -> None:
        """No thread waits: take no hint that another process could use."""
        self._listener.end_sleep()
        if not self.is_live:
            return
        try:
            if self._popping:
                self._interrupt_pop()
                self._receive_pop(self._pop.receive())
        except Exception as error:
            self._give_up(error)

    def has_hint(self) -> bool:
        """Whether a hint was popped that no claim has used yet."""
        return bool(self._hints.popped)

    def descriptors(self) -> list[int]:
        """Return what becomes readable when there are changes to receive."""
        if not self.is_live:
            return self._listener.descriptors()
        return [line.fileno() for line in (self._ear, self._pop) if line is not None]

    def receive(self) -> int:
        """Read what has arrived; return whether it is worth a look, and for whom."""
        if not self.is_live:
            return self._listener.receive()
        worth = 0
        try:
            while self._ear.has_more():
                worth = _wider(worth, self._receive_message(self._ear.receive()))
            if self._popping and self._pop.has_more():
                worth = _wider(worth, self._receive_pop(self._pop.receive()))
        except Exception as error:
            self._give_up(error)
            return True
        return worth

    def is_idle(self) -> bool:
        """Whether the connections have not been used for a while."""
        return self._listener.is_idle() or (self.is_live and time.monotonic() - self._beat_at > 2 * BEAT)

    def close(self) -> None:
        """Close all connections."""
        self._close_lines()
        self._listener.close()

    def abandon(self) -> None:
        """Forget the connections in a forked child."""
        self._ear = self._pop = None
        self._wants.clear()
        self._close_lines()
        self._listener.abandon()

    # Beginning and ending

    def _begin(self) -> None:
        self._incarnation = ids.base32(ids.chance(60), 12)
        self._ear = self._server.connect()
        self._subscribe(self._keys.look, self._keys.echo(self._incarnation), *[self._keys.events] * self._hears_all)
        self._unproved.clear()
        self._prove_by, self._beat_at, self._refill_at = float("inf"), 0.0, 0.0
        self._check_generation()

    def _subscribe(self, *channels: str) -> bool:
        """Subscribe, and wait until the server confirms it; return whether a message came meanwhile."""
        self._ear.send(("SUBSCRIBE", *channels))
        left, worth = len(channels), 0
        while left:
            answer = self._ear.receive()
            worth = self._receive_message(answer) or worth
            left -= answer[0] == b"subscribe"
        return bool(worth)

    def _give_up(self, error: Exception) -> None:
        """Close everything after trouble: the database wakes this process until Valkey serves again."""
        self._close_lines()
        if not isinstance(error, Trouble):
            self._server.failed(error)

    def _close_lines(self) -> None:
        for line in (self._ear, self._pop):
            if line is not None:
                line.disconnect()
        self._ear = self._pop = None
        self._popping = frozenset()
        self._leads = False

    # Messages and hints

    def _receive_message(self, message: Any) -> int:
        if isinstance(message, Exception):
            raise message
        sort, channel, *_ = message
        if sort != b"message":
            return 0
        if channel == self._keys.echo(self._incarnation).encode():
            self._unproved.discard("message")
            return 0
        if channel == self._keys.events.encode():
            self._heard_event = True
            return WATCHERS
        return True

    def _lists(self) -> list[str]:
        """Return the lists that serve those who wait, a list for proofs first; none if no thread waits for a task."""
        found: dict[str, None] = {}
        for want in self._wants:
            if want is not None:
                found.update(dict.fromkeys(self._keys.ready(want.kinds, want.worker)))
        return [self._keys.probe(self._incarnation), *sorted(found, key=_priority)] if found else []

    def _begin_pop(self) -> None:
        """Wait for a hint, if a thread waits for a task."""
        lists = self._lists()
        if self._popping or not lists:
            return
        if self._pop is None:
            self._pop = self._server.connect()
        self._pop.send(("BZPOPMIN", *lists, 0))
        self._popping = frozenset(lists)

    def _interrupt_pop(self) -> None:
        """Have the pop under way return: a proof is a hint like any other."""
        self._server.ask(*self._push_probe())

    def _push_probe(self) -> list[tuple[str | int, ...]]:
        probe = self._keys.probe(self._incarnation)
        return [("ZADD", probe, 0, "probe"), ("PEXPIRE", probe, _PROBE_KEPT)]

    def _receive_pop(self, answer: Any) -> int:
        self._popping = frozenset()
        if isinstance(answer, Exception):
            if is_wrong_type(answer):
                self._remove_planted()
                return True
            raise answer
        self._unproved.discard("hint")
        if answer is None or answer[0] == self._keys.probe(self._incarnation).encode():
            return 0
        hint = (answer[0].decode(), answer[1].decode(errors="replace"))
        if any(want is not None for want in self._wants):
            self._hints.popped.append(hint)
            return True
        self._hints.give_back([hint])
        return 0

    def _remove_planted(self) -> None:
        """Remove what is in the place of a list and is none."""
        lists = self._lists()
        for name, sort in zip(lists, self._server.ask(*(("TYPE", name) for name in lists)), strict=True):
            if sort not in (b"zset", b"none"):
                self._server.ask(("DEL", name))

    # Proofs, the leader, and generations

    def _beat(self) -> bool:
        """Do what is due; return whether everybody has to look."""
        now = time.monotonic()
        if self._unproved and now >= self._prove_by:
            raise Trouble(f"no {' and no '.join(sorted(self._unproved))} came back in {PATIENCE:g} s")
        if not self._unproved:
            self._prove_by = float("inf")
        if now < self._beat_at:
            return False
        self._prove(now)
        worth = self._check_generation()
        if self._leads != (leads := self._may_lead()):
            self._turn_leader(leads)
            worth = True
        if self._leads:
            self._lead(now)
            worth, self._heard_event = worth or self._heard_event, False
        pause = LEADERS_BEAT if self._leads else BEAT
        self._beat_at = time.monotonic() + pause * (0.75 + ids.chance(8) / 1024)
        return worth

    def _may_lead(self) -> bool:
        """Take or keep the lead, unless another process has it; one that was planted without an end counts as none."""
        key, me = self._keys.leader, self._incarnation
        leader = self._server.get(key)
        if leader is not None and leader != me.encode():
            [left] = self._server.ask(("PTTL", key))
            if left > 0:
                return False
        self._server.ask(("SET", key, me, "PX", _LEAD))
        return True

    def _prove(self, now: float) -> None:
        """Send a message and a hint to this process itself."""
        proofs: list[tuple[str | int, ...]] = [("PUBLISH", self._keys.echo(self._incarnation), "echo")]
        self._unproved.add("message")
        if self._popping:
            proofs += self._push_probe()
            self._unproved.add("hint")
        if self._prove_by == float("inf"):
            self._prove_by = now + PATIENCE
        self._server.ask(*proofs)

    def _check_generation(self) -> bool:
        """Whether the hints are new: the old ones are lost, and what they would have shown must be looked for."""
        found = self._server.get(self._keys.generation)
        if found is None and self._hints.rebuild(self._incarnation):
            found = self._incarnation.encode()
        before, self._generation = self._generation, found or b""
        return before != self._generation

    def _turn_leader(self, leads: bool) -> None:
        """Begin or stop to lead: a leader looks after every event, so that leases are ended in time for all."""
        self._leads = leads
        if self._hears_all:
            return
        if leads:
            self._subscribe(self._keys.events)
        else:
            self._ear.send(("UNSUBSCRIBE", self._keys.events))

    def _lead(self, now: float) -> None:
        """Send what was not sent, and put into the lists what is ready and in none."""
        if self._hints.catch_up() or now >= self._refill_at:
            self._hints.refill()
            self._refill_at = now + _REFILL_EVERY


def _wider(one: int, other: int) -> int:
    """Return for whom two changes together are worth a look: for all, if one of them is."""
    return 1 if 1 in (one, other) else one or other


def _priority(list: str) -> str:
    return list.rpartition("}:ready:")[2][:1]
