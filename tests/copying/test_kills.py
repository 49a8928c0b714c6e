"""A copy that is killed at any moment is finished by saying it again; nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Unavailable, opening
from taskyard.core import transfer
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.transfer.endpoint import DirectoryEndpoint
from taskyard.yard import copy_yard
from tests.conftest import taken
from tests.copying.comparing import assert_same
from tests.copying.test_same import task_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard import Yard
    from taskyard.core.transfer import TaskCopy

pytestmark = pytest.mark.proof

WAYS = (("directory", "postgresql"), ("postgresql", "directory"), ("directory", "directory"))


def started(source: str, target: str) -> subprocess.Popen[bytes]:
    """The command, in a process of its own."""
    words = [sys.executable, "-m", "taskyard", "copy", source, target, "--json"]
    root = str(Path(taskyard.__file__).parent.parent)
    return subprocess.Popen(
        words, env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(("source", "target"), WAYS)
def test_kill_9_at_random_moments(
    source: str, target: str, made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, other = made(source, 250), new(target)
    chance = random.Random(7)
    begun = time.monotonic()
    killed = 0
    patience = 0.3
    while True:
        run = started(origin, other)
        try:
            out, err = run.communicate(timeout=patience * chance.uniform(0.5, 1.5))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.communicate()
            killed += 1
            patience *= 1.4
            continue
        assert run.returncode == 0, (out, err)
        break
    assert killed, "it was never killed"
    assert time.monotonic() - begun < 300
    assert task_copies(origin) == task_copies(other)
    assert_same(origin, other, sample=30)
    copied = opening.copy(origin, other)
    assert copied.was_complete, "said once more, it finds all done"


class Killed(BaseException):
    """What a process would not live to see."""


@pytest.mark.parametrize("target", ["directory", "postgresql"])
def test_killed_between_any_two_steps(
    target: str, made: Callable[..., str], new: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write of the copy is the last one once: in the midst of a segment, of the log, and before the end."""
    monkeypatch.setattr(transfer, "WINDOW", 20)
    origin, other = made("directory", 12), new(target)
    steps = 0
    while True:
        steps += 1
        if _dies_after(origin, other, steps):
            with pytest.raises(Unavailable, match="unfinished copy"):
                taskyard.open(other)
            continue
        break
    assert steps > 15
    assert task_copies(origin) == task_copies(other)
    assert_same(origin, other)


def _dies_after(source: str, target: str, steps: int) -> bool:
    """Whether a copy was killed after so many steps; a step is a task that is written, a part of the log, or a file."""
    origin, other = opening.endpoint(source, target=False), opening.endpoint(target, target=True)
    left = steps

    def step() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    def tasks(segment: str) -> Iterator[TaskCopy]:
        for task in plain(segment):
            yield task
            step()

    def stepping(verb: Callable[..., None]) -> Callable[..., None]:
        def then(*given: object) -> None:
            verb(*given)
            step()

        return then

    plain = origin.tasks
    origin.tasks = tasks  # type: ignore[method-assign]
    other.append_events = stepping(other.append_events)  # type: ignore[method-assign]
    other.write_file = stepping(other.write_file)  # type: ignore[method-assign]
    try:
        copy_yard.copy(origin, other)
    except Killed:
        return True
    finally:
        origin.close()
        other.close()
    return False


class MortalDisk(Disk):
    """A disk whose user dies at the n-th call that changes something."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def create(self, path: str, content: bytes, sync: bool) -> None:
        """Dies with an empty file."""
        if self.left == 0:
            super().create(path, b"", sync)
        self._count()
        super().create(path, content, sync)

    def append(self, path: str, content: bytes, create: bool = True) -> int:
        """Dies with half of it written."""
        if self.left == 0:
            super().append(path, content[: len(content) // 2], create)
        self._count()
        return super().append(path, content, create)

    def link(self, path: str, second: str) -> bool:
        """Dies before."""
        self._count()
        return super().link(path, second)

    def remove(self, path: str) -> None:
        """Dies before."""
        self._count()
        super().remove(path)


def test_killed_at_any_call_that_changes_a_directory(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    def life(yard: Yard) -> None:
        first = yard.add("build", {"n": 1}, key="one").id
        yard.add("ship", after=[first], title="waits")
        yard.add("build", {"n": 2})
        claim = taken(yard.claim(first))
        claim.note("a word")
        claim.release()

    origin = paused("directory", life)
    calls = 0
    while _dies_at(origin, other := new("directory"), calls):
        calls += 1
        opening.copy(origin, other)
        assert task_copies(origin) == task_copies(other), calls
        with taskyard.open(other, worker="ada") as yard:
            assert yard.audit()["findings"] == [], calls
            yard.unpause()
            for claim in iter(yard.claim, None):
                claim.done()
            assert yard.counts()["done"] == 3, "a killed copy has lost an edge"
            assert yard.add("build").id[:4] > max(task.id[:4] for task in yard.find("done"))
    assert calls > 15


def _dies_at(origin: str, other: str, calls: int) -> bool:
    """Whether a copy is killed if it may make so many calls."""
    source, target = DirectoryEndpoint(origin), DirectoryEndpoint(other, target=True)
    target._writer._disk = MortalDisk(calls)
    try:
        copy_yard.copy(source, target)
    except Killed:
        return True
    finally:
        target.close()  # as the kernel does
    return False


def test_a_source_that_goes_on_is_caught_up_with(made: Callable[..., str], new: Callable[[str], str]) -> None:
    origin, other = made("directory", 60), new("postgresql")
    source, target = opening.endpoint(origin, target=False), opening.endpoint(other, target=True)
    changed = False
    append_events = target.append_events

    def meanwhile(events: list[dict[str, object]]) -> None:
        nonlocal changed
        append_events(events)
        if not changed:
            changed = True
            with taskyard.open(origin) as yard:
                yard.add("meanwhile", {"n": 1})
                [first, *_] = yard.find("todo")
                yard.cancel(first.id)

    target.append_events = meanwhile  # type: ignore[method-assign]
    copied = copy_yard.copy(source, target)
    source.close()
    target.close()
    assert copied.passes == 3
    assert task_copies(origin) == task_copies(other)
