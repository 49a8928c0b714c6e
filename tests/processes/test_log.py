"""The log after a run with kills: every task's whole story, in one stream, however it is read."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.core import times
from tests.conftest import SOON, sized, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable

    Crew = Callable[..., subprocess.Popen[str]]

WORKERS, LINES = 4, 500


def live_and_die(place: str, crew: Crew, kills: int) -> None:
    """A crew that does all there is to do, with kills at random."""
    chance = random.Random(11)
    crews = [crew(place, "live", f"worker{number}", str(number)) for number in range(WORKERS)]
    for member in crews:
        assert tools.said(member) == "ready"
    for kill in range(kills):
        time.sleep(chance.uniform(0.05, 0.25))
        at = kill % WORKERS
        crews[at].kill()
        crews[at].communicate()
        crews[at] = crew(place, "live", f"worker{at}", str(kill + 100))
        assert tools.said(crews[at]) == "ready"
    wait_until(lambda: sum(file.read_bytes().count(b"\n") for file in Path(place, "events").iterdir()) > LINES)
    for member in crews:
        member.kill()
        member.communicate()


def texts(events: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(event, sort_keys=True) for event in events)


@sized("kills", 4, 16)
def test_after_a_run_with_kills_the_log_tells_the_whole_story_of_every_task(place: str, crew: Crew, kills: int) -> None:
    tools.settle(place, backoff=0.01, backoff_cap=0.05, sweep_every=0.2)
    live_and_die(place, crew, kills)
    tools.judge(place)
    with taskyard.open(place) as yard:
        everything = yard.events(limit=100_000)
        verbs = {event["event"] for event in everything}
        assert verbs >= {"added", "claimed", "done", "failed", "released", "cancelled", "edited", "retried", "reaped"}
        assert any(event.get("resumed") for event in everything)
        assert len(everything) > LINES
        # One merged stream by the command line too, and the same in pages.
        whole = tools.taskyard(place, "log", "--limit", "100000").data
        assert whole["events"] == list(everything)
        paged: list[dict[str, Any]] = []
        cursor = None
        while page := yard.events(limit=97, cursor=cursor):
            paged += page
            cursor = page.cursor
        assert texts(paged) == texts(everything)
        moments = [times.moment(event["at"], "at") for event in everything]
        late = sum(one - other > 1000 for one, other in itertools.pairwise(moments))
        assert late < len(moments) / 100, "by time, but for what was put back later"
        some = next(event["task"] for event in everything if event["event"] == "retried")
        story = [event for event in everything if event["task"] == some]
        assert tools.taskyard(place, "log", "--task", some).data["events"] == story


def test_pages_read_while_writers_append_lose_and_repeat_nothing(place: str, crew: Crew) -> None:
    adders = [crew(place, "add", "120") for _ in range(3)]  # what they say fits into their pipes
    claimers = [crew(place, "drain") for _ in range(2)]
    members = [*adders, *claimers]
    for member in members:
        assert tools.said(member) == "ready"
    for member in members:
        tools.tell(member)
    read: list[dict[str, Any]] = []
    cursor = None
    with taskyard.open(place) as yard:
        pages, more = 0, True
        while more:
            more = any(member.poll() is None for member in members)  # asked before the page that may be the last
            page = yard.events(limit=37, cursor=cursor)
            read += page
            cursor = page.cursor
            pages, more = pages + 1, more or bool(page)
        tools.told(members)
        assert yard.events(cursor=cursor) == []
        assert texts(read) == texts(yard.events(limit=100_000))
        assert pages > 10
    tools.judge(place)


def test_follow_prints_every_event_once(place: str, crew: Crew) -> None:
    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "before"}] * 20)
    follower = subprocess.Popen(
        [*tools.COMMAND, "log", "--follow", "--json", "--yard", place],
        stdout=subprocess.PIPE,
        text=True,
        env=tools.environment(),
    )
    try:
        tools.race([crew(place, "add", "200"), crew(place, "add", "200"), crew(place, "drain")])
        with taskyard.open(place) as yard:
            while (claim := yard.claim()) is not None:
                claim.done()
            yard.add("last")
            everything = texts(yard.events(limit=100_000))
        assert follower.stdout is not None
        lines: list[dict[str, Any]] = []

        def last() -> bool:
            assert follower.stdout is not None
            lines.append(json.loads(follower.stdout.readline()))
            return bool(lines[-1]["kind"] == "last")

        wait_until(last)
    finally:
        follower.send_signal(signal.SIGTERM)
        rest, _ = follower.communicate(timeout=SOON)
    assert rest == ""
    assert texts(lines) == everything
