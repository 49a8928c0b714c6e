"""A crew's file: what it may say, and what is said about one that is wrong. Nothing is started here."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.core.errors import Invalid
from taskyard.doors.cli.verbs.running.crew import config
from taskyard.doors.cli.verbs.running.crew.process import CrewProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Answer

DOCS = Path(__file__).parents[2] / "docs" / "crew.md"
READY = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL) if DOCS.exists() else []
WHOLE = """
yard = "../yard"

[defaults]
kinds = ["build"]
grace = "30s"
environment = { LANG = "C", MODE = "all" }

[defaults.checks]
tests = "make test"

[worker.ada]
command = "./agent 'two words' {file}"
concurrency = 2
timeout = "1h"
restart = "on-failure"
environment = { MODE = "own" }
directory = "trees/ada"

[worker.twin]
command = ["./agent", "{file}"]
kinds = ["test", "lint"]
count = 3
first_pause = 0.5
longest_pause = "10m"
hangs_after = "2h"

[worker.twin.checks]
lint = ["ruff", "check"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "crew.toml"


def refused(file: Path, text: str) -> Invalid:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid) as caught:
        config.read(str(file))
    return caught.value


def test_a_file_names_workers_with_all_that_they_need(file: Path) -> None:
    file.write_text(WHOLE)
    read = config.read(str(file))
    ada, *twins = read.members
    assert read.yard == str(file.parent.parent / "yard")
    assert ada.command == ["./agent", "two words", "{file}"]
    assert (ada.kinds, ada.concurrency, ada.timeout, ada.grace, ada.restart) == (["build"], 2, 3600, 30, "on-failure")
    assert ada.environment == {"LANG": "C", "MODE": "own"}
    assert ada.directory == str(file.parent / "trees" / "ada")
    assert ada.checks == {"tests": ["make", "test"]}
    assert [twin.name for twin in twins] == ["twin-1", "twin-2", "twin-3"]
    assert twins[0].kinds == ["test", "lint"]
    assert twins[0].directory == str(file.parent)
    assert (twins[0].first_pause, twins[0].longest_pause, twins[0].hangs_after) == (0.5, 600, 7200)
    assert twins[0].checks == {"tests": ["make", "test"], "lint": ["ruff", "check"]}


