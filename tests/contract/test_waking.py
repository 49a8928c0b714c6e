"""Whoever waits is woken by whatever it waits for, at once, and no change is ever missed."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State, TimedOut
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard import Claim, Yard

LONG = 60.0  # seconds: a waiter that nobody wakes makes its test fail
ROUNDS = 150
SOON = 10.0  # seconds in which a waiter that was woken has ended, on the slowest of machines


class Waiter:
    """A thread that waits; `answer` is what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._answers: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._answers.append(work()), daemon=True)
        self._thread.start()

    @property
    def answer(self) -> Any:
        self._thread.join(SOON)
        assert not self._thread.is_alive(), "nobody was woken"
        return self._answers[0]


@pytest.fixture
def other(yard_url: str) -> Iterator[Yard]:
    """The same yard, as somebody else has it open."""
    with taskyard.open(yard_url, worker="bob") as opened:
        yield opened


@pytest.fixture
def asleep(yard: Yard, near: Yard, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a waiter of `yard` has looked in vain and goes to sleep."""
    sleeping = threading.Event()
    wait = near._store.wakeup.wait

    def watched(*args: Any) -> Any:
        sleeping.set()
        return wait(*args)

    monkeypatch.setattr(near._store.wakeup, "wait", watched)
    return sleeping


def claimer(yard: Yard, asleep: threading.Event, **options: Any) -> Waiter:
    """A claim that is waiting by now."""
    waiter = Waiter(lambda: yard.claim(wait=LONG, **options))
    assert asleep.wait(SOON)
    return waiter


def id_of(claim: Claim | None) -> str:
    return taken(claim).task.id


def test_a_new_task_wakes(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    waiter = claimer(yard, asleep)
    id = other.add("build").id
    assert id_of(waiter.answer) == id


def test_many_new_tasks_wake(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    waiter = claimer(yard, asleep)
    ids = other.add_many([{"kind": "build"}] * 3)
    assert id_of(waiter.answer) == ids[0]


def test_a_release_wakes(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    id = other.add("build").id
    held = taken(other.claim())
    waiter = claimer(yard, asleep)
    held.release()
    assert id_of(waiter.answer) == id


def test_a_task_is_handed_out_when_it_is_due(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    waiter = claimer(yard, asleep)
    id = other.add("build", delay=0.05).id
    assert id_of(waiter.answer) == id


def test_a_task_that_is_due_soon_is_waited_for(yard: Yard, other: Yard) -> None:
    id = other.add("build", delay=0.05).id
    assert id_of(yard.claim(wait=LONG)) == id


def test_a_retried_failure_is_handed_out_after_its_backoff(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    other.policy.backoff = 0.05
    id = other.add("build").id
    held = taken(other.claim())
    waiter = claimer(yard, asleep)
    held.fail("broken")
    assert id_of(waiter.answer) == id


def test_the_end_of_a_lease_wakes(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    id = other.add("build").id
    taken(other.claim(lease=0.5))  # and then it is never heard of again
    waiter = claimer(yard, asleep)
    assert id_of(waiter.answer) == id


def test_the_end_of_a_lease_that_began_meanwhile_wakes(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    other.pause("build")
    id = other.add("build").id
    waiter = claimer(yard, asleep, kinds=["build"])
    other.unpause("build")
    assert id_of(waiter.answer) == id
    asleep.clear()
    waiter = claimer(yard, asleep)
    id = other.add("test", assignee="bob").id
    taken(other.claim(kinds=["test"], lease=0.05))
    wait_until(
        lambda: other.get(id).state is not State.PROCESSING
    )  # given back by the waiter alone, who may not have it
    other.cancel(id)
    other.add("last")
    assert taken(waiter.answer).task.kind == "last"


def test_an_unpause_wakes(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    other.pause()
    id = other.add("build").id
    waiter = claimer(yard, asleep)
    other.unpause()
    assert id_of(waiter.answer) == id


def test_a_retry_and_an_edit_wake(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    one = other.add("build").id
    other.cancel(one)
    waiter = claimer(yard, asleep)
    other.retry(one)
    assert id_of(waiter.answer) == one
    asleep.clear()
    two = other.add("test", delay=3600).id
    waiter = claimer(yard, asleep)
    other.edit(two, delay=0)
    assert id_of(waiter.answer) == two


def test_whoever_waits_for_an_ending_is_woken_by_it(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    ids = other.add_many([{"kind": "build"}] * 2)
    waiter = Waiter(lambda: [task.state for task in yard.wait(*ids, timeout=LONG)])
    assert asleep.wait(SOON)
    other.cancel(ids[0])
    taken(other.claim()).done()
    assert waiter.answer == [State.CANCELLED, State.DONE]


def test_whoever_watches_is_told_of_what_matches_alone(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    other.add("build")
    waiter = Waiter(lambda: yard.watch(kind="build", event="claimed", timeout=LONG))
    assert asleep.wait(SOON)
    other.add("test")
    other.add("build")
    claim = taken(other.claim(kinds=["build"]))
    [event] = waiter.answer
    assert (event["event"], event["task"], event["by"]) == ("claimed", claim.task.id, "bob")
    claim.done()
    claim = taken(other.claim())
    claim.done()
    cursor = waiter.answer.cursor
    for name in ("done", "claimed", "done"):  # one at a time, and nothing is passed over
        events = yard.watch(cursor=cursor, timeout=LONG)
        assert [event["event"] for event in events] == [name]
        cursor = events.cursor


def test_a_watch_in_vain_times_out(yard: Yard) -> None:
    yard.add("build")
    with pytest.raises(TimedOut):
        yard.watch(timeout=0.02)
    with pytest.raises(TimedOut):
        yard.watch(timeout=0)


def test_whoever_follows_is_told_all_and_ends_when_told(yard: Yard, other: Yard, asleep: threading.Event) -> None:
    seen: list[str] = []
    enough = threading.Event()

    def follow() -> None:
        for events in yard.follow(kind="build", until=enough.is_set):
            seen.extend(event["event"] for event in events)

    waiter = Waiter(follow)
    assert asleep.wait(SOON)
    for _ in range(20):
        other.add("build")
        other.add("test")
        taken(other.claim(kinds=["build"])).done()
    wait_until(lambda: len(seen) == 60)
    enough.set()
    yard.wake()
    assert waiter.answer is None
    assert seen == ["added", "claimed", "done"] * 20


def test_a_wake_ends_every_wait_at_once(yard: Yard, near: Yard) -> None:
    store = near._store
    heard = store.wakeup.listen()
    begin = time.monotonic()
    waiters = [Waiter(lambda: _wait_until_heard(store, heard)) for _ in range(4)]
    store.wakeup.wake()
    assert all(waiter.answer for waiter in waiters)
    assert time.monotonic() - begin < LONG


def _wait_until_heard(store: Any, heard: Any) -> bool:
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        if store.wakeup.wait(end - time.monotonic(), heard) != heard:
            return True
    return False


def test_a_wake_without_a_word_to_stop_only_makes_look_again(
    yard: Yard, near: Yard, other: Yard, asleep: threading.Event
) -> None:
    waiter = claimer(yard, asleep)
    asleep.clear()
    near.wake()
    assert asleep.wait(SOON)
    id = other.add("build").id
    assert id_of(waiter.answer) == id


def test_all_threads_that_wait_on_one_yard_are_woken(yard: Yard, other: Yard) -> None:
    waiters = [Waiter(lambda: yard.claim(wait=LONG)) for _ in range(6)]
    ids = other.add_many([{"kind": "build"}] * 6)
    assert sorted(id_of(waiter.answer) for waiter in waiters) == sorted(ids)


def test_no_task_is_missed_however_soon_it_comes_after_the_look(yard: Yard, other: Yard) -> None:
    """Ping and pong: each task is added the moment the one before is claimed, when the waiter is anywhere in its look."""
    claimed = threading.Semaphore(0)

    def work() -> float:
        longest = 0.0
        for _ in range(ROUNDS):
            begin = time.monotonic()
            claim = taken(yard.claim(wait=LONG))
            longest = max(longest, time.monotonic() - begin)
            claimed.release()
            claim.done()
        return longest

    waiter = Waiter(work)
    for number in range(ROUNDS):
        other.add("build")
        if number % 3:
            time.sleep(number % 7 * 0.0003)
        assert claimed.acquire(timeout=SOON), "a wake-up was lost"
    assert waiter.answer < SOON


def test_an_alarm_tells_when_time_alone_changes_something(yard: Yard, near: Yard) -> None:
    store = near._store
    store.upkeep.overdue(10)
    assert store.upkeep.alarm() is None
    yard.add("build", delay=50)
    store.upkeep.overdue(10)
    alarm = store.upkeep.alarm()
    assert alarm is not None
    assert 0 < alarm <= 60
    yard.add("test")
    taken(yard.claim(lease=5))
    store.upkeep.overdue(10)
    alarm = store.upkeep.alarm()
    assert alarm is not None
    assert 0 < alarm <= 5.1


def test_the_log_ends_where_what_is_new_begins(yard: Yard) -> None:
    yard.add("build")
    cursor = yard.log_end()
    assert yard.events(cursor=cursor) == []
    id = yard.add("test").id
    assert [event["task"] for event in yard.events(cursor=cursor)] == [id]
