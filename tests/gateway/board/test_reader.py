"""The process that reads for boards: it answers as the gateway would, is replaced if it dies, and ends with the gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.core.abandonment import Abandoned, Abandonment
from taskyard.core.errors import NotFound, Unavailable
from taskyard.doors.gateway.board import questions, reader_process
from taskyard.doors.gateway.board.reader import Reader
from tests.conftest import is_alive, wait_until
from tests.gateway.test_given_up import WAITING_FOR_A_LOCK
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture
def reader() -> Iterator[Reader]:
    opened = Reader()
    yield opened
    opened.close()


def pid(reader: Reader) -> int:
    return reader._running()._process.pid


def counts(reader: Reader, yard: Yard) -> dict[str, int]:
    found: dict[str, int] = reader.ask(yard, "overview", {}).facts["counts"]
    return found


def test_the_process_answers_as_the_yard_itself(reader: Reader, near: Yard) -> None:
    near.add("build", title="Größe \U0001f600", mission="m")
    for question, given in (("missions", {}), ("paused", {}), ("drawing", {"mission": "m"})):
        found = reader.ask(near, question, given)
        assert json.loads(found.body) == json.loads(questions.answer(near, question, given).body)
    lanes = json.loads(reader.ask(near, "lanes", {"limit": 5}).body)["data"]["lanes"]
    assert lanes["todo"]["tasks"][0]["title"] == "Größe \U0001f600"
    assert pid(reader) != os.getpid()


def test_its_errors_are_the_yard_s_errors(reader: Reader, near: Yard) -> None:
    with pytest.raises(NotFound, match="mission"):
        reader.ask(near, "mission", {"name": "none"})
    with pytest.raises(taskyard.TaskyardError, match="unexpected KeyError"):
        reader.ask(near, "no such question", {})
    assert counts(reader, near)["todo"] == 0


def test_a_yard_of_one_process_is_read_in_that_process(reader: Reader) -> None:
    with taskyard.init("memory:") as yard:
        yard.add("build")
        assert counts(reader, yard)["todo"] == 1
    assert reader._process is None


def test_a_killed_one_is_replaced_and_the_question_asked_again(reader: Reader, near: Yard) -> None:
    counts(reader, near)
    for _ in range(3):
        first = pid(reader)
        os.kill(first, signal.SIGSTOP)  # so that the question is still open when it dies
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(counts, reader, near)
            wait_until(lambda: reader._running()._asked)
            os.kill(first, signal.SIGKILL)
            assert asked.result(50)["todo"] == 0
        assert pid(reader) != first


def test_what_kills_every_one_is_reported(reader: Reader, near: Yard) -> None:
    over = threading.Event()

    def kill_all() -> None:
        while not over.wait(0.001):
            process = reader._process
            if process is not None:
                process._process.kill()

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        with pytest.raises(Unavailable, match="ended several times"):
            counts(reader, near)
    finally:
        over.set()
        killer.join()
    assert counts(reader, near)["todo"] == 0


def test_a_look_that_nobody_waits_for_is_cancelled_in_the_database(reader: Reader) -> None:
    url = postgres.url_in(postgres.database())
    place = url.partition("&project=")[0]
    with taskyard.init(url) as near, psycopg.connect(place) as other, psycopg.connect(place, autocommit=True) as sql:
        counts(reader, near)
        other.execute("LOCK TABLE taskyard.task IN ACCESS EXCLUSIVE MODE")
        work = Abandonment(reads=True)
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(work.run, lambda: reader.ask(near, "lanes", {"state": "todo"}))
            wait_until(lambda: sql.execute(WAITING_FOR_A_LOCK).fetchone() == (1,))
            work.abandon()
            with pytest.raises(Abandoned):
                asked.result(50)
        wait_until(lambda: sql.execute(WAITING_FOR_A_LOCK).fetchone() == (0,))
        other.rollback()
        assert counts(reader, near)["todo"] == 0


def test_it_ends_with_its_reader(near: Yard) -> None:
    reader = Reader()
    counts(reader, near)
    process = pid(reader)
    reader.close()
    assert not is_alive(process)
    with pytest.raises(Unavailable, match="about to end"):
        reader.ask(near, "overview", {})


_GATEWAY = """
import os, sys, taskyard
from taskyard.doors.gateway.board.reader import Reader
with taskyard.open(sys.argv[1]) as yard:
    reader = Reader()
    reader.ask(yard, "overview", {})
    print(reader._process._process.pid, flush=True)
    sys.stdin.read()
"""


def test_it_ends_with_a_gateway_that_is_killed_and_not_by_its_ctrl_c(near: Yard) -> None:
    words = (sys.executable, "-c", _GATEWAY, near.url)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        process = int(gateway.stdout.readline())
        os.kill(process, signal.SIGINT)
        assert is_alive(process)
        gateway.kill()
    wait_until(lambda: not is_alive(process))


def test_it_ends_when_nothing_is_asked_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(reader_process, "_IDLE", 0.05)
    with open(reading, "rb") as line, open(writing, "wb") as asks, open(tmp_path / "out", "wb") as out:
        monkeypatch.setattr(sys, "stdin", line)
        asks.write(b'{"number": 1}\n{"num')
        asks.flush()
        answers = reader_process.Answers(os.dup(out.fileno()))
        answers._working[1] = Abandonment(reads=True)
        messages: Iterator[dict[str, Any]] = reader_process._messages(answers)
        assert next(messages) == {"number": 1}
        asks.write(b'ber": 2}\n')
        asks.flush()
        assert next(messages) == {"number": 2}, "not while a look is under way"
        answers._working.clear()
        assert list(messages) == []
        answers._out.close()
