"""kill -9 at any moment: what was acknowledged is there, nothing is half there, and what a dead worker held can be finished."""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING, Any

import taskyard
from tests.conftest import sized, wait_until
from tests.processes import tools
from tests.processes.crew import recorded_yard

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Crew = Callable[..., subprocess.Popen[str]]

AT_ONCE = 2
each_kill = sized("kills", 12, 50)


def killed_at_random(kills: int, start: Callable[[], subprocess.Popen[str]]) -> list[Any]:
    """All that so many processes said before each was killed at a random moment of its work, two side by side."""
    everything = []
    for _ in range(kills // AT_ONCE):
        members = [start() for _ in range(AT_ONCE)]
        for member in members:
            assert tools.said(member) == "ready"
        for member in members:
            tools.tell(member)
        for member in members:
            for _ in range(random.randrange(4)):
                everything.append(tools.said(member))
                if everything[-1][0] == "idle":
                    break  # all tasks are done, and it says no more
            time.sleep(random.uniform(0, 0.01))  # when it dies must not matter
            member.kill()
        for member in members:
            assert member.stdout is not None
            everything += tools.whole_lines(member.stdout.read())
            member.communicate()
            assert member.returncode == -9
    return everything


@each_kill
def test_every_acknowledged_add_outlives_its_process(tmp_path: Path, crew: Crew, kills: int) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    acknowledged = {id for ids in killed_at_random(kills, lambda: crew(place, "add_for_ever")) for id in ids}
    assert len(acknowledged) > kills, "they were killed before they did anything"
    found = tools.places(place)  # every file in it whole
    with recorded_yard(place) as yard:
        assert sum(yard.counts().values()) == len(found)
        wait_until(lambda: (yard.sweep(), yard.counts()["waiting"] == 0)[1])
        while (claim := yard.claim()) is not None:
            assert claim.task.data == (
                claim.task.data if claim.task.kind == "single" else "x" * 5000 if claim.task.kind == "bulk" else None
            )
            claim.done()
    verdict = tools.judge(place, drained=True)  # all of it can be claimed, and nothing else
    assert verdict.figures["done"] == verdict.figures["claims"] == len(found)


@each_kill
def test_every_acknowledged_done_outlives_its_process_and_the_rest_can_be_finished(
    tmp_path: Path, crew: Crew, kills: int
) -> None:
    place = str(tmp_path / "yard")
    taskyard.init(place).close()
    tools.settle(place, max_crashes=1000, backoff=0.01, sweep_every=0.2)
    with recorded_yard(place) as yard:
        ids = yard.add_many([{"kind": "build"}] * (60 * kills))
    said = [word for word in killed_at_random(kills, lambda: crew(place, "work_for_ever", "1")) if word[0] != "idle"]
    assert sum(verb == "done" for verb, _, _ in said) > kills // 5, "they were killed before they did anything"
    # On a busy machine it may be that none of them died with a task in its hands, or that they have done all tasks.
    with recorded_yard(place) as yard:
        ids.append(yard.add("build").id)
    holder = crew(place, "claim_late", "1")
    tools.said(holder)
    holder.kill()
    holder.communicate()
    found = tools.places(place)  # each in one place, its file whole
    tools.judge(place)
    with recorded_yard(place) as yard:
        orphans = [id for id, state in found.items() if state == "processing"]
        wait_until(lambda: (yard.sweep(), yard.counts())[1]["processing"] == 0)
        for id in orphans:
            if yard.get(id).state != "todo":
                with contextlib.suppress(taskyard.Conflict):  # it has just become due
                    yard.retry(id)
            claim = yard.claim(id)
            assert claim is not None
            assert claim.history[-1]["outcome"] == "crash"
            claim.done("at last")
        assert orphans, "nobody was killed with a task in its hands"
    tools.judge(place)
    assert sorted(tools.places(place)) == sorted(ids)
