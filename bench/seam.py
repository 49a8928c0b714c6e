"""Measure, in processor time, what it costs that every filesystem call goes through `filesystem/disk.py`."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from bench.yards import filled, say
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = 2000
ROUNDS = 40
EACH = 200


class Counting(Disk):
    """A disk that counts its calls by name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name != "calls":
            self.calls[name] += 1
        return super().__getattribute__(name)


def report(folder: str) -> None:
    """Print the calls of one claim and done, what `Disk` adds to the bare calls, and its share of the whole."""
    path = f"{folder}/yard"
    filled(path, 2 * TASKS).close()
    counted = Counting()
    _cost(Yard(DirectoryStore(path, disk=counted), "bench"))
    whole = _cost(Yard(DirectoryStore(path), "bench"))
    file, some = f"{folder}/file", f"{folder}/some"
    with open(file, "wb") as stream:
        stream.write(b"x" * 300)
    os.mkdir(some)
    disk = Disk()
    more = {
        "read": _best(lambda: disk.read(file)) - _best(lambda: _read(file)),
        "listdir": _best(lambda: disk.listdir(some)) - _best(lambda: os.listdir(some)),
    }
    print("The seam that the simulation steps in at, processor time, best of 40 rounds:")
    say("claim + done", f"{whole * 1e6:.1f} us")
    for name, number in counted.calls.most_common():
        if number >= TASKS // 100:
            extra = f", {more[name] * 1e6:+.2f} us each" if name in more else ""
            say(f"  {name}, calls of each", f"{number / TASKS:.2f}{extra}")
    total = sum(cost * counted.calls[name] / TASKS for name, cost in more.items())
    say("read and listdir, more than the bare calls in them", f"{total * 1e6:.2f} us, {total / whole:.1%}")


def _cost(yard: Yard) -> float:
    """Return the processor seconds of one claim and done."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(TASKS // ROUNDS):
            claim = yard.claim()
            assert claim is not None
            claim.task.data  # noqa: B018  parsed, as a worker would have it
            claim.done()
        rounds.append((time.process_time() - begin) / (TASKS // ROUNDS))
    yard.close()
    return min(rounds)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    content = os.read(descriptor, 4096)
    os.close(descriptor)
    return content


def _best(call: Callable[[], object]) -> float:
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(EACH):
            call()
        rounds.append((time.process_time() - begin) / EACH)
    return min(rounds)
