"""A claim lives with its agent: real processes, whatever happens to client, server and connection."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State
from taskyard.core.processes import Process
from taskyard.core.times import ticks
from taskyard.doors.mcp import grace
from tests.conftest import is_alive, wait_until
from tests.servers import postgres

from .wire import ENVELOPE, Wire, command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

# An agent: it starts a server, claims, prints the server's pid and the claim, and lives until it is killed.
AGENT = """
import json, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
call = {"name": "claim", "arguments": {}}
server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode() + b"\\n")
server.stdin.flush()
print(server.pid, server.stdout.readline().decode(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="boss") as opened:
        yield opened


def started(*server: str) -> tuple[subprocess.Popen[str], int]:
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, *server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    return agent, int(agent.stdout.readline().split()[0])


def outcomes(yard: Yard, id: str) -> list[tuple[str, str]]:
    return [(entry["outcome"], entry["reason"] or "") for entry in yard.report(id).history]


def test_the_task_of_an_agent_that_dies_comes_back_at_once_though_the_server_lives_on(place: str, yard: Yard) -> None:
    task = yard.add("build", lease=3600)
    agent, server = started(*command(place))
    held_open = os.open(f"/proc/{server}/fd/0", os.O_WRONLY)  # as when another process has inherited the pipe
    try:
        agent.kill()
        agent.wait()
        wait_until(lambda: yard.get(task.id).state is State.TODO)
        wait_until(lambda: not is_alive(server))
    finally:
        os.close(held_open)
    assert outcomes(yard, task.id) == [("crash", grace.DIED)]


def test_a_server_that_is_killed_gives_back_at_once_on_a_local_directory(place: str, yard: Yard) -> None:
    task = yard.add("build", lease=3600)
    wire = Wire(place)
    wire.call("claim")
    wire.process.kill()
    wire.process.wait()
    claim = wait_until(yard.claim)
    assert claim.id == task.id
    claim.done()


def test_an_agent_that_reconnects_goes_on_under_a_new_fence(place: str, yard: Yard) -> None:
    task = yard.add("build", {"n": 1})
    first = Wire(place)
    old = first.told("claim")
    assert first.close() == 0
    assert yard.claim() is None, "in its grace the task is nobody else's"
    second = Wire(place)
    [claim] = second.told("resume")["claims"]
    assert claim["data"] == {"n": 1}
    assert claim["claim"] != old["claim"]
    assert second.told("done", result="ok") == {"done": claim["task"]}
    second.close()
    assert outcomes(yard, task.id) == [("resumed", "")] or yard.get(task.id).state is State.DONE
    assert [entry["event"] for entry in yard.events(task=task.id)] == ["added", "claimed", "claimed", "done"]


def test_an_agent_that_does_not_come_back_gives_back_after_the_grace(place: str, yard: Yard) -> None:
    task = yard.add("build")
    wire = Wire(place, "--grace", "0.3")
    wire.told("claim")
    wire.close()
    wait_until(lambda: yard.get(task.id).state is State.TODO)
    [(outcome, reason)] = outcomes(yard, task.id)
    assert (outcome, "not back after 0.3 s" in reason) == ("released", True)
    assert yard.get(task.id).attempts == 0


def test_an_agent_that_dies_in_the_grace_gives_back_at_once(place: str, yard: Yard) -> None:
    task = yard.add("build")
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    process = Process(dead.pid, "1")
    dead.wait()
    held = yard.claim(worker="ada", lease=3600)
    assert held is not None
    grace.keep(place, "ada", [held.handle], process, 3600)
    assert outcomes(yard, task.id) == [("crash", grace.DIED)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_is_a_disconnect_too(place: str, yard: Yard, number: int) -> None:
    task = yard.add("build")
    wire = Wire(place, "--grace", "0.1")
    wire.told("claim")
    wire.process.send_signal(number)
    assert wire.close() == 0
    wait_until(lambda: yard.get(task.id).state is State.TODO)
    assert outcomes(yard, task.id)[0][0] == "released"


def test_a_stopped_agents_server_keeps_its_task(place: str, yard: Yard) -> None:
    task = yard.add("build", lease=6)
    agent, _ = started(*command(place))
    agent.send_signal(signal.SIGSTOP)
    first = yard.get(task.id).lease_until
    wait_until(lambda: yard.get(task.id).lease_until != first)
    assert yard.claim() is None
    agent.kill()
    agent.wait()
    wait_until(lambda: yard.get(task.id).state is State.TODO)


def test_an_orphan_without_calls_renews_no_longer_than_its_limit(place: str, yard: Yard) -> None:
    task = yard.add("build", lease=1)
    wire = Wire(place, "--idle", "1")
    wire.told("claim")

    def lapsed() -> bool:
        yard.sweep()
        return yard.get(task.id).state is State.TODO

    wait_until(lapsed)
    assert "Next: stop that work" in wire.call("done", result="late")
    assert yard.get(task.id).state is State.TODO
    wire.close()


def test_what_was_asked_before_the_input_ended_is_answered(place: str, yard: Yard) -> None:
    task = yard.add("build")
    calls = [("claim", {}), ("done", {"result": 1})]
    lines = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name, "arguments": given}}
             for n, (name, given) in enumerate(calls)]  # fmt: skip
    for line in lines:  # one after the other: calls that come together are run together
        done = subprocess.run(
            command(place, "--worker", "ada"), input=json.dumps(line) + "\n", capture_output=True, text=True, check=True
        )
        answer: Any = json.loads(done.stdout)
        assert answer["id"] == line["id"]
    assert "resume()" in answer["result"]["content"][0]["text"]
    with taskyard.open(place, worker="ada") as again:
        again.resume()[0].done()
    assert yard.get(task.id).state is State.DONE


