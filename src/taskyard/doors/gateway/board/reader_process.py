"""The process that reads yards for boards: it takes questions from its standard input, and answers them as they are ready.

It ends with the gateway, whose end of the pipe the kernel closes, and after a minute without a question.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from taskyard import opening
from taskyard.core.abandonment import Abandoned, Abandonment
from taskyard.core.errors import TaskyardError
from taskyard.doors.gateway.board import questions
from taskyard.remote import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.yard import Yard

_NICE = 5  # what people look at gives way to what agents wait for
_THREADS = 4
_IDLE = 60.0  # seconds without a question


class Yards:
    """The yards that were asked about. One that cannot be opened now is tried again by the next question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, Place] = {}

    def opened(self, url: str, worker: str) -> Yard:
        """Return a yard; a slow one keeps questions about others waiting for nothing."""
        with self._lock:
            place = self._places.setdefault(url, Place())
        with place.lock:
            if place.yard is None:
                place.yard = opening.open(url, worker)
            return place.yard


class Place:
    """Where a yard is kept, and opened by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.yard: Yard | None = None


class Answers:
    """Looks, and writes what each has found."""

    def __init__(self, out: int) -> None:
        self._out = os.fdopen(out, "wb")
        self._writing = threading.Lock()
        self._yards = Yards()
        self._threads = ThreadPoolExecutor(_THREADS, "taskyard look")
        self._working: dict[int, Abandonment] = {}
        self._begun = 0

    def is_idle(self) -> bool:
        """Whether no question waits for its answer."""
        return not self._working

    def take(self, message: dict[str, Any]) -> None:
        """Take a question, or give one up."""
        number = message["number"]
        if message.get("abandon"):
            work = self._working.get(number)
            if work is not None:  # not here: a cancel may take its time to reach a database
                threading.Thread(target=work.abandon, daemon=True).start()
            return
        self._working[number] = Abandonment(reads=True)
        self._threads.submit(self._answer, number, message)

    def _answer(self, number: int, message: dict[str, Any]) -> None:
        facts: dict[str, Any] = {}
        try:
            facts, body = self._working[number].run(lambda: self._look(message))
            is_good = True
        except Abandoned:
            return
        except Exception as error:
            known = error if isinstance(error, TaskyardError) else None
            failure = known or TaskyardError(f"unexpected {type(error).__name__}: {error}")
            body, is_good = json.dumps(wire.bad(failure)["error"]).encode(), False
        finally:
            del self._working[number]
        head = json.dumps({"number": number, "ok": is_good, "facts": facts, "size": len(body)})
        with self._writing:
            self._out.write(head.encode() + b"\n" + body)
            self._out.flush()

    def _look(self, message: dict[str, Any]) -> questions.Answer:
        yard = self._yards.opened(message["url"], message["worker"])
        return questions.answer(yard, message["question"], message["given"])


def main() -> None:
    """Answer until the standard input ends, or nothing is asked for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the gateway, which ends this
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may stand among the answers
    answers = Answers(out)
    for message in _messages(answers):
        answers.take(message)
    os._exit(0)  # no process reads the answers of looks that are under way


def _messages(answers: Answers) -> Iterator[dict[str, Any]]:
    descriptor, rest, last = sys.stdin.fileno(), b"", time.monotonic()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        if not poll.poll(_IDLE * 1000):
            if answers.is_idle() and time.monotonic() - last >= _IDLE:
                return
            continue
        read = os.read(descriptor, 1 << 16)
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        last = time.monotonic()
        yield from map(json.loads, lines)
