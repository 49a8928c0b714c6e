"""A yard behind a gateway has a spool only where one is asked for; it is replayed once only, also after lost answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Away
from tests.conftest import taken
from tests.processes import tools
from tests.spool.conftest import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.postgres import Server


@contextmanager
def serving(yard: str, port: int = 0) -> Iterator[int]:
    """A gateway in a process of its own; its port."""
    words = [sys.executable, "-m", "taskyard", "serve", "--yard", yard, "--port", str(port)]
    with subprocess.Popen(
        words, env=tools.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as gateway:
        assert gateway.stdout
        found = None
        while found is None:
            line = gateway.stdout.readline()
            assert line, "the gateway has ended"
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        try:
            yield int(found[1])
        finally:
            gateway.kill()


def test_it_is_off_unless_a_place_is_named(tmp_path: Path) -> None:
    taskyard.init(tmp_path / "yard").close()
    with serving(str(tmp_path / "yard")) as port:
        pass
    with taskyard.open(f"http://127.0.0.1:{port}/default") as yard, pytest.raises(Away):
        yard.add("build")


def test_what_is_said_while_the_gateway_is_gone_reaches_the_yard_once(tmp_path: Path, folder: Path) -> None:
    near = taskyard.init(tmp_path / "yard")
    near.add("held")
    with serving(near.url) as port:
        yard = taskyard.open(f"http://127.0.0.1:{port}/default", worker="ada")
        claim = taken(yard.claim())
    first = yard.add("build", {"n": 1})
    many = yard.add_many([{"kind": "a", "ref": "x"}, {"kind": "b", "after": ["x", first.id]}])
    claim.done({"good": True})
    assert first.spooled
    assert many.spooled
    assert len(files(folder)) == 3
    whole = [file.read_text() for file in files(folder)]
    with serving(near.url, port):
        assert yard.replay_spool()["replayed"] == 3
        for number, text in enumerate(whole):  # as if the process had been killed before it could remove them
            place = next(folder.iterdir()) / "todo"
            place.mkdir(exist_ok=True)
            (place / f"{number:020d}.json").write_text(text)
        assert yard.replay_spool()["replayed"] == 3
    assert near.get(claim.id).result == {"good": True}
    found = {task.kind: near.get(task.id) for task in near.find()}
    assert sorted(found) == ["a", "b", "build", "held"]
    assert sorted(found["b"].after) == sorted([found["a"].id, found["build"].id])
    assert json.loads(whole[0])["sent"]["key"]
    yard.close()
    near.close()


def test_what_a_token_does_not_allow_waits_for_one_that_does(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.init(tmp_path / "yard") as near:
        near.add("held")
        worker, reader = (near.new_token(name, scope=name)["token"] for name in ("work", "read"))
        monkeypatch.setenv("TASKYARD_TOKEN", worker)
        with serving(near.url) as port:
            yard = taskyard.open(f"http://127.0.0.1:{port}/default", worker="ada")
            claim = taken(yard.claim())
        with yard:
            first = yard.add("build")
            yard.add("ship", after=[first.id])
            claim.done({"good": True})
        with serving(near.url, port):
            for token in ("", "ty_nonsense", reader):
                monkeypatch.setenv("TASKYARD_TOKEN", token)
                with taskyard.open(yard.url) as other:
                    told = other.replay_spool()
                    assert (told["left"], told["failed"]) == (3, 0)
                    assert any("token" in notice for notice in other.notices)
            monkeypatch.setenv("TASKYARD_TOKEN", worker)
            with taskyard.open(yard.url) as other:
                assert other.spool()["entries"] == []
        assert near.get(claim.id).state == "done"
        assert sorted(task.kind for task in near.find(state=("todo", "blocked"))) == ["build", "ship"]


def test_a_gateway_whose_database_is_away_spools_nothing_and_its_client_may(
    server: Server, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(url) as port, taskyard.open(f"http://127.0.0.1:{port}/default") as yard:
        yard.add("build")
        server.stop()
        assert yard.add("build").spooled
        assert len(files(folder)) == 1
        monkeypatch.setenv("TASKYARD_SPOOL", "off")
        with taskyard.open(f"http://127.0.0.1:{port}/default") as other, pytest.raises(taskyard.Unavailable):
            other.add("build")
        server.start()
        yard.replay_spool()
        assert yard.counts()["todo"] == 2
