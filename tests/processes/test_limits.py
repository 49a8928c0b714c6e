"""Eight worker processes: what conflicts is never held together, limits are kept and used, and nothing is left behind."""

from __future__ import annotations

import random
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.proof.rules.claims import overlaps
from tests.conftest import sized, wait_until
from tests.processes import tools
from tests.processes.spans import most_at_once, most_within, surely_held, used_share
from tests.servers import postgres

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from taskyard import Yard

    Crew = Callable[..., subprocess.Popen[str]]

WORKERS = 8
LEASE = 1.0  # seconds until a killed worker's task comes back
PATIENCE = 600.0
NAMES = ["gpu", "db", "src/", "src/auth/", "src/auth/login.py", "src/search/", "src/search/index/", "docs/a.md", "docs/b.md", "docs"]  # fmt: skip


@pytest.fixture(params=["directory", pytest.param("postgresql", marks=pytest.mark.proof)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new yard that forgives crashes."""
    url = str(tmp_path / "yard") if request.param == "directory" else postgres.url()
    with taskyard.init(url) as yard:
        yard.set_settings({"max_crashes": 1000, "backoff": 0.01, "sweep_every": 0.2})
    return url


def begun(crew: Crew, url: str, spans: Path, pause: float, drain: str = "drain") -> subprocess.Popen[str]:
    member = crew(url, "work_watched", str(LEASE), str(pause), str(spans), drain)
    assert tools.said(member) == "ready"
    return member


def held_by_the_log(yard: Yard) -> list[tuple[float, float]]:
    """When each task was claimed, and when it was done, in seconds."""
    moments: dict[str, dict[str, float]] = {"claimed": {}, "done": {}}
    cursor: Any = None
    while page := yard.events(event=("claimed", "done"), cursor=cursor, limit=10_000):
        for event in page:
            moments[event["event"]][event["task"]] = datetime.fromisoformat(event["at"]).timestamp()
        cursor = page.cursor
    return [(at, moments["done"].get(task, at)) for task, at in moments["claimed"].items()]


@sized("tasks", 48, 1500)
def test_no_two_that_conflict_are_held_together_though_workers_are_killed(
    url: str, tmp_path: Path, crew: Crew, tasks: int
) -> None:
    chance, spans, kills = random.Random(tasks), tmp_path / "spans", 2 + tasks // 100
    with taskyard.open(url) as yard:
        wanted = [chance.sample(NAMES, chance.randint(1, 5)) for _ in range(tasks)]
        uses = dict(zip(yard.add_many([{"kind": "build", "uses": names} for names in wanted]), wanted, strict=True))
        members = [begun(crew, url, spans, 0.003) for _ in range(WORKERS)]
        for member in members:
            tools.tell(member)
        killed = {}
        for number in range(1, kills + 1):
            wait_until(lambda part=number * tasks // (kills + 1): yard.counts()["done"] >= part, PATIENCE)  # type: ignore[misc]
            victim = members.pop(0)
            killed[victim.pid] = time.monotonic_ns()
            victim.kill()
            victim.communicate()
            members.append(begun(crew, url, spans, 0.003))
            tools.tell(members[-1])
        for member in members:
            assert tools.said(member) == "finished"
        assert yard.counts() == {**dict.fromkeys(yard.counts(), 0), "done": tasks}
    held = surely_held(spans, killed, LEASE / 2)
    assert len(held) >= tasks
    together = overlaps((begin, end, tuple(uses[task]), task) for begin, end, task in held)
    assert list(together) == []


@sized("tasks", 30, 120)
def test_no_more_of_a_kind_are_held_than_its_limit_allows(url: str, tmp_path: Path, crew: Crew, tasks: int) -> None:
    limit, spans = 3, tmp_path / "spans"
    with taskyard.open(url) as yard:
        yard.set_settings({"kinds": {"build": {"concurrency": limit}}})
        yard.add_many([{"kind": "build"}] * tasks)
        members = [begun(crew, url, spans, 0.01 if tasks < 100 else 0.3) for _ in range(WORKERS)]
        for member in members:
            tools.tell(member)
        for member in members:
            assert tools.said(member) == "finished"
        assert yard.counts()["done"] == tasks
        held = surely_held(spans, {}, 0)
        assert len(held) == tasks
        assert most_at_once(held) <= limit
        if tasks >= 100:
            assert used_share(held_by_the_log(yard), limit) >= 0.9


def test_no_more_of_a_kind_are_claimed_in_a_minute_than_its_rate_allows_and_as_many_are(
    url: str, tmp_path: Path, crew: Crew
) -> None:
    rate = 200
    with taskyard.open(url) as yard:
        yard.set_settings({"kinds": {"build": {"rate": rate}}})
        yard.add_many([{"kind": "build"}] * (rate + 100))
        members = [begun(crew, url, tmp_path / "spans", 0, "") for _ in range(WORKERS)]
        for member in members:
            tools.tell(member)
        for member in members:
            assert tools.said(member) == "finished"
        claimed = [begin for begin, _ in held_by_the_log(yard)]
    assert rate * 0.9 <= most_within(claimed, 60) <= rate


def test_the_checks_count_what_is_together() -> None:
    assert most_at_once([(1, 5, "a"), (5, 9, "b"), (2, 3, "c"), (4, 6, "d")]) == 2
    assert most_at_once([(1, 5, "a"), (2, 5, "b"), (3, 5, "c")]) == 3
    assert most_within([0, 1, 60, 60.001, 61], 60) == 4
    assert most_within([0, 61, 122], 60) == 1
    assert used_share([(0, 5), (5, 10), (10, 12)], 1) == 1
    assert used_share([(0, 5), (5, 10), (10, 12)], 2) == 0.5
