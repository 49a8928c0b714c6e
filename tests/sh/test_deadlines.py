"""A shell leaves tasks with deadlines to Python workers, and does not lose the deadline of those that it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard import State
from tests.conftest import outlast, taken, wait_until

if TYPE_CHECKING:
    from tests.sh.shells import Shell


def test_a_shell_hands_out_no_task_with_a_deadline(sh: Shell, place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        bound, free = yard.add("build", expires="2h"), yard.add("build")
        handle, _ = sh.claim()
        assert handle.startswith(free.id)
        assert sh.run("claim_task").code == 3
        refused = sh.run("claim_task", bound.id)
        assert (refused.code, "has a deadline" in refused.err) == (7, True)
        assert yard.get(bound.id).fence == 0


def test_a_crash_that_a_shell_reaps_takes_the_deadline_away(sh: Shell, place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.tends = False
        id = yard.add("build", expires="1s", uses="oven").id
        claim = taken(yard.claim(lease=0.05))
        outlast(claim)
        wait_until(lambda: sh.run("reap_stale").code == 0 and yard.get(id).attempts == 1)
        assert yard._store.stand(id).expires is None
        assert yard.get(id).state is State.TODO


def test_a_dropped_file_with_a_deadline_is_left_to_python(sh: Shell, place: str) -> None:
    for name, text in (("a", '{"expires": "2h"}'), ("b", '{"timeout": 5}'), ("c", "{}")):
        with open(f"{place}/todo/{name}.json", "w", encoding="utf-8") as file:
            file.write(text)
    sh.run("reap_stale")
    with taskyard.open(place, worker="ada") as yard:
        assert yard.counts()["todo"] == 1
        assert yard.sweep().taken == 2
        tasks = [yard.get(line.id) for line in yard.find()]
        assert sum(task.expires is not None for task in tasks) == 1
        assert [task.timeout for task in tasks if task.timeout is not None] == [5.0]
