"""A file that another user drops, and that the yard's own user can read and not write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.processes import tools

OWNER = 12_001
SCRIPT = """
import os, sys
import taskyard
from tests.hostile import imports
imports.load()
os.umask(0o022)
with taskyard.open(sys.argv[1], worker="eve") as yard:  # whatever Python itself loads late
    yard.add("x", key="x")
    claim = yard.claim(kinds="x")
    claim.heartbeat()
    claim.done({})
    yard.sweep()
for folder, folders, files in os.walk(sys.argv[1]):
    for name in (*folders, *files):
        os.lchown(f"{folder}/{name}", 12_001, 12_001)
with open(f"{sys.argv[1]}/todo/order.json", "w") as file:
    file.write('{"kind": "build", "data": 5}')
os.chmod(file.name, int(sys.argv[2]))
os.setgid(12_001); os.setuid(12_001)
with taskyard.open(sys.argv[1], worker="ada") as yard:
    claim = yard.claim()
    claim.heartbeat()
    claim.done(7)
    print(claim.task.kind, claim.task.data, yard.get("order").result)
"""


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_it_is_worked_on_as_any_other(place: str, mode: int) -> None:
    if os.geteuid() != 0:
        tools.lacking("only root can be another user")
    os.chown(place, OWNER, OWNER)
    for parent in (Path(place), *Path(place).parents):
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run([tools.PYTHON, "-c", SCRIPT, place, str(mode)], capture_output=True, text=True, check=False)
    assert done.stdout == "build 5 7\n", done.stderr
