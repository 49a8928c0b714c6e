"""The event log: every move is told once, in order, and whoever reads on with a cursor misses nothing."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, NotFound
from taskyard.core import times
from tests.conftest import crash, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard

KEYS = {"at", "event", "task", "kind", "fence", "worker", "by"}
QUIET = ("noted", "refused")  # of a claim, and no move


def moves_of(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(event["fence"], event["event"]) for event in events if event["event"] not in QUIET]


def assert_whole(events: list[dict[str, Any]], final_fence: int) -> None:
    """Every number from nought to the task's own was told of, in order, and none twice but for a claim's own ending."""
    told = moves_of(events)
    fences = [fence for fence, _ in told]
    assert fences == sorted(fences)
    assert sorted(set(fences)) == list(range(final_fence + 1)), told
    for fence in set(fences):
        events_there = [event for at, event in told if at == fence]
        assert len(events_there) == 1 or (
            events_there[0] == "claimed" and events_there[1] in ("done", "failed") and len(events_there) == 2
        ), told


def test_every_event_has_the_same_fields(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.note("halfway")
    claim.done("result")
    events = yard.events()
    assert [event["event"] for event in events] == ["added", "claimed", "noted", "done"]
    for event in events:
        assert set(event) >= KEYS
        assert (event["task"], event["kind"], event["by"]) == (id, "build", "ada")
        assert abs(times.moment(event["at"], "at") / 1000 - time.time()) < 60
    assert [event["fence"] for event in events] == [0, 1, 1, 1]
    assert [event["worker"] for event in events] == [None, "ada", "ada", "ada"]
    assert events[2]["text"] == "halfway"
    assert [set(event) - KEYS for event in events] == [{"short"}, {"short"}, {"short", "text"}, {"short"}]


def test_the_log_tells_each_tasks_story_in_order(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).release()
    crash(yard, id)
    yard.edit(id, title="New")
    taken(yard.claim()).fail("broken")
    yard.retry(id)
    old = taken(yard.claim())
    [claim] = yard.resume()
    with pytest.raises(ClaimLost):
        old.heartbeat()
    yard.cancel(id, "not now")
    with pytest.raises(ClaimLost):
        claim.done()
    yard.retry(id)
    yard.edit(id, delay=0.01)
    wait_until(lambda: yard.sweep().woken)
    taken(yard.claim()).fail("for good", retry=False)
    yard.retry(id)
    taken(yard.claim()).done()
    events = yard.events(task=id)
    assert [event["event"] for event in events] == [
        "added", "claimed", "released", "claimed", "reaped", "edited", "claimed", "failed", "retried", "claimed",
        "claimed", "refused", "cancelled", "refused", "retried", "edited", "due", "claimed", "failed", "retried",
        "claimed", "done",
    ]  # fmt: skip
    assert [event["fence"] for event in events if event.get("resumed")] == [claim.fence]
    assert_whole(events, yard.get(id).fence)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)


def test_an_attempt_that_failed_tells_the_reason_and_when_it_is_due(yard: Yard) -> None:
    id = yard.add("build", max_attempts=2).id
    taken(yard.claim()).fail("broken")
    first = yard.events(task=id)[-1]
    assert (first["event"], first["final"], first["reason"]) == ("failed", False, "broken")
    assert first["due"] == yard.get(id).not_before
    yard.retry(id)
    taken(yard.claim()).fail("broken again")
    last = yard.events(task=id)[-1]
    assert (last["event"], last["final"], last["reason"], "due" in last) == ("failed", True, "broken again", False)


def test_an_edit_tells_when_the_task_is_due_now(yard: Yard) -> None:
    id = yard.add("build").id
    task = yard.edit(id, delay=1000)
    event = yard.events(task=id)[-1]
    assert (event["event"], event["due"], event["worker"], event["by"]) == ("edited", task.not_before, None, "ada")
    yard.edit(id, title="New")
    assert "due" not in yard.events(task=id)[-1]


def test_a_reaped_claim_tells_whose_it_was(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    with taskyard.open(yard_url, worker="bob") as other:
        claim = taken(other.claim(lease=0.05))
    wait_until(lambda: yard.sweep().reaped)
    event = yard.events(task=id)[-1]
    assert event["event"] == "reaped"
    assert (event["worker"], event["by"], event["final"], event["fence"]) == ("bob", "ada", False, claim.fence + 1)
    assert "lease" in event["reason"]


def test_who_asked_is_told_beside_whose_claim_it_was(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    taken(yard.claim())
    with taskyard.open(yard_url, worker="boss") as other:
        other.cancel(id, "stop")
    event = yard.events(task=id)[-1]
    assert (event["event"], event["worker"], event["by"], event["reason"]) == ("cancelled", "ada", "boss", "stop")


def test_a_verb_that_came_too_late_is_told(yard: Yard) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    yard.cancel(id)
    for verb in ("heartbeat", "done", "release"):
        with pytest.raises(ClaimLost):
            getattr(old, verb)()
    refused = [event for event in yard.events(task=id) if event["event"] == "refused"]
    assert [(event["verb"], event["fence"]) for event in refused] == [
        ("heartbeat", old.fence),
        ("done", old.fence),
        ("release", old.fence),
    ]


def test_what_changes_nothing_is_not_told(yard: Yard) -> None:
    id = yard.add("build", key="k").id
    yard.add("build", key="k")
    with pytest.raises(Conflict):
        yard.add("test", key="k")
    claim = taken(yard.claim())
    claim.heartbeat(progress=0.5)
    with pytest.raises(Conflict):
        yard.edit(id, title="New")
    with pytest.raises(Conflict):
        yard.claim(id)
    assert claim.holds()
    claim.done("same")
    claim.done("same")
    yard.get(id)
    yard.sweep()
    assert [event["event"] for event in yard.events()] == ["added", "claimed", "done"]


def test_events_are_found_by_task_worker_and_kind(yard: Yard, yard_url: str) -> None:
    one, two = yard.add("build").id, yard.add("test").id
    taken(yard.claim(one)).done()
    with taskyard.open(yard_url, worker="bob") as other:
        taken(other.claim(two)).release()
    assert {event["task"] for event in yard.events(task=one)} == {one}
    assert {event["task"] for event in yard.events(task=yard.shorten([two])[0])} == {two}
    assert [event["event"] for event in yard.events(kind="test")] == ["added", "claimed", "released"]
    assert [event["event"] for event in yard.events(worker="bob")] == ["claimed", "released"]
    assert [event["event"] for event in yard.events(worker="ada")] == ["added", "added", "claimed", "done"]
    assert [event["event"] for event in yard.events(worker="ada", kind="build", task=one)] == [
        "added",
        "claimed",
        "done",
    ]
    assert yard.events(worker="nobody") == []
    assert yard.events(kind="nothing") == []


def test_events_since_a_moment(yard: Yard) -> None:
    yard.add("build")
    first = yard.events()[0]["at"]
    wait_until(lambda: times.rfc3339(int(time.time() * 1000) - 20) > first)
    yard.add("test")
    second = yard.events()[-1]["at"]
    assert [event["kind"] for event in yard.events(since=first)] == ["build", "test"]
    assert [event["kind"] for event in yard.events(since=second)] == ["test"]
    assert yard.events(since="2050-01-01T00:00:00Z") == []


def test_a_cursor_goes_on_where_the_page_before_ended(yard: Yard) -> None:
    assert yard.events() == []
    yard.add_many([{"kind": "build"}] * 7)
    whole = yard.events()
    assert len(whole) == 7
    read: list[dict[str, Any]] = []
    cursor = None
    for size in (3, 3, 1, 0):
        page = yard.events(cursor=cursor, limit=3)
        assert len(page) == size
        read += page
        cursor = page.cursor
    assert read == list(whole)
    taken(yard.claim()).done()
    assert [event["event"] for event in yard.events(cursor=cursor)] == ["claimed", "done"]
    assert [event["event"] for event in yard.events(cursor=whole.cursor)] == ["claimed", "done"]


def test_a_cursor_works_together_with_a_filter(yard: Yard) -> None:
    for number in range(6):
        yard.add("odd" if number % 2 else "even")
    first = yard.events(kind="odd", limit=2)
    rest = yard.events(kind="odd", cursor=first.cursor)
    assert len(first) == 2
    assert len(rest) == 1
    assert yard.events(kind="odd", cursor=rest.cursor) == []
    yard.add("odd")
    assert len(yard.events(kind="odd", cursor=rest.cursor)) == 1


def test_a_cursor_of_an_empty_log_sees_the_first_event(yard: Yard) -> None:
    cursor = yard.events().cursor
    yard.add("build")
    assert [event["event"] for event in yard.events(cursor=cursor)] == ["added"]


@pytest.mark.parametrize(
    "wrong",
    [{"cursor": "nonsense!"}, {"limit": 0}, {"limit": 10**9}, {"kind": "a b"}, {"since": "yesterday"}, {"since": 5}],
)
def test_a_question_that_can_never_be_right_is_refused(yard: Yard, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        yard.events(**wrong)


def test_the_story_of_an_unknown_task_is_not_found(yard: Yard) -> None:
    with pytest.raises(NotFound):
        yard.events(task="0" * 21)


def test_a_text_of_any_kind_is_told_as_it_is(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    text = 'line\none "two" \\ \u2028 漢字 😀 \x1b[31m'
    claim.note(text)
    claim.fail(text, retry=False)
    assert [event.get("text", event.get("reason")) for event in yard.events()[-2:]] == [text, text]


def test_what_was_handed_out_cannot_be_used_to_change_the_log(yard: Yard) -> None:
    yard.add("build")
    yard.events()[0]["event"] = "nonsense"
    assert yard.events()[0]["event"] == "added"


def work(url: str, name: str) -> None:
    """Take tasks until there are none; every second one takes a detour on its way to its end."""
    with taskyard.open(url, worker=name) as own:
        number = 0
        while (claim := own.claim()) is not None:
            number += 1
            if number % 5 == 1 and claim.fence < 6:
                claim.release()
            elif number % 5 == 2 and claim.fence < 6:
                claim.fail("broken")
                own.retry(claim.task.id)
            elif number % 5 == 3:
                [claim] = own.resume()
                claim.done(number)
            else:
                claim.note("finished")
                claim.done()


def keyed(events: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return sorted((event["task"], event["fence"], event["event"]) for event in events)


def test_after_a_crew_has_worked_the_log_tells_the_whole_story_of_every_task(yard: Yard, yard_url: str) -> None:
    ids = yard.add_many([{"kind": "build", "max_attempts": 9}] * 60)
    crew = [threading.Thread(target=work, args=(yard_url, f"worker-{number}")) for number in range(4)]
    for thread in crew:
        thread.start()
    read: list[dict[str, Any]] = []
    cursor = None
    while any(thread.is_alive() for thread in crew):  # who reads along misses nothing and sees nothing twice
        page = yard.events(cursor=cursor, limit=50)
        read += page
        cursor = page.cursor
    while (claim := yard.claim()) is not None:  # handed back by the last one to go
        claim.done()
    assert yard.counts()["done"] == len(ids)
    read += yard.events(cursor=cursor)
    whole = yard.events()
    assert keyed(read) == keyed(list(whole))
    for id in ids:
        events = [event for event in whole if event["task"] == id]
        assert events == list(yard.events(task=id))
        assert_whole(events, yard.get(id).fence)
        assert events[-1]["event"] == "done"