def test_calls_that_come_together_are_answered_in_their_order_though_they_have_one_id(place: str, yard: Yard) -> None:
    task = yard.add("build")
    calls = [("claim", {}), ("note", {"text": "half"}), ("done", {"result": 1}), ("show", {"task": task.id})]
    lines = [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
             for name, given in calls]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    ran = subprocess.run(command(place), input=text, capture_output=True, text=True, check=True)
    told = [json.loads(line)["result"]["content"][0]["text"] for line in ran.stdout.splitlines()]
    assert [next(iter(json.loads(each))) for each in told] == ["claim", "noted", "done", "task"]
    assert yard.get(task.id).result == 1


def test_a_server_within_a_workers_command_leaves_the_claim_to_the_worker(place: str, yard: Yard) -> None:
    task = yard.add("build")
    resume = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "resume"}})
    server = f"{sys.executable} -m taskyard mcp --grace 0"
    script = f"{sys.executable} -m taskyard resume; echo '{resume}' | {server} >&2; sleep 3; echo '{{\"told\": true}}'"
    ran = [sys.executable, "-m", "taskyard", "--yard", place, "work", "--once", "--", "sh", "-c", script]
    subprocess.run(ran, check=True, capture_output=True)
    assert outcomes(yard, task.id) == [("done", "")]
    assert yard.get(task.id).result == {"told": True}


def test_a_call_that_waits_holds_no_other_up(place: str) -> None:
    wire = Wire(place)
    waiting = wire.send("tools/call", {"name": "claim", "arguments": {"wait": 45}})
    begun = ticks()
    assert wire.told("ready")["ready"] == []
    assert ticks() - begun < 20
    wire.send("notifications/cancelled", {"requestId": waiting}, notify=True)
    wire.close()


def test_on_postgresql_a_claim_lives_with_its_agent_too() -> None:
    url = postgres.url()
    with taskyard.init(url, worker="boss") as yard:
        task = yard.add("build", lease=3600)
        agent, server = started(*command(url))
        agent.kill()
        agent.wait()
        wait_until(lambda: yard.get(task.id).state is State.TODO)
        wait_until(lambda: not is_alive(server))
        assert outcomes(yard, task.id) == [("crash", grace.DIED)]
        first = Wire(url)
        first.told("claim")
        assert first.close() == 0
        second = Wire(url)
        [claim] = second.told("resume")["claims"]
        assert second.told("done", result="ok") == {"done": claim["task"]}
        second.close()
        assert yard.get(task.id).result == "ok"


def test_a_cancelled_call_gets_no_answer_and_holds_nothing(place: str, yard: Yard) -> None:
    wire = Wire(place)
    number = wire.send("tools/call", {"name": "claim", "arguments": {"wait": 45}, "_meta": ENVELOPE})
    wire.send("notifications/cancelled", {"requestId": number}, notify=True)
    assert wire.ask("ping")["result"] == {}
    task = yard.add("build")
    wire.close()
    claim = wait_until(yard.claim)
    assert claim.id == task.id
    claim.done()


def test_without_a_yard_the_agent_is_told_so_and_goes_on_once_there_is_one(tmp_path: Path) -> None:
    url = str(tmp_path / "later")
    wire = Wire(url)
    assert wire.ask("tools/list")["result"]["tools"]
    assert ". Next: claim again" in wire.call("claim")
    with taskyard.init(url, worker="boss") as yard:
        yard.add("build")
        assert "claim" in wire.told("claim")
    wire.told("done")
    wire.close()


def test_garbage_on_the_input_is_answered_and_survived(place: str) -> None:
    wire = Wire(place)
    assert wire.process.stdin is not None
    for garbage in (b"nonsense\n", b"\n", b"[]\n", b"\xff\xfe\n", b"3\n", b'{"jsonrpc":"2.0"}\n'):
        wire.process.stdin.write(garbage)
    wire.process.stdin.flush()
    codes = [wire.receive()["error"]["code"] for _ in range(5)]
    assert codes == [-32700, -32600, -32700, -32600, -32600]
    assert wire.ask("ping")["result"] == {}
    wire.process.stdin.write(b"x" * (40 << 20) + b"\n")
    assert wire.receive()["error"]["code"] == -32600
    assert wire.ask("ping")["result"] == {}, "one answer to one line, however long it was"
    wire.close()


def test_a_refusal_is_one_line_though_the_error_has_many(tmp_path: Path) -> None:
    yard = tmp_path / "one\ntwo"
    wire = Wire(str(yard))
    text = wire.call("claim")
    assert "\n" not in text
    assert ". Next: " in text
    wire.close()


def test_two_servers_of_one_agent_have_one_name_and_a_given_name_wins(place: str, yard: Yard) -> None:
    for _ in range(3):
        yard.add("build")
    wires = [Wire(place), Wire(place), Wire(place, "--worker", "ada")]
    for wire in wires:
        wire.told("claim")
    names = sorted(str(task.worker) for task in yard.find(state="processing"))
    assert "ada" in names
    own = Process.of(os.getpid())
    assert own is not None
    assert names.count(own.worker_name()) == 2
    for wire in wires:
        wire.told("release")
        wire.close()
