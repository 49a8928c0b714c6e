"""Databases of a test's own, on the run's server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.stores.postgres import driver
from tests.servers import postgres, warm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard


BOTH_DRIVERS = pytest.mark.parametrize("_driver", ["psycopg", "libpq"], indirect=True)


@pytest.fixture
def url() -> str:
    """The URL of a new project, that is there."""
    return warm.project()


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


@pytest.fixture(autouse=True)
def _driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach every yard as one-shot commands do, where a test says so (BOTH_DRIVERS), or TASKYARD_TEST_DRIVER=libpq does."""
    if getattr(request, "param", os.environ.get("TASKYARD_TEST_DRIVER")) == "libpq":
        monkeypatch.setattr(driver, "opener", lambda *, brief: driver.connect_briefly)
