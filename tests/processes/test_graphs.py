"""A graph of tasks, things that are used by one at a time, several processes, and kills: the order holds, and all of it is done."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskyard
from tests.directory.stories import check_log, check_nothing_is_stuck
from tests.processes import tools

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Crew = Callable[..., subprocess.Popen[str]]

WORKERS = 4


def add_graph(yard: taskyard.Yard, tasks: int, chance: random.Random) -> dict[str, list[str]]:
    """Layers of up to 30 tasks, each after up to five of the layers before it, in several kinds and so in several segments."""
    graph: dict[str, list[str]] = {}
    while len(graph) < tasks:
        known = list(graph)[-60:]
        layer = [
            {"kind": chance.choice("abc"), "after": chance.sample(known, min(len(known), chance.randint(0, 5)))}
            for _ in range(min(30, tasks - len(graph)))
        ]
        for id, fields in zip(yard.add_many(layer), layer, strict=True):
            graph[id] = list(fields["after"])
    root, *others = list(graph)
    last = yard.add("last", after=others[-90:]).id
    graph[last] = others[-90:]
    for id in yard.add_many([{"kind": "fan", "after": root}] * 20):
        graph[id] = [root]
    return graph


def work(crew: Crew, place: str, kills: int, chance: random.Random, pause: str = "0.002") -> None:
    """Have the crew work until all has ended, some of them killed and replaced meanwhile."""
    members = [crew(place, "work_through", "1", pause) for _ in range(WORKERS)]
    for member in members:
        assert tools.said(member) == "ready"
        tools.tell(member)
    for _ in range(kills):
        time.sleep(chance.uniform(0.05, 0.3))  # when they die must not matter, but rather with a task in their hands
        with taskyard.open(place) as yard:
            holders = [str(task.worker).split("-")[-2] for task in yard.find(state="processing")]
        victim = next((member for member in members if str(member.pid) in holders), members[0])
        members.remove(victim)
        victim.kill()
        victim.communicate()
        members.append(crew(place, "work_through", "1", pause))
        assert tools.said(members[-1]) == "ready"
        tools.tell(members[-1])
    for member in members:
        assert tools.said(member) == "finished"


def notes(place: str) -> list[list[Any]]:
    """What all of the crew have noted, in the order of the kernel's clock."""
    lines = [
        line
        for file in Path(place).parent.glob(f"{Path(place).name}.*")
        for line in tools.whole_lines(file.read_text())
    ]
    return sorted(lines, key=lambda line: line[3])


def test_a_graph_is_worked_off_in_its_order_by_processes_that_are_killed(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    chance = random.Random(5)
    with taskyard.open(place) as yard:
        graph = add_graph(yard, 300, chance)
    work(crew, place, 8, chance, "0.01")
    with taskyard.open(place) as yard:
        yard.sweep()
        assert yard.counts()["done"] == len(graph)
        check_log(yard)
        check_nothing_is_stuck(yard)
    began: dict[str, int] = {}
    ended: dict[str, int] = {}
    for what, id, _, at in notes(place):
        if what == "begin":
            began.setdefault(id, at)
        else:
            ended.setdefault(id, at)
    assert set(began) == set(graph)
    early = [(id, other) for id, after in graph.items() for other in after if began[id] < ended[other]]
    assert early == [], "begun before what it comes after had ended"


def test_what_tasks_use_is_never_used_by_two_processes_at_once(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    chance = random.Random(6)
    with taskyard.open(place) as yard:
        tasks = [
            {"kind": chance.choice("ab"), "uses": chance.sample(["x", "y", "z"], chance.randint(0, 2))}
            for _ in range(240)
        ]
        uses = dict(zip(yard.add_many(tasks), (task["uses"] for task in tasks), strict=True))
    work(crew, place, 0, chance)
    with taskyard.open(place) as yard:
        assert yard.counts()["done"] == len(uses)
        check_log(yard)
    holds: dict[str, str] = {}
    for what, id, fence, _ in notes(place):
        for name in uses[id]:
            if what == "begin":
                assert name not in holds, f"{name} is used by {holds[name]} and by {id}"
                holds[name] = f"{id}.{fence}"
            else:
                assert holds.pop(name) == f"{id}.{fence}"


def test_a_killed_holder_gives_what_it_used_back_with_its_lease(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "a", "uses": "x"}] * 30)
    work(crew, place, 4, random.Random(7), "0.05")
    with taskyard.open(place) as yard:
        assert yard.counts()["done"] == len(ids)
        events = [json.dumps(event) for event in yard.events(limit=10_000) if event["event"] == "reaped"]
    assert events, "nobody was killed with a task in its hands"
    running: str | None = None
    for what, id, _, _ in notes(place):
        # Whoever was killed has noted no end; the next one began only when its lease was over.
        if what == "begin":
            assert running is None or any(running in event for event in events), f"{running} and {id}"
            running = id
        elif running == id:
            running = None
