"""A random graph, many processes and kills: every task starts after all that it comes after, and none is left behind."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from bench.graphs import random_graph
from tests.conftest import damage, wait_until
from tests.processes import tools
from tests.servers import postgres

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from taskyard import Yard

    Crew = Callable[..., subprocess.Popen[str]]

EDGES = 3
LEASE = "2"  # seconds until a killed worker's task comes back
PATIENCE = 600.0


def work_off(crew: Crew, url: str, yard: Yard, tasks: int, workers: int, kills: int) -> set[str]:
    """Have the crew end all tasks, and kill one whenever a further part of them is done; return the killed workers' pids."""
    members = [begin(crew, url) for _ in range(workers)]
    killed: set[str] = set()
    for number in range(1, kills + 1):
        wait_until(lambda part=number * tasks // (kills + 1): yard.counts()["done"] >= part, PATIENCE)  # type: ignore[misc]
        victim = members.pop(0)
        victim.kill()
        victim.communicate()
        killed.add(str(victim.pid))
        members.append(begin(crew, url))
    for member in members:
        assert tools.said(member) == "finished"
    return killed


def begin(crew: Crew, url: str) -> subprocess.Popen[str]:
    member = crew(url, "work_graph", LEASE)
    assert tools.said(member) == "ready"
    tools.tell(member)
    return member


def all_events(yard: Yard) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while page := yard.events(event=("claimed", "done"), cursor=cursor, limit=10_000):
        found += page
        cursor = page.cursor
    return found


def check_order(events: list[dict[str, Any]], after: dict[str, list[str]], killed: set[str]) -> None:
    """Fail unless each task is done once, and was first claimed when all that it comes after were done.

    A done is made, and seen by others, before it is logged: so a claim may stand before it in the log, with a later time. A killed
    worker's last event is logged by a sweep; then the times are compared as precisely as a file's.
    """
    claims: dict[str, tuple[int, dict[str, Any]]] = {}
    dones: dict[str, tuple[int, dict[str, Any]]] = {}
    for number, event in enumerate(events):
        if event["event"] == "claimed":
            claims.setdefault(event["task"], (number, event))
        else:
            assert event["task"] not in dones, f"{event['task']} is done twice"
            dones[event["task"]] = (number, event)
    assert dones.keys() == after.keys() == claims.keys()
    for id, others in after.items():
        number, claim = claims[id]
        for other in others:
            place, done = dones[other]
            late = {str(event["worker"]).split("-")[-2] for event in (done, claim)} & killed
            precision = 19 if late else None
            assert place < number or done["at"][:precision] <= claim["at"][:precision], (done, claim)


@pytest.mark.parametrize("store", ["directory", "postgresql"])
@pytest.mark.parametrize(
    ("tasks", "workers", "kills"), [(400, 4, 4), pytest.param(10_000, 8, 20, marks=pytest.mark.proof)]
)
def test_a_random_graph_is_worked_off_in_its_order_while_workers_are_killed(
    tmp_path: Path, crew: Crew, store: str, tasks: int, workers: int, kills: int
) -> None:
    url = postgres.url() if store == "postgresql" else str(tmp_path / "yard")
    options = {} if store == "postgresql" else {"durability": "fast"}
    with taskyard.init(url, **options) as yard:  # type: ignore[arg-type]
        graph = random_graph(tasks, EDGES, random.Random(tasks))
        ids = yard.add_many(graph)
        names = {str(task["ref"]): id for task, id in zip(graph, ids, strict=True)}
        after = {names[str(task["ref"])]: [names[need["ref"]] for need in task["after"]] for task in graph}
        killed = work_off(crew, url, yard, tasks, workers, kills)
        yard.sweep()
        counts = yard.counts()
        assert (counts["done"], sum(counts.values())) == (tasks, tasks)
        check_order(all_events(yard), after, killed)
        assert damage(yard) == []
