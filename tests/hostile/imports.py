"""Modules, loaded before a test becomes another user: that user may not be able to read the clone, or its Python."""

from __future__ import annotations

import ast
import contextlib
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDERS = {"taskyard": Path(taskyard.__file__).parent, "tests.hostile": Path(__file__).parent}
_OF_PYTHON = (
    "traceback",
    *(f"encodings.{form}" for form in (
        "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be", "idna", "ascii", "latin_1",
    )),
)  # fmt: skip


def load() -> None:
    """Import all modules of ours, and each that they name anywhere, in functions too."""
    for name in sorted({*_OF_PYTHON, *_named()}):
        with contextlib.suppress(ImportError, AttributeError):  # no module but a name in one, or of another system
            import_module(name)


def _named() -> Iterator[str]:
    for package, folder in _FOLDERS.items():
        for path in folder.rglob("*.py"):
            if path.name == "__main__.py":
                continue
            yield ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (name.name for name in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                    yield from (f"{node.module}.{name.name}" for name in node.names)


class Unreadable:
    """Stands before all finders, and finds that a module would be read only now."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name.partition(".")[0] in ("taskyard", "tests") or name in sys.stdlib_module_names:
            raise AssertionError(f"{name} is imported by another user, who may not be able to read it: see {__file__}")


@contextlib.contextmanager
def closed() -> Iterator[None]:
    """Refuse whatever is not imported yet, so that a test fails wherever the clone lies, or nowhere."""
    finder = Unreadable()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
