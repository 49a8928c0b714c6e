"""What tests with real processes share: commands and crews, a walk over a yard's files, and the tools of the machine.

A tool that a machine cannot provide skips the test there; under CI=true it fails instead, so that nothing is left out in silence.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from taskyard import open as open_yard
from taskyard.proof import FinalState, History, check
from taskyard.stores.directory.names import Lane, Token
from tests.processes.crew import history

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from taskyard.proof import Verdict

PYTHON = sys.executable
COMMAND = (PYTHON, "-m", "taskyard")
IN_SHELL = shlex.join(COMMAND)  # the clone may lie in a path with a space
CREW = (PYTHON, str(Path(__file__).with_name("crew.py")))
STATES = ("todo", "waiting", "blocked", "processing", "done", "failed", "cancelled")
# Compiled modules of our own: a command takes three times as long where PYTHONDONTWRITEBYTECODE is set, as it is in many containers.
COMPILED = tempfile.mkdtemp(prefix="taskyard-compiled-")
atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
PATIENCE = 120.0  # seconds for any one process: only ever reached by one that hangs


class Answer:
    """What a command said, run with --json."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def envelope(self) -> Any:
        assert self.out.count("\n") == 1, (self.out, self.err)
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        assert self.code == 0, (self.code, self.out, self.err)
        assert self.envelope["ok"] is True
        return self.envelope["data"]

    @property
    def error(self) -> Any:
        assert self.envelope["ok"] is False, self.out
        return self.envelope["error"]


