"""Runs under trouble: workers that wait, tasks that come in a trickle, and a Valkey server that is hurt all the while.

`python -m tests.valkey.faults [--tasks N] [FAULT...]` prints a line of figures for each; exit 1 if one is not as promised.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.core import times
from taskyard.proof import HistoryWriter, RecordedYard
from tests.postgres.outages import crew
from tests.servers import postgres, valkey

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = 20  # tasks that are there at the start
EVERY = 1.0  # seconds between two blows
PAUSE = 0.7  # seconds that a blow lasts: more than any call waits
COLUMNS = ("tasks", "seconds", "blows", "executions", "refused_late", "longest_wait")


class Trickle(crew.Run):
    """Workers that are idle most of the time, because tasks come in small batches."""

    def feed(self, total: int, seconds: float) -> None:
        """Add tasks until there are so many, in about so many seconds."""
        chance = random.Random(2)
        batch = max(1, total // 400)
        pause = 2 * seconds / (total / batch)
        with RecordedYard(taskyard.open(self.url, "feeder"), HistoryWriter(self.history, "feeder")) as yard:
            while self.tasks < total:
                some = range(self.tasks, min(total, self.tasks + chance.randint(1, 2 * batch)))
                yard.add_many([{"kind": "build", "data": {"n": n, "pause": self._pause(total)}} for n in some])
                self.tasks = some.stop
                time.sleep(pause * chance.random())

    def longest_wait(self) -> float:
        """The longest time that a task waited for its first claim, in seconds."""
        added: dict[str, int] = {}
        waited = [0]
        with taskyard.open(self.url) as yard:
            for event in yard.events(limit=100_000):
                at = times.moment(event["at"], "at")
                if event["event"] == "added":
                    added[event["task"]] = at
                elif event["event"] == "claimed" and event["task"] in added:
                    waited.append(at - added.pop(event["task"]))
        return max(waited) / 1000


class Blows:
    """Hurts the server again and again, until the end of a block."""

    def __init__(self, server: valkey.Server, blow: Callable[[valkey.Server], None]) -> None:
        self._server, self._blow = server, blow
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.number = 0

    def _run(self) -> None:
        while not self._enough.wait(EVERY):
            self._blow(self._server)
            self.number += 1

    def __enter__(self) -> Blows:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()


def flushed(server: valkey.Server) -> None:
    with server.client() as client:
        client.flushall()


def restarted(server: valkey.Server) -> None:
    server.stop()
    time.sleep(PAUSE)
    server.start()


def clients_killed(server: valkey.Server) -> None:
    with server.client() as client:
        for sort in ("normal", "pubsub"):
            client.client_kill_filter(_type=sort, skipme=True)


def frozen(server: valkey.Server) -> None:
    server.freeze()
    time.sleep(PAUSE)
    server.thaw()


def cut_off(server: valkey.Server) -> None:
    server.cut()
    time.sleep(PAUSE)
    server.join()


def planted(server: valkey.Server) -> None:
    """Wrong types, ids and words in every key that there is, and in the lists that workers wait for."""
    with server.client() as client:
        for key in list(client.scan_iter("taskyard:*")):
            with contextlib.suppress(Exception):  # it may be gone, or of another type by now
                _lie(client, key)
        prefix = "taskyard:{default}:"
        with contextlib.suppress(Exception):  # the same
            client.zadd(f"{prefix}ready:0:*", {"no id": 0, "00000000000000000000": 1})
        client.publish(f"{prefix}events", "no JSON")
        client.publish(f"{prefix}look", "")


def _lie(client: Any, key: str) -> None:
    sort = client.type(key)
    choice = random.randrange(3)
    if choice == 0:
        client.delete(key)
        client.rpush(key, "another type")
    elif sort == "string":
        client.set(key, '{"fence": 99999, "claim": "x"}' if ":lock:" in key else "9/9:9:")
    elif sort == "zset" and choice == 1:
        client.delete(key)
    else:
        client.zadd(key, {f"planted {n}": 0 for n in range(5)})


FAULTS: dict[str, Callable[[valkey.Server], None]] = {
    each.__name__: each for each in (flushed, restarted, clients_killed, frozen, cut_off, planted)
}


def run(fault: str, tasks: int, seconds: float) -> dict[str, Any]:
    """The figures of one fault, and what is wrong with it."""
    with postgres.Server(synchronous_commit="on") as database, valkey.Server() as server:
        with Trickle(database.url(valkey=server.url), FIRST) as trickle:
            with Blows(server, FAULTS[fault]) as blows:
                trickle.feed(tasks, seconds)
            told = trickle.judge()
            longest = trickle.longest_wait()
        wrong = told["wrong"] if blows.number else ["nothing was hurt", *told["wrong"]]
        return {**told, "blows": blows.number, "longest_wait": longest, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", nargs="*", choices=[*FAULTS, []])
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    good = True
    print("| fault | " + " | ".join(COLUMNS) + " | verdict |\n" + "|---" * (len(COLUMNS) + 2) + "|", flush=True)
    for name in given.fault or FAULTS:
        told = run(name, given.tasks, given.seconds)
        good = good and not told["wrong"]
        figures = " | ".join(str(told[column]) for column in COLUMNS)
        print(f"| {name.replace('_', ' ')} | {figures} | {'; '.join(told['wrong']) or 'legal'} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
