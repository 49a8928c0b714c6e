"""The quotas of a team under load: real processes in two of its projects never exceed them, and use them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Full
from tests.conftest import sampled, taken, wait_until
from tests.postgres.teams import Crew
from tests.servers import postgres, valkey
from tests.valkey.waiting import Claimer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

WORK = """
import sys, time, taskyard
with taskyard.open(sys.argv[1], worker=sys.argv[2]) as yard:
    while True:
        claim = yard.claim(wait=5)
        if claim is not None:
            time.sleep(float(sys.argv[3]))
            claim.done()
"""
ADD = """
import sys, taskyard
with taskyard.open(sys.argv[1], worker=sys.argv[2]) as yard:
    while True:
        yard.add_many([{"kind": "build"}] * int(sys.argv[3]), wait=60)
"""
HOLD = """
import sys, time, taskyard
with taskyard.open(sys.argv[1], worker=sys.argv[2]) as yard:
    print(yard.claim(lease=1, wait=30).handle, flush=True)
    time.sleep(600)
"""
COUNT = """
SELECT count(*) FILTER (WHERE task.state = 'processing'), count(*) FILTER (WHERE task.state <> 'processing')
FROM taskyard.team JOIN taskyard.project ON project.team = team.id JOIN taskyard.task ON task.project = project.id
WHERE team.name = %s
"""


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.close()


@pytest.fixture
def sql(crew: Crew) -> Iterator[Connection[Any]]:
    with psycopg.connect(crew.urls["site"].partition("&project=")[0], autocommit=True) as connection:
        yield connection


@contextmanager
def running(*programs: tuple[str, ...]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that run these programs with these words, and are killed at the end."""
    made = [subprocess.Popen([sys.executable, "-c", *words], stdout=subprocess.PIPE, text=True) for words in programs]
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            process.communicate()


def watched(crew: Crew, sql: Connection[Any], column: int, until: Callable[[], bool]) -> list[int]:
    """How many tasks the team held, or had waiting, look after look."""
    found = []
    end = time.monotonic() + 60
    while not until():
        row = sql.execute(COUNT, (crew.name,)).fetchone()
        assert row is not None
        found.append(row[column])
        assert time.monotonic() < end
    return found


def ended(crew: Crew) -> int:
    return sum(yard.counts()["done"] for yard in (crew.site, crew.shop))


