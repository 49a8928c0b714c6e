"""What every test may use: a yard on each store, and patience instead of sleep."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
import zlib
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import taskyard
from taskyard.core import times
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.postgres import driver
from tests.servers import postgres, valkey

signal.signal(
    signal.SIGHUP, signal.SIG_DFL
)  # under nohup it is ignored, and every process that a test starts would inherit that

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from taskyard import Claim, Task, Yard

# "brief postgresql" is PostgreSQL as one-shot commands reach it: by libpq alone.
STORES = (
    "memory",
    "directory",
    "shared directory",
    "postgresql",
    "brief postgresql",
    "valkey",
    "http directory",
    "http postgresql",
)

# A shell has what it starts in the background ignore Ctrl-C, and the programs that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

_SAMPLE = 8  # one test in so many is tried through a gateway, with Valkey, and by libpq alone, with every run
SOON = 50.0  # seconds for what must not take until the end of a usual lease, also on a busy machine
Answer = TypeVar("Answer")
_serial = itertools.count(1)


def sized(name: str, sample: int, whole: int) -> pytest.MarkDecorator:
    """Give the test this number: a sample with every run, and the whole with the proofs."""
    return pytest.mark.parametrize(name, [sample, pytest.param(whole, marks=pytest.mark.proof)])


def sampled(name: str, values: Iterable[Any], sample: Iterable[Any]) -> pytest.MarkDecorator:
    """Give the test each of these values: those of the sample with every run, and all with the proofs."""
    often = list(sample)
    rows = [
        pytest.param(*(value if "," in name else [value]), marks=() if value in often else pytest.mark.proof)
        for value in values
    ]
    return pytest.mark.parametrize(name, rows)


def wait_until(predicate: Callable[[], Answer | None], timeout: float = SOON) -> Answer:
    """The first true answer of the predicate; a test that waits in vain fails."""
    end = time.monotonic() + timeout
    while True:
        answer = predicate()
        if answer:
            return answer
        assert time.monotonic() < end, f"waited {timeout} s in vain"
        time.sleep(0.002)


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs; one that has ended and was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):  # gone, perhaps while it was being read
        return False


def is_listening(pid: int) -> bool:
    """Whether this process has the kernel tell it what changes."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            if "inotify" in os.readlink(f"{folder}/{name}"):
                return True
        except FileNotFoundError:
            continue
    return False


def taken(claim: Claim | None) -> Claim:
    """The claim, in a test where there must be one."""
    assert claim is not None, "nothing was ready"
    return claim


def retried(yard: Yard, id: str) -> Task:
    """The task after a retry, in a test where it is a task and no file that was set aside."""
    task = yard.retry(id)
    assert task is not None
    return task


def outlast(claim: Claim) -> None:
    """Wait until the lease that the claim began with is over; nobody sweeps meanwhile."""
    until = claim.lease_until
    assert until is not None
    wait_until(lambda: times.rfc3339(int(time.time() * 1000) - 20) > until)


def lapse(yard: Yard, claim: Claim) -> None:
    """Wait until the claim's lease is over and the task was taken from it."""

    def reaped() -> bool:
        yard.sweep()
        return any(
            entry["claim"] == claim.handle and entry["outcome"] == "crash"
            for entry in yard.report(claim.handle.split(".")[0]).history
        )

    wait_until(reaped)


def crash(yard: Yard, id: str) -> Claim:
    """Claim this task under a short lease and let it lapse; the claim is lost then."""
    claim = taken(yard.claim(id, lease=0.05))
    lapse(yard, claim)
    return claim


