"""How long each page of the board keeps the gateway busy in a yard of many tasks."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from taskyard.doors.gateway import server
from taskyard.doors.gateway.app import Gateway

if TYPE_CHECKING:
    from taskyard import Yard

TASKS = int(os.environ.get("TASKYARD_BENCH_BOARD", "100000"))
PATHS = {
    "needs you": "v1/overview",
    "board": "v1/lanes?limit=20",
    "board, one kind": "v1/lanes?limit=20&kind=kind3",
    "board, a mission": "v1/lanes?limit=20&mission=house",
    "board, a text": "v1/lanes?limit=20&text=part%2077",
    "board, a worker": "v1/lanes?limit=20&worker=w1",
    "one lane": "v1/lanes?limit=100&state=done",
    "agents": "v1/agents",
    "missions": "v1/missions",
    "a mission": "v1/mission?name=house",
    "its graph": "drawing?mission=house",
    "figures": "v1/series",
    "events": "v1/events?newest=true&limit=300",
    "events, a kind": "v1/events?newest=true&limit=300&kind=kind3",
}


def filled(yard: Yard, count: int) -> str:
    """Fill a yard: half done, a tenth failed, some running, blocked and waiting; return the id of a running task."""
    made = yard.add_many(
        {"kind": f"kind{n % 10}", "title": f"Part {n}", "mission": "house" if n % 100 == 0 else None}
        for n in range(count)
    )
    left = count * 6 // 10
    while left > 0:
        claims = yard.claim_many(min(left, 500), worker=f"w{left % 8}")
        yard.done_many([(claim.handle, None) for claim in claims[: len(claims) * 5 // 6]])
        for claim in claims[len(claims) * 5 // 6 :]:
            claim.fail("broken", retry=False)
        left -= len(claims)
    yard.add_many({"kind": "later", "delay": 3600} for _ in range(count // 20))
    yard.add_many({"kind": "after", "after": [made[-1]]} for _ in range(count // 20))
    running = yard.claim_many(50, worker="w1")
    return running[0].task.id


def timed(yard: Yard, task: str, rounds: int = 5) -> dict[str, float]:
    """Return the median milliseconds of each page's request, with every shared answer made anew."""
    import threading

    gateway = Gateway({"default": yard})
    line = server.bound("127.0.0.1", 0)
    running = server.make(gateway)
    running.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=running.run, kwargs={"sockets": [line]}, daemon=True)
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", line.getsockname()[1], timeout=60)
    paths = {
        **PATHS,
        "a task": f"v1/tasks/{quote(task)}",
        "why": f"v1/why?id={task}",
        "its log": f"v1/events?task={task}",
    }
    found = {}
    for name, path in paths.items():
        took = []
        for _ in range(rounds):
            began = time.perf_counter()
            connection.request("GET", f"/default/board/{path}", headers={"Taskyard-Board": "anew"})
            answer = connection.getresponse()
            body = answer.read()
            took.append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, json.loads(body)
        found[name] = statistics.median(took)
    running.should_exit = True
    thread.join()
    gateway.close()
    return found


def report(folder: str) -> None:
    """Print the milliseconds of each page, on a directory and on PostgreSQL."""
    import taskyard
    from tests.servers import postgres

    for name, url in (("a directory", f"{folder}/board"), ("PostgreSQL", postgres.url())):
        with taskyard.init(url, worker="bench") as yard:
            task = filled(yard, TASKS)
            print(f"The board of a yard with {TASKS:,} tasks in {name}, median of each request:")
            for page, milliseconds in timed(yard, task).items():
                print(f"  {page:20} {milliseconds:7.1f} ms")
