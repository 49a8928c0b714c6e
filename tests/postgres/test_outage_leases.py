"""Leases after a time in which nobody could reach the database: they are not lost to it, and those of the dead come back all the same."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import State
from tests.conftest import outlast, taken, wait_until
from tests.postgres.test_projects import as_role
from tests.processes import tools
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard

NEVER = 10**14


def returned(yard: Yard, away: float) -> None:
    """Have the yard's store say that it had no answer for so long."""
    context: Any = yard._store._context  # type: ignore[attr-defined]
    context.pool.attempt(lambda connection: context._extend_leases(connection, away))


def silent_since(sql: Connection[Any], yard: Yard, seconds: float) -> None:
    """Have the last sweep be so long ago."""
    sql.execute(
        "UPDATE taskyard.project SET swept_at = taskyard.now() - %s WHERE name = %s",
        (round(seconds * 1000), yard.url.rpartition("=")[2]),
    )


def test_a_server_that_was_frozen_for_longer_than_a_lease_costs_nobody_a_claim() -> None:
    with (
        Server() as server,
        taskyard.init(server.url(), worker="ada") as ada,
        taskyard.open(ada.url, worker="bob") as bob,
    ):
        ada.add("build")
        ada.sweep()
        claim = taken(ada.claim(lease=1.0))
        server.freeze()
        sweeper = threading.Thread(target=bob.sweep)
        sweeper.start()
        outlast(claim)
        time.sleep(0.3)  # well over; that is all that it is for
        server.thaw()
        sweeper.join()
        assert bob.sweep().reaped == 0
        assert bob.claim() is None
        claim.done()


def test_a_turn_to_sweep_that_a_frozen_server_grants_late_hides_no_outage() -> None:
    """A busy worker asks for its turn every second: one such question is under way whenever a server freezes."""
    with (
        Server() as server,
        taskyard.init(server.url(), worker="ada") as ada,
        taskyard.open(ada.url, worker="bob") as bob,
        psycopg.connect(server.url().partition("&project")[0], autocommit=True) as sql,
    ):
        ada.add("build")
        claim = taken(ada.claim(lease=1.0))
        bob.tend()
        silent_since(sql, ada, 10.0)
        asked = threading.Thread(target=bob._store.upkeep.turn, args=(1.0,))
        server.freeze()
        asked.start()
        outlast(claim)
        time.sleep(0.3)  # well over; that is all that it is for
        server.thaw()
        asked.join()
        assert bob.sweep().reaped == 0
        claim.done()


def test_a_turn_to_sweep_is_had_again_after_the_servers_clock_was_put_forward(yard: Yard) -> None:
    yard.tend()
    turns: Any = yard._store.upkeep
    turns._server_ahead -= 3_600_000
    assert not turns.turn(0.001)
    wait_until(lambda: turns.turn(0.001))


def test_one_who_could_not_reach_it_while_nobody_swept_gives_all_time_to_come_back(
    yard: Yard, sql: Connection[Any]
) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.3))
    silent_since(sql, yard, 2.0)
    outlast(claim)
    returned(yard, 1.0)
    assert yard.sweep().reaped == 0
    wait_until(lambda: yard.sweep().reaped == 1)  # once: after twice as long as it was away it is over for good


def test_one_who_alone_was_cut_off_gives_nobody_time(yard: Yard, sql: Connection[Any]) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.05))
    silent_since(sql, yard, 0.0)
    outlast(claim)
    returned(yard, 5.0)
    assert yard.sweep().reaped == 1


def test_a_dead_workers_task_is_not_put_off_by_an_outage_after_the_end_of_its_lease(
    yard: Yard, sql: Connection[Any]
) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.05))
    outlast(claim)
    silent_since(sql, yard, 0.0)
    time.sleep(0.6)  # so long nobody sweeps
    returned(yard, 0.5)
    assert sql.execute(
        "SELECT cut_until > cut_from FROM taskyard.project WHERE name = %s", (yard.url.rpartition("=")[2],)
    ).fetchone() == (True,)
    assert yard.sweep().reaped == 1


def test_a_yard_where_nobody_was_for_long_gives_back_a_dead_workers_task_at_once(
    url: str, sql: Connection[Any]
) -> None:
    with taskyard.open(url, worker="ada") as ada:
        ada.add("build")
        claim = taken(ada.claim(lease=0.05))
        silent_since(sql, ada, 7200)
    outlast(claim)
    with taskyard.open(url, worker="bob") as bob:
        assert taken(bob.claim()).task.id == claim.task.id


def test_what_comes_soon_after_an_outage_does_not_cut_short_the_time_to_come_back(
    yard: Yard, sql: Connection[Any]
) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.3))
    silent_since(sql, yard, 8.0)
    outlast(claim)
    returned(yard, 6.0)
    silent_since(sql, yard, 0.7)
    returned(yard, 0.6)
    assert yard.sweep().reaped == 0
    claim.done()


def test_a_slow_answer_is_told_before_anything_is_reaped(yard: Yard, sql: Connection[Any]) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.3))
    silent_since(sql, yard, 1.0)
    store: Any = yard._store
    store._context.pool.run("SELECT pg_sleep(0.8)", {})
    assert yard.sweep().reaped == 0
    claim.done()


