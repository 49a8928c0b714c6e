"""A role that was given one project can copy from it; into it takes whoever may change its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Unavailable, opening
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.address import Address
from tests.copying.test_same import task_copies

if TYPE_CHECKING:
    from collections.abc import Callable


def given(url: str) -> str:
    """The URL of this project for a role that was given it."""
    address = Address(url)
    role = f"role_{address.project.replace('-', '_')}"
    with driver.connect(address) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute("SELECT taskyard.give_project(%s, %s)", (address.project, role))
    return url.replace("taskyard@", f"{role}@")


def test_a_role_copies_from_its_project_and_is_told_that_it_cannot_copy_into_it(
    made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, back, other = made("postgresql", 30), new("directory"), new("postgresql")
    opening.copy(given(origin), back)
    assert task_copies(origin) == task_copies(back)
    taskyard.init(other).close()
    with pytest.raises(Unavailable, match="refuses") as caught:
        opening.copy(back, given(other))
    assert caught.value.hint
    with taskyard.open(other) as yard:
        assert yard.find() == []
        assert not yard.paused()["yard"], "it was left half marked"
