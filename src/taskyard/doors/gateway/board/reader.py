"""Reads yards for boards in a process of its own: in the gateway's, each look would hold up claims that want the interpreter.

Threads of one interpreter run in turns. A claim that calls the system some twenty times would wait for its turn after each
call while a look computes; a second process waits for nothing but a core, and gives way to the gateway on that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from taskyard.core import abandonment
from taskyard.core.abandonment import Abandoned
from taskyard.core.errors import Unavailable
from taskyard.doors.gateway.board import questions
from taskyard.doors.gateway.board.questions import Answer
from taskyard.remote import wire

if TYPE_CHECKING:
    from taskyard.port import YardPort

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.doors.gateway.board import reader_process; reader_process.main()"
_TRIES = 3  # processes that one question is put to: one ends if it is killed, or as it was about to end for want of questions
_PATIENCE = 2.0  # seconds that a process gets to end


class _Ended(Exception):
    """The process ended before it answered."""


class Reader:
    """Answers the questions of boards. Its process is started by the first one, and again if it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._closed = False

    def ask(self, yard: YardPort, question: str, given: dict[str, Any]) -> Answer:
        """Return the answer; if this thread's work is given up meanwhile, so is the look."""
        if yard.one_process:
            return questions.answer(yard, question, given)
        asked = {"url": yard.url, "worker": yard.worker, "question": question, "given": given}
        for _ in range(_TRIES):
            try:
                return self._running().ask(asked)
            except _Ended:
                continue
        raise Unavailable(
            "the process that reads the yard for boards ended several times",
            hint="ask again; if that goes on, see in the system's log what ends processes here",
        )

    def _running(self) -> _Process:
        with self._lock:
            if self._closed:
                raise Unavailable("the gateway is about to end", hint="ask again in a moment")
            if self._process is None or self._process.has_ended:
                self._process = _Process()
            return self._process

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            process.end()


class _Process:
    """One process that reads. A line of JSON asks; a line of JSON and so many bytes answer."""

    def __init__(self) -> None:
        root = os.path.abspath(__file__)
        for _ in range(5):
            root = os.path.dirname(root)
        self._process = subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
            # In the gateway's folder, because a URL may name files from there; -P keeps modules in it from being loaded.
            [sys.executable, "-P", "-c", _START, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.has_ended = False
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Answer]] = {}
        self._number = 0
        threading.Thread(target=self._listen, name="taskyard reader", daemon=True).start()

    def ask(self, asked: dict[str, Any]) -> Answer:
        """Return the answer to a question; raise `_Ended` if the process ends before."""
        answer: Future[Answer] = Future()
        number = self._send(asked, answer)
        work = abandonment.reading()
        if work is None:
            return answer.result()
        given_up = False
        try:
            work.begin(lambda: self._give_up(number))
            try:
                return answer.result()
            finally:
                given_up = work.end()
        finally:
            if given_up:
                raise Abandoned

    def _send(self, asked: dict[str, Any], answer: Future[Answer]) -> int:
        with self._lock:
            self._number += 1
            self._asked[self._number] = answer
            self._write({"number": self._number, **asked})
            return self._number

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            if self.has_ended:
                raise BrokenPipeError
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise _Ended from None

    def _give_up(self, number: int) -> None:
        with self._lock:
            answer = self._asked.pop(number, None)
            if answer is None:
                return
            answer.set_exception(Abandoned())
            try:
                self._write({"number": number, "abandon": True})
            except _Ended:
                return

    def _listen(self) -> None:
        """Hand over answers until the process ends."""
        answers = self._process.stdout
        assert answers is not None
        try:
            while line := answers.readline():
                head = json.loads(line)
                body = answers.read(head["size"])
                if len(body) < head["size"]:
                    break
                self._hand_over(head, body)
        finally:
            with self._lock:
                self.has_ended = True
                left, self._asked = self._asked, {}
            for answer in left.values():
                answer.set_exception(_Ended())
            self.end()
            answers.close()

    def _hand_over(self, head: dict[str, Any], body: bytes) -> None:
        with self._lock:
            answer = self._asked.pop(head["number"], None)
        if answer is None:
            return  # it was given up
        if head["ok"]:
            answer.set_result(Answer(head["facts"], body))
        else:
            answer.set_exception(wire.raised(json.loads(body)))

    def end(self) -> None:
        """End the process: it has nothing to finish."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # it ended with a question unread
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