def test_a_worker_needs_no_more_than_a_command(file: Path) -> None:
    file.write_text("[worker.ada]\ncommand = 'true'\n")
    (ada,) = config.read(str(file)).members
    assert (ada.kinds, ada.concurrency, ada.restart, ada.grace, ada.timeout) == ([], 1, "always", 10, None)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "no worker is named", "[worker.ada]"),
        ("[worker.ada]\n", "line 1: worker.ada: it has no command", "command = "),
        ("[worker.ada]\ncomand = 'x'", "line 2: worker.ada.comand: there is no such key", "known here: command, "),
        ("[workers.ada]\ncommand = 'x'", "line 1: workers: there is no such key", "known here: "),
        ("[[worker]]\ncommand = 'x'", "line 1: worker: each worker is a table", "instead of [[worker]]"),
        ("worker = 3", "line 1: worker: it must be a table, not a number", "[worker.ada]"),
        ("[worker]\nada = 3", "line 2: worker.ada: a worker is a table", "[worker.ada]"),
        ("[worker.ada]\ncommand = 'a | b'", "line 2: worker.ada.command: no shell reads this", "\"sh\", \"-c\", 'a | b'"),
        ("[worker.ada]\ncommand = \"a 'b\"", "line 2: worker.ada.command: No closing quotation", "list of words"),
        ("[worker.ada]\ncommand = []", "line 2: worker.ada.command: there is no word in it", "./agent"),
        ("[worker.ada]\ncommand = 7", "it must be a text or a list of texts, not a number", "./agent"),
        ("[worker.ada]\n\nkinds = 'b'\ncommand='x'", "line 3: worker.ada.kinds: it must be a list", 'write ["b"]'),
        ("[worker.ada]\nkinds = ['a b']\ncommand='x'", "line 2: worker.ada.kinds: kind 'a b' is not", "letters"),
        ("[worker.ada]\ncount = 0\ncommand='x'", "line 2: worker.ada.count: it must be between 1", ""),
        ("[worker.ada]\nconcurrency = '2'\ncommand='x'", "worker.ada.concurrency: it must be a whole number", ""),
        ("[worker.ada]\ntimeout = 'soon'\ncommand='x'", "line 2: worker.ada.timeout: it is not a duration", "10m"),
        ("[worker.ada]\nrestart = 'alway'\ncommand='x'", "'alway' is no restart policy", "always, on-failure, never"),
        ("[worker.ada]\nrestart = true\ncommand='x'", "True is no restart policy", "always, on-failure, never"),
        (
            "[worker.ada]\ncommand='x'\n[worker.ada.environment]\nN = 3",
            "line 4: worker.ada.environment.N: it must be a text, not a number",
            'write N = "3"',
        ),
        ("[defaults]\ncount = 2\n[worker.a]\ncommand='x'", "line 2: defaults.count: it is for one worker alone", "[worker.NAME]"),
        ("[worker.a]\ncount = 2\ncommand='x'\n[worker.a-1]\ncommand='x'", "a-1 is also one of worker.a", "another name"),
        ("[worker.a]\ncommand='x'\n[worker.a]\ncommand='y'", "line 3", "count"),
        ("[worker.a]\ncommand = x", "line 2", "quotes"),
        (f"[worker.{'x' * 61}]\ncommand='x'", "is too long", "60 bytes"),
        ("[worker.a]\nfirst_pause = 9\nlongest_pause = 2\ncommand='x'", "line 3: worker.a.longest_pause: it is shorter", "9"),
        ("[worker.a]\nenvironment = {AGENT_ID='b'}\ncommand='x'", "the crew sets it for every worker", "worker's name"),
        ("[defaults.environment]\nTASKYARD='b'\n[worker.a]\ncommand='x'", "the crew sets it for every worker", "'yard'"),
        ("[worker.a]\nchecks = {\"a\\tb\" = 'x'}\ncommand='x'", "a check's name", ""),
        ("yard = 3\n[worker.a]\ncommand='x'", "line 1: yard: it must be a text, not a number", "quotes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line_and_what_to_write_instead(
    file: Path, text: str, message: str, hint: str
) -> None:
    error = refused(file, text)
    assert message in error.message
    assert str(file) in error.message
    assert hint in (error.hint or "")


def test_a_file_that_cannot_be_read_is_refused(file: Path, run: Callable[..., Answer]) -> None:
    assert "cannot be read" in run("crew", str(file)).err
    file.write_bytes(b"\xff")
    answer = run("crew", str(file))
    assert (answer.code, "UTF-8" in answer.err) == (2, True)


def test_check_is_content_with_a_crew_that_could_start(ask: Callable[..., Any], yard: Path, file: Path) -> None:
    file.write_text("yard = '.taskyard'\n[worker.ada]\ncommand = 'sh -c true'\ncount = 2\n")
    assert ask("crew", "--check", str(file)) == {"ok": True, "workers": ["ada-1", "ada-2"], "complaints": []}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[worker.ada]\ncommand = 'no-such-agent {file}'\ncount = 2", "line 2: worker.ada.command: no-such-agent is no"),
        ("[worker.ada]\ncommand = './agent'", "line 2: worker.ada.command: ./agent is no command here"),
        ("[worker.ada]\ncommand = 'sh'\ndirectory = 'gone'", "line 3: worker.ada.directory: there is no folder"),
        ("[worker.ada]\ncommand = 'sh'\nchecks = ['tests']", "line 3: worker.ada.checks: no check is called 'tests'"),
        ("[worker.ada]\ncommand = 'sh'\nchecks = {t = 'no-such'}", "worker.ada.checks.t: no-such is no command here"),
        ("yard = 'gone'\n[worker.ada]\ncommand = 'sh'", "line 1: yard:"),
        ("yard = 'memory:x'\n[worker.ada]\ncommand = 'sh'", "a memory: yard is for one"),
    ],
)  # fmt: skip
def test_check_names_what_is_not_there(
    run: Callable[..., Answer], yard: Path, file: Path, text: str, complaint: str
) -> None:
    file.write_text(text)
    answer = run("crew", "--check", str(file), "--json")
    (only,) = answer.data["complaints"]
    assert answer.code == 2
    assert complaint in only
    assert complaint in run("crew", str(file), "--check").out


