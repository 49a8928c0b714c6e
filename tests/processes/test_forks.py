"""A process that forks or has threads: every claim has a handle of its own, and nobody ends another's by accident."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import Any

import pytest

import taskyard
from tests.conftest import taken
from tests.processes import tools

HANGS = 15.0  # seconds

# Forking happens in processes of their own: pytest's has threads, and a fork would copy it whole.
SAYS = """
import json, os, sys, threading
import taskyard
def in_child(work):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(work()).encode() + b"\\n")
        finally:
            os._exit(0)
    os.close(writer)
    def result():
        with os.fdopen(reader) as stream:
            said = stream.read()
        os.waitpid(pid, 0)
        return json.loads(said)
    return result
yard = taskyard.open(sys.argv[1], **({"worker": sys.argv[2]} if sys.argv[2:] else {}))
"""


def run(yard: str, script: str, *argv: str) -> Any:
    """The one JSON value that the script prints; if it hangs, its children are not left behind."""
    argv = (tools.PYTHON, "-c", SAYS + script, yard, *argv)
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tools.environment(), start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        pytest.fail(f"it hangs: nothing was said in {HANGS} s")
    assert process.returncode == 0, err
    return json.loads(out)


def test_forked_children_claim_under_handles_of_their_own(place: str) -> None:
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 200)
    script = """
first = yard.claim()
def work():
    claims = []
    while (claim := yard.claim()) is not None and len(claims) < 40:
        claim.done(claim.handle)
        claims.append(claim.handle)
    if claim is not None:
        claim.release()
    return [yard.worker, claims]
results = [in_child(work) for _ in range(4)]
mine = work()
answers = [mine] + [result() for result in results]
first.done(first.handle)
answers[0][1].append(first.handle)
print(json.dumps(answers))
"""
    answers = run(place, script)
    workers = [worker for worker, _ in answers]
    claims = [claim for _, claims in answers for claim in claims]
    assert len(set(workers)) == 5, "a process without a given name has one of its own"
    assert len(set(claims)) == len(claims)
    incarnations = [{claim.split(".")[2][:8] for claim in claims} for _, claims in answers]
    assert all(len(own) == 1 for own in incarnations)
    assert len(set.union(*incarnations)) == 5
    with taskyard.open(place) as yard:
        assert all(yard.get(claim.split(".")[0]).result == claim for claim in claims)
    assert sorted(tools.places(place)) == sorted(ids)


def test_a_forked_child_of_a_named_worker_keeps_the_name_but_not_the_handles(place: str) -> None:
    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "build"}] * 3)
    script = """
def work():
    claim = yard.claim()
    return [yard.worker, claim.handle]
before = work()
child = in_child(work)()
print(json.dumps([before, child, work()]))
"""
    answers = run(place, script, "ada")
    assert [worker for worker, _ in answers] == ["ada"] * 3
    nonces = [handle.split(".")[2] for _, handle in answers]
    assert nonces[0][:8] == nonces[2][:8] != nonces[1][:8]
    assert len(set(nonces)) == 3


def test_forked_children_never_add_under_one_id(place: str) -> None:
    script = """
yard.add("build")
results = [in_child(lambda: [yard.add("build").id for _ in range(50)] + yard.add_many([{"kind": "build"}] * 50)) for _ in range(6)]
print(json.dumps([id for result in results for id in result()]))
"""
    ids = run(place, script)
    assert len(set(ids)) == len(ids) == 600
    assert set(ids) < set(tools.places(place))


def test_a_claim_can_be_ended_by_a_forked_child(place: str) -> None:
    with taskyard.open(place) as yard:
        id = yard.add("build").id
    script = """
claim = yard.claim()
child = in_child(lambda: claim.done("by the child"))()
try:
    claim.done("by the parent")
    again = "accepted"
except taskyard.TaskyardError as error:
    again = error.code
print(json.dumps([child, again]))
"""
    assert run(place, script) == [None, "conflict"], "the same claim, ended once: the first result stands"
    with taskyard.open(place) as yard:
        report = yard.report(id)
    assert (report.task.state, report.task.result) == ("done", "by the child")
    assert [entry["result"] for entry in report.stale_results] == ["by the parent"]


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_a_forked_child_does_not_keep_its_dead_parent_alive(place: str, durability: str) -> None:
    """The child goes on without the yard; what its parent left undone is put right all the same."""
    tools.settle(place, durability=durability)
    with taskyard.open(place) as yard:
        task = yard.add("build").id
    script = """
claim = yard.claim()
child = os.fork()
if child == 0:
    os.close(1); os.close(2)
    import time; time.sleep(600)
    os._exit(0)
print(json.dumps(child), flush=True)
type(yard._store._context.disk).write = staticmethod(lambda *_: os.kill(os.getpid(), 9))
claim.done()
"""
    words = (tools.PYTHON, "-c", SAYS + script, place, "ada")
    process = subprocess.run(words, capture_output=True, text=True, env=tools.environment(), check=False)
    child = int(process.stdout)
    try:
        assert process.returncode == -signal.SIGKILL
        with taskyard.open(place, worker="eve") as yard:
            yard.sweep()
            assert [event["event"] for event in yard.events(task=task)] == ["added", "claimed", "done"]
            assert os.listdir(f"{place}/writers") == [yard._store._context.writer.tag]  # type: ignore[attr-defined]
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_process_may_fork_while_its_threads_are_claiming(place: str) -> None:
    """Locks that a thread holds at the fork are held for ever in the child, unless somebody sees to it."""
    script = """
stop = threading.Event()
def churn():
    while not stop.is_set():
        yard.add("build")
        claim = yard.claim(kinds=["build"])
        if claim is not None:
            claim.done()
threads = [threading.Thread(target=churn) for _ in range(4)]
for thread in threads:
    thread.start()
answers = []
for _ in range(40):
    yard.add("child")
    answers.append(in_child(lambda: yard.claim(kinds=["child"]).handle)())
stop.set()
for thread in threads:
    thread.join()
print(json.dumps(answers))
"""
    handles = run(place, script)
    assert len(set(handles)) == 40


def test_threads_of_one_yard_claim_each_task_once(place: str) -> None:
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 1000)
        handles: list[str] = []

        def work() -> None:
            while (claim := yard.claim()) is not None:
                claim.heartbeat()
                claim.done(claim.handle)
                handles.append(claim.handle)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(handles)) == len(handles)
        assert sorted(handle.split(".")[0] for handle in handles) == sorted(ids)
        assert tools.places(place) == dict.fromkeys(ids, "done")
        assert all(yard.get(handle.split(".")[0]).result == handle for handle in handles[::40])
        assert len(tools.events(place, "done")) == len(ids), "no event line is torn"


def test_threads_of_one_yard_add_each_task_once(place: str) -> None:
    with taskyard.open(place) as yard:
        ids: list[str] = []
        threads = [
            threading.Thread(target=lambda: ids.extend(yard.add("build").id for _ in range(200))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(ids)) == len(ids) == 1600
        assert set(tools.places(place)) == set(ids)
        assert os.listdir(f"{place}/tmp") in ([], ["clock"])
        assert taken(yard.claim()).fence == 1
