"""Measure copies of a whole yard, made by every verb: from a directory to PostgreSQL and back. Both directories must be equal."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import taskyard
from bench.yards import say
from taskyard import opening
from tests.copying import mix
from tests.copying.comparing import assert_same
from tests.servers.postgres import Server

TASKS = 100_000
SHOWN = 500  # tasks whose `show` is compared; lists and logs are compared completely


def report(folder: str) -> None:
    origin, back = os.path.join(folder, "origin"), os.path.join(folder, "back")
    taskyard.init(origin, durability="fast").close()
    mix.slow(Path(origin))
    with taskyard.open(origin, worker="bench") as yard:
        mix.fill(yard, TASKS, root=Path(origin))
        mix.wind_down(yard)
    print(f"a yard of {TASKS:,} mixed tasks, made by every verb there is, and copied")
    with Server() as server:
        _copied("directory to PostgreSQL", origin, server.url())
        _copied("PostgreSQL to directory", server.url(), back)
    assert_same(origin, back, sample=SHOWN)
    say("both directories tell the same", f"{SHOWN} tasks in full")


def _copied(how: str, source: str, target: str) -> None:
    began, used = time.monotonic(), time.process_time()
    copied = opening.copy(source, target)
    seconds, used = time.monotonic() - began, time.process_time() - used
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"{how}, {copied.tasks:,} tasks, {copied.events:,} events", f"{seconds:.0f} s, {copied.passes} passes")
    say("  of this process, and its memory so far", f"{used:.0f} s, {most:.0f} MB")
