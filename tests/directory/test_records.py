"""Records of how claims ended, beside a sweep that tidies up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.conftest import taken
from tests.directory.staging import yard_on

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_folder_that_a_sweep_drops_as_soon_as_it_is_made_costs_no_record(fresh: Callable[[], str]) -> None:
    dropped: list[str] = []

    def drop(name: str, paths: str, made: bool) -> None:
        if name == "mkdir" and made and "/results/" in paths and len(dropped) < 5:
            os.rmdir(paths)
            dropped.append(paths)

    with yard_on(fresh(), drop) as yard:
        id = yard.add("build", max_attempts=1).id
        taken(yard.claim()).fail("broken")
        assert yard.get(id).error == "broken"
    assert len(dropped) == 5
