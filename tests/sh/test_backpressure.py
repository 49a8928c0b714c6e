"""A shell adds nothing to a yard that has a max_todo: it cannot count cheaply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from tests.sh.shells import Shell


def test_a_shell_leaves_adding_to_python_where_there_is_a_bound(sh: Shell, place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.set_settings({"kinds": {"build": {"max_todo": 2}}})
        refused = sh.run("add_task", "build")
        assert (refused.code, "max_todo" in refused.err) == (7, True)
        with open(f"{place}/todo/a.json", "w", encoding="utf-8") as file:
            file.write("{}")
        sh.run("reap_stale")
        assert yard.stats()["dropped"] == 1
        yard.set_settings({"kinds": None})
        assert sh.run("add_task", "build").code == 0
        sh.run("reap_stale")
        assert yard.stats()["dropped"] == 0
