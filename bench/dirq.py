"""Measure a directory beside dirq, a queue of files without fence, result or log, and a bare loop of the same calls.

All three take turns in one run, so that other load affects them alike: on a fresh ext4 filesystem in a file, which root can make, and on a
tmpfs. Elsewhere it measures in the current directory alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.operations import ROUND, ROUNDS, Bare
from bench.yards import PAYLOAD, filled, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dirq.QueueSimple import QueueSimple

    from taskyard import Yard

_IMAGE = "2G"
_TMPFS = "/dev/shm"


def report(folder: str) -> None:
    """Print rates on each place, and how they compare."""
    try:
        from dirq.QueueSimple import QueueSimple
    except ImportError:
        print("dirq is not installed: pip install -e '.[bench]'")
        return
    print("One process, 200-byte payload, data parsed, best of 20 rounds that each take turns:")
    with _ext4(folder) as mounted:
        _measure("the current directory" if mounted is None else "fresh ext4", mounted or folder, QueueSimple)
    if os.access(_TMPFS, os.W_OK):
        place = f"{_TMPFS}/{os.path.basename(folder)}"
        os.mkdir(place)
        try:
            _measure("tmpfs", place, QueueSimple)
        finally:
            subprocess.run(["rm", "-rf", place], check=True)


@contextmanager
def _ext4(folder: str) -> Iterator[str | None]:
    """Yield a folder on a new ext4 filesystem; None if this user cannot mount one."""
    image, mounted = f"{folder}/image", f"{folder}/mounted"
    os.mkdir(mounted)
    steps = (["truncate", "-s", _IMAGE, image], ["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, mounted])
    try:
        made = all(subprocess.run(step, capture_output=True, check=False).returncode == 0 for step in steps)
    except FileNotFoundError:
        made = False
    try:
        yield mounted if made else None
    finally:
        if made:
            subprocess.run(["umount", mounted], check=True)


class Best:
    """The least wall and processor seconds of one call, over all rounds."""

    def __init__(self) -> None:
        self.wall = self.processor = float("inf")

    def time(self, work: Callable[[], None]) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        work()
        self.processor = min(self.processor, (time.process_time() - processor) / ROUND)
        self.wall = min(self.wall, (time.perf_counter() - wall) / ROUND)


def _measure(place: str, folder: str, queue: type[QueueSimple]) -> None:
    yard, bare = filled(f"{folder}/yard", 0), Bare(f"{folder}/bare", ROUND * ROUNDS)
    rival = queue(f"{folder}/dirq")
    added, ended, rival_added, rival_ended, looped = Best(), Best(), Best(), Best(), Best()
    for _ in range(ROUNDS):
        added.time(lambda: _add(yard))
        rival_added.time(lambda: _add_to(rival))
        ended.time(lambda: _work(yard))
        rival_ended.time(lambda: _work_on(rival))
        looped.time(bare.round)
    yard.close()
    print(f" {place}:")
    for label, ours, theirs in (("claim + done", ended, rival_ended), ("add", added, rival_added)):
        say(f"{label}: taskyard, dirq", f"{1 / ours.wall:,.0f}/s, {1 / theirs.wall:,.0f}/s")
        say(f"{label}: taskyard's rate over dirq's", f"{theirs.wall / ours.wall:.2f}")
        say(f"{label}: the same by processor time", f"{theirs.processor / ours.processor:.2f}")
    say("claim + done: processor time of one", f"{ended.processor * 1e6:.1f} us")
    say("add: processor time of one", f"{added.processor * 1e6:.1f} us")
    say("bare loop of the same two renames and one read", f"{1 / looped.wall:,.0f}/s")
    say("claim + done: taskyard's rate over the bare loop's", f"{looped.wall / ended.wall:.0%}")
    say("claim + done: the same by processor time", f"{looped.processor / ended.processor:.0%}")


def _add(yard: Yard) -> None:
    for _ in range(ROUND):
        yard.add("kind0", PAYLOAD)


def _work(yard: Yard) -> None:
    for _ in range(ROUND):
        claim = yard.claim()
        assert claim is not None
        claim.task.data  # noqa: B018  parsed, as a worker would have it
        claim.done()


def _add_to(queue: QueueSimple) -> None:
    for _ in range(ROUND):
        queue.add(json.dumps(PAYLOAD))


def _work_on(queue: QueueSimple) -> None:
    for name in queue:
        if queue.lock(name):
            json.loads(queue.get(name))
            queue.remove(name)
