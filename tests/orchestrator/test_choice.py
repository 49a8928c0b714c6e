"""Which ready task goes to which agent, without a yard."""

from __future__ import annotations

from taskyard.core.task import State, Task
from taskyard.orchestrator.agents import Agent
from taskyard.orchestrator.choice import chosen, lengths


def task(
    number: int, kind: str = "build", priority: int = 5, after: tuple[str, ...] = (), assignee: str | None = None
) -> Task:
    id = f"0000{number:09d}00000000"
    return Task(id=id, kind=kind, state=State.TODO, fence=0, priority=priority, after=after, assignee=assignee)


def agent(name: str, *kinds: str, held: int = 0) -> Agent:
    one = Agent(name)
    one.kinds, one.held = set(kinds), held
    return one


def test_the_longest_chain_goes_first_and_to_the_idlest() -> None:
    old, long = task(1), task(2)
    middle = task(3, after=(long.id,))
    last = task(4, after=(middle.id,))
    behind = lengths([middle, last])
    assert behind[long.id] == 2
    assert behind[middle.id] == 1
    pairs = chosen([old, long], [agent("busy", "build", held=1), agent("idle", "build")], behind, {}, 2)
    assert [(one.id, name) for one, name in pairs] == [(long.id, "idle"), (old.id, "busy")]


def test_priority_counts_before_the_chain() -> None:
    urgent, long = task(2, priority=0), task(1)
    pairs = chosen([long, urgent], [agent("ada", "build")], {long.id: 9}, {}, 1)
    assert [one.id for one, _ in pairs] == [urgent.id]


def test_nobody_gets_what_it_never_took_or_more_than_it_may() -> None:
    ready = [task(1), task(2), task(3, kind="ship"), task(4, assignee="carl")]
    agents = [agent("ada", "build", held=1), agent("bob", "test")]
    assert [(one.id, name) for one, name in chosen(ready, agents, {}, {}, 2)] == [(ready[0].id, "ada")]
    assert chosen(ready, agents, {}, {"ada": 1}, 2) == []


def test_a_cycle_in_what_comes_after_ends() -> None:
    one, two = task(1), task(2)
    one.__dict__["after"], two.__dict__["after"] = (two.id,), (one.id,)
    assert set(lengths([one, two])) == {one.id, two.id}
