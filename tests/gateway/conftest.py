"""A yard in a directory, and the same yard as it is seen through a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", worker="gateway", durability="fast") as opened:
        yield opened


@pytest.fixture
def gateway(near: Yard) -> Iterator[Running]:
    running = Running({"default": near})
    yield running
    running.stop()


@pytest.fixture
def far(gateway: Running) -> Iterator[Yard]:
    with taskyard.open(gateway.url(), worker="ada") as opened:
        yield opened
