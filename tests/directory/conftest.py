"""What the tests of the directory store begin with."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

import taskyard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], str]:
    """Makes one empty yard after the other."""
    numbers = itertools.count()
    template = str(tmp_path / "template")
    taskyard.init(template, durability="fast").close()

    def make() -> str:
        return shutil.copytree(template, str(tmp_path / f"yard-{next(numbers)}"))

    return make


@pytest.fixture
def url(fresh: Callable[[], str]) -> str:
    """An empty yard."""
    return fresh()
