"""Short names in a database: one segment has tasks of several projects, and each is named among its project's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Ambiguous, NotFound
from taskyard.core import ids
from tests.servers import postgres

if TYPE_CHECKING:
    from taskyard import Yard


def added_alike(one: Yard, other: Yard, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A task in each project, of one segment, and with the same end."""
    chance = ids.chance
    with monkeypatch.context() as patch:
        patch.setattr(ids, "chance", lambda bits: chance(bits) & ~0xFFFFF | 0xBEEF if bits == 40 else chance(bits))
        while True:
            pair = one.add("build").id, other.add("build").id
            if pair[0][: ids.SEGMENT] == pair[1][: ids.SEGMENT]:
                return pair


def test_a_task_of_another_project_makes_no_name_longer_or_ambiguous(monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.init(postgres.url()) as one, taskyard.init(postgres.url()) as other:
        mine, theirs = added_alike(one, other, monkeypatch)
        assert ids.short(mine) == ids.short(theirs)
        assert one.get(ids.short(mine)).id == mine
        assert other.get(ids.short(mine)).id == theirs
        assert one.get(mine).short == other.get(theirs).short == ids.short(mine)
        with pytest.raises(NotFound):
            one.get(ids.short(theirs, 17))


def test_open_and_ended_tasks_that_end_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in different tables, and those that ended in different windows in different partitions."""
    with taskyard.init(postgres.url()) as yard:
        one, two = added_alike(yard, yard, monkeypatch)
        yard.cancel(one)
        with pytest.raises(Ambiguous) as caught:
            yard.claim(ids.short(two))
        assert [name for name in yard.shorten([one, two]) if name not in caught.value.message] == []
        claim = yard.claim(yard.get(two).short)
        assert claim is not None
        assert claim.task.id == two
