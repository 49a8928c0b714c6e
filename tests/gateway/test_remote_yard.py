"""A yard behind a gateway is a yard: claims, workers and commands run on it unchanged, and each verb is one request."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, Unavailable, Worker, Yard
from taskyard.port import YardPort
from taskyard.remote import routes
from taskyard.remote.yard import RemoteYard
from taskyard.worker.command import Command
from tests.conftest import taken, wait_until
from tests.test_imports import CLAIM, SLOW

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Job
    from tests.servers.gateway import Running

# Verbs of the port that are no request: what this process knows by itself, or what only the yard's own process can do.
NO_REQUEST = {
    "workdir", "tidy", "waiter", "wake", "tend", "alarm", "vouch", "give_back_dead", "follow", "acting_for", "granted", "close",
    "get", "token_digests", "tend_spool", "is_spooled", "spool", "replay_spool", "lead", "resign", "refill", "reassign",
    "claim_waiter",
}  # fmt: skip


def verbs(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_every_verb_of_the_port_has_a_route_and_every_route_an_action() -> None:
    from taskyard.doors.gateway import actions, waiting

    assert verbs(YardPort) - NO_REQUEST == {route.verb for route in routes.ROUTES} - {"changes", "facts"}
    assert {*actions.CALLS, *waiting.WAITING} == {route.verb for route in routes.ROUTES}


def test_a_far_yard_has_every_verb_of_a_near_one_with_the_same_arguments() -> None:
    assert verbs(RemoteYard) >= verbs(Yard) - {"wait_for_mission"}
    for name in sorted(verbs(YardPort)):
        near, far = (inspect.signature(getattr(kind, name)).parameters for kind in (YardPort, RemoteYard))
        assert [*far] == [*near], name


def test_each_verb_of_a_claim_is_one_request(near: Yard, gateway: Running, far: Yard) -> None:
    asked = gateway.gateway.asked
    id = near.add("build", {"n": 1}).id
    claim = taken(far.claim())
    assert (claim.task.data, claim.fence, claim.task.worker) == ({"n": 1}, 1, "ada")
    assert asked == ["claim"]
    claim.note("half way")
    claim.heartbeat(progress=0.5)
    claim.done({"ok": True})
    assert asked == ["claim", "heartbeat", "heartbeat", "done"]
    claim.done({"ok": True})  # a lost reply is safe to repeat
    with pytest.raises(Conflict):
        claim.done("another")
    assert near.get(id).result == {"ok": True}


def test_the_log_names_the_worker_that_asked_and_not_the_gateway(near: Yard, far: Yard) -> None:
    id = far.add("build").id
    taken(far.claim()).release()
    far.cancel(id, "not needed")
    assert {event["by"] for event in near.events(task=id)} == {"ada"}


def test_a_late_verb_is_refused_by_the_other_side(near: Yard, far: Yard) -> None:
    id = near.add("build").id
    claim = taken(far.claim(lease=60))
    near.cancel(id)
    with pytest.raises(ClaimLost):
        claim.heartbeat()
    assert not claim.holds()


def test_a_block_on_a_far_claim_ends_its_task(near: Yard, far: Yard) -> None:
    id = near.add("build", max_attempts=1).id
    with pytest.raises(ValueError, match="broken"), taken(far.claim()):
        raise ValueError("broken")
    assert near.get(id).error == "ValueError: broken"


def test_a_worker_drains_a_far_yard(near: Yard, gateway: Running, far: Yard) -> None:
    near.add_many([{"kind": "build", "data": number} for number in range(20)])
    broken = near.add("break", max_attempts=1).id
    worker = Worker(far)

    @worker.handles("build")
    def build(job: Job) -> Any:
        return {"twice": 2 * job.data}

    @worker.handles("break")
    def fall_over(job: Job) -> None:
        raise ValueError("broken")

    assert worker.run(drain=True, concurrency=3).as_dict() == {"done": 20, "failed": 1}
    assert near.counts()["done"] == 20
    assert str(near.get(broken).error).startswith("ValueError: broken")
    assert {"claim_many", "done", "remains", "fail"} <= set(gateway.gateway.asked)


def test_an_idle_worker_wakes_for_a_new_task_and_ends_when_told(near: Yard, far: Yard) -> None:
    import threading

    worker = Worker(far)
    seen: list[str] = []

    @worker.handles("build")
    def build(job: Job) -> None:
        seen.append(job.id)
        worker.stop()

    running = threading.Thread(target=worker.run)
    running.start()
    wait_until(near._store.reasons.asked)  # it has looked
    id = near.add("build").id
    running.join(50)
    assert not running.is_alive()
    assert seen == [id]


def test_a_command_runs_for_a_far_task(near: Yard, far: Yard) -> None:
    id = near.add("build").id
    worker = Worker(far)
    worker._register(Command(["sh", "-c", 'echo "{\\"claim\\": \\"$TASKYARD_CLAIM\\"}"']), ())
    worker.run(once=True)
    assert near.get(id).result["claim"].startswith(id)


def cli(url: str, *words: str) -> tuple[int, Any]:
    run = subprocess.run(
        [sys.executable, "-m", "taskyard", "--yard", url, "--json", *words], capture_output=True, text=True, check=False
    )
    return run.returncode, json.loads(run.stdout)


def test_the_command_line_works_through_a_gateway(near: Yard, gateway: Running) -> None:
    url = gateway.url()
    code, told = cli(url, "add", "build", "--data", '{"n": 1}')
    assert (code, told["data"]["created"]) == (0, True)
    id = told["data"]["task"]["id"]
    code, told = cli(url, "claim", "--worker", "bob")
    assert (code, told["data"]["task"]["id"], told["data"]["workdir"]) == (0, id, None)
    assert cli(url, "done", told["data"]["claim"], "--result", "[1]")[0] == 0
    assert cli(url, "show", id)[1]["data"]["task"]["result"] == [1]
    code, told = cli(url, "claim")
    assert (code, told["error"]["code"]) == (3, "nothing_ready")
    assert cli(url, "show", "0-zzzz")[0] == 6


def test_a_gateway_that_is_away_is_exit_8(near: Yard, gateway: Running) -> None:
    gateway.stop()
    code, told = cli(gateway.url(), "ready")
    assert (code, told["error"]["code"]) == (8, "unavailable")


def test_a_project_that_is_not_served_is_exit_8(gateway: Running) -> None:
    code, told = cli(gateway.url("nowhere"), "ready")
    assert (code, told["error"]["code"]) == (8, "unavailable")
    assert "'nowhere'" in told["error"]["message"]


def test_what_answers_and_is_no_gateway_is_unavailable() -> None:
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as line:

        def answer() -> None:
            guest, _ = line.accept()
            with guest:
                guest.recv(4096)
                guest.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{line.getsockname()[1]}"
        with taskyard.open(url) as yard, pytest.raises(Unavailable, match="no gateway"):
            yard.counts()


@pytest.mark.parametrize(
    "url",
    ["http://:1/a", "http://host:x", "http://host:99999", "http://u:p@host:1/a", "http://host:1/a/b", "http://h:1/a?b"],
)
def test_a_url_that_names_no_gateway_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        taskyard.open(url)


def test_a_one_shot_claim_through_a_gateway_imports_nothing_slow(near: Yard, gateway: Running) -> None:
    near.add("build", {"n": 1})
    run = subprocess.run(
        [sys.executable, "-S", "-c", CLAIM, gateway.url()], env=_path(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    slow = (*SLOW, "http.client", "urllib.request", "email", "ssl", "asyncio", "msgspec", "starlette")
    assert [name for name in slow if name in run.stdout.split()] == []


def _path() -> dict[str, str]:
    import os

    from tests.test_imports import ROOT

    return {**os.environ, "PYTHONPATH": str(ROOT.parent)}


def test_several_yards_are_served_under_their_names(near: Yard, gateway: Running, tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "other", durability="fast") as other:
        with taskyard.open(gateway.serve("lab/1", other).replace("lab/1", "lab%2F1"), worker="ada") as lab:
            lab.add("study")
        assert other.counts()["todo"] == 1
        assert near.counts()["todo"] == 0
        gateway.drop("lab/1")
