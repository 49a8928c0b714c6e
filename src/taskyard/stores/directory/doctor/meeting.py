"""Two doctors find each other through files in the examined directory, and by no other means.

Each writes an offer into its own probe folder and looks for the offers of others. The doctor with the higher tag withdraws
its own offer and renames the other's. That is one rename, so that of many doctors exactly two become a pair. They work in the
probe folder of the doctor whose offer was taken, the host.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.directory import MARK, is_abandoned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.doctor.directory import ProbeFolder

HOST, GUEST = "host", "guest"
_OFFER, _WITHDRAWN, _TAKEN = "offer", "withdrawn", "taken."
_PAIR, _NOTES = "pair", "notes"
_FRESH = 5_000_000_000  # nanoseconds since a doctor last touched its offer
_PAUSE = 0.02
_CHECK_EVERY = 0.5  # seconds between two checks whether the other doctor is alive
TIMEOUT = 60.0  # seconds to wait for a message: a file server may show it late


class PeerLost(Exception):
    """The other doctor has ended, or sends no more messages."""


class Meeting:
    """One side of a pair: a folder that both write to, and messages as files in it."""

    def __init__(self, probes: ProbeFolder, role: str, partner: str) -> None:
        self.probes = probes
        self.role = role
        self.other = GUEST if role == HOST else HOST
        self._partner = os.path.join(probes.base, partner)
        self._folder = os.path.join(probes.root if role == HOST else self._partner, _PAIR)
        self._notes = os.path.join(self._folder, _NOTES)

    def path(self, *parts: str) -> str:
        """Return a path in the common folder."""
        return os.path.join(self._folder, *parts)

    def folder(self, name: str) -> str:
        """Return a common folder, which the host makes; it exists for both after the next exchange."""
        path = self.path(name)
        if self.role == HOST:
            os.mkdir(path)
        return path

    def send(self, name: str, value: Any = None) -> None:
        """Write a message for the other doctor, which sees it only when it is whole."""
        draft = os.path.join(self._notes, f".{name}.{self.role}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.write(descriptor, json.dumps(value).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, os.path.join(self._notes, f"{name}.{self.role}"))

    def receive(self, name: str) -> Any:
        """Wait for the other doctor's message of this name, and return its value."""
        file_name = f"{name}.{self.other}"
        self.wait_for(self._notes, file_name)
        with open(os.path.join(self._notes, file_name), "rb") as file:
            return json.loads(file.read())

    def exchange(self, name: str, value: Any = None) -> Any:
        """Send a message and wait for the other's of the same name, so that both have reached this step."""
        self.send(name, value)
        return self.receive(name)

    def wait_for(self, folder: str, name: str) -> list[str]:
        """Wait until a listing of the folder has this name, and return it: listings show changes soonest."""
        now = time.monotonic()
        end, next_check = now + TIMEOUT, now + _CHECK_EVERY
        while now < end:
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                raise PeerLost("the other doctor has left") from None
            if name in names:
                return names
            clocks.pause(0.001)
            now = time.monotonic()
            if now > next_check:
                next_check = now + _CHECK_EVERY
                self._check_peer()
        raise PeerLost(f"the other doctor has said nothing for {TIMEOUT:g} s")

    def _check_peer(self) -> None:
        """Raise `PeerLost` if the other doctor has ended."""
        if os.path.basename(self._partner) not in os.listdir(self.probes.base) or is_abandoned(self._partner):
            raise PeerLost("the other doctor has left")


def meet(probes: ProbeFolder, wait: float) -> Meeting | None:
    """Find another doctor within `wait` seconds; return None if there is none."""
    probes.folder(_PAIR, _NOTES)
    probes.file(_OFFER)
    end = time.monotonic() + wait
    while True:
        for name in os.listdir(probes.root):
            if name.startswith(_TAKEN):
                return Meeting(probes, HOST, f"{MARK}{name.removeprefix(_TAKEN)}")
        over = time.monotonic() >= end
        lower = None if over else _lower_offer(probes)
        if (over or lower is not None) and _withdrawn(probes):
            if lower is None:
                return None
            if _taken(probes, lower):
                return Meeting(probes, GUEST, lower)
            os.rename(probes.path(_WITHDRAWN), probes.path(_OFFER))
        clocks.pause(_PAUSE)


def _lower_offer(probes: ProbeFolder) -> str | None:
    """Touch our own offer, and return the probe folder of a waiting doctor with a lower tag, if there is one."""
    try:
        os.utime(probes.path(_OFFER))
    except FileNotFoundError:
        return None  # it was taken just now
    now = clocks.touched(probes.path("clock"))
    for name in sorted(os.listdir(probes.base)):
        if not name.startswith(MARK) or name >= probes.name:
            continue
        folder = os.path.join(probes.base, name)
        try:
            if _OFFER in os.listdir(folder) and now - _stamp(os.path.join(folder, _OFFER)) < _FRESH:
                return name
        except OSError:
            continue  # removed just now, or no doctor's folder
    return None


def _stamp(path: str) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor).st_ctime_ns
    finally:
        os.close(descriptor)


def _withdrawn(probes: ProbeFolder) -> bool:
    """Withdraw our own offer; return False if another doctor has taken it."""
    try:
        os.rename(probes.path(_OFFER), probes.path(_WITHDRAWN))
    except FileNotFoundError:
        return False
    return True


def _taken(probes: ProbeFolder, partner: str) -> bool:
    folder = os.path.join(probes.base, partner)
    try:
        os.rename(os.path.join(folder, _OFFER), os.path.join(folder, f"{_TAKEN}{probes.tag}"))
    except FileNotFoundError:
        return False
    return True
