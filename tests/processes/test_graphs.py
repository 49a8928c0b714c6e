"""A graph of tasks, things that are used by one at a time, several processes, and kills: the order holds, and all of it is done."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import taskyard
from taskyard.proof import History
from tests.directory.stories import check_nothing_is_stuck
from tests.processes import tools
from tests.processes.crew import history, recorded_yard

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from taskyard.proof import RecordedYard

    Crew = Callable[..., subprocess.Popen[str]]

WORKERS = 4


def add_graph(yard: RecordedYard, tasks: int, chance: random.Random) -> dict[str, list[str]]:
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


def test_a_graph_is_worked_off_in_its_order_by_processes_that_are_killed(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    chance = random.Random(5)
    with recorded_yard(place) as yard:
        graph = add_graph(yard, 300, chance)
    work(crew, place, 8, chance, "0.01")
    assert tools.judge(place, drained=True).figures["done"] == len(graph)
    with taskyard.open(place) as yard:
        check_nothing_is_stuck(yard)


def test_what_tasks_use_is_never_used_by_two_processes_at_once(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    chance = random.Random(6)
    with recorded_yard(place) as yard:
        tasks = [
            {"kind": chance.choice("ab"), "uses": chance.sample(["x", "y", "z"], chance.randint(0, 2))}
            for _ in range(240)
        ]
        yard.add_many(tasks)
    work(crew, place, 0, chance)
    assert tools.judge(place, drained=True).figures["done"] == len(tasks)


def test_a_killed_holder_gives_what_it_used_back_with_its_lease(place: str, crew: Crew) -> None:
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    with recorded_yard(place) as yard:
        ids = yard.add_many([{"kind": "a", "uses": "x"}] * 30)
    work(crew, place, 4, random.Random(7), "0.05")
    assert tools.judge(place, drained=True).figures["done"] == len(ids)
    reaped = [event["task"] for event in tools.events(place, "reaped")]
    assert reaped, "nobody was killed with a task in its hands"
    running: str | None = None
    said = [op for op in History.load(history(place)) if op.verb == "done" or (op.verb == "claim" and op.answer)]
    for op in sorted(said, key=lambda op: (op.end if op.verb == "claim" else op.begin) or 0):
        # Whoever was killed has said no end; the next one began only when its lease was over.
        for handle in op.answer["claims"] if op.verb == "claim" and op.answer else ():
            assert running is None or running.split(".")[0] in reaped, f"{running} and {handle}"
            running = handle
        if op.verb == "done" and op.arguments["claim"] == running:
            running = None