@pytest.fixture(autouse=True)
def _nobody_in_particular(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests may themselves be run by an agent, whose name, yard and spool must not leak in."""
    for name in ("TASKYARD", "TASKYARD_WORKER", "AGENT_ID", "TASKYARD_CLAIM", "TASKYARD_TASK", "TASKYARD_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what a failed test leaves running, or it would take time from the tests after it, and fail them with its warnings."""
    started: list[subprocess.Popen[Any]] = []
    begin = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[Any], *args: Any, **more: Any) -> None:
        begin(process, *args, **more)
        started.append(process)

    end = subprocess.Popen.__exit__

    def ended(process: subprocess.Popen[Any], kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:  # a block that fails would wait for what it was to end itself
            process.kill()
        end(process, kind, *error)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    monkeypatch.setattr(subprocess.Popen, "__exit__", ended)
    yield
    own = [process for process in started if process not in postgres.kept()]
    running = [process.args for process in own if process.poll() is None]
    for process in own:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written yet has no reader any more
                    pipe.close()
    assert not running or request.node.stash.get(_FAILED, False), f"left running: {running}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stores", help=f"try the contract on these stores only, with commas between: {', '.join(STORES)}"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "yard_url" in metafunc.fixturenames:
        named = metafunc.config.getoption("--stores")
        stores = named.split(",") if named else [_sampled(store, metafunc.function.__name__) for store in STORES]
        metafunc.parametrize("yard_url", stores, indirect=True)


def _sampled(store: str, test: str) -> Any:
    """The store for this test: most tests of what stands beside or before another store are left to the proofs."""
    return seldom(store, test, _SAMPLE) if store == "valkey" or store.startswith(("http", "brief", "shared")) else store


def seldom(value: str, test: str, one_in: int) -> Any:
    """The value for this test: one test in so many has it with every run, and all have it with the proofs."""
    return pytest.param(value, marks=pytest.mark.proof) if zlib.crc32(test.encode()) % one_in else value


@pytest.fixture
def yard_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a new, empty yard, open as long as the test runs.

    The shared directory is one that is taken for a file server's: what only one kernel can tell is not relied on there.
    """
    if request.param == "shared directory":
        monkeypatch.setattr(safety, "is_local", lambda _: False)
    if request.param == "brief postgresql":
        monkeypatch.setattr(driver, "opener", lambda *, brief: driver.connect_briefly)
    url = f"memory:test-{next(_serial)}" if request.param == "memory" else str(tmp_path / "yard")
    if "postgresql" in request.param or request.param == "valkey":
        url = postgres.url() if request.param != "valkey" else valkey.beside(postgres.url())
        request.getfixturevalue("_warm_connections")
    if request.param.startswith("http"):
        with (
            _made(request, url, worker="gateway") as near,
            _behind_gateway(near) as far,
            taskyard.open(far, worker="ada") as opened,
        ):
            opened._store = near._store  # for tests that reach into it
            request.node.stash[_OPENED], request.node.stash[_NEAR] = opened, near
            yield far
    else:
        with _made(request, url, worker="ada") as opened:
            request.node.stash[_OPENED] = request.node.stash[_NEAR] = opened
            yield url
    if "directory" in request.param:
        _prove(request, url)


@pytest.fixture
def _warm_connections() -> Iterator[None]:
    from tests.servers import warm

    with warm.connections():
        yield


@contextlib.contextmanager
def _behind_gateway(yard: Yard) -> Iterator[str]:
    """The URL of the yard behind the gateway of this test process."""
    from tests.servers import gateway

    name = f"test-{next(_serial)}"
    yield gateway.shared().serve(name, yard)
    gateway.shared().drop(name)


@pytest.fixture
def yard(request: pytest.FixtureRequest, yard_url: str) -> Yard:
    """A new, empty yard: the one that `yard_url` has open, because a connection to a server takes longer than most tests."""
    opened: Yard = request.node.stash[_OPENED]
    return opened


@pytest.fixture
def near(request: pytest.FixtureRequest, yard_url: str) -> Yard:
    """The same yard as `yard` where its store and settings are in reach: the one that a gateway has, if there is a gateway."""
    opened: Yard = request.node.stash[_NEAR]
    return opened


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The path of a new yard that survives kill -9, and need not survive a power cut; fsck finds no damage in it at the end."""
    path = str(tmp_path / "yard")
    _made(request, path, durability="fast").close()
    yield path
    _prove(request, path)


def _made(request: pytest.FixtureRequest, url: str, **options: Any) -> Yard:
    """A new yard. The place of a process's first is examined; the others lie beside it, and that is a third of a short test's time."""
    sort = getattr(request, "param", "directory")
    with pytest.MonkeyPatch.context() as patch:
        if sort in _EXAMINED:
            patch.setattr(layout, "_check_place", lambda _: [])
        yard = taskyard.init(url, **options)
    _EXAMINED.add(sort)
    return yard


def _prove(request: pytest.FixtureRequest, path: str) -> None:
    """Fail a test that leaves damage in its yard, unless it is marked as one that damages it by hand."""
    by_hand = request.node.get_closest_marker("damages") is not None or request.path.parent.name in _DAMAGING
    if by_hand or request.node.stash.get(_FAILED, False):
        return
    with taskyard.open(path, worker="fsck") as yard:
        assert damage(yard) == []


def damage(yard: Yard) -> list[dict[str, Any]]:
    """What fsck calls damage in this yard; what the next sweep sees to, and what is only worth knowing, is none."""
    return [finding for finding in yard.audit()["findings"] if finding["class"] == "damage"]


_DAMAGING = ("doctor", "fsck", "hostile")  # suites that are about damage
_EXAMINED: set[str] = set()  # sorts of yards of which this process has made one
_FAILED = pytest.StashKey[bool]()
_OPENED = pytest.StashKey["Yard"]()
_NEAR = pytest.StashKey["Yard"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Note that a test has failed: what it leaves then proves nothing."""
    report = yield
    if call.when == "call":
        item.stash[_FAILED] = report.failed
    return report
