"""The commands and Python blocks of README.md and docs/ run as they are printed, and answer what is printed beside them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from taskyard.doors.cli import verbs
from taskyard.doors.cli.verbs import help

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS_A_DATABASE = (
    ROOT / "docs" / "postgres.md"
)  # its Python blocks are parts of a caller's program on a server of its own
_MARK = "\x1e"  # printed after each command; no command prints it by itself


class Section:
    """The blocks of one language under one heading: they belong together, and begin in an empty directory."""

    def __init__(self, page: Path, title: str) -> None:
        self.name = f"{page.relative_to(ROOT)}: {title}"
        self.blocks: list[str] = []


def sections(language: str) -> list[Section]:
    """The sections of all pages that have blocks of this language."""
    return [section for page in PAGES for section in sections_of(page, language) if section.blocks]


def sections_of(page: Path, language: str) -> list[Section]:
    found = [Section(page, "its beginning")]
    fence: str | None = None  # what began the block that this line is in
    for line in page.read_text(encoding="utf-8").splitlines():
        if fence is None and line.startswith("```"):
            fence = line[3:]
            if fence == language:
                found[-1].blocks.append("")
        elif line == "```":
            fence = None
        elif fence == language:
            found[-1].blocks[-1] += f"{line}\n"
        elif fence is None and line.startswith("## "):
            found.append(Section(page, line[3:]))
    return found


def steps(block: str) -> list[tuple[str, str]]:
    """Each command and the output that is printed under it; `> ` goes on with the command before."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            assert found, f"a console block begins with a command, not with {line!r}"
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


@pytest.mark.skipif(shutil.which("bash") is None, reason="the pages' commands are written for bash")
@pytest.mark.parametrize("section", sections("console"), ids=lambda section: section.name)
def test_the_commands_answer_what_is_printed_beside_them(section: Section, tmp_path: Path) -> None:
    wanted = [step for block in section.blocks for step in steps(block)]
    script = "".join(f"{command}\nprintf '{_MARK}'\n" for command, _ in wanted)
    answers = run(["bash"], tmp_path, script).split(_MARK)
    for (command, printed), answer in zip(wanted, answers[:-1], strict=True):
        lines = answer.rstrip("\n") + "\n"
        assert shape(printed).fullmatch(lines), f"$ {command}\n{answer}\n{section.name} has:\n{printed}"


@pytest.mark.parametrize(
    "section",
    [section for section in sections("python") if not section.name.startswith(str(NEEDS_A_DATABASE.relative_to(ROOT)))],
    ids=lambda section: section.name,
)
def test_the_python_blocks_run_in_order(section: Section, tmp_path: Path) -> None:
    for block in section.blocks:
        run([sys.executable, "-c", block], tmp_path)


def unknown_words(text: str) -> list[str]:
    """The `taskyard VERB ... --option` in a page's prose and AGENTS.md lines that the command line does not know."""
    found = []
    for snippet in re.findall(r"`taskyard ([^`]+)`", text):
        before_the_command = snippet.split(" -- ")[0]
        words = [word for word in before_the_command.split() if not re.fullmatch(r"[A-Z.]+", word)]
        verb = next((word for word in words if not word.startswith("-")), "help")
        name = verbs.ALIASES.get(verb, verb)
        if not any(name in group for group in verbs.GROUPS.values()):
            found.append(snippet)
            continue
        known = help.verb(name) + help.program()
        found += [snippet for word in words if word.startswith("--") and not re.search(rf"{word}\b", known)]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_prose_name_verbs_and_options_that_exist(page: Path) -> None:
    assert unknown_words(page.read_text(encoding="utf-8")) == []


def test_an_unknown_verb_or_option_is_found() -> None:
    prose = (
        "`taskyard add KIND --key WORD`, `taskyard finish`, `taskyard add KIND --ky W`, `taskyard work -- ./run --fast`"
    )
    assert unknown_words(prose) == ["finish", "add KIND --ky W"]


def test_a_wildcard_matches_within_a_line_and_alone_over_lines() -> None:
    assert shape("a ... c").fullmatch("a b c\n")
    assert not shape("a ... c").fullmatch("a\nc\n")
    assert shape("a\n...\nc").fullmatch("a\nb\nb\nc\n")
    assert shape("a\n...").fullmatch("a\n")
    assert not shape("a").fullmatch("b\n")


def test_a_heading_inside_of_a_block_begins_no_section() -> None:
    page = ROOT / "docs" / "crew.md"
    assert [section.name for section in sections_of(page, "toml") if section.blocks] == ["docs/crew.md: Ready files"]


def test_the_first_screen_has_a_session_and_the_test_command_is_named() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("```console") < text.index("## ")
    assert "\nTest: `make test`\n" in text
    assert len(text.splitlines()) <= 250
