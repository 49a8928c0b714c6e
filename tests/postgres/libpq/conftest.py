"""One connection by each driver, to the same server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard.stores.postgres import driver
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.libpq.connection import LibpqConnection
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.postgres.watched_connection import WatchedConnection


@pytest.fixture
def address() -> Address:
    return Address(postgres.url())


@pytest.fixture
def brief(address: Address) -> Iterator[LibpqConnection]:
    connection = driver.connect_briefly(address)
    assert isinstance(connection, LibpqConnection)
    yield connection
    connection.close()


@pytest.fixture
def lasting(address: Address) -> Iterator[WatchedConnection]:
    connection = driver.connect(address)
    yield connection
    connection.close()
