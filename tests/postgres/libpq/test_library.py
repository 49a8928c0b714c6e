"""Which libpq is loaded, what happens without one, and what a command loads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import taskyard
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.libpq import library
from taskyard.stores.postgres.libpq.connection import LibpqConnection
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.servers import postgres

COMMAND = """
import sys
before = {*sys.modules}  # what the interpreter's own site has brought
from taskyard.doors.cli import main
code = main(sys.argv[1:])
print(code, *({*sys.modules} - before), file=sys.stderr)
"""
UNWANTED = {
    "psycopg", "psycopg_binary", "asyncio", "socket", "ssl", "inspect", "dataclasses", "typing", "contextlib", "urllib", "subprocess", "json", "re", "hashlib",
}  # fmt: skip
MAY = {"show 0": {"json", "re"}, "settings": {"json", "re"}, "add build --key k": {"json", "re", "hashlib"}}
VERBS = (
    "prime", "ready", "list", "show 0", "stats", "why", "log", "add build", "add build --key k", "claim", "note CLAIM word",
    "heartbeat CLAIM", "release CLAIM", "claim", "fail CLAIM --reason no", "claim", "done CLAIM --result 1",
    "wait DONE", "resume", "claim --kind nothing --wait 0.1", "settings", "pause", "unpause",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_found", [])


def connected() -> Any:
    connection = driver.connect_briefly(Address(postgres.url()))
    assert connection.rows("SELECT 1", {}) == [(1,)]
    connection.close()
    return type(connection)


def test_a_one_shot_command_loads_no_psycopg_and_no_asyncio() -> None:
    url = postgres.url()
    taskyard.init(url).close()
    claim = done = ""
    environment = {**os.environ, "TASKYARD": url, "TASKYARD_WORKER": "ada"}
    for verb in VERBS:
        words = verb.replace("CLAIM", claim).replace("DONE", done).split()
        ran = subprocess.run(
            [sys.executable, "-c", COMMAND, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        code, *loaded = ran.stderr.splitlines()[-1].split()
        assert code in ("0", "3", "6"), f"{verb}: {ran.stderr[:500]}"
        assert "taskyard.stores.postgres.libpq.connection" in loaded, verb
        assert not UNWANTED & {*loaded} - MAY.get(verb, set()), verb
        if verb == "claim":
            claim = ran.stdout.split()[1]
            done = claim.partition(".")[0]


def test_the_wheels_libpq_comes_first_and_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_SYSTEM", ())
    assert connected() is LibpqConnection
    assert library.load() is library.load()


def test_whoever_wants_another_psycopg_is_not_given_the_wheels_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSYCOPG_IMPL", "python")
    assert list(library._candidates()) == list(library._SYSTEM)


def test_without_a_libpq_or_with_one_that_does_not_fit_psycopg_connects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    broken = tmp_path / "libpq.so.5"
    broken.write_bytes(b"\x7fELF of another machine")
    for candidates in ([], [str(tmp_path / "missing.so")], [str(broken)], ["libc.so.6"]):
        monkeypatch.setattr(library, "_found", [])
        monkeypatch.setattr(library, "_candidates", lambda found=candidates: iter(found))
        assert connected() is WatchedConnection


def test_one_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_OLDEST", 990000)
    assert connected() is WatchedConnection


def test_where_callbacks_are_forbidden_psycopg_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(library, "_SILENT", forbidden)
    assert connected() is WatchedConnection
