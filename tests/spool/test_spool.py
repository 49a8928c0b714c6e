"""Adds and endings while PostgreSQL is away: kept, replayed in order and once only, refused where they must be."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core.draft import PAYLOAD_MOST
from taskyard.spool import place
from taskyard.stores.postgres.address import Address
from tests.conftest import taken, wait_until
from tests.processes import tools
from tests.spool.conftest import files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.postgres import Server
    from tests.spool.conftest import Ask


def test_adds_and_endings_are_kept_and_replayed_by_the_next_command(server: Server, ask: Ask) -> None:
    ids = [ask("add", "build")["task"]["id"] for _ in range(2)]
    first, second = (ask("claim", id)["claim"] for id in ids)
    server.stop()
    alone = ask("add", "deploy", "--data", '{"n": 1}', "--key", "one")
    assert alone["spooled"] is True
    assert alone["created"] is True
    after = ask("add", "ship", "--after", alone["task"]["id"] + ":run", "--delay", "1h")
    many = ask("add", "--from", "-", stdin='{"kind": "a", "ref": "x"}\n{"kind": "b", "after": ["x"]}\n')
    assert many["spooled"] is True
    assert many["created"] == 2
    ended = ask("done", first, "--result", '{"good": true}')
    assert ended["spooled"] is True
    assert ended["task"]["id"] == ids[0]
    assert ask("fail", second, "--reason", "no", "--no-retry")["spooled"] is True
    for words in (["claim"], ["list"], ["ready"], ["show", ids[0]], ["stats"], ["release", first]):
        assert ask(*words, code=8)["code"] == "unavailable"
    shown = ask("spool")["entries"]
    assert [entry["verb"] for entry in shown] == ["add", "add", "add", "done", "fail"]
    assert {entry["state"] for entry in shown} == {"pending"}
    server.start()
    listed = {task["id"]: task["state"] for task in ask("list")["tasks"]}
    assert ask("spool")["entries"] == []
    assert listed == {
        ids[0]: "done",
        ids[1]: "failed",
        alone["task"]["id"]: "todo",
        after["task"]["id"]: "blocked",
        many["ids"][0]: "todo",
        many["ids"][1]: "blocked",
    }
    told = ask("show", ids[0])["task"]
    assert told["result"] == {"good": True}
    waits = ask("show", after["task"]["id"])["task"]
    assert waits["not_before"] == after["task"]["not_before"], "a delay counts from the add, not from the replay"
    assert waits["after"] == [{"id": alone["task"]["id"], "on_failure": "run"}]
    assert ask("fsck")["verdict"] == "clean"


def test_without_an_outage_there_is_nothing_in_the_spool(ask: Ask, folder: Path) -> None:
    ask("add", "build")
    ask("done", ask("claim")["claim"])
    assert [list(place.iterdir()) for place in folder.iterdir()] == [[]]


def test_python_opens_a_yard_that_is_away_if_it_was_reached_from_here_before(
    server: Server, url: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taskyard.open(url).close()
    server.stop()
    with taskyard.open(url) as yard:
        assert yard.add("build").spooled
        assert yard.label == Address(url).label
        with pytest.raises(taskyard.Away):
            yard.claim()
        server.start()
        assert wait_until(lambda: _todo(yard)) == 1, "the yard is opened as soon as its server is there"
    assert not files(folder)
    server.stop()
    monkeypatch.setenv("TASKYARD_SPOOL", str(tmp_path / "another machine"))
    with pytest.raises(taskyard.Away):
        taskyard.open(url)


def _todo(yard: taskyard.Yard) -> int:
    try:
        yard.tend()
        return yard.counts()["todo"]
    except taskyard.Away:
        return 0


def test_an_add_after_a_spooled_one_finds_it_however_long_the_spool_is(
    server: Server, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard.spool.yard.SHARE", 1)
    with taskyard.open(url) as yard:
        server.stop()
        kept = [yard.add("build") for _ in range(4)]
        assert all(task.spooled for task in kept)
        server.start()
        last = yard.add("ship", after=[kept[-1].id])
        assert not last.spooled
        assert last.state == "blocked"
        assert not files(folder)


def test_a_stale_ending_is_kept_as_a_stale_result(server: Server, ask: Ask, folder: Path) -> None:
    id = ask("add", "build")["task"]["id"]
    late = ask("claim", "--worker", "ada")["claim"]
    server.stop()
    ask("done", late, "--result", '"too late"')
    server.start()
    new = ask("resume", "--worker", "ada", spool="off")["claims"][0]["claim"]
    ask("done", new, "--result", '"in time"', spool="off")
    told = ask("spool", "replay")
    assert (told["stale"], told["replayed"], told["failed"], told["entries"]) == (1, 0, 0, [])
    shown = ask("show", id)
    assert shown["task"]["result"] == "in time"
    assert [stale["result"] for stale in shown["stale_results"]] == ["too late"]
    assert not files(folder)


def test_a_key_conflict_is_reported_and_replayed_once_it_is_put_right(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    ask("add", "build", "--key", "k", "--data", "1")
    ask("add", "build", "--key", "k", "--data", "2")
    ask("add", "other")
    server.start()
    told = ask("spool", "--replay")
    assert (told["replayed"], told["failed"]) == (2, 1)
    [refused] = told["entries"]
    assert refused["state"] == "failed"
    assert refused["error"]["code"] == "conflict"
    assert "'k'" in refused["error"]["message"]
    assert ask("spool")["entries"] == [refused]
    assert sorted(task["kind"] for task in ask("list")["tasks"]) == ["build", "other"]
    [file] = files(folder, "failed")
    entry = json.loads(file.read_text())
    entry["tasks"][0]["key"] = "another"
    file.write_text(json.dumps(entry))
    again = ask("spool", "replay", "--failed")
    assert (again["replayed"], again["entries"]) == (1, [])
    assert ask("stats")["counts"]["todo"] == 3


def test_the_same_key_and_body_twice_is_one_task(server: Server, ask: Ask) -> None:
    there = ask("add", "build", "--key", "k")["task"]["id"]
    server.stop()
    for _ in range(2):
        ask("add", "build", "--key", "k")
    server.start()
    assert ask("spool", "replay")["failed"] == 0
    assert [task["id"] for task in ask("list")["tasks"]] == [there]


def test_bad_input_is_refused_also_while_the_database_is_away(server: Server, ask: Ask) -> None:
    server.stop()
    ask("add", "not a kind!", code=2)
    ask("add", "build", "--priority", "12", code=2)
    ask(
        "add",
        "--from",
        "-",
        stdin='{"kind": "a", "ref": "x", "after": ["y"]}\n{"kind": "b", "ref": "y", "after": ["x"]}',
        code=2,
    )
    ask("done", "nonsense", code=2)
    assert ask("spool")["entries"] == []


def test_an_order_of_adds_and_endings_that_a_full_yard_would_stop_goes_on_with_the_endings(
    server: Server, url: str, ask: Ask
) -> None:
    with taskyard.open(url) as yard:
        yard.set_settings({"max_todo": 1})
        yard.add("build")
        claim = taken(yard.claim())
        yard.add("build")
        server.stop()
        assert yard.add("build").spooled
        claim.done()
        server.start()
    told = ask("spool", "replay")
    assert (told["replayed"], told["left"], told["failed"]) == (1, 1, 0)
    ask("claim")
    assert ask("spool", "replay")["entries"] == []


def test_a_done_that_names_a_check_waits_for_a_replay_that_was_asked_for(
    server: Server, url: str, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.open(url) as yard:
        yard.set_settings({"checks": {"here": ["test", "-e", "proof"]}})
    id = ask("add", "build", "--verify", "here")["task"]["id"]
    handle = ask("claim")["claim"]
    (tmp_path / "proof").touch()
    monkeypatch.chdir(tmp_path)
    server.stop()
    assert ask("done", handle)["spooled"] is True
    server.start()
    monkeypatch.chdir("/")
    assert ask("show", id)["task"]["state"] == "processing", "no command runs a check unasked"
    assert ask("spool", "replay")["replayed"] == 1
    assert ask("show", id)["task"]["evidence"] == "verified"


def test_a_manifest_that_cannot_be_read_holds_up_no_other(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    ask("add", "a")
    ask("add", "b")
    server.start()
    files(folder)[0].write_text("{torn")
    told = ask("spool", "replay")
    assert (told["replayed"], told["failed"]) == (1, 1)
    assert told["entries"][0]["error"]["code"] == "invalid"
    assert files(folder, "failed")[0].read_text() == "{torn", "what cannot be read is kept as it is"


def test_an_entry_that_makes_no_sense_keeps_nobody_from_work(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    ask("add", "a")
    ask("add", "b")
    server.start()
    first = files(folder)[0]
    first.write_text(json.dumps({**json.loads(first.read_text()), "sent": {"nonsense": 1}}))
    assert ask("claim")["task"]["kind"] == "b"
    [refused] = ask("spool")["entries"]
    assert (refused["state"], refused["error"]["code"]) == ("failed", "internal")


def test_entries_that_have_to_wait_hold_up_none_behind_them(
    server: Server, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard.spool.yard.SHARE", 2)
    with taskyard.open(url) as yard:
        yard.set_settings({"max_todo": 1})
        yard.add("build")
        claim = taken(yard.claim())
        yard.add("build")
        server.stop()
        for _ in range(3):
            yard.add("build")
        claim.done()
    server.start()
    with taskyard.open(url) as yard:
        assert yard.get(claim.id).state == "done"
        assert len(files(folder)) == 3


def test_a_spool_that_cannot_be_replayed_keeps_nobody_from_work(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    ask("add", "a")
    server.start()
    [place] = folder.iterdir()
    (place / "todo").rename(place / "kept")
    (place / "todo").write_text("no folder")
    ask("add", "b")
    assert ask("claim")["task"]["kind"] == "b"


def test_the_largest_payload_fits(server: Server, url: str, folder: Path) -> None:
    large = "x" * (PAYLOAD_MOST - 2)
    with taskyard.open(url) as yard:
        yard.add("build")
        claim = taken(yard.claim())
        server.stop()
        task = yard.add("build", large)
        claim.done(large)
        server.start()
        yard.replay_spool()
        assert yard.get(task.id).data == large
        assert yard.get(claim.id).result == large
        assert not files(folder)


def test_off_means_exit_8(server: Server, ask: Ask, folder: Path) -> None:
    handle = ask("add", "build") and ask("claim")["claim"]
    server.stop()
    assert ask("add", "build", code=8, spool="off")["code"] == "unavailable"
    assert ask("done", handle, code=8, spool="off")["code"] == "unavailable"
    assert not files(folder)
    server.start()
    assert ask("spool", spool="off")["path"] is None


def test_a_yard_that_is_missing_is_no_yard_that_is_away(server: Server, ask: Ask, folder: Path) -> None:
    missing = server.url("nobody-made-this")
    assert ask("add", "build", "--yard", missing, code=8)["code"] == "unavailable"
    role = missing.replace("taskyard@", "nobody@")
    assert ask("add", "build", "--yard", role, code=8)["code"] == "unavailable"
    assert not files(folder)


def test_a_spool_that_cannot_be_written_is_exit_8(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("a file is in the way")
    assert "cannot be written" in ask("add", "build", code=8)["message"]


def test_the_spool_is_for_its_owner_alone(server: Server, ask: Ask, folder: Path) -> None:
    server.stop()
    ask("add", "build", "--data", '"secret"')
    [file] = files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700
    file.parent.parent.chmod(0o777)
    assert ask("add", "build", code=2)["code"] == "invalid", "others could write what is replayed as this user's"
    server.start()
    assert ask("list")["tasks"] == []
    file.parent.parent.chmod(0o700)
    assert len(ask("list")["tasks"]) == 1


def test_a_spool_lies_in_the_state_folder_by_url_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TASKYARD_SPOOL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def folder(url: str) -> str:
        return place.folder(Address(url).identity) or ""

    plain = folder("postgresql://ann@db:5433/work?project=docs")
    assert plain.startswith(f"{tmp_path}/taskyard/spool/")
    assert plain == folder("postgresql://ann:secret@db:5433/work?project=docs&connect_timeout=3")
    assert plain != folder("postgresql://ann@db:5433/work?project=other")
    assert plain != folder("postgresql://bob@db:5433/work?project=docs")
    assert "secret" not in folder("postgresql://ann:secret@db/work?password=secret")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert folder("postgresql://db/work").startswith("/home/ann/.local/state/taskyard/spool/")
    assert place.folder("http://host/p", asked=True) is None
    monkeypatch.setenv("TASKYARD_SPOOL", "off")
    assert place.folder("db/work") is None


def test_a_directory_needs_no_spool(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard") as yard:
        assert yard.spool() == {"path": None, "entries": []}
        assert yard.replay_spool()["replayed"] == 0


def test_python_and_a_worker_go_on_through_an_outage(server: Server, url: str, folder: Path) -> None:
    code = """
import sys, taskyard
yard = taskyard.open(sys.argv[1], worker="ada")
claim = yard.claim()
print("claimed", flush=True)
sys.stdin.readline()
claim.done({"by": "ada"})
print(yard.is_spooled(claim.ref), flush=True)
sys.stdin.readline()
"""
    with taskyard.open(url) as yard:
        task = yard.add("build")
    environment = {**tools.environment(), "TASKYARD_SPOOL": str(folder)}
    worker = subprocess.Popen(
        [sys.executable, "-c", code, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert worker.stdin
    assert worker.stdout
    assert worker.stdout.readline() == "claimed\n"
    server.stop()
    worker.stdin.write("\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "True\n"
    worker.kill()
    worker.communicate()
    server.start()
    with taskyard.open(url) as yard:
        assert yard.get(task.id).result == {"by": "ada"}, "an ending outlives the worker that was killed"
    assert os.listdir(folder)