@pytest.mark.proof
def test_many_processes_never_hold_more_than_the_team_may_and_use_it(crew: Crew, sql: Connection[Any]) -> None:
    most, tasks = 3, 36
    crew.set(max_running=most)
    for yard in (crew.site, crew.shop):
        yard.add_many([{"kind": "build"}] * (tasks // 2))
    programs = [(WORK, crew.urls[name], f"{name}-{n}", "0.2") for name in ("site", "shop") for n in range(3)]
    with running(*programs):
        wait_until(lambda: ended(crew) >= most)
        held = watched(crew, sql, 0, lambda: ended(crew) >= tasks - most)
    assert max(held) == most
    assert sum(held) / len(held) >= 0.9 * most


def test_what_a_killed_process_held_is_free_at_the_reap_for_the_other_project(crew: Crew, sql: Connection[Any]) -> None:
    crew.set(max_running=1)
    crew.site.add("build")
    crew.shop.add("build")
    with running((HOLD, crew.urls["site"], "first")) as [holder]:
        assert holder.stdout is not None
        handle = holder.stdout.readline().strip()
        assert crew.shop.claim() is None
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        crew.site.pause()  # so that the task that comes back is not the one that is claimed
        wait_until(lambda: crew.site.sweep().reaped == 1)
    assert handle
    taken(crew.shop.claim(wait=20))
    assert sql.execute(COUNT, (crew.name,)).fetchone() == (1, 1)


@sampled("bound", [(40, 1), (2000, 1), (2000, 7)], [(40, 1), (2000, 7)])
def test_many_processes_never_add_more_than_the_team_may_and_fill_it(
    crew: Crew, sql: Connection[Any], bound: tuple[int, int]
) -> None:
    most, batch = bound
    crew.site.add_many([{"kind": "build"}] * (most * 3 // 4))
    crew.set(max_todo=most)
    programs = [(ADD, crew.urls[name], f"{name}-{n}", str(batch)) for name in ("site", "shop") for n in range(2)]

    with running(*programs):
        for _ in range(4):
            seen = watched(crew, sql, 1, lambda: waiting(crew) > most - batch)
            assert max(seen, default=0) <= most
            for yard in (crew.site, crew.shop):
                for claim in yard.claim_many(most // 20):
                    claim.done()
        assert max(watched(crew, sql, 1, after(1.0))) <= most


def waiting(crew: Crew) -> int:
    return sum(yard.counts()["todo"] for yard in (crew.site, crew.shop))


def test_an_add_that_waited_for_its_turn_heeds_what_the_quota_is_then(crew: Crew, sql: Connection[Any]) -> None:
    crew.set(max_todo=5)
    crew.site.add_many([{"kind": "build"}] * 2)
    refused: list[Full] = []

    def add() -> None:
        with pytest.raises(Full) as full:
            crew.shop.add("build")
        refused.append(full.value)

    adding = threading.Thread(target=add)
    with sql.transaction():
        sql.execute("SELECT pg_advisory_xact_lock(747164, id) FROM taskyard.team WHERE name = %s", (crew.name,))
        adding.start()
        waits = "SELECT FROM pg_locks, taskyard.team WHERE classid = 747164 AND objid = team.id AND name = %s AND NOT granted"
        wait_until(lambda: sql.execute(waits.encode(), (crew.name,)).rowcount)
        crew.site.set_team(crew.name, {"max_todo": 2})
    adding.join()
    assert [(full.count, full.most) for full in refused] == [(2, 2)]


@pytest.mark.proof
def test_many_processes_never_claim_more_in_a_minute_than_the_rate(crew: Crew, sql: Connection[Any]) -> None:
    rate = 30
    crew.set(rate=rate)
    for yard in (crew.site, crew.shop):
        yard.add_many([{"kind": "build"}] * 100)
    programs = [(WORK, crew.urls[name], f"{name}-{n}", "0") for name in ("site", "shop") for n in range(2)]
    with running(*programs):
        for minute in (1, 2):
            wait_until(lambda so_far=minute * rate: ended(crew) >= so_far)  # type: ignore[misc]
            watched(crew, sql, 0, after(1.0))
            assert ended(crew) == minute * rate
            sql.execute(
                "UPDATE taskyard.team_pace SET at = at - 60001 FROM taskyard.team WHERE team.id = team_pace.team AND name = %s",
                (crew.name,),
            )
            crew.site.set_team(crew.name, {"rate": rate})  # wakes who waits


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def test_hints_of_valkey_keep_no_one_waiting_who_has_room_in_the_team(crew: Crew) -> None:
    crew.set(max_running=1)
    crew.site.add("build")
    crew.shop.add("build")
    held = taken(crew.site.claim())
    with taskyard.open(valkey.beside(crew.urls["shop"]), worker="bob") as bob:
        waiting = Claimer(bob).asleep()
        began = time.monotonic()
        held.done()
        waiting.got().done()
    assert time.monotonic() - began < 15


@pytest.mark.proof
def test_projects_come_and_go_while_others_add_and_claim_there_without_a_deadlock() -> None:
    crew = Crew(database=postgres.database())
    crew.set(max_todo=50, max_running=3, rate=10**6)
    programs = [(ADD, crew.urls[name], name, "1") for name in ("site", "shop")]
    programs += [(WORK, crew.urls[name], name, "0") for name in ("site", "shop")]
    with running(*programs) as processes:
        wait_until(lambda: crew.shop.counts()["done"] > 20)
        for _ in range(10):
            crew.site.take_team(crew.name, crew.project("shop"))
            crew.site.give_team(crew.name, crew.project("shop"))
        before = ended(crew)
        wait_until(lambda: ended(crew) > before + 20)
        assert [process.poll() for process in processes] == [None] * 4
    with psycopg.connect(crew.urls["site"].partition("&project=")[0]) as sql:
        found = sql.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    crew.close()
    assert found == (0,)
