"""Places to be examined: real filesystems, made for one test in a mount namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.processes import tools

ODD = (tools.PYTHON, str(Path(__file__).with_name("oddfs.py")))
DOCTOR = (*tools.COMMAND, "doctor", "--json")


def examined(
    setting: str, folder: Path, place: str = "place", *options: str, env: dict[str, str] | None = None
) -> tools.Answer:
    """What the doctor says of `place` in this folder, after some lines of shell have made it what it is."""
    script = f'set -e; cd {folder}; mkdir -p place; {setting}\nexec "$@"'
    return run([*namespace(), "sh", "-c", script, "sh", *DOCTOR, str(folder / place), *options], env)


def odd(quirks: str, folder: Path, *command: str, kind: str = "fuse.oddfs", point: str = "place") -> list[str]:
    """The words that run a command where a filesystem with these quirks is mounted at `place`, over the folder `backing`."""
    for name in ("backing", point):
        (folder / name).mkdir(exist_ok=True)
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse here")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        tools.lacking("this user may not use /dev/fuse")
    return [*namespace(), *ODD, str(folder / "backing"), str(folder / point), kind, quirks, *command]


def run(words: list[str], env: dict[str, str] | None = None) -> tools.Answer:
    given = tools.environment(**(env or {}))
    return tools.Answer(
        subprocess.run(words, capture_output=True, text=True, env=given, check=False, timeout=tools.PATIENCE)
    )


def namespace() -> list[str]:
    """The words before a command that give it mounts of its own: as root, or as the root of a user namespace."""
    if os.geteuid() == 0 and shutil.which("unshare") is not None:
        return ["unshare", "--mount"]
    return tools.unshared("--mount")


def as_root() -> None:
    """What needs a disk image can be done by root alone."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        tools.lacking("only root can mount a disk image, and only with mkfs.ext4")


def checks(answer: tools.Answer) -> dict[str, Any]:
    """Each check by its name; the verdict over all is the worst of them, and the exit code says the same."""
    data = answer.envelope["data"]
    assert answer.envelope["ok"] is True
    ranks = ["green", "warn", "refuse"]
    worst = max((check["verdict"] for check in data["checks"]), key=ranks.index)
    assert data["verdict"] == worst
    assert answer.code == (1 if worst == "refuse" else 0), answer.err
    for check in data["checks"]:
        assert check["reason"], check
        assert (check["hint"] is None) == (check["verdict"] == "green"), check
    return {check["check"]: check for check in data["checks"]}


def remarkable(answer: tools.Answer) -> dict[str, str]:
    """The verdicts that are not green, by check."""
    return {name: check["verdict"] for name, check in checks(answer).items() if check["verdict"] != "green"}
