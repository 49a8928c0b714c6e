"""A yard, and the shell client in it under each shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.sh import shells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    """The same yard, open in Python."""
    with taskyard.open(place, worker="ada") as opened:
        yield opened


@pytest.fixture(params=shells.NAMES)
def sh(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> shells.Shell:
    """The shell client in this yard."""
    return shells.shell(request.param, tmp_path, place)
