"""Imports go down only, and a one-shot command imports nothing that is slow to start."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(taskyard.__file__).parent
# The house from the ground up: a module imports its own tier and those below.
TIERS = [
    "core",
    "store",
    "stores",
    "yard",
    "remote",
    "spool",
    "opening",
    "worker",
    "orchestrator",
    "proof",
    "doors",
]
SEAM = TIERS.index("store")
CORE = [
    {"errors", "forks", "signals", "diagnosis", "limits", "reasons", "json_codec"},
    {"task", "ids", "times", "words", "needs", "task_reasons", "processes"},
    {"order", "resources", "activity", "tokens", "teams", "file_conflicts", "secret_files"},
    {
        "graph",
        "metrics",
        "mission",
        "moves",
        "plan",
        "retry",
        "schedule",
        "draft",
        "draft_fields",
        "task_names",
        "backlog",
        "settings",
        "transfer",
        "options",
        "store_records",
        "spans",
        "series",
    },
    {"graph_layout"},
]
STORES = {
    "memory": "memory",
    "directory": "directory",
    "postgres": "postgres",
    "wakeup": None,  # everybody's
    "run_lock": None,
}  # which store a module of stores/ belongs to
STARTS = {
    "doors.cli.verbs.import_tasks": "importers",
    "doors.cli.verbs.mcp": "mcp",
    "doors.cli.verbs.running.serve": "gateway",
    "doors.cli.verbs.sync": "tasksmd",
    "doors.gateway.mcp": "mcp",
}  # what opens another door, and does nothing else, may import that: commands, and the gateway's path for agents
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
SLOW = ("dataclasses", "typing", "pathlib", "random", "datetime", "inspect")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(module: str) -> set[str]:
    """What the module imports of taskyard, without the package's own name; '' is the package itself."""
    found = set()
    package = ["taskyard", *module.split(".")[:-1]]
    for node in ast.walk(parsed(MODULES[module])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
                if node.level
                else str(node.module)
            )
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {_module(name.split(".")[1:]) for name in found if name.split(".")[0] == "taskyard"}


def _module(parts: list[str]) -> str:
    """The longest beginning that is a module: the rest names something in it."""
    while parts and ".".join(parts) not in MODULES and ".".join([*parts, "__init__"]) not in MODULES:
        parts = parts[:-1]
    return ".".join(parts)


def tier(name: str) -> int:
    return TIERS.index(
        {"find_yard": "opening", "port": "yard", "aio": "worker"}.get(first := name.split(".", maxsplit=1)[0], first)
    )


HOUSE = sorted(name for name in MODULES if name not in ("__init__", "__main__"))


def pairs(part: str = "") -> Iterator[tuple[str, str]]:
    """Each module of this part of the house, with each that it imports."""
    return ((module, name) for module in HOUSE if module.startswith(part) for name in sorted(imports(module)))


def test_the_test_sees_imports_at_all() -> None:
    assert {"core.errors", "core.task", "core.retry"} <= imports("core.moves")
    assert "stores.memory.store" in imports("stores.memory.__init__")


# One test looks at all modules: a test for each would take longer to set up than to run.


def test_imports_go_down_only() -> None:
    for module, name in pairs():
        if not name:
            assert module.startswith("doors."), f"{module} imports the package itself"
            continue
        assert tier(name) <= tier(module), f"{module} imports {name}, which stands above it"
        if name.startswith("stores"):
            assert module.startswith("stores") or module == "opening", f"{module} imports {name}: only opening may"


def test_the_core_has_tiers_too() -> None:
    height = {name: at for at, names in enumerate(CORE) for name in names}
    for module, name in pairs("core."):
        assert height[name.split(".")[1]] <= height[module.split(".")[1]], (
            f"{module} imports {name}, which stands above it"
        )


def test_a_store_imports_no_other_store() -> None:
    for module, name in pairs("stores."):
        if name.startswith("stores."):
            own = STORES.get(module.split(".")[1])
            assert STORES[name.split(".")[1]] in (own, None), f"{module} imports {name}, another store"


def test_a_door_imports_no_other_door() -> None:
    for module, name in pairs("doors."):
        if name.startswith("doors.") and name.split(".")[1] != STARTS.get(module):
            assert name.split(".")[1] == module.split(".")[1], f"{module} imports {name}, another door"


BELOW_THE_STORES = sorted(
    name for name in HOUSE if tier(name) in (0, SEAM, TIERS.index("yard"), TIERS.index("opening"))
)


def test_no_module_imports_itself_in_a_circle() -> None:
    """What is imported when the module is loaded; imports for the type checker only, or inside functions, make no circle."""
    assert [module for module in BELOW_THE_STORES if module in _loaded_with(module)] == []


def _loaded_with(module: str) -> set[str]:
    seen: set[str] = set()
    ahead = [module]
    while ahead:
        new = _loaded(ahead.pop()) - seen
        seen |= new
        ahead.extend(new)
    return seen


@functools.cache
def _loaded(module: str) -> set[str]:
    tree = parsed(MODULES.get(module, MODULES.get(f"{module}.__init__", ROOT)))
    names = {
        f"{node.module}.{alias.name}" for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    found = {_module(name.split(".")[1:]) for name in names if name.startswith("taskyard.")}
    return {name for name in found if f"{name}.__init__" not in MODULES}


def reaches(module: str) -> list[str]:
    """Private names of others that the module uses: its own are those that it defines somewhere."""
    tree = parsed(MODULES[module])
    own, used = {"_exit", "_replace"}, set()  # os._exit, and a named tuple's public verb
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and _is_own(node) and not isinstance(node.ctx, ast.Load):
            own.add(node.attr)
        elif isinstance(node, ast.Attribute) and not _is_own(node):
            used.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
    return sorted(name for name in used - own if name.startswith("_") and not name.endswith("__"))


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def test_the_test_sees_private_reaches_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "from taskyard.yard import _own_name\nclass A:\n    def b(self, yard):\n        self._c = yard._store\n"
    )
    monkeypatch.setitem(MODULES, "bad", path)
    assert reaches("bad") == ["_own_name", "_store"]


def test_no_module_reaches_into_private_parts_of_another() -> None:
    assert {module: found for module in HOUSE if (found := reaches(module))} == {}


CLAIM = """
import sys
before = set(sys.modules)
import taskyard
with taskyard.open(sys.argv[1], worker="ada") as yard:
    if sys.argv[1].startswith("memory:"):
        yard.add("build", {"n": 1})
    claim = yard.claim()
    assert claim.task.data == {"n": 1}
    claim.heartbeat()
    claim.done({"ok": True})
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("store", ["memory", "directory"])
def test_a_one_shot_claim_imports_nothing_slow(store: str, tmp_path: Path) -> None:
    url = "memory:" if store == "memory" else str(tmp_path / "yard")
    if store == "directory":
        with taskyard.init(url) as yard:
            yard.add("build", {"n": 1})
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    run = subprocess.run(
        [sys.executable, "-S", "-c", CLAIM, url], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    loaded = run.stdout.split()
    assert "taskyard.yard" in loaded
    assert [name for name in SLOW if name in loaded] == []
