"""A yard, and the shell client in it under each shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import seldom
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sh" in metafunc.fixturenames:
        test = metafunc.function.__name__
        metafunc.parametrize("sh", ["dash", seldom("busybox", test, 4)], indirect=True)


@pytest.fixture
def sh(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> shells.Shell:
    """The shell client in this yard."""
    return shells.shell(request.param, tmp_path, place)