def test_a_check_may_be_everybodys_or_the_yards(run: Callable[..., Answer], yard: Path, file: Path) -> None:
    settings = json.loads((yard / "yard.json").read_text())
    settings["settings"]["checks"] = {"lint": ["true"]}
    (yard / "yard.json").write_text(json.dumps(settings))
    file.write_text(
        "[defaults.checks]\ntests = 'true'\n[worker.ada]\ncommand = 'sh'\n[worker.bob]\ncommand='sh'\nchecks = ['lint', 'tests']"
    )
    answer = run("crew", "--check", str(file))
    assert answer.code == 0, answer.out


def test_commands_are_looked_for_where_the_worker_will_look(
    run: Callable[..., Answer], yard: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin/agent", "tree/own"):
        path = file.parent / name
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    file.write_text(
        f"[worker.ada]\ncommand = 'agent'\nenvironment = {{ PATH = '{file.parent}/bin' }}\n[worker.bob]\ncommand = './own'\ndirectory = 'tree'\n"
    )
    monkeypatch.chdir("/")
    answer = run("crew", "--check", str(file), "--yard", str(yard))
    assert answer.code == 0, answer.out


@pytest.mark.parametrize("text", READY, ids=lambda text: text.strip().splitlines()[0])
def test_the_ready_files_of_the_docs_are_right(
    run: Callable[..., Answer], yard: Path, file: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """With stand-ins on PATH for the agents, and for the scripts and folders that they name."""
    stand_ins = file.parent / "stand-ins"
    stand_ins.mkdir()
    for name in ("claude", "codex", "gemini", "opencode", "aider", "make", "git", "ruff"):
        (stand_ins / name).symlink_to("/bin/true")
    (file.parent / "agent.sh").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{stand_ins}{os.pathsep}{os.environ['PATH']}")
    file.write_text(text)
    for folder in re.findall(r'directory = "(.*)"', text):
        (file.parent / folder).mkdir(parents=True, exist_ok=True)
    answer = run("crew", "--check", str(file))
    assert answer.code == 0, answer.out + answer.err


def test_a_slip_in_the_name_of_what_is_filled_in_is_told_and_braces_of_other_tools_are_not(
    run: Callable[..., Answer], yard: Path, file: Path
) -> None:
    file.write_text('[worker.a]\ncommand = ["awk", "{print}", "{fiel}", "{title}", "{file}"]\n')
    answer = run("--yard", str(yard), "crew", "--check", str(file))
    assert answer.code == 0
    assert [word for word in ("{fiel}", "{title}", "{print}") if f"place of {word}" in answer.err] == [
        "{fiel}",
        "{title}",
    ]


def test_a_long_list_of_workers_is_cut_short(run: Callable[..., Answer], yard: Path, file: Path) -> None:
    file.write_text("[worker.a]\ncommand = 'true'\ncount = 1000\n")
    answer = run("--yard", str(yard), "crew", "--check", str(file))
    assert answer.out.strip().endswith("and 988 more)")
    file.write_text("[worker.a]\ncommand = 'true'\n")
    assert "1 worker (a)" in run("--yard", str(yard), "crew", "--check", str(file)).out


def test_a_worker_may_have_a_worktree_for_each_task(tmp_path: Path) -> None:
    file = tmp_path / "crew.toml"
    file.write_text(
        '[defaults]\ncommand = "true"\nworktree = true\n[worker.ada]\n[worker.bob]\nworktree = "trees"\n[worker.eve]\nworktree = false\n'
    )
    members = config.read(str(file)).members
    words = [[word for word in CrewProcess(one).command(False) if "--worktree" in word] for one in members]
    assert words == [["--worktree"], [f"--worktree={tmp_path / 'trees'}"], []]
