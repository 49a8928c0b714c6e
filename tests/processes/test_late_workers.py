"""A late worker is harmless: stopped, slow or believed dead, it is told so, changes nothing, and its output is kept."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import crash, wait_until
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Crew = Callable[..., subprocess.Popen[str]]


def snapshot(yard: str, id: str) -> dict[str, Any]:
    """All about a task that a late worker must not change: what `show` says of it, but for the stale results, and its file."""
    shown = tools.taskyard(yard, "show", id).data
    del shown["stale_results"]
    [where] = [(state, str(path), path.read_bytes()) for state, token, path in tools.task_files(yard) if token.id == id]
    return {"shown": shown, "where": where}


@pytest.mark.parametrize(
    ("first", "second"), [("ada", "bob"), ("same-name", "same-name")], ids=["two-names", "one-name"]
)
def test_a_late_command_line_is_refused_and_its_output_kept(place: str, first: str, second: str) -> None:
    id = tools.taskyard(place, "add", "build").data["task"]["id"]
    late = tools.taskyard(place, "claim", "--lease", "1", "--worker", first).data
    winner = tools.taskyard(place, "claim", "--wait", "30", "--worker", second).data
    assert (winner["task"]["id"], late["task"]["id"]) == (id, id)
    assert winner["fence"] > late["fence"] == 1
    held = snapshot(place, id)
    for verb in (["heartbeat"], ["heartbeat", "--progress", "0.5"], ["note", "still here"], ["release"]):
        refused = tools.taskyard(place, verb[0], late["claim"], *verb[1:], "--worker", first)
        assert (refused.code, refused.error["code"]) == (4, "claim_lost"), verb
    assert tools.taskyard(place, "done", late["claim"], "--result", '{"by": "late"}', "--worker", first).code == 4
    assert snapshot(place, id) == held, "the winner's claim was touched"

    assert (
        tools.taskyard(place, "done", winner["claim"], "--result", '{"by": "winner"}', "--worker", second).data["task"][
            "state"
        ]
        == "done"
    )
    ended = snapshot(place, id)
    for verb in (["done", "--result", '{"by": "late, again"}'], ["heartbeat"], ["fail", "--reason", "too late"]):
        assert tools.taskyard(place, verb[0], late["claim"], *verb[1:], "--worker", first).code == 4, verb
    assert snapshot(place, id) == ended, "the ended task was touched"

    shown = tools.taskyard(place, "show", id).data
    assert shown["task"]["result"] == {"by": "winner"}
    stale = {(entry["outcome"], json.dumps(entry["result"]), entry["reason"]) for entry in shown["stale_results"]}
    assert stale == {
        ("done", '{"by": "late"}', None),
        ("done", '{"by": "late, again"}', None),
        ("error", "null", "too late"),
    }
    assert len(shown["stale_results"]) == 3
    assert {entry["claim"] for entry in shown["stale_results"]} == {late["claim"]}
    assert [(entry["claim"], entry["outcome"]) for entry in shown["history"]] == [
        (late["claim"], "crash"),
        (winner["claim"], "done"),
    ]

    again = tools.taskyard(place, "done", winner["claim"], "--result", '{"by": "winner"}', "--worker", second)
    assert (again.code, again.data["task"]["result"]) == (0, {"by": "winner"})
    assert snapshot(place, id) == ended
    assert tools.places(place) == {id: "done"}


def test_stale_results_are_shown_in_the_order_in_which_they_came(place: str) -> None:
    with taskyard.open(place) as yard:
        id = yard.add("build").id
        late = crash(yard, id)
        for number in range(8):
            now = time.time()
            wait_until(lambda now=now: time.time() > now + 0.002)  # type: ignore[misc]
            with pytest.raises(taskyard.ClaimLost):
                late.done(number)
        assert [entry["result"] for entry in yard.report(id).stale_results] == list(range(8))


def test_a_worker_that_was_stopped_past_its_lease_publishes_nothing(place: str, crew: Crew) -> None:
    with recorded_yard(place, "bob") as yard:
        id = yard.add("build").id
        stopped = crew(place, "claim_late", "0.3", "ada")
        handle = tools.said(stopped)
        os.kill(stopped.pid, signal.SIGSTOP)
        claim = yard.claim(wait=30)
        assert claim is not None
        assert (claim.task.id, claim.fence) == (id, int(handle.split(".")[1]) + 2), "reaped and claimed: two moves"
        claim.done({"by": "bob"})
        before = snapshot(place, id)
        os.kill(stopped.pid, signal.SIGCONT)
        tools.tell(stopped)
        assert tools.told([stopped]) == ["lost"]
        assert snapshot(place, id) == before
        [stale] = yard.report(id).stale_results
        assert (stale["claim"], stale["worker"], stale["result"]) == (handle, "ada", {"late": True})
    tools.judge(place, drained=True)


def test_a_worker_that_was_stopped_and_reaped_but_not_replaced_is_refused_too(place: str, crew: Crew) -> None:
    with recorded_yard(place) as yard:
        id = yard.add("build").id
        stopped = crew(place, "claim_late", "0.1")
        tools.said(stopped)
        os.kill(stopped.pid, signal.SIGSTOP)
        wait_until(lambda: yard.sweep().reaped)
        os.kill(stopped.pid, signal.SIGCONT)
        tools.tell(stopped)
        assert tools.told([stopped]) == ["lost"]
        assert tools.places(place) == {id: "todo"}
    tools.judge(place)


def test_a_worker_that_was_stopped_past_its_lease_but_not_reaped_still_holds_its_task(place: str, crew: Crew) -> None:
    tools.settle(place, sweep_every=3600)
    with recorded_yard(place) as yard:
        id = yard.add("build").id
        stopped = crew(place, "claim_late", "0.1")
        tools.said(stopped)
        os.kill(stopped.pid, signal.SIGSTOP)
        [(_, _, path)] = tools.task_files(place)
        wait_until(lambda: time.time() > path.stat().st_ctime + 0.2)
        os.kill(stopped.pid, signal.SIGCONT)
        tools.tell(stopped)
        assert tools.told([stopped]) == ["done"]
        assert yard.get(id).state == "done"
    tools.judge(place, drained=True)
