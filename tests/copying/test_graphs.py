"""A copy keeps the order of a graph: what comes after what, what a failure means, and where tasks come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import opening
from tests.conftest import taken
from tests.copying.comparing import assert_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

STORES = ("directory", "postgresql")


def graph(yard: Yard) -> None:
    """Tasks behind one that is open, one that failed and one that was cancelled, under each policy."""
    epic, failed, cancelled = (yard.add("epic", key=key).id for key in ("open", "failed", "cancelled"))
    taken(yard.claim(failed)).fail("broken", retry=False)
    yard.cancel(cancelled)
    for before in (epic, failed, cancelled):
        for policy in ("block", "cancel", "run"):
            yard.add(
                "part", key=f"{before} {policy}", after=[f"{before}:{policy}"], parent=epic, discovered_from=failed
            )
    yard.add("part", parent=epic)
    old = yard.add("part", key="old").id
    yard.edit(old, after=f"{yard.add('part', key='young').id}:cancel")


@pytest.mark.parametrize("target", STORES)
@pytest.mark.parametrize("store", STORES)
def test_a_graph_is_the_same_in_the_copy_and_goes_on_there(
    paused: Callable[[str, Callable[[Yard], None]], str], new: Callable[[str], str], store: str, target: str
) -> None:
    origin, copy = paused(store, graph), new(target)
    opening.copy(origin, copy)
    assert_same(origin, copy)
    with taskyard.open(copy, worker="ada") as yard:
        yard.unpause()
        states = {task.key: task for task in (yard.get(task.id) for task in yard.find()) if task.key is not None}
        epic, young = states["open"].id, states["young"].id
        assert len(yard.report(epic).children(100)) == 10
        taken(yard.claim(epic)).fail("broken", retry=False)
        yard.cancel(young)
        assert [str(yard.get(states[f"{epic} {policy}"].id).state) for policy in ("block", "cancel", "run")] == [
            "blocked",
            "cancelled",
            "todo",
        ]
        assert yard.get(states["old"].id).state == "cancelled"
        assert yard.audit()["verdict"] == "clean"
