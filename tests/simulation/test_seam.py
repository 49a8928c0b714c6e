"""All that the directory store does to a disk goes through disk.py; only making and opening a yard calls `os` itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from taskyard.stores import directory

FOLDER = Path(directory.__file__).parent
OPENING = {"disk", "layout", "safety", "beside"}
OPENING |= {"sharing", "trouble"}  # the disk of a group's yard; who owns a yard that cannot be used
HARMLESS = {"getpid", "dirname", "path", "realpath", "stat_result", "fsencode"}
PIPES = {
    "watch": {"read"},
    "liveness": {"close"},
}  # of descriptors, not of files


@pytest.mark.parametrize("module", sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in OPENING))
def test_no_other_module_calls_the_system(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert used - HARMLESS - PIPES.get(module, set()) == set()


def test_the_test_sees_calls_at_all() -> None:
    tree = ast.parse((FOLDER / "disk.py").read_text(encoding="utf-8"))
    assert any(isinstance(node, ast.Attribute) and node.attr == "fsync" for node in ast.walk(tree))
