"""The model is a filesystem: random calls on it and on a real one get the same answers."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from .actors import World
from .files import Files
from .package import Package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ["a", "b", "d/a", "d/b", "e/a", "d", "e", "a/b"]


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        answer = call(*args)
    except OSError as error:
        # Of a path that leads through a file it may be said that there is nothing, or that it is no folder.
        return "nothing there" if isinstance(error, (FileNotFoundError, NotADirectoryError)) else type(error).__name__
    return sorted(answer) if isinstance(answer, list) else answer


def create(system: Any, path: str) -> None:
    descriptor = system.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    system.write(descriptor, path.encode()[-1:])
    system.close(descriptor)


def append(system: Any, path: str) -> int:
    descriptor = system.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return int(system.write(descriptor, b"more"))
    finally:
        system.close(descriptor)


def content(system: Any, path: str) -> bytes:
    descriptor = system.open(path, os.O_RDONLY)
    try:
        return bytes(system.read(descriptor, 100))
    finally:
        system.close(descriptor)


def links(system: Any, path: str) -> int:
    status = system.stat(path)
    return 0 if status.st_mode & 0o040000 else int(status.st_nlink)


CALLS: list[Callable[[Any, str, str], Any]] = [
    lambda system, one, _: create(system, one),
    lambda system, one, _: create(system, one),
    lambda system, one, _: append(system, one),
    lambda system, one, _: content(system, one),
    lambda system, one, _: links(system, one),
    lambda system, one, _: system.unlink(one),
    lambda system, one, _: system.mkdir(one),
    lambda system, one, _: system.rmdir(one),
    lambda system, one, _: system.listdir(one),
    lambda system, one, _: system.path.lexists(one),
    lambda system, one, other: system.link(one, other),
    lambda system, one, other: system.rename(one, other),
    lambda system, one, other: system.rename(one, other),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_calls_get_the_same_answers_as_from_a_real_filesystem(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    package = Package()
    world = World(package, Files())
    world.alone(0, "one")
    model = package.kernel.os
    model.mkdir("/top")
    for number in range(150):
        call, one, other = chance.choice(CALLS), chance.choice(NAMES), chance.choice(NAMES)
        if (tmp_path / one).is_dir() and call in (*CALLS[10:], *CALLS[2:4]):
            continue  # folders are never moved, linked or read as files here
        real = outcome(call, os, str(tmp_path / one), str(tmp_path / other))
        mine = outcome(call, model, f"/top/{one}", f"/top/{other}")
        assert mine == real, f"call {number} ({CALLS.index(call)}) of seed {seed} on {one}, {other}"
