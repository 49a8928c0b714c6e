"""Every verb of the command line on one yard, in this process; whatever is in the yard, each must give a legal answer in time."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.doors.cli import main
from taskyard.doors.cli.replies import EXITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 60.0  # seconds for one verb: only ever reached by one that hangs
LEGAL = {0, 1, *EXITS.values()}


class Yard:
    """A real yard with something of every kind in it, and what may be expected of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with taskyard.init(str(path), worker="ada", durability="fast") as yard:
            self.done = yard.add("build", {"n": 1}, key="k1").id
            claim = yard.claim(self.done)
            assert claim is not None
            assert claim.workdir is not None
            Path(claim.workdir, "log.txt").write_text("a log\n")
            claim.note("a note")
            claim.done({"result": 1})
            self.failed = yard.add("build", title="Broken").id
            claim = yard.claim(self.failed)
            assert claim is not None
            claim.fail("no", retry=False)
            self.held = yard.add("test", {"n": 2}, key="k2", uses=["disk"]).id
            claim = yard.claim(self.held)
            assert claim is not None
            claim.heartbeat(progress=0.5)
            self.handle = claim.handle
            self.edited = yard.add("build", {"n": 3}).id
            yard.edit(self.edited, title="Edited")
            self.waiting = yard.add("build", delay=3600).id
            self.blocked = yard.add("build", after=[self.edited]).id
            self.cancelled = yard.add("build").id
            yard.cancel(self.cancelled)
            self.plain = yard.add("lint", {"n": 4}).id
            yard.pause("never")
        (path / "todo" / "broken.json").write_text('{"priority": 77}')
        with taskyard.open(str(path), worker="ada") as yard:
            yard.counts()
            yard.sweep()

    @property
    def ids(self) -> list[str]:
        """Every task there was at first."""
        return [
            self.done, self.failed, self.held, self.edited, self.waiting, self.blocked, self.cancelled, self.plain,
        ]  # fmt: skip


class Said:
    """What a command said."""

    def __init__(self, argv: Sequence[str], code: int, out: str, err: str) -> None:
        self.argv = argv
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"{' '.join(self.argv)!a}: {self.code}\n{self.out[:2000]}\n{self.err[:2000]}"

    @property
    def envelope(self) -> Any:
        return json.loads(self.out, parse_constant=AssertionError)


@contextlib.contextmanager
def in_time(what: str) -> Iterator[None]:
    """Fail, instead of hanging, where something takes too long."""

    def over(*_: object) -> None:
        raise AssertionError(f"this hangs: {what}")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def say(yard: str | Path, *argv: str, stdin: bytes = b"", plain: bool = False) -> Said:
    """Run one command, and see that its answer is a legal one."""
    words = ["--yard", str(yard), *argv] + ([] if plain else ["--json"])
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin))
    with in_time(" ".join(words)), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        import sys

        before, sys.stdin = sys.stdin, given
        os.environ["TASKYARD_DEBUG"] = "1"
        try:
            code = main(words)
        finally:
            sys.stdin = before
            del os.environ["TASKYARD_DEBUG"]
    said = Said(argv, code, out.getvalue(), err.getvalue())
    assert "Traceback" not in said.err, said
    assert code in LEGAL, said
    if not plain:
        assert said.out.count("\n") == 1, said
        assert said.envelope["ok"] or said.envelope["error"]["code"] != "internal", said
    return said


def use(yard: Yard) -> None:
    """Look at everything, move everything, tidy up, and do whatever can be done."""
    look(yard)
    move(yard)
    look(yard)


def look(yard: Yard) -> None:
    """Every verb that only reads."""
    path = yard.path
    for state in ("", "waiting", "blocked", "todo", "processing", "done", "failed", "cancelled"):
        say(path, "list", *(["--state", state] if state else []))
    for id in yard.ids:
        said = say(path, "show", id)
        assert said.code in (0, 6, 8), said
        said = say(path, "show", id, plain=True)
    for plain in (True, False):
        say(path, "stats", plain=plain)
        say(path, "ready", plain=plain)
        say(path, "list", plain=plain)
        say(path, "log", plain=plain)
        say(path, "prune", "--older-than", "0", plain=plain)
    say(path, "log", "--task", yard.done)
    say(path, "wait", yard.done, "--timeout", "0")
    say(path, "watch", "--timeout", "0")


def move(yard: Yard) -> None:
    """Every verb that moves a task, some of them twice."""
    path = yard.path
    say(path, "janitor")
    say(path, "heartbeat", yard.handle, "--progress", "0.7")
    say(path, "note", yard.handle, "another note")
    say(path, "resume", "--worker", "ada")
    say(path, "done", yard.handle, "--result", '"late"')
    for id in (yard.edited, yard.waiting, yard.blocked):
        say(path, "edit", id, "--title", "Again")
    for id in (yard.failed, yard.waiting, yard.cancelled, "broken"):
        say(path, "retry", id)
    say(path, "add", "build", "--key", "k1", "--data", '{"n": 1}')
    say(path, "add", "build", "--key", "k2", "--data", '{"n": 2}')
    say(path, "add", "build", "--key", "k3")
    say(path, "add", "build", "--after", yard.edited)
    say(path, "add", "--from", "-", stdin=b'{"kind": "build"}\n' * 5)
    say(path, "cancel", yard.held)
    for verb in (["fail", "--reason", "no"], ["release"], ["done", "--result", "1"], ["done"], ["fail", "--no-retry"]):
        said = say(path, "claim", "--worker", "bob", "--lease", "60")
        if said.code == 0:
            say(path, verb[0], said.envelope["data"]["claim"], *verb[1:])
    say(path, "pause", "build")
    say(path, "unpause", "build")
    say(path, "janitor")
    say(path, "prune", "--older-than", "0", "--apply")
    say(path, "janitor")


def work_goes_on(yard: Path) -> None:
    """New work goes in, is handed out and is done, whatever lies around; and every claim comes to an end."""
    added = say(yard, "add", "fresh", "--data", "1")
    assert added.code == 0, added
    id = added.envelope["data"]["task"]["id"]
    claimed = say(yard, "claim", "--kind", "fresh", "--worker", "eve")
    assert claimed.code == 0, claimed
    assert claimed.envelope["data"]["task"]["id"] == id
    ended = say(yard, "done", claimed.envelope["data"]["claim"], "--result", "2")
    assert ended.code == 0, ended
    shown = say(yard, "show", id)
    assert shown.envelope["data"]["task"]["result"] == 2, shown


def drain(yard: Path) -> list[str]:
    """Claim and end all that can be had; which tasks that were."""
    end = time.monotonic() + PATIENCE
    ended = []
    while (said := say(yard, "claim", "--worker", "eve")).code == 0:
        assert time.monotonic() < end, "the queue never ends"
        assert say(yard, "done", said.envelope["data"]["claim"]).code in (0, 7), said
        ended.append(said.envelope["data"]["task"]["id"])
    assert said.code == 3, said
    return ended
