"""kill -9 at any moment: what was acknowledged is there, nothing is half there, and what a dead worker held can be finished."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import taskyard
from tests.conftest import retried, taken, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Crew = Callable[..., subprocess.Popen[str]]

KILLS = 50
AT_ONCE = 2


def killed_at_random(start: Callable[[], subprocess.Popen[str]]) -> list[Any]:
    """All that 50 processes said before each was killed at a random moment of its work, two side by side."""
    everything = []
    for _ in range(KILLS // AT_ONCE):
        members = [start() for _ in range(AT_ONCE)]
        for member in members:
            assert tools.said(member) == "ready"
        for member in members:
            tools.tell(member)
        for member in members:
            time.sleep(random.uniform(0, 0.03))  # when it dies must not matter
            member.kill()
        for member in members:
            assert member.stdout is not None
            everything += tools.whole_lines(member.stdout.read())
            member.communicate()
            assert member.returncode == -9
    return everything


def test_every_acknowledged_add_outlives_its_process(tmp_path: Path, crew: Crew) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    acknowledged = {id for ids in killed_at_random(lambda: crew(place, "add_for_ever")) for id in ids}
    assert len(acknowledged) > KILLS, "they were killed before they did anything"
    found = tools.places(place)  # every file in it whole
    assert acknowledged - set(found) == set()
    with taskyard.open(place) as yard:
        assert sum(yard.counts().values()) == len(found)
        claimed = set()
        wait_until(lambda: (yard.sweep(), yard.counts()["waiting"] == 0)[1])
        while (claim := yard.claim()) is not None:
            assert claim.task.data == (
                claim.task.data if claim.task.kind == "single" else "x" * 5000 if claim.task.kind == "bulk" else None
            )
            claimed.add(claim.task.id)
            claim.done()
    assert claimed == set(found), "all of it can be claimed, and nothing else"


def test_every_acknowledged_done_outlives_its_process_and_the_rest_can_be_finished(tmp_path: Path, crew: Crew) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    with taskyard.open(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * 3000)
    said = [word for word in killed_at_random(lambda: crew(place, "work_for_ever", "1")) if word[0] != "idle"]
    done = {id: fence for verb, id, fence in said if verb == "done"}
    assert len(done) > KILLS // 5, "they were killed before they did anything"
    claims = [(id, fence) for verb, id, fence in said if verb == "claim"]
    assert len(set(claims)) == len(claims), "no fence comes twice"
    found = tools.places(place)  # each in one place, its file whole
    assert sorted(found) == sorted(ids)
    assert {found[id] for id in done} == {"done"}
    with taskyard.open(place) as yard:
        for id, fence in done.items():
            task = yard.get(id)
            assert (task.fence, task.result["fence"], len(task.result["bulk"])) == (fence, fence, 5000)
        newest: dict[str, int] = {}
        for id, fence in claims:
            newest[id] = max(fence, newest.get(id, 0))
        orphans = [id for id, state in found.items() if state == "processing"]
        wait_until(lambda: (yard.sweep(), yard.counts())[1]["processing"] == 0)
        for id in orphans:
            claim = taken(yard.claim(id) if yard.get(id).state == "todo" else yard.claim(retried(yard, id).id))
            assert claim.fence > newest.get(id, 0)
            assert claim.history[-1]["outcome"] == "crash"
            claim.done("at last")
        assert all(yard.get(id).result == "at last" for id in orphans)
        assert orphans, "nobody was killed with a task in its hands"
    assert sorted(tools.places(place)) == sorted(ids)
