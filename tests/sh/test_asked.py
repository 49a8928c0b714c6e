"""The shell client notes which kinds it was asked for, so that `why` names only those that nobody serves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell


def test_a_kind_that_a_shell_asks_for_is_not_said_to_be_unserved(sh: Shell, yard: Yard, place: str) -> None:
    yard.add("deploy", assignee="bob")
    yard.add("build", assignee="bob")
    assert sh.run("claim_task", "deploy").code == 3
    assert os.listdir(f"{place}/asked") == ["deploy"]
    assert set(yard._store.reasons.asked()) == {"deploy"}
    assert sh.run("claim_task").code == 3
    assert sorted(os.listdir(f"{place}/asked")) == ["@", "deploy"]
