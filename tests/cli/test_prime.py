"""`prime`: what an agent must know, soon and always; and its place in the settings of a client, byte for byte."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import init, opening
from taskyard.core.processes import Process
from taskyard.doors.cli.verbs import prime
from taskyard.doors.cli.verbs.prime import install

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

    Run = Callable[..., Answer]

TOKENS = 600


def test_prime_has_the_loop_what_is_ready_and_what_i_hold(place: Path, run: Run) -> None:
    with init() as yard:
        yard.add("build", title="Mine")
        yard.add("test", title="Next")
        yard.claim(worker="ada")
    told = run("prime", "--worker", "ada").out
    for words in ("taskyard claim", "taskyard done HANDLE", "## You hold", "build: Mine", "## Ready", "test: Next"):
        assert words in told
    assert "You hold" not in run("prime", "--worker", "bob").out


def test_prime_finds_the_claims_of_the_agent_that_runs_the_hook(place: Path, run: Run) -> None:
    agent = Process.of(os.getppid())
    assert agent is not None
    with init() as yard:
        yard.add("build", title="Mine")
        yard.claim(worker=agent.worker_name())
    assert "build: Mine" in run("prime").out


def test_prime_says_why_nothing_is_ready(place: Path, run: Run) -> None:
    with init() as yard:
        yard.add("build")
        yard.pause()
    told = run("prime").out
    assert "Nothing is ready" in told
    assert "paused" in told


def test_prime_stays_small_whatever_the_tasks_are(place: Path, run: Run) -> None:
    with init() as yard:
        for _ in range(12):
            yard.add("k" * 60, title="words " * 80)
        for _ in range(6):
            yard.claim(worker="ada")
    told = run("prime", "--worker", "ada").out
    assert len(told) / 4 < TOKENS
    assert told.count("kkk: words") == 10


@pytest.mark.parametrize("url", [None, "nowhere", "postgresql:///x?host=/nowhere", "http://127.0.0.1:1/x", "file:"])
def test_prime_never_fails_its_hook(place: Path, run: Run, url: str | None) -> None:
    answer = run("prime", *([] if url is None else ["--yard", url]))
    assert answer.code == 0
    assert answer.out.startswith("Taskyard: ")
    assert answer.out.count("\n") == 1


def test_prime_does_not_wait_for_a_yard_that_hangs(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    hung = Event()
    monkeypatch.setattr(prime, "WITHIN", 0.05)
    monkeypatch.setattr(opening, "open", lambda *_: hung.wait())
    answer = run("prime")
    assert answer.code == 0
    assert "did not answer within" in answer.out
    assert answer.out.count("\n") == 1
    hung.set()


def test_a_hook_gets_the_text_as_clients_want_it(place: Path, run: Run) -> None:
    init().close()
    told = json.loads(run("prime", "--hook").out)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert told["additionalContext"].startswith("# Taskyard")


# What people have in their files.
JSONS = [
    "{}", "{}\n", "{ }", "{\n}\n", "{\r\n}\r\n", '{"a": 1}', '{"a":1}\n', '{\n  "a": 1\n}\n', '{\r\n\t"a": 1,\r\n\t"b": []\r\n}',
    '{"mcpServers": {}}', '{"mcpServers": {\n}}', '{\n  "mcpServers": {\n    "x": {"command": "y"}\n  }\n}\n',
    '{"hooks": {}}', '{"hooks": {"SessionStart": []}}', '{ "hooks" : { "SessionStart" : [ ] } , "z": "}" }',
    '{\n  "hooks": {\n    "SessionStart": [\n      {"hooks": []}\n    ],\n    "Stop": []\n  },\n  "mcpServers": {}\n}\n',
    '// mine\n{\n  // why\n  "a": 1, /* b */\n  "url": "http://x//y", "q": "\\"",\n}\n', "\ufeff{}\n",
]  # fmt: skip
TEXTS = ["", "\n", "# Rules", "# Rules\n", "# Rules\n\n", "# Rules\r\n\r\nBe kind.\r\n", "a\r\nb", "# ünï\n\n\n"]
TOMLS = ["", 'model = "x"\n', '[mcp_servers.other]\ncommand = "x"', "# only a comment\r\n"]


def originals(path: str) -> list[str]:
    return JSONS if path.endswith("json") else TOMLS if path.endswith("toml") else TEXTS


@pytest.mark.parametrize("client", sorted(install.CLIENTS))
def test_what_was_installed_is_taken_out_byte_for_byte(place: Path, run: Run, client: str) -> None:
    files = list(install.CLIENTS[client])
    for number in range(max(len(originals(path)) for path in files)):
        before = {path: originals(path)[number % len(originals(path))].encode() for path in files}
        for path, content in before.items():
            (place / path).parent.mkdir(exist_ok=True)
            (place / path).write_bytes(content)
        assert run("prime", "--install", client, "--yes").code == 0
        installed = {path: (place / path).read_bytes() for path in files}
        assert all(installed[path] != before[path] for path in files)
        assert run("prime", "--install", client, "--yes", "--json").data["changed"] == [], (
            "a second time changes nothing"
        )
        for path, content in installed.items():
            check(path, content.decode())
        assert run("prime", "--uninstall", client, "--yes").code == 0
        assert {path: (place / path).read_bytes() for path in files} == before


def check(path: str, text: str) -> None:
    """The client can read it, and finds all that is ours."""
    if path.endswith("toml"):
        assert tomllib.loads(text)["mcp_servers"]["taskyard"] == {"command": "taskyard", "args": ["mcp"]}
    elif path.endswith("json") and "//" not in text.replace("://", ""):
        loaded: Any = json.loads(text.removeprefix("\ufeff"))
        for entry in install.CLIENTS["gemini"][".gemini/settings.json"]:
            if entry in [one for files in install.CLIENTS.values() for one in files.get(path, ())]:
                at = loaded
                for name in entry.path:
                    at = at[name]
                assert (entry.value in at) if entry.key is None else (at[entry.key] == entry.value)
    elif not path.endswith("json"):
        assert text.count("taskyard:begin") == text.count("taskyard:end") == 1


@pytest.mark.parametrize("client", sorted(install.CLIENTS))
def test_files_that_were_made_are_gone_after_an_uninstall(place: Path, run: Run, client: str) -> None:
    assert run("prime", "--install", client, "--yes").code == 0
    for path in install.CLIENTS[client]:
        check(path, (place / path).read_text())
    assert run("prime", "--uninstall", client, "--yes").code == 0
    assert list(place.iterdir()) == []


def test_what_a_formatter_or_a_person_has_changed_since_stays(place: Path, run: Run) -> None:
    run("prime", "--install", "gemini", "--yes")
    path = place / ".gemini/settings.json"
    settings = json.loads(path.read_text())
    settings["mcpServers"]["other"] = {"command": "x"}
    settings["theme"] = "dark"
    path.write_text(json.dumps(settings, indent=4))
    run("prime", "--uninstall", "gemini", "--yes")
    left = json.loads(path.read_text())
    assert left == {"mcpServers": {"other": {"command": "x"}}, "hooks": {"SessionStart": []}, "theme": "dark"}


def test_an_entry_that_was_written_by_hand_stays_as_it_is(place: Path, run: Run) -> None:
    own = '{"mcpServers": {"taskyard": {"command": "taskyard", "args": ["mcp", "--worker", "ada"]}}}'
    (place / ".mcp.json").write_text(own)
    (place / ".codex").mkdir()
    toml = '[mcp_servers.taskyard]\ncommand = "mine"\n'
    (place / ".codex/config.toml").write_text(toml)
    for client in ("claude", "codex"):
        assert run("prime", "--install", client, "--yes").code == 0
    assert (place / ".mcp.json").read_text() == own
    assert (place / ".codex/config.toml").read_text() == toml


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"mcpServers": 3}', '{"mcpServers": []}', "nonsense", '{"a" 1}', '{"a": }']
)
def test_a_file_that_cannot_be_read_stops_it_before_anything_is_changed(place: Path, run: Run, text: str) -> None:
    (place / ".mcp.json").write_text(text)
    answer = run("prime", "--install", "claude", "--yes")
    assert answer.code == 7
    assert "nothing was changed" in answer.err
    assert [path.name for path in place.iterdir()] == [".mcp.json"]
    assert (place / ".mcp.json").read_text() == text


def test_the_difference_is_shown_and_nothing_is_written_unasked(place: Path, run: Run) -> None:
    answer = run("prime", "--install", "claude")
    assert answer.code == 2
    assert "+## Tasks" in answer.err
    assert "--yes" in answer.err
    assert list(place.iterdir()) == []


def test_an_older_section_is_renewed_where_it_stands(place: Path, run: Run) -> None:
    (place / "AGENTS.md").write_text("a\n\n<!-- taskyard:begin -->\nold\n<!-- taskyard:end -->\n\nz\n")
    run("prime", "--install", "agents-md", "--yes")
    text = (place / "AGENTS.md").read_text()
    assert text.startswith("a\n\n<!-- taskyard:begin -->\n## Tasks")
    assert text.endswith("<!-- taskyard:end -->\n\nz\n")
    run("prime", "--uninstall", "agents-md", "--yes")
    assert (place / "AGENTS.md").read_text() == "a\n\nz\n"


def test_an_unknown_client_is_refused_with_those_that_are_known(place: Path, run: Run) -> None:
    answer = run("prime", "--install", "emacs", "--yes")
    assert answer.code == 2
    assert "claude, codex, gemini, agents-md" in answer.err
