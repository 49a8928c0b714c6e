"""`log`: what happened, for people and for programs, and what happens from now on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import init
from taskyard.core.ids import short
from taskyard.core.times import rfc3339
from taskyard.doors.cli.verbs import log

from .test_processes import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

KEYS = {"at", "event", "task", "kind", "fence", "worker", "by"}


def names(data: Any) -> list[str]:
    return [event["event"] for event in data["events"]]


def test_log_gives_the_events_and_a_cursor(ask: Callable[..., Any]) -> None:
    assert ask("log")["events"] == []
    id = ask("add", "build", "--worker", "ada")["task"]["id"]
    handle = ask("claim", "--worker", "ada")["claim"]
    ask("fail", handle, "--reason", "no disk")
    data = ask("log")
    assert set(data) == {"events", "cursor"}
    assert names(data) == ["added", "claimed", "failed"]
    for event in data["events"]:
        assert set(event) >= KEYS
        assert (event["task"], event["kind"]) == (id, "build")
    last = data["events"][-1]
    assert (last["reason"], last["final"], last["worker"]) == ("no disk", False, "ada")
    ask("cancel", id)
    assert names(ask("log", "--cursor", data["cursor"])) == ["cancelled"]


def test_log_gives_no_date_for_what_waits_for_review(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    ask("add", "build", "--review")
    ask("done", ask("claim", "--worker", "ada")["claim"], "--worker", "ada")
    line = run("log", "--event", "released").out.strip()
    assert line.endswith("ada  waits for review"), line


def test_log_is_narrowed_by_task_worker_kind_and_limit(ask: Callable[..., Any]) -> None:
    one = ask("add", "build")["task"]["id"]
    ask("add", "test")
    ask("claim", one, "--worker", "ada")
    assert names(ask("log", "--task", one)) == ["added", "claimed"]
    assert names(ask("log", "--worker", "ada")) == ["claimed"]
    assert names(ask("log", "--kind", "test")) == ["added"]
    first = ask("log", "--limit", "2")
    assert names(first) == ["added", "added"]
    assert names(ask("log", "--limit", "2", "--cursor", first["cursor"])) == ["claimed"]
    assert ask("log", "--task", "zzzz00000000", code=6)["code"] == "not_found"


def test_log_since_a_moment_or_so_long_ago(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    at = ask("log")["events"][0]["at"]
    assert names(ask("log", "--since", "10m")) == ["added"]
    assert names(ask("log", "--since", at)) == ["added"]
    assert names(ask("log", "--since", "2020-01-01T00:00:00+02:00")) == ["added"]
    assert names(ask("log", "--since", "2050-01-01T00:00:00Z")) == []
    assert names(ask("log", "--since", "36500d")) == ["added"]
    time.sleep(0.02)
    assert names(ask("log", "--since", "0.001")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("--since", "yesterday"),
        ("--since", "2026-01-31T12:00:00"),
        ("--limit", "0"),
        ("--limit", "many"),
        ("--kind", "a b"),
        ("--cursor", "nonsense!"),
        ("--cursor=",),
        ("--worker", "a\nb"),
        ("extra",),
    ],
)
def test_log_refuses_what_can_never_be_right(ask: Callable[..., Any], wrong: tuple[str, ...]) -> None:
    assert ask("log", *wrong, code=2)["code"] == "invalid"
    assert ask("log", "--follow", *wrong, code=2)["code"] == "invalid"


def test_the_log_for_people_is_aligned_and_whole(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    id = ask("add", "build", "--worker", "boss")["task"]["id"]
    old = ask("claim", "--worker", "漢字")["claim"]
    ask("note", old, "half\nway \x1b[31m")
    ask("resume", "--worker", "漢字")
    ask("done", old, code=4)
    ask("cancel", id, "--reason", "not needed", "--worker", "boss")
    text = run("log").out
    lines = text.splitlines()
    assert [line.split()[1] for line in lines] == ["added", "claimed", "noted", "claimed", "refused", "cancelled"]
    assert "\x1b" not in text
    assert all(line.index(short(id)) == lines[0].index(short(id)) for line in lines)
    assert all(line.index("build") == lines[0].index("build") for line in lines)
    for number, parts in enumerate(
        [
            ("(by boss)",),
            ("漢字",),
            ("half way \\x1b[31m",),
            ("resumed",),
            ("done came too late",),
            ("not needed", "(by boss)"),
        ]
    ):
        for part in parts:
            assert part in lines[number]
    assert not any(line.endswith(" ") for line in lines)


def test_the_log_names_a_team_and_its_project() -> None:
    about = {"at": "2026-01-31T12:00:00.000Z", "task": "", "fence": 0, "kind": "", "worker": None, "by": "ann"}
    given = log.Lines().line({**about, "event": "team_given", "team": "web", "project": "shop"})
    assert given.endswith("web  shop  (by ann)")
    changed = log.Lines().line({**about, "event": "team_changed", "team": "web", "changes": {"rate": None}})
    assert changed.endswith("web  rate = none  (by ann)")


def test_an_empty_log_says_so_and_a_long_one_how_to_see_more(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    nothing = run("log")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "nothing happened\n")
    ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 3)
    last = run("log", "--limit", "2").out.splitlines()[-1]
    assert last.startswith("more: --cursor ")
    assert len(run("log", "--cursor", last.split()[-1]).out.splitlines()) == 1


def test_event_names_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    event = {
        "at": rfc3339(0), "event": "reaped", "task": "0" * 21, "kind": "build", "fence": 3, "worker": "ada", "by": "bob",
        "final": True, "reason": "gone", "due": rfc3339(1000),
    }  # fmt: skip
    plain = log.Lines().line(event)
    assert (
        plain
        == f"1970-01-01T00:00:00Z  reaped     {'0' * 21}  3   build  ada  for good  due again 1970-01-01T00:00:01Z  gone  (by bob)"
    )
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert log.Lines().line(event) == plain.replace("reaped   ", "\x1b[31mreaped   \x1b[0m")


def test_follow_ends_after_so_many_events(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 5)
    answer = run("log", "--follow", "--limit", "3", "--json")
    assert answer.code == 0
    assert [json.loads(line)["event"] for line in answer.out.splitlines()] == ["added"] * 3
    assert len(run("log", "--follow", "--limit", "4").out.splitlines()) == 4


@pytest.fixture
def shared(tmp_path: Path) -> str:
    path = str(tmp_path / "shared")
    init(path, durability="fast").close()
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("form", [["--json"], []])
def test_follow_prints_what_happens_and_ends_quietly_on_a_signal(
    shared: str, number: signal.Signals, form: list[str]
) -> None:
    opened = init(shared, worker="ada")
    opened.add("before")
    with subprocess.Popen(
        [*COMMAND, "log", "--follow", *form], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(shared)
    ) as process:
        assert process.stdout is not None
        events = []

        def line() -> str:
            assert process.stdout is not None
            text = process.stdout.readline().decode()
            return str(json.loads(text)["event"]) if form else text.split()[1]

        events.append(line())
        for kind in ("one", "two"):
            opened.add(kind)
            claim = opened.claim(kinds=kind)
            assert claim is not None
            claim.done()
            events += [line() for _ in range(3)]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert events == ["added"] + ["added", "claimed", "done"] * 2
    assert (process.returncode, rest, errors) == (0, b"", b"")


def test_follow_ends_like_other_programs_when_its_reader_goes_away(shared: str) -> None:
    opened = init(shared)
    opened.add("build")
    with subprocess.Popen(
        [*COMMAND, "log", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(shared)
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        opened.add("build")
        assert process.wait(timeout=60) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_following_a_yard_that_is_missing_exits_8(run: Callable[..., Answer]) -> None:
    answer = run("log", "--follow", "--json", "--yard", "elsewhere")
    assert (answer.code, answer.error["code"]) == (8, "unavailable")
