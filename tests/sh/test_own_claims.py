"""One task by its id, and what an agent that forgot everything held: claims of the worker's own name, taken again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell

BOB = {"TASKYARD_WORKER": "bob"}


def test_a_task_is_claimed_by_its_id(sh: Shell, yard: Yard) -> None:
    yard.add("build")
    wanted = yard.add("build", assignee="bob")
    yard.add("build", priority=0)
    handle, file = sh.claim(wanted.id, env=BOB)
    assert handle.startswith(f"{wanted.id}.1.")
    assert wanted.id in file.read_text(encoding="utf-8")
    assert yard.get(wanted.id).worker == "bob"
    assert sh.run("complete_task", handle, env=BOB).code == 0
    assert yard.get(wanted.id).state == "done"


def test_an_edited_task_is_claimed_by_its_id(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    yard.edit(task.id, title="once more")
    assert "once more" in sh.claim(task.id)[1].read_text(encoding="utf-8")


def test_a_kind_that_looks_like_an_id_keeps_working(sh: Shell, yard: Yard) -> None:
    kind = "0000abcdefghjkmnpqrst"
    task = yard.add(kind)
    assert sh.claim(kind)[0].startswith(task.id)


def test_a_task_that_cannot_be_had_is_refused_with_the_reason(sh: Shell, yard: Yard) -> None:
    held = taken(yard.claim(yard.add("build").id)).task
    mine = taken(yard.claim(yard.add("build").id, worker="bob")).task
    late = yard.add("build", delay=3600)
    assigned = yard.add("build", assignee="eve")
    used = yard.add("build", uses=["db"])
    paused = yard.add("deploy")
    yard.pause("deploy")
    for task, why in (
        (held, "in processing"),
        (mine, "'resume'"),
        (late, "in waiting"),
        (assigned, "assigned"),
        (used, "uses something"),
        (paused, "paused"),
    ):
        said = sh.run("claim_task", task.id, env=BOB)
        assert (said.code, said.out) == (7, "")
        assert why in said.err
    said = sh.run("claim_task", "0000abcdefghjkmnpqrst")
    assert said.code == 3


def test_a_task_whose_lease_is_over_is_claimed_by_its_id(sh: Shell, yard: Yard) -> None:
    claim = taken(yard.claim(yard.add("build").id, lease=0.1))
    time.sleep(0.2)
    handle, _ = sh.claim(claim.task.id)
    assert handle.startswith(f"{claim.task.id}.3.")


def test_resume_takes_the_claims_of_this_name_again(sh: Shell, yard: Yard) -> None:
    tasks = [yard.add("build"), yard.add("test", assignee="bob"), yard.add("build")]
    first, _ = sh.claim(tasks[0].id, env=BOB)
    second, _ = sh.claim(tasks[1].id, env=BOB)
    others, _ = sh.claim(tasks[2].id, env={"TASKYARD_WORKER": "eve"})
    lines = sh.run("resume", env=BOB).line.splitlines()
    handles = [line.split("\t")[0] for line in lines]
    assert sorted(handle.split(".")[0] for handle in handles) == sorted(task.id for task in tasks[:2])
    assert all(Path(line.split("\t")[1]).is_file() for line in lines)
    for old in (first, second):
        assert sh.run("complete_task", old, env=BOB).code == 4
    for new in handles:
        assert new.split(".")[1] == "2"
        assert sh.run("complete_task", new, env=BOB).code == 0
    assert sh.run("complete_task", others).code == 0
    history = yard.report(tasks[0].id).history
    assert [entry["outcome"] for entry in history] == ["resumed", "done"]
    events = [(event["event"], event.get("resumed")) for event in yard.events(task=tasks[0].id)]
    assert ("claimed", True) in events


def test_resume_without_claims_or_without_a_name(sh: Shell) -> None:
    assert sh.run("resume", env=BOB).line == ""
    assert sh.run("resume").code == 2


def test_python_and_shell_resume_one_another(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    taken(yard.claim(worker="bob"))
    handle = sh.run("resume", env=BOB).line.split("\t")[0]
    (again,) = yard.resume("bob")
    assert again.fence == int(handle.split(".")[1]) + 1
    again.done()
    assert yard.get(task.id).state == "done"


def test_a_loop_that_was_killed_goes_on_with_its_claim_at_once(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    task = yard.add("build")
    begun = tmp_path / "begun"
    script = (
        f'if [ -e "{begun}" ]; then echo "{{}}" > "$TASKYARD_WORKDIR/result.json"; else : > "{begun}"; sleep 60; fi'
    )
    loop = sh.start("process_loop", "sh", "-c", script, env=BOB)
    wait_until(begun.exists, tools.PATIENCE)
    loop.send_signal(signal.SIGKILL)
    loop.wait()
    yard.add("build", priority=0)
    started = time.monotonic()
    assert sh.run("process_loop", "--once", "sh", "-c", script, env=BOB).code == 0
    assert time.monotonic() - started < 30  # and not a lease of a minute
    report = yard.report(task.id)
    assert (report.task.state, report.task.result) == ("done", {})
    assert [entry["outcome"] for entry in report.history] == ["resumed", "done"]
    assert not list(Path(sh.yard).glob("attempts/*/*/*/.loop"))


@pytest.mark.parametrize("whose", ["another loop's", "a hand's"])
def test_a_loop_takes_no_claim_of_its_name_that_somebody_is_at_work_on(
    sh: Shell, yard: Yard, tmp_path: Path, whose: str
) -> None:
    task = yard.add("build")
    go_on = tmp_path / "go on"
    loop = None
    if whose == "a hand's":
        handle, _ = sh.claim(env=BOB)
    else:
        loop = sh.start("process_loop", "--once", "sh", "-c", f'until [ -e "{go_on}" ]; do sleep 0.05; done', env=BOB)
        wait_until(lambda: yard.get(task.id).state == "processing" and list(Path(sh.yard).glob("attempts/*/*/*/.loop")))
    second = yard.add("test")
    assert sh.run("process_loop", "--once", "true", env=BOB).code == 0
    assert yard.get(second.id).state == "done"
    assert (yard.get(task.id).state, yard.get(task.id).fence) == ("processing", 1)
    go_on.touch()
    if loop is not None:
        assert loop.wait(tools.PATIENCE) == 0
    else:
        assert sh.run("complete_task", handle, env=BOB).code == 0
    assert yard.get(task.id).state == "done"


# Beside programs that move files


@pytest.mark.parametrize("stale", [True, False], ids=["stale", "too early"])
def test_a_claim_that_another_programs_janitor_moves_to_todo_is_the_same_task_again(
    sh: Shell, yard: Yard, stale: bool
) -> None:
    (Path(sh.yard) / "todo" / "task_9.json").write_text('{"kind": "build"}', encoding="utf-8")
    handle, file = sh.claim(env=BOB)
    if stale:
        os.utime(file, (1, 1))
    file.rename(Path(sh.yard) / "todo" / file.name)
    again, _ = sh.claim()
    assert again.split(".")[0] == handle.split(".")[0]
    assert int(again.split(".")[1]) > int(handle.split(".")[1])
    assert sh.run("complete_task", handle, env=BOB).code == 4
    assert sh.run("complete_task", again).code == 0
    assert sum(yard.counts().values()) == 1
    assert (yard.get("task_9").state, yard.get("task_9").attempts) == ("done", int(stale))
    assert [entry["outcome"] for entry in yard.report("task_9").history] == ["crash" if stale else "released", "done"]


def test_a_holder_hears_that_its_claim_in_todo_is_lost(sh: Shell, yard: Yard) -> None:
    yard.add("build")
    handle, file = sh.claim()
    file.rename(Path(sh.yard) / "todo" / file.name)
    assert sh.run("verify_ownership", handle).code == 4
    with taskyard.open(sh.yard) as other:
        other.sweep()
        assert taken(other.claim()).task.id == handle.split(".")[0]


def test_the_name_of_a_dropped_file_is_kept(sh: Shell, yard: Yard) -> None:
    box = Path(sh.yard) / "todo"
    (box / "task 7.json").write_text('{"kind": "build"}', encoding="utf-8")
    (box / "task_8.json").write_text('{"kind": "test", "taskId": "8"}', encoding="utf-8")
    sh.run("reap_stale")
    assert yard.get("task 7").kind == "build"
    assert (yard.get("task_8").key, yard.report("task_8").task.dropped_as) == ("8", "task_8")
