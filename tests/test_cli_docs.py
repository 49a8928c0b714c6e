"""docs/cli.md says what the command line's own help says."""

from __future__ import annotations

import runpy
from pathlib import Path

from taskyard.doors.cli import verbs

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    generated = runpy.run_path(str(DOCS / "generate_cli.py"))["page"]()
    assert generated == PAGE, "docs/cli.md is out of date: run .venv/bin/python docs/generate_cli.py"


def test_every_verb_has_its_part() -> None:
    for group in verbs.GROUPS.values():
        for name in group:
            assert f"\n### {name}\n" in PAGE
