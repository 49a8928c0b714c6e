"""Yards to copy from and to."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.copying import mix
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


@pytest.fixture
def new(tmp_path: Path) -> Callable[[str], str]:
    """The URL of a yard that is not there yet, in a store of this name."""
    serial = itertools.count(1)

    def url(store: str) -> str:
        return postgres.url() if store == "postgresql" else str(tmp_path / f"yard {next(serial)}")

    return url


@pytest.fixture
def made(new: Callable[[str], str]) -> Callable[..., str]:
    """A paused yard with some of everything in it."""

    def make(store: str, count: int, seed: int = 1) -> str:
        url = new(store)
        taskyard.init(url, durability="fast" if store == "directory" else None).close()
        root = Path(url) if store == "directory" else None
        if root is not None:
            mix.slow(root)
        else:
            slow(url)
        with taskyard.open(url, worker="maker") as yard:
            mix.fill(yard, count, seed, root)
            mix.wind_down(yard)
        return url

    return make


@pytest.fixture
def paused(new: Callable[[str], str]) -> Callable[[str, Callable[[Yard], None]], str]:
    """A yard to which this has been done before it was paused."""

    def make(store: str, life: Callable[[Yard], None]) -> str:
        url = new(store)
        with taskyard.init(url, worker="ada") as yard:
            life(yard)
            yard.pause()
        return url

    return make


def slow(url: str) -> None:
    """The same as `mix.slow`, in a database."""
    import json

    from taskyard.stores.postgres import driver
    from taskyard.stores.postgres.address import Address

    address = Address(url)
    settings = {"backoff": 90_000, "backoff_cap": 90_000, "checks": {"tests": ["true", "ü"]}}
    with driver.connect(address) as connection:
        connection.execute(
            "UPDATE taskyard.project SET settings = %s WHERE name = %s", (json.dumps(settings), address.project)
        )
