"""Counts of a large yard: some pages of the tables stand for all, and that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard import State
from taskyard.stores.postgres import read
from tests.conftest import taken
from tests.servers import postgres

if TYPE_CHECKING:
    import pytest

TASKS = 4000


def test_a_sample_of_the_pages_stands_for_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.init(postgres.url_in(postgres.database())) as yard:
        yard.add_many({"kind": "build"} for _ in range(TASKS))
        taken(yard.claim())
        exact = yard._store.counts(exact=False)
        assert (exact.kinds, exact.estimated) == ({"build": {"todo": TASKS - 1, "processing": 1}}, frozenset())
        monkeypatch.setattr(read, "_COUNTED_PAGES", 20)
        sampled = yard._store.counts(exact=False)
        assert sampled.estimated == frozenset(State) - {State.PROCESSING}
        assert sampled.kinds["build"]["processing"] == 1
        # About half of the pages, each with equally many tasks: four standard deviations are a third.
        assert TASKS / 3 < sampled.kinds["build"]["todo"] < TASKS * 3
        assert yard._store.counts(exact=True).kinds["build"]["todo"] == TASKS - 1
