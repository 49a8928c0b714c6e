"""docs/torture.md tells what is checked, all of it, and its example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from taskyard.proof.verdict import CODES

PAGE = Path(__file__).parent.parent / "docs" / "torture.md"


def test_the_page_has_every_code() -> None:
    told = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert told == list(CODES.items())


def test_the_example_runs(tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "legal\n"), done.stderr
