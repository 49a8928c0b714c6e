"""Databases of a test's own, on the run's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard


@pytest.fixture
def url() -> str:
    """The URL of a new project, that is there."""
    url = postgres.url()
    taskyard.init(url).close()
    return url


@pytest.fixture
def yard(url: str) -> Iterator[Yard]:
    with taskyard.open(url, worker="ada") as opened:
        yield opened


@pytest.fixture
def database() -> str:
    """The name of a new database, without a schema."""
    return postgres.database()


@pytest.fixture
def sql(url: str) -> Iterator[Connection[Any]]:
    """A connection of the test's own to the yard's database."""
    with psycopg.connect(url.partition("&project=")[0], autocommit=True) as connection:
        yield connection