@pytest.mark.parametrize(
    ("ends", "lease", "cut", "over"),
    [
        (100_000, 60.0, (0, 0, 0), 100_000),
        (100_000, 60.0, (90_000, 200_000, 10_000), 260_000),  # it ended in the outage
        (100_000, 2.0, (99_000, 200_000, 10_000), 210_000),  # a short one: nobody comes back that fast
        (100_000, 2.0, (99_000, 200_000, 1_000), 202_000),
        (100_000, 60.0, (100_001, 200_000, 10_000), 100_000),  # it was over before
        (300_000, 60.0, (90_000, 240_000, 10_000), 300_000),  # it was begun after
        (300_000, 60.0, (90_000, 240_001, 10_000), 300_001),
    ],
)
def test_when_a_lease_is_over(
    sql: Connection[Any], ends: int, lease: float, cut: tuple[int, int, int], over: int
) -> None:
    row = sql.execute(
        "SELECT taskyard.lease_end(%s::bigint + at, %s, jsonb_populate_record(project, jsonb_build_object("
        "'cut_from', %s::bigint + at, 'cut_until', %s::bigint + at, 'cut_grace', %s::bigint))) - at "
        "FROM (SELECT project FROM taskyard.project LIMIT 1) AS one, (SELECT taskyard.now() AS at) AS now",
        (ends, lease, cut[0], cut[1], cut[2]),
    ).fetchone()
    assert row == (over,)


def test_a_client_of_the_schema_before_reads_leases_as_ever(sql: Connection[Any]) -> None:
    assert sql.execute("SELECT taskyard.lease_end(%s, 60)", (NEVER,)).fetchone() == (NEVER,)


def test_a_role_that_was_given_a_project_may_say_that_it_is_back_and_another_goes_on_without(
    url: str, sql: Connection[Any]
) -> None:
    name = f"role_back_{url.rpartition('=')[2].replace('-', '_')}"
    sql.execute(f"CREATE ROLE {name} LOGIN".encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (url.rpartition("=")[2], name))
    with taskyard.open(as_role(url, name), worker="ada") as yard:
        returned(yard, 3.0)
        told = "SELECT cut_until > 0 FROM taskyard.project WHERE name = %s"
        assert sql.execute(told, (url.rpartition("=")[2],)).fetchone() == (True,)
        sql.execute(f"REVOKE UPDATE (cut_from, cut_until, cut_grace) ON taskyard.project FROM {name}".encode())
        returned(yard, 3.0)
        assert yard.get(yard.add("build").id).state is State.TODO


def swept_anew(url: str) -> int:
    """How many claims a process gives back that has never been there before."""
    reaped: int = tools.taskyard(url, "janitor").data["reaped"]
    return reaped


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_one_who_comes_anew_after_a_restart_and_sweeps_first_costs_nobody_a_claim(how: signal.Signals) -> None:
    with Server(synchronous_commit="on") as server, taskyard.init(server.url(), worker="ada") as ada:
        ada.add("build")
        claim = taken(ada.claim(lease=1.0))
        server.stop(how)
        outlast(claim)
        server.start()
        assert swept_anew(ada.url) == 0
        claim.done()


@pytest.mark.proof
def test_one_who_comes_anew_after_a_failover_and_sweeps_first_costs_nobody_a_claim() -> None:
    """The standby runs since long, so the time of its start tells nothing."""
    with (
        Server(synchronous_commit="on") as primary,
        taskyard.init(primary.url(), worker="ada") as ada,
        Server(copy_of=primary, synchronous_commit="on") as standby,
        plain(standby) as other,
    ):
        ada.add_many([{"kind": "build"}, {"kind": "dead"}])
        claim = taken(ada.claim(kinds="build", lease=1.0))
        over = taken(ada.claim(kinds="dead", lease=0.05))
        outlast(over)
        claim.heartbeat()
        with plain(primary) as one:
            [(written,)] = one.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
        wait_until(lambda: other.execute("SELECT pg_last_wal_replay_lsn() >= %s", (written,)).fetchone() == (True,))
        primary.stop(signal.SIGQUIT)
        outlast(claim)
        other.execute("SELECT pg_promote()")
        assert swept_anew(standby.url()) == 1, "what was over before is nobody's"
        with taskyard.open(standby.url(), worker="ada") as back:
            assert (back.get(claim.task.id).state, back.get(over.task.id).state) == (State.PROCESSING, State.TODO)
            # Recorded once: the time does not count as lost again. A slow answer is another outage, and may extend the lease.
            again = (
                "SELECT cut_until <= extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000 FROM taskyard.project"
            )
            assert other.execute(again).fetchone() == (False,)
            wait_until(lambda: back.sweep().reaped == 1, 60)
            assert other.execute(again).fetchone() == (False,)


def plain(server: Server) -> Connection[Any]:
    """A connection to the server itself."""
    return psycopg.connect(server.url().partition("&project")[0], autocommit=True)
