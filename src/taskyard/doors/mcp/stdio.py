"""One agent over standard input and output: a line of JSON for each message, and the life of its claims.

The main thread reads, each request has a thread of its own, because a call may wait for long. One more thread renews the claims
and looks whether the agent's process, which started this one, still lives.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from threading import Event, Lock, Thread

from taskyard.core.errors import NoYard, TaskyardError
from taskyard.core.processes import Process
from taskyard.core.times import ticks
from taskyard.core.words import shown
from taskyard.doors.mcp import grace, protocol
from taskyard.doors.mcp.agent import Agent
from taskyard.doors.mcp.replies import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from taskyard.port import YardPort

GRACE = 30.0  # seconds for an agent to come back after its client has closed the connection
_LOOK_EVERY = 1.0  # seconds
_IN_TURN = 2.0  # seconds that a call gets before the next one begins beside it
_LINE_MOST = 16 * 1024 * 1024  # bytes of one message: a task's data is at most 1 MiB, escaped at most six times that


class _Ended(BaseException):
    """A signal asks this process to end."""


class _Call:
    """A tool call that runs: a later one begins after it, unless it takes long."""

    def __init__(self, id: Any, before: _Call | None) -> None:
        self.id = id
        self.before = before
        self.cancelled = Event()
        self.over = Event()
        self.alone_until = ticks() + _IN_TURN

    def await_turn(self) -> None:
        """Wait for the call before this one: a client may send claim and done together, and means them in this order."""
        before, self.before = self.before, None
        if before is not None:
            before.over.wait(max(0.0, before.alone_until - ticks()))


class Server:
    """A server for the agent whose process started this one."""

    def __init__(
        self, open_yard: Callable[[], YardPort], agent: Process | None, idle: float, grace: float, out: BinaryIO
    ) -> None:
        self._open_yard = open_yard
        self._agent: Agent | None = None
        self._opening = Lock()
        self._closing = Event()
        self._process = agent
        self._idle = idle
        self._grace = grace
        self._out = out
        self._writing = Lock()
        self._running: set[_Call] = set()
        self._last: _Call | None = None

    def serve(self, lines: BinaryIO) -> None:
        """Answer until standard input ends or a signal comes; then leave the claims to the grace."""
        Thread(target=self._keep, name="taskyard claims", daemon=True).start()
        try:
            while line := lines.readline(_LINE_MOST):
                if len(line) == _LINE_MOST and not line.endswith(b"\n"):
                    self._skip(lines)
                elif line.strip():
                    self._take(line)
            self._close()
            for call in list(self._running):
                call.over.wait()
        except (_Ended, KeyboardInterrupt):
            self._close()
        self._leave()

    def _close(self) -> None:
        self._closing.set()
        self._wake()

    def _wake(self) -> None:
        if self._agent is not None:
            self._agent.yard.wake()

    def _call(self, name: str, arguments: dict[str, Any], cancelled: Event) -> tuple[str, bool]:
        """Run a tool. The yard is opened by the first call: a client that gets no tools could not tell its agent why."""
        try:
            with self._opening:
                if self._agent is None:
                    self._agent = Agent(self._open_yard(), self._idle, self._closing, _lent())
        except NoYard as error:
            return str(
                Refusal(error.message, f"ask a person to make a yard with 'taskyard init', then {name} again")
            ), True
        except TaskyardError as error:
            return str(Refusal(error.message, f"{name} again in a minute; tell a person if that goes on")), True
        return self._agent.call(name, arguments, cancelled)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._write(protocol.failed(None, protocol.PARSE_ERROR, f"not one line of JSON: {shown(str(error), 80)}"))
            return
        method = message.get("method") if isinstance(message, dict) else None
        if method == "notifications/cancelled":
            self._cancel(message.get("params"))
        elif method == "tools/call":
            self._last = call = _Call(_key(message.get("id")), self._last)
            self._running.add(call)  # by itself: a careless client gives two calls one id
            Thread(target=self._answer, args=(message, call), daemon=True).start()
        else:
            self._write(protocol.answer(message, lambda *_: ("", True)))  # no other method calls a tool

    def _skip(self, lines: BinaryIO) -> None:
        """Read on to the end of a line that is too long, and refuse it once."""
        while (rest := lines.readline(_LINE_MOST)) and not rest.endswith(b"\n"):
            pass
        self._write(protocol.failed(None, protocol.INVALID_REQUEST, f"a message has at most {_LINE_MOST} bytes"))

    def _answer(self, message: dict[str, Any], call: _Call) -> None:
        call.await_turn()
        try:
            response = protocol.answer(message, lambda name, arguments: self._call(name, arguments, call.cancelled))
            if not call.cancelled.is_set():  # the protocol forbids an answer to a cancelled request
                self._write(response)
        finally:
            self._running.discard(call)
            call.over.set()

    def _cancel(self, params: Any) -> None:
        id = _key(params.get("requestId")) if isinstance(params, dict) else None
        for call in list(self._running):
            if id is not None and call.id == id:
                call.cancelled.set()
                self._wake()

    def _write(self, response: dict[str, Any] | None) -> None:
        if response is None:
            return
        text = json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
        try:
            with self._writing:
                self._out.write(text + b"\n")
                self._out.flush()
        except (OSError, ValueError):
            return  # its reader is gone: standard input ends too, or the process that held both is dead

    # The life of the claims

    def _keep(self) -> None:
        """Renew the claims while the agent lives; give them back at once when it is dead."""
        while not self._closing.wait(_LOOK_EVERY if self._agent is None else self._agent.claims.pause(_LOOK_EVERY)):
            if not self._lives():
                if self._agent is not None:
                    self._agent.claims.give_back(grace.DIED, died=True)
                os._exit(0)  # the main thread may wait for ever on an input that another process holds open
            if self._agent is not None:
                self._agent.claims.beat()

    def _lives(self) -> bool:
        return self._process is None or (os.getppid() == self._process.pid and self._process.lives())

    def _leave(self) -> None:
        """Leave the claims to a process that gives the agent time to come back; without an agent to wait for, give them back."""
        agent = self._agent
        handles = [] if agent is None else [held.handle for held in agent.claims.own()]
        if agent is None or not handles:
            return
        if self._process is None or agent.yard.one_process or not self._lives():
            died = not self._lives()
            agent.claims.give_back(grace.DIED if died else "its agent disconnected", died=died)
            return
        try:
            grace.start(agent.yard, handles, self._process, self._grace, agent.lock)
        except OSError:
            agent.claims.give_back("its agent disconnected", died=False)


def _key(id: Any) -> Any:
    return id if isinstance(id, str | int | float) and not isinstance(id, bool) else None


def _lent() -> str | None:
    """Return the claim of the worker whose command started this, if one did: only workers name the task beside it."""
    return os.environ.get("TASKYARD_CLAIM") if "TASKYARD_TASK" in os.environ else None


def agent_process() -> Process | None:
    """Return the process that started this one: the agent; None where it is out of sight, as from within a container."""
    pid = os.getppid()
    return Process.of(pid) if pid > 0 else None


def run(open_yard: Callable[[str | None], YardPort], idle: float, seconds: float) -> None:
    """Serve the agent that started this process; `open_yard` gets the worker's name to use if none was given."""
    agent = agent_process()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    name = None if agent is None else agent.worker_name()
    # Descriptors of their own: whatever prints by mistake goes to stderr, and never into a reply.
    lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Server(lambda: open_yard(name), agent, idle, seconds, out).serve(lines)


def _end(*_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the claims are being left in order
    raise _Ended
