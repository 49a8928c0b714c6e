"""All that the directory store does to a disk goes through disk.py; only making and opening a yard calls `os` itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from taskyard.stores import directory

FOLDER = Path(directory.__file__).parent
OPENING = {"__init__", "layout", "scratch_yard", "filesystem/disk", "filesystem/safety"}
OPENING |= {
    "filesystem/sharing",
    "filesystem/errors",
}  # the disk of a group's yard; who owns a yard that cannot be used
HARMLESS = {"getpid", "dirname", "path", "realpath", "stat_result", "fsencode", "strerror"}
PIPES = {
    "log/watch": {"read"},
    "recovery/liveness": {"close"},
}  # of descriptors, not of files


MODULES = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.py")}


@pytest.mark.parametrize("module", sorted(name for name in MODULES - OPENING if not name.startswith("doctor/")))
def test_no_other_module_calls_the_system(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert used - HARMLESS - PIPES.get(module, set()) == set()


def test_the_test_sees_calls_at_all() -> None:
    tree = ast.parse((FOLDER / "filesystem" / "disk.py").read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.Attribute) and node.attr == "fsync" for node in ast.walk(tree))
