"""What people copy is what is tested: files on the pages are the repository's own, and every such file is on a page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("containers", "cluster", "kubernetes")]
BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("sh", "console", "text")  # what a user types, and not what a user copies as a file


def blocks() -> list[tuple[str, str, str | None, str]]:
    """Page, language, file and text of each block on the pages."""
    return [
        (page.name, found["language"], found["file"], found["text"])
        for page in PAGES
        if page.exists()
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def files() -> list[str]:
    """The files that people copy."""
    known = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "Dockerfile", "compose*.yaml", "deploy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode == 0:
        return known.stdout.split("\n")[:-1]
    found = [ROOT / "Dockerfile", *ROOT.glob("compose*.yaml"), *(ROOT / "deploy").rglob("*")]  # not a checkout
    return [str(path.relative_to(ROOT)) for path in found if path.is_file()]


@pytest.mark.parametrize(("page", "language", "file", "text"), blocks())
def test_a_file_on_a_page_is_the_file_in_the_repository(page: str, language: str, file: str | None, text: str) -> None:
    if file is None:
        assert language in COMMANDS, f"{page} has a block of {language} without the file's name: {text[:80]}"
    else:
        assert text == (ROOT / file).read_text(encoding="utf-8"), f"docs/write_files.py puts {file} on {page}"


def test_every_file_is_on_a_page_or_linked_from_one() -> None:
    written = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.exists())
    shown = {file for _, _, file, _ in blocks()}
    assert [file for file in files() if file not in shown and f"(../{file})" not in written] == []
