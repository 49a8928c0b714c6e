"""What a one-shot command must not import: each of these costs it milliseconds, and a crew starts many."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from taskyard import init

if TYPE_CHECKING:
    from pathlib import Path

UNWANTED = (
    "typing", "dataclasses", "pathlib", "datetime", "random", "inspect", "subprocess", "shutil", "argparse",
    "urllib", "tempfile", "logging", "asyncio", "difflib", "textwrap", "traceback", "json", "re", "threading", "weakref",
)  # fmt: skip
PROBE = """
import sys
before = set(sys.modules)  # what the interpreter's own site has brought
from taskyard.doors.cli import main
code = main(sys.argv[2:])
found = [name for name in sys.argv[1].split(",") if name in sys.modules and name not in before]
print(code, *found, file=sys.stderr)
"""


def imported(*argv: str) -> tuple[str, str]:
    """What the command said, and its exit code with the unwanted modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, ",".join(UNWANTED), *argv], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout, done.stderr.strip()


@pytest.mark.parametrize("form", ["--json", "--worker=people"])
def test_claim_done_and_add_import_nothing_that_is_slow(tmp_path: Path, form: str) -> None:
    yard = str(tmp_path / "yard")
    opened = init(yard, durability="fast")
    task = opened.add("build", {"n": 1}, title="Docs")
    said, imports = imported("claim", "--yard", yard, form)
    assert imports == "0"
    handle = json.loads(said)["data"]["claim"] if form == "--json" else said.split()[1]
    said, imports = imported("done", handle, "--yard", yard, "--result", "{}", form)
    assert imports == "0"
    assert task.short in said
    said, imports = imported("add", "build", "--yard", yard, "--data", '{"n": 2}', form)
    assert imports == "0"


def test_a_command_imports_only_its_own_verbs() -> None:
    probe = "import sys; from taskyard.doors.cli import main; main(['claim', '--yard', 'memory:']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    mine = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("taskyard.doors.")}
    assert mine == {"cli", "replies", "parser", "verbs", "claim"}
