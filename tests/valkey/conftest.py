"""A Valkey server of a test's own beside a project of the run's PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.servers import valkey, warm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def server() -> Iterator[valkey.Server]:
    with valkey.Server() as running:
        yield running


@pytest.fixture
def plain() -> str:
    """The URL of a new project, without Valkey."""
    return warm.project()


@pytest.fixture
def url(plain: str, server: valkey.Server) -> str:
    return server.beside(plain)


@pytest.fixture
def yard(url: str) -> Iterator[Yard]:
    with taskyard.open(url, worker="ada") as opened:
        yield opened


@pytest.fixture
def client(server: valkey.Server) -> Iterator[Any]:
    """A client of the test's own."""
    with server.client() as own:
        yield own
