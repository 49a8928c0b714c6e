"""Claims beside others who move the same tasks in the same moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard


def test_a_task_that_somebody_has_locked_is_passed_over_and_so_is_no_other(yard: Yard, sql: Connection[Any]) -> None:
    first, second = yard.add_many([{"kind": "build"}, {"kind": "build"}])
    with sql.transaction():
        sql.execute("SELECT FROM taskyard.task WHERE id = %s FOR UPDATE", (first,))
        assert taken(yard.claim()).task.id == second
    assert taken(yard.claim()).task.id == first


def test_with_its_first_candidates_locked_a_claim_looks_further(yard: Yard, sql: Connection[Any]) -> None:
    ids = yard.add_many([{"kind": "build"}] * 100)
    with sql.transaction():
        sql.execute("SELECT FROM taskyard.task WHERE id = ANY (%s) FOR UPDATE", (ids[:-1],))
        assert taken(yard.claim()).task.id == ids[-1]


def test_what_is_locked_for_long_is_not_waited_for(yard: Yard, sql: Connection[Any]) -> None:
    id = yard.add("build").id
    with sql.transaction():
        sql.execute("SELECT FROM taskyard.task WHERE id = %s FOR UPDATE", (id,))
        assert yard.claim() is None
        with pytest.raises(taskyard.Conflict, match="locked"):
            yard.claim(id)
    assert taken(yard.claim(id)).task.id == id


def test_a_task_that_runs_past_its_deadline_has_no_claim_wait_for_another(yard: Yard, sql: Connection[Any]) -> None:
    late = yard.add("build", expires=0.3, lease=600)
    assert taken(yard.claim()).task.id == late.id
    yard.add_many([{"kind": "build"}] * 2)
    own = "SELECT project, at FROM taskyard.deadline JOIN taskyard.task USING (project, age) WHERE id = %s"
    [(project, at)] = sql.execute(own, [late.id]).fetchall()
    wait_until(lambda: sql.execute("SELECT taskyard.now() > %s", [at]).fetchone() == (True,))
    one = "SELECT id FROM taskyard.claim(%s, 'bo', NULL, NULL, NULL, ARRAY['aaaaaaaa1'], NULL, NULL, 60)"
    with ThreadPoolExecutor(1) as other, sql.transaction():
        assert len(sql.execute(one, [project]).fetchall()) == 1  # under way, and not committed
        assert taken(other.submit(yard.claim).result(20)).task.id != late.id


def test_a_claim_never_gets_the_body_of_before_an_edit(url: str) -> None:
    """An edit may commit between a claim's look and its lock: the row is new then, and what was read with it is not."""
    with taskyard.init(url, worker="ada") as yard, taskyard.open(url, worker="editor") as editor:
        ids = yard.add_many([{"kind": "build", "data": 0}] * 30)
        stop = threading.Event()

        def edit() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                for id in ids:
                    try:
                        editor.edit(id, data=number, title=str(number))
                    except taskyard.Conflict:
                        continue

        thread = threading.Thread(target=edit)
        thread.start()
        try:
            for _ in range(3 * len(ids)):
                claim = wait_until(yard.claim)
                task = yard.get(claim.task.id)
                assert (claim.task.data, claim.task.title) == (task.data, task.title)
                claim.release()
        finally:
            stop.set()
            thread.join()
