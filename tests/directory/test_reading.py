"""Reader at one task, the log or the counts leaves the directory as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

import taskyard
from taskyard.core.task import State
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.directory.names import Token
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard
from tests.conftest import outlast, taken
from tests.recording import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.names import Lane


@pytest.mark.parametrize("local", [True, False])
def test_looking_makes_no_call_that_changes_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    monkeypatch.setattr(safety, "is_local", lambda _: local)
    with taskyard.init(tmp_path / "yard", worker="ada") as yard:
        id = yard.add("build", key="k").id
        outlast(taken(yard.claim(lease=0.05)))
    (tmp_path / "yard/todo/order.json").write_text('{"kind": "test"}')
    disk = Recorder(str(tmp_path / "yard"))
    with Yard(DirectoryStore(str(tmp_path / "yard"), None, cast("Disk", disk)), "bob") as looker:
        looker.policy.sweep_every = 0.0
        assert looker.get(id).state is State.PROCESSING
        assert looker.report(id).history == []
        assert (looker.counts()["processing"], looker.stats()["dropped"]) == (1, 1)
        assert [event["event"] for event in looker.events()] == ["added", "claimed"]
        assert looker.paused() == {"yard": False, "kinds": []}
        assert looker.set_aside() == []
    assert disk.lines == []


def test_a_list_of_one_workers_tasks_parses_no_name_of_another_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    parse = Token.parse

    def counted(name: str, lane: Lane | None = None) -> Token | None:
        parsed.append(name)
        return parse(name, lane)

    with taskyard.init(tmp_path / "yard", durability="fast") as yard:
        yard.add_many([{"kind": "build"}] * 60)
        for worker in ("ada", "bob"):
            claims = yard.claim_many(25, worker=worker)
            yard.done_many([(claim.handle, None) for claim in claims[5:]])
        monkeypatch.setattr(Token, "parse", counted)
        assert len(yard.find(worker="ada")) == 25
    assert len(parsed) == 25
