"""How a command line is read: aliases, global options anywhere, values that look like options, help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard import __version__
from taskyard.doors.cli import verbs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

VERBS = [verb for group in verbs.GROUPS.values() for verb in group]
SIX = ["ready", "claim", "note", "done", "fail", "release"]


def test_the_verbs_are_those_of_the_design() -> None:
    assert set(VERBS) == {
        *SIX,
        "init",
        "work",
        "demo",
        "crew",
        "guard",
        "fence",
        "publish",
        "accept",
        "reject",
        "worktree",
        "doctor",
        "add",
        "list",
        "mission",
        "sync",
        "show",
        "graph",
        "stats",
        "heartbeat",
        "cancel",
        "retry",
        "edit",
        "pause",
        "settings",
        "prune",
        "migrate",
        "unpause",
        "log",
        "wait",
        "why",
        "watch",
        "resume",
        "janitor",
        "fsck",
        "serve",
        "top",
        "sh",
        "mcp",
        "prime",
        "token",
        "team",
        "torture",
        "schedule",
        "copy",
        "alive",
        "spool",
        "orchestrate",
        "import",
        "export",
        "help",
        "version",
    }


def test_aliases_do_what_their_verb_does(ask: Callable[..., Any]) -> None:
    for claim, done in (("next", "complete"), ("start", "close")):
        assert ask("create", "build")["created"] is True
        assert ask(done, ask(claim)["claim"])["task"]["state"] == "done"


@pytest.mark.parametrize(
    "argv",
    [
        ("--json", "--yard", "y", "--worker", "ada", "claim"),
        ("claim", "--json", "--yard", "y", "--worker", "ada"),
        ("--json", "claim", "--yard=y", "--worker=ada"),
        ("--worker=ada", "--yard=y", "claim", "--json"),
    ],
)
def test_global_options_stand_before_or_after_the_verb(run: Callable[..., Answer], argv: tuple[str, ...]) -> None:
    run("init", "y", "--durability", "fast")
    run("add", "build", "--yard", "y")
    assert run(*argv).data["task"]["worker"] == "ada"


def test_a_worker_is_named_by_option_then_environment(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 3)
    monkeypatch.setenv("AGENT_ID", "agent")
    assert ask("claim")["task"]["worker"] == "agent"
    monkeypatch.setenv("TASKYARD_WORKER", "worker")
    assert ask("claim")["task"]["worker"] == "worker"
    assert ask("claim", "--worker", "option")["task"]["worker"] == "option"


def test_the_nearest_yard_upward_is_meant(
    ask: Callable[..., Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(place / "deep" / "down")
    ask("add", "build")
    assert ask("stats")["counts"]["todo"] == 1


def test_a_value_may_begin_with_a_dash(ask: Callable[..., Any]) -> None:
    ask("add", "build", "--data", "-1", "--title", "-v is broken")
    claim = ask("claim")
    assert (claim["task"]["data"], claim["task"]["title"]) == (-1, "-v is broken")
    assert ask("fail", claim["claim"], "--no-retry", "--reason=--json")["task"]["error"] == "--json"


def test_an_option_is_not_taken_for_the_value_of_the_one_before(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    handle = ask("claim")["claim"]
    assert (
        ask("fail", handle, "--reason", "--no-retry", code=2)["hint"]
        == "write --reason=--no-retry if that is the value"
    )
    assert ask("fail", handle, "--no-retry", "--reason", code=2)["code"] == "invalid"


def test_after_two_dashes_everything_is_a_word(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert run("note", "--", ask("claim")["claim"], "--json").code == 0
    assert ask("show", id)["notes"][0]["text"] == "--json"


def test_of_an_option_that_is_given_twice_the_last_counts(ask: Callable[..., Any]) -> None:
    assert ask("add", "build", "--title", "a", "--title", "b")["task"]["title"] == "b"


def test_durations_are_seconds_minutes_hours_and_days(ask: Callable[..., Any]) -> None:
    for text in ("30", "0.5", "10m", "2h", "1d"):
        ask("add", "build", "--delay", text, "--lease", text)


def test_the_version_and_the_help_need_no_yard(run: Callable[..., Answer]) -> None:
    assert run("--version").out == f"taskyard {__version__}\n"
    assert run("claim", "--version", "--json").data == {"version": __version__}
    assert run("-h").out == run("--help").out
    assert run("--help", "--json").code == 0
    assert run("--json", "--help").data["help"].startswith("Hand work")


def test_the_help_shows_the_agents_six_first(run: Callable[..., Answer]) -> None:
    text = run("--help").out
    places = [text.index(f"\n  {verb} ") for verb in VERBS]
    assert places == sorted(places)
    assert VERBS[:6] == SIX
    assert max(map(len, text.splitlines())) < 80


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_describes_it_and_has_an_example(run: Callable[..., Answer], verb: str) -> None:
    answer = run(verb, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"usage: taskyard {verb}")
    page, examples = answer.out.split("\nExamples:\n")
    assert max(map(len, page.splitlines()[1:])) < 80, "a usual terminal has 80 columns"
    assert f"taskyard {verb}" in examples
    assert "--json" in answer.out
    assert run(verb, "-h").out == answer.out


def test_help_wins_over_what_is_missing_and_aliases_show_the_verb(run: Callable[..., Answer]) -> None:
    assert run("show", "--help").code == 0
    assert run("next", "--help").out == run("claim", "--help").out
    assert "next, start" in run("claim", "--help").out


@pytest.mark.parametrize("verb", ["list", "log"])
def test_list_and_log_have_a_worker_option_of_their_own(run: Callable[..., Answer], verb: str) -> None:
    assert run(verb, "--help").out.count("--worker NAME") == 1
