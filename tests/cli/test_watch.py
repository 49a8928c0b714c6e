"""`watch`: the first change that matches, or all of them as they come."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import init
from taskyard.core.ids import short
from tests.conftest import is_listening, wait_until

from .test_processes import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Answer


@pytest.fixture
def shared(tmp_path: Path) -> str:
    path = str(tmp_path / "shared")
    init(path, durability="fast").close()
    return path


@pytest.fixture
def watcher(shared: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `watch` as a process that listens by the time it is handed over."""
    started: list[subprocess.Popen[str]] = []

    def start(*argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, "watch", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(shared),
        )
        started.append(process)
        wait_until(lambda: is_listening(process.pid))
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_came_after_the_cursor_is_told_at_once(ask: Callable[..., Any]) -> None:
    cursor = ask("log")["cursor"]
    id = ask("add", "build", "--worker", "ada")["task"]["id"]
    data = ask("watch", "--cursor", cursor)
    assert set(data) == {"events", "cursor"}
    assert [(event["event"], event["task"]) for event in data["events"]] == [("added", id)]
    ask("cancel", id)
    ask("add", "test")
    later = ask("watch", "--cursor", data["cursor"], "--event", "cancelled")
    assert [event["event"] for event in later["events"]] == ["cancelled"]


def test_what_happened_before_is_no_change(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    assert ask("watch", "--timeout", "0.01", code=5)["code"] == "timed_out"


@pytest.mark.parametrize("wrong", [("--event", "dnoe"), ("--kind", "a b"), ("--timeout", "-1"), ("extra",)])
def test_watch_refuses_what_can_never_be_right(ask: Callable[..., Any], wrong: tuple[str, ...]) -> None:
    assert ask("watch", *wrong, code=2)["code"] == "invalid"
    assert ask("watch", "--follow", *wrong, code=2)["code"] == "invalid"
    assert ask("watch", "--task", "zzzz00000000", code=6)["code"] == "not_found"


def test_a_line_for_people(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    cursor = ask("log")["cursor"]
    id = ask("add", "build")["task"]["id"]
    assert run("watch", "--cursor", cursor).out.split()[1:3] == ["added", short(id)]


def test_watch_ends_with_the_first_change_that_matches(shared: str, watcher: Callable[..., Any]) -> None:
    opened = init(shared, worker="ada")
    opened.add("before")
    process = watcher("--json", "--kind", "build", "--event", "done", "--event", "failed")
    opened.add("other")
    opened.add("build")
    for kind in ("other", "build"):
        claim = opened.claim(kinds=kind)
        assert claim is not None
        claim.done()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    [event] = json.loads(out)["data"]["events"]
    assert (event["event"], event["kind"]) == ("done", "build")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_following_goes_on_until_a_signal(shared: str, watcher: Callable[..., Any], number: signal.Signals) -> None:
    opened = init(shared, worker="ada")
    opened.add("before")
    process = watcher("--json", "--follow", "--kind", "build")
    ids = []
    for _ in range(3):
        opened.add("other")
        ids.append(opened.add("build").id)
        assert json.loads(process.stdout.readline())["task"] == ids[-1]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_following_times_out_when_nothing_matches_for_so_long(shared: str, watcher: Callable[..., Any]) -> None:
    process = subprocess.run(
        [*COMMAND, "watch", "--follow", "--timeout", "0.05"], capture_output=True, env=environment(shared), check=False
    )
    assert (process.returncode, process.stdout) == (5, b"")
