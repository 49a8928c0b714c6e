"""A short name names a task to the shell client too; what no task is called may still be a kind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskyard.core import ids

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell


def test_a_task_is_claimed_by_its_short_name(sh: Shell, yard: Yard) -> None:
    tasks = [yard.add("build") for _ in range(3)]
    for task, name in zip(tasks, (tasks[0].short, tasks[1].short.upper(), ids.short(tasks[2].id, 17)), strict=True):
        assert sh.run("claim_task", name).line.startswith(f"{task.id}.1.")
    assert sh.run("claim_task", tasks[0].short).code == 7


def test_the_short_name_of_a_task_that_another_program_moved_finds_it(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    sh.run("claim_task", task.id)
    (held,) = Path(sh.yard, "processing").glob(f"{task.id}.*")
    held.rename(held.with_name(f"agent.1_{held.name}"))
    said = sh.run("claim_task", task.short)
    assert (said.code, f"task {task.id} cannot be claimed: it is in processing" in said.err) == (7, True)


def test_a_kind_that_looks_like_a_short_name_stays_one_where_no_task_is_called_so(sh: Shell, yard: Yard) -> None:
    for kind in ("0-zzzz", "data-sync", "zzzz-kf12"):
        id = yard.add(kind).id
        assert sh.run("claim_task", kind).line.startswith(f"{id}.1.")
        assert sh.run("claim_task", kind).code == 3


def test_a_name_that_two_tasks_share_is_refused_with_both(
    sh: Shell, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = ids.chance
    monkeypatch.setattr(
        ids, "chance", lambda bits: {40: chance(40) & ~0xFFFFF, 16: (1 << 20) - 1}.get(bits, chance(bits))
    )
    pair = [yard.add("build").id, yard.add("build").id]
    said = sh.run("claim_task", ids.short(pair[0]))
    assert (said.code, re.findall(r"[0-9a-z]{21}", said.err)) == (6, pair)
    assert yard.counts()["todo"] == 2


def test_a_short_name_where_a_handle_is_due_says_so(sh: Shell, yard: Yard) -> None:
    name = yard.add("build").short
    for given in (name, name.upper()):
        said = sh.run("complete_task", given)
        assert (said.code, f"{given} is the id of a task; this needs the handle" in said.err) == (2, True)
        assert "if that is lost, 'resume'" in said.err


@pytest.mark.parametrize("word", ["0-kf1", "0-kfl2", "00000-kf12", "0-kf12-", "-kf12", "0-" + "k" * 18, "0-kf12.1.x"])
def test_what_is_no_short_name_is_no_handle_either(sh: Shell, word: str) -> None:
    said = sh.run("complete_task", word)
    assert said.code == 2
    assert "is the id of a task" not in said.err
