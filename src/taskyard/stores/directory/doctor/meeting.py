"""How two doctors meet: through files in the place itself, and nothing else.

Each puts an offer into its own corner and looks for the offers of others. Whoever has the higher tag takes its own offer
back and renames the other's: one rename, so that of many doctors two are a pair. They work in the corner of the one whose
offer was taken, the host.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.place import MARK, is_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.doctor.place import Corner

HOST, GUEST = "host", "guest"
_OFFER, _WITHDRAWN, _TAKEN = "offer", "withdrawn", "taken."
_PAIR, _NOTES = "pair", "notes"
_FRESH = 5_000_000_000  # nanoseconds since whoever made an offer last touched it
_PAUSE = 0.02
_GLANCE = 0.5  # seconds between two looks whether the other is still there
PATIENCE = 60.0  # seconds for one word of the other: a file server may show it late


class PeerLost(Exception):
    """The other doctor has left, or says nothing any more."""


class Meeting:
    """One side of a pair: a folder that both write to, and words that each leaves there for the other."""

    def __init__(self, corner: Corner, role: str, partner: str) -> None:
        self.corner = corner
        self.role = role
        self.other = GUEST if role == HOST else HOST
        self._partner = os.path.join(corner.base, partner)
        self._folder = os.path.join(corner.root if role == HOST else self._partner, _PAIR)
        self._notes = os.path.join(self._folder, _NOTES)

    def path(self, *parts: str) -> str:
        """Something in the folder of both."""
        return os.path.join(self._folder, *parts)

    def folder(self, name: str) -> str:
        """A folder that the host makes; both know it after the next word."""
        path = self.path(name)
        if self.role == HOST:
            os.mkdir(path)
        return path

    def say(self, word: str, value: Any = None) -> None:
        """Leave a word for the other, whole."""
        draft = os.path.join(self._notes, f".{word}.{self.role}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.write(descriptor, json.dumps(value).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, os.path.join(self._notes, f"{word}.{self.role}"))

    def hear(self, word: str) -> Any:
        """The other's word, once it is there."""
        name = f"{word}.{self.other}"
        self.see(self._notes, name)
        with open(os.path.join(self._notes, name), "rb") as file:
            return json.loads(file.read())

    def swap(self, word: str, value: Any = None) -> Any:
        """Leave a word, and wait for the other's: from here on both have come so far."""
        self.say(word, value)
        return self.hear(word)

    def see(self, folder: str, name: str) -> list[str]:
        """Wait until a listing of the folder has this name, and give that listing: a listing tells what is true soonest."""
        now = time.monotonic()
        end, glance = now + PATIENCE, now + _GLANCE
        while now < end:
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                raise PeerLost("the other doctor has left") from None
            if name in names:
                return names
            clocks.pause(0.001)
            now = time.monotonic()
            if now > glance:
                glance = now + _GLANCE
                self._look_after_the_other()
        raise PeerLost(f"the other doctor has said nothing for {PATIENCE:g} s")

    def _look_after_the_other(self) -> None:
        """Wait no longer for somebody who has gone, or died."""
        if os.path.basename(self._partner) not in os.listdir(self.corner.base) or is_left(self._partner):
            raise PeerLost("the other doctor has left")


def meet(corner: Corner, wait: float) -> Meeting | None:
    """Find another doctor that wants to meet one, within so many seconds."""
    corner.folder(_PAIR, _NOTES)
    corner.file(_OFFER)
    end = time.monotonic() + wait
    while True:
        for name in os.listdir(corner.root):
            if name.startswith(_TAKEN):
                return Meeting(corner, HOST, f"{MARK}{name.removeprefix(_TAKEN)}")
        over = time.monotonic() >= end
        lower = None if over else _lower_offer(corner)
        if (over or lower is not None) and _withdrawn(corner):
            if lower is None:
                return None
            if _taken(corner, lower):
                return Meeting(corner, GUEST, lower)
            os.rename(corner.path(_WITHDRAWN), corner.path(_OFFER))
        clocks.pause(_PAUSE)


def _lower_offer(corner: Corner) -> str | None:
    """The name of the corner of another doctor, with a lower tag, that waits at this moment; our own offer is kept fresh on the way."""
    try:
        os.utime(corner.path(_OFFER))
    except FileNotFoundError:
        return None  # it was taken just now
    now = clocks.touched(corner.path("clock"))
    for name in sorted(os.listdir(corner.base)):
        if not name.startswith(MARK) or name >= corner.name:
            continue
        folder = os.path.join(corner.base, name)
        try:
            if _OFFER in os.listdir(folder) and now - _stamp(os.path.join(folder, _OFFER)) < _FRESH:
                return name
        except OSError:
            continue  # gone just now, or nobody's corner
    return None


def _stamp(path: str) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor).st_ctime_ns
    finally:
        os.close(descriptor)


def _withdrawn(corner: Corner) -> bool:
    """Whether our own offer is ours again; not if somebody has taken it."""
    try:
        os.rename(corner.path(_OFFER), corner.path(_WITHDRAWN))
    except FileNotFoundError:
        return False
    return True


def _taken(corner: Corner, partner: str) -> bool:
    folder = os.path.join(corner.base, partner)
    try:
        os.rename(os.path.join(folder, _OFFER), os.path.join(folder, f"{_TAKEN}{corner.tag}"))
    except FileNotFoundError:
        return False
    return True
