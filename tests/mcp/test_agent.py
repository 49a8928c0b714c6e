"""The loop of an agent that does all right: each tool, on each store."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard import State
from taskyard.doors.mcp import agent
from taskyard.doors.mcp.agent import Agent
from tests.conftest import SOON, taken, wait_until

from .conftest import Caller

if TYPE_CHECKING:
    import pytest

    from taskyard import Yard


def test_a_task_takes_two_calls_without_a_handle(yard: Yard, caller: Caller) -> None:
    task = yard.add("build", {"n": 1}, title="Fix the parser")
    told = caller.call("claim")
    assert {name: told[name] for name in ("kind", "title", "data")} == {
        "kind": "build", "title": "Fix the parser", "data": {"n": 1}
    }  # fmt: skip
    assert caller.call("done", result={"ok": True}) == {"done": told["task"]}
    assert yard.get(task.id).result == {"ok": True}


def test_what_is_null_or_usual_is_left_out(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    assert set(caller.call("claim")) == {"claim", "task", "kind"}
    yard.add("build", priority=1, mission="ship")
    assert caller.call("ready")["ready"][0].keys() == {"task", "kind", "priority", "mission"}


def test_nothing_ready_says_why_and_what_to_do(yard: Yard, caller: Caller) -> None:
    told = caller.call("claim")
    assert told["nothing_ready"]
    assert "claim(wait=45)" in told["next"]
    yard.add("build")
    yard.pause()
    assert "paused" in caller.call("claim")["nothing_ready"]
    assert "paused" in caller.call("ready")["why"]


def test_the_claim_that_is_to_be_made_next_asks_for_the_same_tasks(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    assert caller.call("claim", kind="test")["next"].startswith("claim(kind='test', wait=45) ")
    told = caller.call("claim", kind="prüfen", mission="it's one", wait=0.01)
    assert """call claim(kind='prüfen', mission="it's one", wait=0.01) again""" in told["next"]


def test_a_wait_for_a_task_answers_still_waiting(yard: Yard, caller: Caller) -> None:
    told = caller.call("claim", wait=0.01)
    assert "still waiting" in told["next"]
    task = yard.add("build", delay="1h")
    told = caller.call("wait", tasks=[task.short], wait=0.01)
    assert "still waiting" in told["next"]


def test_a_waiting_claim_gets_a_task_that_comes(yard: Yard, caller: Caller) -> None:
    told: list[Any] = []
    thread = Thread(target=lambda: told.append(caller.call("claim", wait=45)))
    thread.start()
    yard.add("build", title="late")
    thread.join()
    assert told[0]["title"] == "late"


def test_a_cancelled_wait_holds_nothing(yard: Yard) -> None:
    agent, cancelled = Agent(yard), Event()
    cancelled.set()
    task = yard.add("build")
    agent.call("claim", {"wait": 45}, cancelled)
    assert agent.claims.all() == []
    assert yard.get(task.id).state is State.TODO


def test_a_client_that_goes_ends_every_wait(yard: Yard) -> None:
    agent = Agent(yard)
    told: list[Any] = []
    threads = [
        Thread(target=lambda: told.append(agent.call("claim", {"wait": 45, "kind": "none"}))),
        Thread(target=lambda: told.append(agent.call("wait", {"tasks": [yard.add("b", delay="1h").id]}))),
    ]
    for thread in threads:
        thread.start()
    agent.closing.set()
    yard.wake()
    for thread in threads:
        thread.join()
    assert len(told) == 2


def test_fail_and_release_give_the_task_back(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    caller.call("claim")
    assert caller.call("release", reason="not mine") == {"released": task.short}
    caller.call("claim")
    assert caller.call("fail", reason="no compiler") == {"failed": task.short, "state": "waiting"}
    yard.retry(task.id)
    told = caller.call("claim")
    assert told["history"] == [
        {"outcome": "released", "worker": "ada", "reason": "not mine"},
        {"outcome": "error", "worker": "ada", "reason": "no compiler"},
    ]
    assert caller.call("fail", reason="never", retry=False)["state"] == "failed"


def test_a_note_reaches_the_next_attempt(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    caller.call("claim")
    assert "next" not in caller.call("note", text="half is done", progress=0.5)
    caller.call("release")
    assert caller.call("claim")["history"][0]["notes"] == ["half is done"]


def test_the_note_of_a_rejection_and_the_reason_of_a_release_reach_the_next_attempt(
    yard: Yard, yard_url: str, caller: Caller
) -> None:
    task = yard.add("draft", review=True)
    caller.call("claim")
    told = caller.call("done", result="a draft")
    assert "another" in told["review"]
    with taskyard.open(yard_url, worker="bob") as reviewer:
        reviewer.reject(task.id, "name the fixed bugs")
    [submitted, rejected] = caller.call("claim")["history"]
    assert submitted["result"] == "a draft"
    assert rejected["reason"] == "rejected: name the fixed bugs"
    caller.call("release", reason="needs a GPU")
    history = str(caller.call("claim")["history"])
    assert "rejected: name the fixed bugs" in history
    assert "needs a GPU" in history


def test_the_folder_that_an_attempt_left_reaches_the_next_one(near: Yard) -> None:
    caller = Caller(near)
    near.add("build")
    claim = taken(near.claim())
    folder = claim.workdir
    if folder is not None:  # else this store has no files
        Path(folder, "half.txt").write_text("half")
    claim.release()
    told = caller.call("claim")
    assert [one["workdir"] for one in told.get("history", [])] == ([] if folder is None else [folder])


def test_a_long_reason_of_the_newest_attempt_comes_cut_and_not_left_out(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    for reason in ("first", f"the linker {'fails ' * 2000}"):
        caller.call("claim")
        caller.call("note", text="n" * 5000)
        caller.call("release", reason=reason)
    told = caller.call("claim")["history"]
    assert len(told) == 1
    assert "the linker fails" in told[0]["reason"]
    assert "show(task) has all" in told[0]["reason"]
    assert len(json.dumps(told)) < 3000


def test_a_claim_brings_the_results_of_the_tasks_before_it(yard: Yard, caller: Caller) -> None:
    caller.call("add", tasks=[{"kind": "a", "ref": "first"}, {"kind": "b", "after": ["first"]}])
    first = caller.call("claim")
    caller.call("done", result={"path": "x"})
    assert caller.call("claim")["inputs"] == {first["task"]: {"path": "x"}}


def test_work_that_is_found_names_the_task_where_it_was_found(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    caller.call("claim")
    found = caller.call("add", kind="fix", title="A leak")["added"]
    assert yard.get(found).discovered_from == task.id


def test_lists_come_in_pages(yard: Yard, caller: Caller) -> None:
    for _ in range(12):
        yard.add("build")
    first = caller.call("ready")
    assert len(first["ready"]) == 10
    assert len(caller.call("ready", cursor=first["more"])["ready"]) == 2


def test_show_is_whole_and_claim_cuts_what_is_long(yard: Yard, caller: Caller) -> None:
    task = yard.add("build", {"text": "x" * 40_000})
    assert "show(task) has all" in caller.call("claim")["data"]
    assert caller.call("show", task=task.short)["data"] == task.data
    caller.call("note", text="hello")
    shown = caller.call("show", task=task.short)
    assert shown["notes"][0]["text"] == "hello"
    assert None not in shown.values()


def test_a_wait_returns_results(yard: Yard, caller: Caller) -> None:
    one, two = yard.add("build"), yard.add("build")
    caller.call("claim")
    caller.call("done", result=1)
    yard.cancel(two.id, "no need")
    told = caller.call("wait", tasks=[one.short, two.short])
    assert told["ended"][0] == {"task": one.short, "state": "done", "result": 1}
    assert told["ended"][1]["state"] == "cancelled"


def test_a_done_whose_check_takes_long_is_answered_in_time_and_checked_once(
    near: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "WAIT_MOST", 0.05)
    script = 'echo run >> "$0"; until [ -e "$0.gate" ]; do sleep 0.02; done; [ -e "$0.fixed" ]'
    near.checks["tests"] = ["sh", "-c", script, str(tmp_path / "log")]
    task = near.add("build", verify="tests")
    caller = Caller(near)
    caller.call("claim")
    assert caller.call("done", result=1)["next"] == "its check still runs: call done again, with the same result"
    assert "another result is being checked. Next: done with that" in caller.refused("done", result=2)
    wait_until((tmp_path / "log").exists)
    (tmp_path / "log.gate").touch()
    monkeypatch.setattr(agent, "WAIT_MOST", SOON)
    assert "did not pass" in caller.refused("done", result=1)
    assert near.get(task.id).state is State.PROCESSING
    (tmp_path / "log.fixed").touch()
    assert caller.call("done", result=2) == {"done": task.short}
    assert caller.call("done", result=2) == {"done": task.short}
    assert (tmp_path / "log").read_text() == "run\nrun\n"


def test_agents_that_lose_their_memory_find_what_they_hold(yard: Yard, caller: Caller) -> None:
    yard.add("build", {"n": 1})
    told = caller.call("claim")
    assert caller.call("resume")["claims"] == [told]
    assert caller.call("done", result=1) == {"done": told["task"]}
    assert "claim()" in caller.call("resume")["next"]


def test_a_successor_takes_the_claim_under_a_new_fence_and_shuts_the_orphan_out(yard: Yard, caller: Caller) -> None:
    from .conftest import Caller as Successor

    task = yard.add("build")
    old = caller.call("claim")
    successor = Successor(yard)
    new = successor.call("resume")["claims"][0]
    assert new["claim"] != old["claim"]
    assert "Next: stop that work" in caller.refused("done", result="orphan")
    assert successor.call("done", result="successor") == {"done": new["task"]}
    assert yard.get(task.id).result == "successor"


def test_a_handle_of_the_server_before_ends_its_task(yard: Yard, caller: Caller) -> None:
    from .conftest import Caller as Successor

    yard.add("build")
    old = caller.call("claim")
    successor = Successor(yard)
    assert "resume()" in successor.call("note", text="still here", claim=old["claim"])["next"]
    assert successor.call("done", claim=old["claim"], result=1) == {"done": old["task"]}


def test_heartbeats_go_on_without_a_call_until_the_agent_is_taken_for_gone(yard: Yard) -> None:
    task = yard.add("build", lease=30)
    agent = Agent(yard, idle=0.05)
    agent.call("claim", {})
    before = yard.get(task.id).lease_until
    held = agent.claims.all()[0]

    def renewed() -> bool:
        agent.claims.called()
        held.beat_at = 0
        agent.claims.beat()
        return yard.get(task.id).lease_until != before

    wait_until(renewed)
    wait_until(lambda: not agent.claims.is_awake())
    held.beat_at = 0
    agent.claims.beat()
    assert held.beat_at == 0, "no beat was sent"
    assert json.loads(agent.call("done", {})[0]), "an agent that was only slow can still end its task"


def test_a_claim_that_the_heartbeat_finds_lost_still_brings_its_result_to_be_kept(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    caller.call("claim")
    yard.cancel(task.id)
    caller.agent.claims.all()[0].beat_at = 0
    caller.agent.claims.beat()
    assert caller.agent.claims.all() == []
    assert "Next: stop that work; claim()" in caller.refused("done", result="hours of work")
    assert [entry["result"] for entry in yard.report(task.id).stale_results] == ["hours of work"]
    assert "you hold no claim here" in caller.refused("done", result="hours of work")


def test_an_error_that_nobody_foresaw_does_not_end_the_heartbeats(
    yard: Yard, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.add("build")
    caller.call("claim")
    claims = caller.agent.claims
    (held,) = claims.all()
    held.beat_at = 0.0

    def broken(*_: object) -> str:
        raise OSError("stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(held.claim, "heartbeat", broken, raising=False)
        claims.beat()
    assert claims.all() == [held]
    held.beat_at = 0.0
    claims.beat()
    assert held.beat_at > 0.0


def test_an_agent_within_a_workers_command_goes_on_with_that_task_and_shuts_nobody_out(yard: Yard) -> None:
    mine, sibling = yard.add("build", title="mine"), yard.add("build")
    claim, other = yard.claim(mine.id), yard.claim(sibling.id)
    assert claim is not None
    assert other is not None
    caller = Caller(yard, lent=claim.handle)
    assert [each["claim"] for each in caller.call("resume")["claims"]] == [claim.handle]
    assert "mine" in caller.refused("claim")
    caller.agent.claims.give_back("gone", died=True)
    assert yard.holding([claim.handle, other.handle]) == [True, True]
    assert caller.call("done", result=1) == {"done": mine.short}
    assert caller.call("resume")["claims"] == []
    assert other.holds()
    assert Caller(yard, lent=claim.handle).call("resume")["claims"] == []


def test_an_agent_within_a_workers_command_takes_no_second_task_unasked(yard: Yard) -> None:
    mine, second = yard.add("build"), yard.add("build")
    claim = yard.claim(mine.id)
    assert claim is not None
    caller = Caller(yard, lent=claim.handle)
    caller.call("done", result=1)
    assert "Next: end, and your worker" in caller.refused("claim")
    assert "it is over" in Caller(yard, lent=claim.handle).refused("claim", task=second.id)
    assert yard.get(second.id).state is State.TODO
    assert caller.call("claim", another=True)["task"] == second.short
    caller.call("done", result=2)


def test_a_workers_claim_in_another_yard_is_none_in_this_one(yard: Yard) -> None:
    task = yard.add("build")
    caller = Caller(yard, lent="00006aa1tssy5fbz7b2n8.1.k0p2kcwy1")
    assert caller.call("claim")["task"] == task.short
    caller.call("done", result=1)
