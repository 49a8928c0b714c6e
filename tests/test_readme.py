"""README's commands run as they are printed, and answer what is printed beside them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
_MARK = "\x1e"  # printed after each command; no command prints it by itself


class Section:
    """The blocks of one language under one heading: they belong together, and begin in an empty directory."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.blocks: list[str] = []


def sections(language: str) -> list[Section]:
    found = [Section("Taskyard")]
    block: list[str] | None = None
    for line in README.read_text(encoding="utf-8").splitlines():
        if block is not None:
            if line == "```":
                found[-1].blocks.append("\n".join(block))
                block = None
            else:
                block.append(line)
        elif line == f"```{language}":
            block = []
        elif line.startswith("## "):
            found.append(Section(line[3:]))
    return [section for section in found if section.blocks]


def steps(block: str) -> list[tuple[str, str]]:
    """Each command and the output that is printed under it; `> ` goes on with the command before."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines).strip("\n")) for command, lines in found]


def shape(printed: str) -> re.Pattern[str]:
    """`...` stands for anything within a line, and alone on a line for any number of lines."""
    return re.compile("".join(map(_line_shape, printed.split("\n"))))


def _line_shape(line: str) -> str:
    return r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*?") + r"\n"


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TASKYARD", "AGENT_ID"))}
    scripts = sysconfig.get_path("scripts")
    return {**kept, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def run(command: list[str], place: Path, stdin: str = "") -> str:
    done = subprocess.run(
        command,
        input=stdin,
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="README's commands are written for bash")
@pytest.mark.parametrize("section", sections("console"), ids=lambda section: section.title)
def test_the_commands_answer_what_is_printed_beside_them(section: Section, tmp_path: Path) -> None:
    wanted = [step for block in section.blocks for step in steps(block)]
    script = "".join(f"{command}\nprintf '{_MARK}'\n" for command, _ in wanted)
    answers = run(["bash"], tmp_path, script).split(_MARK)
    for (command, printed), answer in zip(wanted, answers[:-1], strict=True):
        lines = answer.rstrip("\n") + "\n"
        assert shape(printed).fullmatch(lines), f"$ {command}\n{answer}\nREADME.md has:\n{printed}"


@pytest.mark.parametrize("section", sections("python"), ids=lambda section: section.title)
def test_the_python_blocks_run_in_order(section: Section, tmp_path: Path) -> None:
    for block in section.blocks:
        run([sys.executable, "-c", block], tmp_path)


def test_a_wildcard_matches_within_a_line_and_alone_over_lines() -> None:
    assert shape("a ... c").fullmatch("a b c\n")
    assert not shape("a ... c").fullmatch("a\nc\n")
    assert shape("a\n...\nc").fullmatch("a\nb\nb\nc\n")
    assert shape("a\n...").fullmatch("a\n")
    assert not shape("a").fullmatch("b\n")


def test_the_first_screen_has_a_session_and_the_test_command_is_named() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("```console") < text.index("## ")
    assert "\nTest: `make test`\n" in text


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "PROTOCOL.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (README.parent / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert target.startswith("https://") or (README.parent / target).exists(), target
