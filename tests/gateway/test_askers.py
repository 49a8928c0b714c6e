"""Who asked: every change that comes through a gateway has the name of its token in the log, on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict
from taskyard.core.yard_events import YARD_EVENTS
from tests.conftest import taken
from tests.servers import postgres
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard


@pytest.fixture(params=["memory", "directory", "postgresql"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    """A yard behind a gateway, as whoever has the token `crew` uses it by the name of ada."""
    url = {"memory": "memory:askers", "directory": str(tmp_path / "yard")}.get(request.param) or postgres.url()
    with taskyard.init(url, worker="gateway") as near:
        monkeypatch.setenv("TASKYARD_TOKEN", near.new_token("crew", scope="manage")["token"])
        running = Running({"default": near})
        with taskyard.open(running.url(), worker="ada") as far:
            yield far
        running.stop()


def test_every_change_of_a_task_is_by_the_token(guarded: Yard) -> None:
    ids = guarded.add_many([{"kind": "build", "mission": "m"} for _ in range(8)])
    taken(guarded.claim()).done()
    taken(guarded.claim(kinds="build")).fail("no disk", retry=False)
    taken(guarded.claim(mission="m")).release()
    taken(guarded.claim(ids[7])).note("half of it")
    for claim in guarded.claim_many(2):
        claim.heartbeat()
    guarded.set_settings({"ageing": 60})
    taken(guarded.claim())
    taken(guarded.claim(mission="m"))
    assert guarded.resume()
    guarded.retry(ids[1])
    guarded.edit(ids[1], title="New")
    guarded.cancel(ids[1])
    told = {(event["event"], event["by"]) for event in guarded.events() if event["task"]}
    names = ("added", "claimed", "done", "failed", "released", "noted", "retried", "edited", "cancelled")
    assert told == {(name, "crew") for name in names}


def test_every_change_of_the_yard_is_by_the_token(guarded: Yard) -> None:
    task = guarded.add("build").id
    before = guarded.log_end()
    guarded.pause()
    guarded.unpause()
    guarded.set_settings({"max_attempts": 4})
    guarded.revoke_token(guarded.new_token("board")["name"])
    guarded.new_mission("1.0")
    guarded.cancel_mission("1.0")
    guarded.new_schedule("nightly", "0 3 * * *", "report")
    guarded.pause_schedule("nightly")
    guarded.unpause_schedule("nightly")
    guarded.remove_schedule("nightly")
    guarded.prune(count=100, apply=True)
    guarded.set_file_conflicts(
        "TASKS.md", [{"task": task, "row": "T1", "line": 3, "field": "title", "file": "a", "yard": "b"}]
    )
    told = [(event["event"], event["by"]) for event in guarded.events(cursor=before)]
    assert sorted(told) == sorted((name, "crew") for name in YARD_EVENTS)


def test_a_worker_cannot_accept_its_own_work_by_way_of_a_token(guarded: Yard) -> None:
    id = guarded.add("build", review=True).id
    taken(guarded.claim(id)).done("work")
    with pytest.raises(Conflict, match="ada did task"):
        guarded.accept(id)
    with taskyard.open(guarded.url, worker="bob") as other:
        assert other.accept(id).worker == "bob"
        done = other.events(task=id)[-1]
    assert (done["event"], done["worker"], done["by"]) == ("done", "bob", "crew")
