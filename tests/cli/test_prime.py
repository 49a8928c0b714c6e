"""`prime`: what an agent must know, soon and always; and its place in the settings of a client, byte for byte."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
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


def test_prime_tells_a_workers_command_of_its_own_task_alone(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with init() as yard:
        yard.add("build", title="Mine")
        yard.add("build", title="Next")
        claim = yard.claim(worker="ada")
        assert claim is not None
        monkeypatch.setenv("TASKYARD_WORKER", "ada")
        monkeypatch.setenv("TASKYARD_CLAIM", claim.handle)
        assert "Next" in run("prime").out, "a claim of one's own shell"
        monkeypatch.setenv("TASKYARD_TASK", claim.id)
        told = run("prime").out
        assert "build: Mine" in told
        assert "Claim nothing else" in told
        assert "Next" not in told
        assert run("resume").code == 2
        with init("another") as other:
            told = run("prime", "--yard", other.url).out
        assert told.startswith("Taskyard: no task has the id")
        claim.release()
        assert "is over" in run("prime").out


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
    monkeypatch.setattr(opening, "open_for_command", lambda *_: hung.wait())
    answer = run("prime")
    assert answer.code == 0
    assert "did not answer within" in answer.out
    assert answer.out.count("\n") == 1
    hung.set()


@pytest.mark.parametrize("lost", ["exec >&-;", "exec > /dev/full;", ""], ids=["closed", "full", "no reader"])
def test_prime_never_fails_a_hook_whose_output_is_lost(place: Path, lost: str) -> None:
    init().close()
    reader, writer = os.pipe()
    os.close(reader)
    words = ["sh", "-c", f'{lost} exec "$@"', "sh", sys.executable, "-m", "taskyard", "prime", "--hook"]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


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
    for client in ("claude", "codex"):
        assert run("prime", "--uninstall", client, "--yes").code == 0
    assert (place / ".mcp.json").read_text() == own
    assert (place / ".codex/config.toml").read_text() == toml


def test_an_entry_of_toml_that_a_person_has_changed_since_stays(place: Path, run: Run) -> None:
    run("prime", "--install", "codex", "--yes")
    path = place / ".codex/config.toml"
    for before, after in (
        ('["mcp"]', '["mcp", "--worker", "ada"]'),
        ('"ada"]', '"ada"]\nenv = { TASKYARD = "/yard" }'),
    ):
        path.write_text(path.read_text().replace(before, after))
        changed = path.read_text()
        for step in ("--install", "--uninstall", "--install"):
            assert run("prime", step, "codex", "--yes").code == 0
            assert path.read_text() == changed


def test_an_entry_of_the_same_name_in_another_place_stays(place: Path, run: Run) -> None:
    own = '{"projects": {"mcpServers": {"taskyard": {"command": "taskyard", "args": ["mcp"]}}}}'
    (place / ".mcp.json").write_text(own)
    assert run("prime", "--uninstall", "claude", "--yes").code == 0
    assert (place / ".mcp.json").read_text() == own


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"mcpServers": 3}', '{"mcpServers": []}', "nonsense", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', '{"a": 1]',
     '{"a": [1}}', '{"a": 1}}', '{"a": b}', "{a: 1}", '{"a": "1\n2"}', '{"a": 1}\n>>>>>>> theirs\n', '{"a": 1} /* b'],
)  # fmt: skip
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


BEGIN, END = "<!-- taskyard:begin -->", "<!-- taskyard:end -->"
HALVED = [
    f"mine\n{BEGIN}\nmore of mine\n",
    f"mine\n{END}\nmore of mine\n",
    f"mine\n{END}\nmore of mine\n{BEGIN}\nand more",
    f"mine: the marks are `{BEGIN}` and `{END}`\n",
    f"mine\n{BEGIN}\n{BEGIN}\nmore of mine\n{END} \u00fc\n",
    f"mine\r\n{BEGIN}\r\nmore of mine",
]


@pytest.mark.parametrize("text", HALVED)
def test_half_of_a_marked_section_takes_nothing_of_the_users_along(place: Path, run: Run, text: str) -> None:
    path = place / "AGENTS.md"
    path.write_bytes(text.encode())
    for _ in range(2):
        assert run("prime", "--install", "agents-md", "--yes").code == 0
        installed = path.read_bytes().decode()
        assert installed.startswith(text)
        assert run("prime", "--install", "agents-md", "--yes", "--json").data["changed"] == []
        assert run("prime", "--uninstall", "agents-md", "--yes").code == 0
        assert path.read_bytes() == text.encode()


def test_half_of_a_marked_section_of_toml_takes_no_table_along(place: Path, run: Run) -> None:
    (place / ".codex").mkdir()
    path = place / ".codex/config.toml"
    path.write_text('# taskyard:begin\n[mcp_servers.other]\ncommand = "x"\n')
    for step in ("--install", "--install", "--uninstall"):
        assert run("prime", step, "codex", "--yes").code == 0
        assert tomllib.loads(path.read_text())["mcp_servers"]["other"] == {"command": "x"}


def test_a_section_that_a_merge_has_doubled_is_taken_out_whole(place: Path, run: Run) -> None:
    section = f"{BEGIN}\nold\n{END}\n"
    (place / "AGENTS.md").write_text(f"a\n\n{section}\n{section}z\n")
    run("prime", "--uninstall", "agents-md", "--yes")
    assert "taskyard" not in (place / "AGENTS.md").read_text()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_that_a_user_has_put_around_the_section_stay_lines(place: Path, run: Run, newline: str) -> None:
    path = place / "AGENTS.md"
    for above, below in (("a", "b"), ("", "b"), ("# a", "\nb")):
        before, after = (f"{text}\n".replace("\n", newline) if text else "" for text in (above, below))
        run("prime", "--install", "agents-md", "--yes")
        section = path.read_bytes().decode().replace("\n", newline)
        path.write_bytes(f"{before}{section}{after}".encode())
        assert run("prime", "--uninstall", "agents-md", "--yes").code == 0
        assert path.read_bytes().decode() == f"{before}{after}"
        path.unlink()


@pytest.mark.parametrize("text", ["", "mine", "mine\n", "a\r\nb", "\ufeff"])
def test_a_line_that_is_appended_by_a_shell_stays_and_hides_no_section(place: Path, run: Run, text: str) -> None:
    path = place / "AGENTS.md"
    path.write_bytes(text.encode())
    run("prime", "--install", "agents-md", "--yes")
    with path.open("ab") as file:
        file.write(b"be kind\n")
    assert run("prime", "--install", "agents-md", "--yes", "--json").data["changed"] == []
    run("prime", "--uninstall", "agents-md", "--yes")
    left = path.read_bytes().decode()
    assert "taskyard" not in left
    assert left.startswith(text)
    assert left.splitlines() == [*text.splitlines(), "be kind"] or not text.strip("\ufeff")


def test_a_file_that_cannot_be_written_stops_it_before_anything_is_changed(place: Path, run: Run) -> None:
    (place / "CLAUDE.md").write_text("mine\n")
    (place / ".mcp.json").symlink_to("/proc/nowhere/mcp.json")
    answer = run("prime", "--install", "claude", "--yes")
    assert answer.code == 8
    assert ".mcp.json cannot be written" in answer.err
    assert (place / "CLAUDE.md").read_text() == "mine\n"
    assert sorted(path.name for path in place.iterdir()) == [".mcp.json", "CLAUDE.md"]


def test_a_read_only_file_stops_it_for_every_user(place: Path, run: Run) -> None:
    (place / ".mcp.json").write_text("{}")
    (place / ".mcp.json").chmod(0o444)
    answer = run("prime", "--install", "claude", "--yes")
    assert answer.code == 8
    assert "it is read-only" in answer.err
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [(".mcp.json", "{}")]


@pytest.mark.parametrize("step", ["--install", "--uninstall"])
def test_what_is_no_regular_file_is_neither_read_nor_replaced(
    place: Path, run: Run, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "CLAUDE.md").symlink_to(os.devnull)
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("root would have replaced the device"))
    answer = run("prime", step, "claude", "--yes")
    assert answer.code == 8
    assert "CLAUDE.md is no regular file" in answer.err
    assert [path.name for path in place.iterdir()] == ["CLAUDE.md"]


def test_a_full_disk_leaves_the_file_as_it_was(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "CLAUDE.md").write_text("mine\n")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("prime", "--install", "claude", "--yes").code == 8
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [("CLAUDE.md", "mine\n")]


def test_links_and_modes_stay(place: Path, run: Run) -> None:
    (place / "rules.md").write_text("mine\n")
    (place / "rules.md").chmod(0o640)
    (place / "AGENTS.md").symlink_to("rules.md")
    run("prime", "--install", "agents-md", "--yes")
    assert (place / "AGENTS.md").is_symlink()
    assert BEGIN in (place / "rules.md").read_text()
    assert (place / "rules.md").stat().st_mode & 0o777 == 0o640
    run("prime", "--uninstall", "agents-md", "--yes")
    assert (place / "rules.md").read_text() == "mine\n"
    (place / "CLAUDE.md").symlink_to("not-yet.md")
    run("prime", "--install", "claude", "--yes")
    assert BEGIN in (place / "not-yet.md").read_text()
    run("prime", "--uninstall", "claude", "--yes")
    assert (place / "CLAUDE.md").is_symlink()
    assert not (place / "not-yet.md").exists()
    (place / "shared").mkdir()
    (place / ".gemini").symlink_to("shared")
    run("prime", "--install", "gemini", "--yes")
    assert run("prime", "--uninstall", "gemini", "--yes").code == 0
    assert (place / ".gemini").is_symlink()
    assert list((place / "shared").iterdir()) == []


def test_an_unknown_client_is_refused_with_those_that_are_known(place: Path, run: Run) -> None:
    answer = run("prime", "--install", "emacs", "--yes")
    assert answer.code == 2
    assert "claude, codex, gemini, agents-md" in answer.err