def environment(**more: str) -> dict[str, str]:
    """This process's own, without what would lead a command to another yard or name."""
    left_out = ("TASKYARD", "AGENT_ID", "GIT_", "PYTHONDONTWRITEBYTECODE")
    return (
        {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        | {"PYTHONPYCACHEPREFIX": COMPILED}
        | more
    )


def taskyard(
    yard: str | Path | None,
    *argv: str,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Answer:
    """Run one command as a process of its own, with --json."""
    given = environment(**(env or {}), **({} if yard is None else {"TASKYARD": str(yard)}))
    return Answer(
        subprocess.run(
            [*prefix, *COMMAND, *argv, "--json"],
            capture_output=True,
            text=True,
            env=given,
            cwd=cwd,
            check=False,
            timeout=PATIENCE,
        )
    )


def start(
    yard: str | Path, *argv: str, prefix: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a member of the crew (see crew.py); it writes one JSON value a line."""
    return subprocess.Popen(
        [*prefix, *CREW, argv[0], str(yard), *argv[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**(env or {})),
    )


def race(crew: Sequence[subprocess.Popen[str]]) -> list[Any]:
    """Let the members begin together once all of them are ready, and give all that they said."""
    for member in crew:
        assert said(member) == "ready"
    for member in crew:
        tell(member)
    return told(crew)


def said(member: subprocess.Popen[str]) -> Any:
    """The next thing that the member says."""
    assert member.stdout is not None
    line = member.stdout.readline()
    assert line, f"{member.args!r} has ended without a word"
    return json.loads(line)


def tell(member: subprocess.Popen[str]) -> None:
    """Let the member go on."""
    assert member.stdin is not None
    member.stdin.write("\n")
    member.stdin.flush()


def told(crew: Iterable[subprocess.Popen[str]]) -> list[Any]:
    """All that the members said, after all of them have ended well."""
    everything = []
    for member in crew:
        assert member.stdout is not None
        everything += [
            json.loads(line) for line in member.stdout
        ]  # not communicate(), which forgets what was read ahead
        code = member.wait(timeout=PATIENCE)
        assert code == 0, f"{member.args!r} ended with {code}"
    return everything


def whole_lines(text: str) -> list[Any]:
    """What a killed member said: a line that it did not finish was not said."""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def settle(yard: str | Path, **settings: object) -> None:
    """Change the yard's settings, before anybody opens it."""
    file = Path(yard) / "yard.json"
    content = json.loads(file.read_text())
    content["settings"].update(settings)
    file.write_text(json.dumps(content))


# What happened


def judge(yard: str | Path, *, drained: bool = False, log: bool = True) -> Verdict:
    """Whether all that everybody was told, and the yard now, are legal; a violation fails the test. Nobody may be at work."""
    with open_yard(yard) as opened:
        opened.sweep()
        verdict = check(History.load(history(str(yard))), FinalState.of(opened, drained=drained, log=log))
    assert verdict.legal, str(verdict)
    return verdict


# A yard's files


def task_files(yard: str | Path) -> Iterator[tuple[str, Token, Path]]:
    """Every task's file: its state, what its name says, and its path."""
    for state in STATES:
        top = Path(yard) / state
        for folder, _, names in os.walk(top):
            lane = (
                Lane.of_folder(Path(folder).relative_to(top).parts[0])
                if state == "todo" and folder != str(top)
                else None
            )
            for name in names:
                token = Token.parse(name, lane)
                assert token is not None, f"not a task's name: {folder}/{name}"
                yield state, token, Path(folder) / name


def places(yard: str | Path) -> dict[str, str]:
    """The state of every task by its id; a task in two places, a half-written file or a wrong id fails the test. Nobody may be at work."""
    found: dict[str, str] = {}
    for state, token, path in task_files(yard):
        assert token.id not in found, f"{token.id} is in {found[token.id]} and in {state}"
        found[token.id] = state
        content = json.loads(path.read_bytes())
        assert (content["taskyard"], content["id"], content["kind"]) == (1, token.id, token.lane.kind), path
    return found


def events(yard: str | Path, *names: str) -> list[dict[str, Any]]:
    """The event log, or the events of these names."""
    lines = [
        json.loads(line)
        for file in sorted((Path(yard) / "events").iterdir())
        for line in file.read_text().splitlines()
        if line
    ]
    return [line for line in lines if not names or line["event"] in names]


# The machine's tools


def lacking(what: str) -> NoReturn:
    """Skip a test for want of a tool; under CI=true that is a failure."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"CI must be able to test this: {what}")
    pytest.skip(what)


def unshared(*options: str) -> list[str]:
    """The words before a command that runs it in namespaces of its own, as their root."""
    words = ["unshare", "--user", "--map-root-user", *options]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], capture_output=True, check=False, timeout=PATIENCE).returncode != 0
    ):
        lacking(f"no namespaces here: '{' '.join(words)}' is not permitted")
    return words


def container(host: str) -> list[str]:
    """The words before a command that make it process 1 of a user, pid and host namespace of its own, as in a container."""
    return [*unshared("--pid", "--fork", "--kill-child", "--uts"), "sh", "-c", 'hostname "$0" && exec "$@"', host]


def powerless() -> list[str]:
    """The words before a command that let permissions count for it, also where root runs the tests."""
    if os.geteuid() != 0:
        return []
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if (
        shutil.which("setpriv") is None
        or subprocess.run([*words, "true"], capture_output=True, check=False, timeout=PATIENCE).returncode != 0
    ):
        lacking("root cannot give up its powers here: no setpriv")
    return words


def git(folder: str | Path, *argv: str) -> str:
    """Run git, with nothing of the tester's own settings."""
    if shutil.which("git") is None:
        lacking("no git here")
    own = environment(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)
    settings = (
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    )
    done = subprocess.run(
        ["git", *settings, *argv], cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, (argv, done.stderr)
    return done.stdout


def faketime(offset: str) -> dict[str, str]:
    """The environment of a process whose clock is off by so much, by libfaketime; ticking clocks stay as they are."""
    library = libfaketime()
    if library is None:
        lacking("no libfaketime here (Debian: apt-get install faketime)")
    return {"LD_PRELOAD": library, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}


def libfaketime() -> str | None:
    """The library that gives a process a wrong clock, if it can be had."""
    for root in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib", ""):
        for pattern in ("faketime/libfaketime.so.1", "*/faketime/libfaketime.so.1"):
            for path in Path(root or unpacked("libfaketime") / "usr/lib").glob(pattern):
                return str(path)
    return None


def unpacked(package: str) -> Path:
    """The folder with the files of this package of Debian's, which needs no root; it is not there if it cannot be had.

    It stays with the virtual environment, so that a later run has it without a network.
    """
    folder = Path(sys.prefix) / f"debian-{package}"
    # One attempt in a run of the tests, however many processes they are spread over.
    run = os.environ.get("PYTEST_RUN_ID") or str(os.getpid())
    with Path(f"{folder}.tried").open("a+") as tried:
        fcntl.flock(tried, fcntl.LOCK_EX)
        tried.seek(0)
        if not folder.exists() and tried.read() != run and shutil.which("apt-get") is not None:
            tried.truncate(0)
            tried.write(run)
            tried.flush()
            _unpack(package, folder)
    return folder


def _unpack(package: str, folder: Path) -> None:
    quiet = environment(DEBIAN_FRONTEND="noninteractive")
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=60"]
    with tempfile.TemporaryDirectory() as download:
        if os.geteuid() == 0:
            subprocess.run([*apt, "update"], env=quiet, capture_output=True, check=False, timeout=300)
        words = [*apt, "download", package]
        subprocess.run(words, cwd=download, env=quiet, capture_output=True, check=False, timeout=300)
        for file in Path(download).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", file, folder], capture_output=True, check=True)
