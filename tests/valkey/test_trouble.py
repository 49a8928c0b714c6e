"""Valkey lost, frozen, cut off, emptied, deaf or full of lies: work goes on from PostgreSQL, and back again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import taskyard
from taskyard.stores.postgres.valkey import source as sources
from tests.conftest import taken, wait_until
from tests.processes import tools
from tests.servers import postgres, valkey
from tests.valkey.waiting import Claimer, is_live

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

    Deed = Callable[[valkey.Server, Any], object]


def planted(server: valkey.Server, client: Any) -> None:
    """Wrong types, wrong ids and wrong words in every key there is, and in those that could be."""
    project = next(iter(client.scan_iter("taskyard:*generation"))).partition("}")[0]
    for name in ("generation", "cursor", "leader", "sent", "ready:5:*", "ready:5:build", "held_back"):
        client.delete(f"{project}}}:{name}")
        client.rpush(f"{project}}}:{name}", "nonsense")
    for priority in range(5):
        client.zadd(f"{project}}}:ready:{priority}:*", {"not an id": 0, "00000000000000000": 1, b"\xff\xfe": 2})


def other_words(server: valkey.Server, client: Any) -> None:
    for key in client.scan_iter("taskyard:*"):
        if client.type(key) == "string":
            client.set(key, "1/9:9:" if key.endswith("cursor") else "other words")


FAULTS: dict[str, tuple[Deed, Deed]] = {
    "killed": (lambda server, _: server.stop(), lambda server, _: server.start()),
    "frozen": (lambda server, _: server.freeze(), lambda server, _: server.thaw()),
    "cut off": (lambda server, _: server.cut(), lambda server, _: server.join()),
    "emptied": (lambda _, client: client.flushall(), lambda *_: None),
    "its clients killed": (
        lambda _, client: [client.client_kill_filter(_type=sort, skipme=True) for sort in ("normal", "pubsub")],
        lambda *_: None,
    ),
    "its keys planted": (planted, lambda *_: None),
    "its words exchanged": (other_words, lambda *_: None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_waiting_claim_gets_its_task_in_trouble_and_after_it(
    server: valkey.Server, url: str, yard: Yard, client: Any, fault: str
) -> None:
    strike, heal = FAULTS[fault]
    with taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        strike(server, client)
        id = yard.add("build").id
        assert claimer.got().task.id == id
        claimer = Claimer(other)
        heal(server, client)
        wait_until(lambda: is_live(other) and claimer.source._popping)
        id = yard.add("build").id
        assert claimer.got().task.id == id


@pytest.mark.parametrize("deaf", ["messages", "hints"])
def test_a_client_that_is_connected_and_deaf_is_found_and_replaced(
    yard: Yard, url: str, client: Any, monkeypatch: pytest.MonkeyPatch, deaf: str
) -> None:
    monkeypatch.setattr(sources, "BEAT", 0.2)
    monkeypatch.setattr(sources, "LEADERS_BEAT", 0.2)
    with taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        before = claimer.source._ear
        if deaf == "messages":
            before.send(("UNSUBSCRIBE",))
        else:  # it waits for the list of another process, as after a reconnect under a wrong name
            claimer.source._incarnation = "another"
        wait_until(lambda: claimer.source._ear not in (before, None))
        claimer.asleep()
        id = yard.add("build").id
        assert claimer.got().task.id == id


def test_a_server_that_is_nowhere_costs_one_warning(
    plain: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{plain}&valkey={quote('valkey://ann:sesame@127.0.0.1:1/0', safe='')}"
    with taskyard.open(url, worker="ada") as yard:
        yard.add("build")
        claim = taken(yard.claim())
        claim.heartbeat()
        claim.note("x")
        claim.done()
        with pytest.raises(taskyard.TimedOut):
            yard.wait(yard.add("build").id, timeout=0.01)
    [warning] = [record.getMessage() for record in caplog.records]
    assert "valkey://127.0.0.1:1/0" in warning
    assert "sesame" not in warning


def test_a_command_goes_on_and_says_so_once_on_stderr(plain: str) -> None:
    url = f"{plain}&valkey={quote('unix:///nowhere', safe='')}"
    answer = tools.taskyard(url, "add", "build")
    assert answer.data["created"]
    assert answer.err.count("\n") == 1
    assert "/nowhere" in answer.err
    told = tools.taskyard(url, "doctor")
    checks = {check["check"]: check for check in told.data["checks"]}
    assert (told.code, checks["valkey"]["verdict"]) == (0, "warn")


def test_a_server_that_is_frozen_holds_up_no_verb_for_long(server: valkey.Server, yard: Yard) -> None:
    yard.add("build")
    server.freeze()
    try:
        for _ in range(5):
            taken(yard.claim()).release()
        store: Any = yard._store
        assert store.hints.server.rests() > 0
    finally:
        server.thaw()


def test_a_command_without_valkey_does_not_load_its_library(plain: str, url: str) -> None:
    program = "import sys, taskyard; y = taskyard.open(sys.argv[1]); y.add('x'); print('valkey' in sys.modules)"
    loaded = [
        subprocess.run([sys.executable, "-c", program, each], capture_output=True, text=True, check=True).stdout
        for each in (plain, url)
    ]
    assert loaded == ["False\n", "True\n"]


def test_a_forked_child_has_connections_of_its_own(yard: Yard, client: Any) -> None:
    yard.add("build")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            yard.add("test")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    yard.add("build")
    project = yard.url.partition("project=")[2].partition("&")[0]
    assert client.zcard(f"taskyard:{{{project}}}:ready:5:*") == 3


def test_a_user_with_the_rights_that_the_page_names_is_served_and_one_without_is_not(plain: str) -> None:
    page = (Path(__file__).parents[2] / "docs/valkey.md").read_text(encoding="utf-8")
    rights = page.partition("ACL SETUSER taskyard ")[2].partition("\n")[0].replace(">SECRET", ">sesame").split()
    with valkey.Server() as server, server.client() as client:
        client.execute_command("ACL", "SETUSER", "taskyard", *rights)
        client.execute_command("ACL", "SETUSER", "poor", "on", ">sesame", "~*", "&*", "+get", "+set")
        for user, verdict in (("taskyard", "green"), ("poor", "warn")):
            address = f"unix://{user}:sesame@{server.socket}"
            url = f"{plain}&valkey={quote(address, safe='')}"
            checks = {check["check"]: check for check in tools.taskyard(url, "doctor").data["checks"]}
            assert checks["valkey"]["verdict"] == verdict, checks["valkey"]
            with taskyard.open(url, worker="ada") as yard, taskyard.open(url, worker="bob") as other:
                claimer = Claimer(other)
                if user == "taskyard":
                    claimer.asleep()
                yard.add("build")
                claimer.got().done()


def test_a_url_says_where_the_server_is(plain: str) -> None:
    assert postgres.url("x", valkey="redis://h:1/2").endswith("valkey=redis%3A//h%3A1/2")
    with taskyard.open(plain) as yard:
        assert yard._store.hints is None
