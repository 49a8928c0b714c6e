"""Spreads a run over processes: `-n 6` runs six tests at a time, and `-n 0` one after the other in pytest's own process.

The processes are forked when everything is collected: to collect took each of six 9 s of processor time with pytest-xdist, and
twice that in a new clone, where each compiled all tests.
"""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import os
import signal
import sys
import traceback
import uuid
import zlib
from collections import deque
from multiprocessing.connection import Connection, Pipe, wait
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

if TYPE_CHECKING:
    from collections.abc import Iterable

RUN = "PYTEST_RUN_ID"  # what all processes of a run know it by
_AHEAD = 3  # tests that a process has before it: it need not wait for the next, and knows which fixtures that will want
_numbers = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("spread")._addoption(
        "-n",
        dest="processes",
        type=int,
        default=0,
        metavar="COUNT",
        help="run so many tests at a time; 0: in this process",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    failed_to_collect = session.testsfailed and not option.continue_on_collection_errors
    if option.processes < 1 or option.collectonly or option.usepdb or failed_to_collect or len(session.items) < 2:
        return None
    _Run(session).run(option.processes)
    return True


def groups(items: list[pytest.Item]) -> list[list[int]]:
    """The tests, by number, in the order in which they are begun; those for which a fixture is made once stay together.

    Tests that wait are mixed with tests that compute. What may take long is not among the last.
    """
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        found.setdefault(_shared(item) or item.nodeid, []).append(number)
    return sorted(found.values(), key=lambda group: _place(items[group[0]], len(group)))


def _shared(item: pytest.Item) -> str | None:
    """The file or folder of a fixture of ours that this test does not have for itself."""
    known: dict[str, Any] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009  it has no type
    own = {made[-1].scope: made[-1].baseid for made in known.values() if made[-1].baseid}
    return own.get("session") or own.get("package") or own.get("module")


def _place(item: pytest.Item, size: int) -> float:
    chance = zlib.crc32(item.nodeid.encode()) / (1 << 32)
    if size > 1:
        return chance / size
    if item.path.parent.name == "contract":  # they take no second each
        return chance
    return chance * (0.6 if item.get_closest_marker("proof") else 0.9)


class _Run:
    """One run: what is still to be begun, and who is at work."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._ahead = deque(groups(session.items))
        self._workers: list[_Worker] = []
        os.environ.setdefault(RUN, uuid.uuid4().hex)

    def run(self, count: int) -> None:
        capture: Any = self._session.config.pluginmanager.getplugin("capturemanager")
        _folders(self._session.config).getbasetemp()  # made once: that of each process is in it
        capture.stop_global_capturing()  # each process gets files of its own for what its tests print
        gc.collect()
        gc.freeze()  # what was collected stays: nobody looks through it again
        try:
            while self._ahead or self._workers:
                while self._ahead and len(self._workers) < count:
                    self._begin()
                for worker in _ready(self._workers):
                    self._hear(worker)
                self._heed()
        finally:
            for worker in self._workers:
                worker.end()
            capture.start_global_capturing()
            capture.suspend_global_capture()

    def _heed(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _begin(self) -> None:
        worker = _Worker(self._session, self._workers)
        self._workers.append(worker)
        self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        while len(worker.given) < _AHEAD and not worker.is_last:
            worker.give(self._ahead.popleft() if self._ahead else [])

    def _hear(self, worker: _Worker) -> None:
        try:
            if not worker.line.poll():
                raise EOFError  # it is gone, though a process that it left behind holds its end
            number, reports = worker.line.recv()
        except (EOFError, ConnectionResetError):
            self._workers.remove(worker)
            status = worker.end()
            if worker.given:  # it would have been told of all others
                lost = worker.given.popleft()
                self._tell(lost, [_broken(self._session.items[lost], status)])
                if worker.given:
                    self._ahead.appendleft(list(worker.given))
            return
        worker.given.remove(number)
        self._feed(worker)
        hook = self._session.config.hook
        self._tell(
            number,
            [hook.pytest_report_from_serializable(config=self._session.config, data=data) for data in reports],
        )

    def _tell(self, number: int, reports: list[pytest.TestReport]) -> None:
        item, hook = self._session.items[number], self._session.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _broken(item: pytest.Item, status: int) -> pytest.TestReport:
    ended = f"by signal {-status}" if status < 0 else f"with code {status}"
    return pytest.TestReport(
        item.nodeid, item.location, {}, "failed", f"the process that ran this test ended {ended}", "call"
    )


class _Worker:
    """A process, as the first one sees it."""

    def __init__(self, session: pytest.Session, others: Iterable[_Worker]) -> None:
        self.given: deque[int] = deque()
        """What it was given and has not told of."""
        self.is_last = False
        """Whether there is nothing more for it."""
        self.line, theirs = Pipe()
        number = next(_numbers)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for line in (self.line, *(other.line for other in others)):
                line.close()  # so that it ends with the first process
            _work(session, theirs, number)
        theirs.close()
        self.life = os.pidfd_open(self.pid)

    def give(self, numbers: list[int]) -> None:
        """Have it run these; none: have it end."""
        self.given.extend(numbers)
        self.is_last = not numbers
        with contextlib.suppress(BrokenPipeError):  # what becomes of it is seen when it is heard
            self.line.send(numbers)

    def end(self) -> int:
        """Interrupt it, if it is there; return its exit code."""
        self.line.close()
        if not wait([self.life], 0.1):
            os.kill(self.pid, signal.SIGINT)
            if not wait([self.life], 10):
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.life)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Those that have told something, or are gone."""
    found = wait([end for worker in workers for end in (worker.line, worker.life)])
    return [worker for worker in workers if worker.line in found or worker.life in found]


class _Reports:
    """Gathers what is to be told of one test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.told: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.told.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def _work(session: pytest.Session, line: Connection, number: int) -> None:
    """Run what comes, and end this process."""
    code = 1
    config = session.config
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    try:
        capture.start_global_capturing()
        capture.suspend_global_capture()
        terminal: Any = config.pluginmanager.getplugin("terminalreporter")
        terminal._tw = create_terminal_writer(config, io.StringIO())  # the first process prints
        folders = _folders(config)
        folders._basetemp = folders.getbasetemp() / str(number)
        folders._basetemp.mkdir()
        _run_all(session, line)
        code = 0
    except (EOFError, BrokenPipeError):  # the first process is gone
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        capture.stop_global_capturing()
        traceback.print_exc()  # pytest itself failed; the first process tells which test ran
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
        os._exit(code)


def _folders(config: pytest.Config) -> Any:
    return config._tmp_path_factory  # type: ignore[attr-defined]


def _run_all(session: pytest.Session, line: Connection) -> None:
    reports = _Reports(session.config)
    session.config.pluginmanager.register(reports)
    ahead: deque[int] = deque()
    is_last = False
    while True:
        while len(ahead) < 2 and not is_last:
            more = line.recv()
            is_last = not more
            ahead.extend(more)
        if not ahead:
            return
        number = ahead.popleft()
        following = session.items[ahead[0]] if ahead else None
        session.config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=following)
        line.send((number, reports.told))
        reports.told = []
