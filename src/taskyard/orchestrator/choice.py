"""Which ready task goes to which agent. Pure: by priority, by the length of what comes after it, and by the agents' load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core import ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.core.task import Task
    from taskyard.orchestrator.agents import Agent


def lengths(blocked: Sequence[Task]) -> dict[str, int]:
    """Return how many tasks stand in the longest chain behind each task that a blocked one comes after."""
    followers: dict[str, list[str]] = {}
    for task in blocked:
        for other in map(str, task.after):
            followers.setdefault(other, []).append(task.id)
    found: dict[str, int] = {}
    for start in followers:
        path = [start]
        while path:
            rest = [id for id in followers.get(path[-1], ()) if id not in found and id not in path]
            if rest:
                path.append(rest[0])
                continue
            id = path.pop()
            found[id] = max((found.get(follower, 0) + 1 for follower in followers.get(id, ())), default=0)
    return found


def chosen(
    ready: Sequence[Task], agents: Sequence[Agent], behind: Mapping[str, int], reserved: Mapping[str, int], most: int
) -> list[tuple[Task, str]]:
    """Return tasks and agents: the longest chains first among the most urgent, each to the idlest agent that takes its kind.

    No agent gets more than `most` tasks, those that it holds and those that are reserved for it together.
    """
    load = {agent.name: agent.held + reserved.get(agent.name, 0) for agent in agents}
    pairs = []
    for task in sorted(ready, key=lambda one: (one.priority, -behind.get(one.id, 0), ids.age_key(one.id))):
        able = [agent for agent in agents if task.kind in agent.kinds and load[agent.name] < most]
        if task.assignee is None and able:
            agent = min(able, key=lambda one: (load[one.name], one.name))
            load[agent.name] += 1
            pairs.append((task, agent.name))
    return pairs
