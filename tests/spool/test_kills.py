"""A process that is killed while it writes to the spool, or replays it: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import sampled
from tests.processes import tools
from tests.spool.conftest import files

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Yard
    from tests.servers.postgres import Server

MOST = 40  # calls: more than there are in one add or one replayed entry


def lines(url: str, folder: Path, verb: str, first: int = 1, last: int = MOST) -> list[str]:
    """What the processes said that were killed before their n-th call."""
    words = [sys.executable, "-m", "tests.spool.killed", url, verb, str(first), str(last)]
    environment = {**tools.environment(), "TASKYARD_SPOOL": str(folder)}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def test_an_add_that_is_killed_at_any_call_is_kept_if_it_was_acknowledged(
    server: Server, url: str, folder: Path
) -> None:
    server.stop()
    told = lines(url, folder, "add")
    assert told[-1] == "whole", told
    server.start()
    with taskyard.open(url) as yard:
        yard.replay_spool()
        there = [task.id for task in yard.find(limit=1000)]
        numbers = [yard.get(id).data["n"] for id in there]
    assert {id for id in told[:-1] if id != "-"} <= set(there)
    assert len(numbers) == len(set(numbers)), "an add came twice"
    assert not files(folder)
    assert not files(folder, "failed")


def _prepare(yard: Yard, server: Server, sort: str) -> int:
    """As many entries of one sort as there are calls, made while the server is away; return how many are refused."""
    for _ in range(MOST if sort in ("done", "late") else 0):
        yard.add("build")
    claims = yard.claim_many(MOST) if sort in ("done", "late") else []
    if sort == "late":
        for claim in claims:
            yard.cancel(claim.id)
    server.stop()
    for number in range(MOST):
        if sort == "add":
            yard.add("build", {"n": number})
        elif sort == "graph":
            yard.add_many([{"kind": "a", "ref": "x", "data": {"n": number}}, {"kind": "b", "after": ["x"]}])
        elif sort == "conflict":
            yard.add("build", {"n": number}, key="one")
        else:
            claims[number].done({"n": number})
    server.start()
    return MOST - 1 if sort == "conflict" else 0


@sampled("sort", ["add", "graph", "conflict", "done", "late"], ["graph"])
def test_a_replay_that_is_killed_at_any_call_is_finished_by_the_next_one(
    server: Server, url: str, folder: Path, sort: str
) -> None:
    with taskyard.open(url, worker="ada") as yard:
        refused = _prepare(yard, server, sort)
    waited = files(folder)
    assert len(waited) == MOST
    told = lines(url, folder, "replay")
    assert set(told) <= {"-", "whole", "replayed"}, told
    with taskyard.open(url) as yard:
        yard.replay_spool()
        assert not files(folder)
        assert len(files(folder, "failed")) == refused
        tasks = [yard.get(task.id) for task in yard.find(limit=1000)]
        kinds = [task.kind for task in tasks]
        if sort == "add":
            assert sorted(task.data["n"] for task in tasks) == list(range(MOST))
        elif sort == "graph":
            assert (kinds.count("a"), kinds.count("b")) == (MOST, MOST)
            assert {task.state for task in tasks if task.kind == "b"} == {"blocked"}
        elif sort == "conflict":
            assert len(tasks) == 1
            assert all("error" in json.loads(file.read_text()) for file in files(folder, "failed"))
        elif sort == "done":
            assert sorted(task.result["n"] for task in tasks) == list(range(MOST))
        else:
            reports = [yard.report(task.id) for task in tasks]
            assert sorted(stale["result"]["n"] for one in reports for stale in one.stale_results) == list(range(MOST))
        assert yard.audit()["verdict"] == "clean"


@pytest.mark.proof
def test_two_that_replay_at_once_do_it_once(server: Server, url: str, folder: Path) -> None:
    with taskyard.open(url, worker="ada") as yard:
        _prepare(yard, server, "add")
    program = "import sys, taskyard; taskyard.open(sys.argv[1]).close()"
    environment = {**tools.environment(), "TASKYARD_SPOOL": str(folder)}
    crew = [subprocess.Popen([sys.executable, "-c", program, url], env=environment) for _ in range(4)]
    assert [process.wait() for process in crew] == [0] * 4
    with taskyard.open(url) as yard:
        assert yard.counts()["todo"] == MOST


def test_an_add_whose_answer_was_lost_is_not_added_again(server: Server, url: str, folder: Path) -> None:
    """The server is frozen when it gets the add, so that nobody can know what became of it; it executes the add later."""
    with taskyard.open(url, worker="ada") as yard:
        yard.add("before")
        server.freeze()
        task = yard.add("frozen")
        assert task.spooled
        entry = json.loads(files(folder)[0].read_text())
        assert entry["sent"]["pids"]
        server.thaw()
        yard.replay_spool()
        assert sorted(one.kind for one in yard.find()) == ["before", "frozen"]
        follower = yard.add("next", after=[yard.find(kind="frozen")[0].id])
        assert follower.state == "blocked"


def test_an_add_that_was_executed_before_it_was_spooled_is_found_with_what_comes_after_it(
    server: Server, url: str, folder: Path
) -> None:
    with taskyard.open(url, worker="ada") as yard:
        executed = yard.add("build", {"n": 1})
        server.stop()
        kept = yard.add("build", {"n": 1})
        follower = yard.add("ship", after=[kept.id])
        server.start()
        first, _ = files(folder)
        entry = json.loads(first.read_text())
        entry["sent"] = {"pids": [], "since": "", "token": entry["token"], "chances": [executed.id[-8:]]}
        first.write_text(json.dumps(entry))
        assert yard.replay_spool()["replayed"] == 2
        assert [task.id for task in yard.find(kind="build")] == [executed.id]
        assert yard.get(follower.id).after == [executed.id]
