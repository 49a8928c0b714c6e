"""What only the memory store does: named yards that vanish with their last user, and time that tests can move."""

from __future__ import annotations

import threading
import time

import pytest

import taskyard
from taskyard import ClaimLost, State, Yard
from taskyard.stores.memory.store import MemoryStore
from taskyard.stores.memory.tasks import SEGMENT_HOLDS
from tests.conftest import taken

HOUR = 3600 * 1000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def yard(clock: Clock) -> Yard:
    return Yard(MemoryStore(clock=clock), "ada")


def test_yards_of_one_name_are_one_and_of_two_names_two() -> None:
    with taskyard.open("memory:one") as one, taskyard.open("memory:one") as same, taskyard.open("memory:two") as two:
        one.add("build")
        assert (same.counts()["todo"], two.counts()["todo"]) == (1, 0)
        assert one.url == "memory:one"


def test_no_name_is_a_name_like_any_other() -> None:
    with taskyard.open("memory:") as one, taskyard.init("memory:") as same:
        one.add("build")
        assert same.counts()["todo"] == 1
        assert one.url == "memory:"


def test_a_yard_lives_while_somebody_has_it_open() -> None:
    one = taskyard.open("memory:shared")
    two = taskyard.open("memory:shared")
    one.add("build")
    one.close()
    with taskyard.open("memory:shared") as three:
        assert three.counts()["todo"] == 1
    two.close()
    with taskyard.open("memory:shared") as fresh:
        assert fresh.counts()["todo"] == 0


def test_a_yard_that_everybody_forgot_is_gone() -> None:
    yard = taskyard.open("memory:forgotten")
    yard.add("build")
    del yard
    with taskyard.open("memory:forgotten") as fresh:
        assert fresh.counts()["todo"] == 0


def test_a_holder_that_slept_past_its_lease_does_not_reap_its_own_claim(yard: Yard, clock: Clock) -> None:
    yard.add_many([{"kind": "build"}, {"kind": "build"}])
    one, two = taken(yard.claim(lease=60)), taken(yard.claim(lease=60))
    clock.now += HOUR
    yard._look_at = 0.0  # a sweep is due too
    one.done("in the end")
    assert yard.get(one.task.id).state is State.DONE
    assert yard.sweep().reaped == 1
    with pytest.raises(ClaimLost):  # but what one left undone for an hour is reaped by the sweep that follows
        two.done("too late")


def test_a_heartbeat_moves_the_end_of_the_lease(yard: Yard, clock: Clock) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=60))
    for _ in range(5):
        clock.now += 50_000
        claim.heartbeat()
        assert not yard.sweep()
    clock.now += 60_000
    assert not yard.sweep()
    clock.now += 1
    assert yard.sweep().reaped == 1
    assert not yard.sweep()


def test_what_is_in_backoff_is_due_in_its_time(yard: Yard, clock: Clock) -> None:
    id = yard.add("build").id
    taken(yard.claim()).fail("broken")
    clock.now += 3_000
    assert not yard.sweep()
    clock.now += 4_000
    assert yard.sweep().woken == 1
    assert yard.get(id).state is State.TODO


def test_a_sweep_is_bounded_and_loses_nothing(yard: Yard, clock: Clock) -> None:
    yard.add_many({"kind": "build", "delay": 1 + n} for n in range(10))
    clock.now += HOUR
    assert [yard.sweep(limit=4).woken for _ in range(4)] == [4, 4, 2, 0]


def test_only_one_in_so_many_seconds_has_the_turn_to_sweep(clock: Clock) -> None:
    store = MemoryStore(clock=clock)
    assert [store.upkeep.turn(5), store.upkeep.turn(5)] == [True, False]
    clock.now += 5_000
    assert [store.upkeep.turn(5), store.upkeep.turn(5)] == [True, False]


def test_ids_rise_and_segments_hold_1024(yard: Yard, clock: Clock) -> None:
    made = yard.add_many({"kind": "build"} for _ in range(SEGMENT_HOLDS + 1))
    clock.now -= HOUR  # a clock that is set back makes no id older than the last
    made.append(yard.add("build").id)
    assert made == sorted(made)
    assert [made[0][:4], made[SEGMENT_HOLDS - 1][:4], made[SEGMENT_HOLDS][:4]] == ["0000", "0000", "0001"]


def test_a_claim_does_not_slow_down_with_the_yard(yard: Yard) -> None:
    def pace() -> float:
        begin = time.perf_counter()
        for _ in range(20):
            taken(yard.claim()).done()
        return time.perf_counter() - begin

    yard.add_many({"kind": "build"} for _ in range(200))
    small = min(pace() for _ in range(10))  # the best of ten: a busy machine slows some of them, never all
    yard.add_many({"kind": "build"} for _ in range(20_000))
    assert min(pace() for _ in range(10)) < 20 * small  # a scan would cost a hundred times more


def test_whoever_waits_is_told_of_a_change() -> None:
    store = MemoryStore()
    yard = Yard(store)
    waiting = threading.Event()
    told = threading.Event()

    def wait() -> None:
        waiting.set()
        store.wakeup.wait(60, store.wakeup.listen())
        told.set()

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    while not told.is_set():  # the first change may come before the thread waits
        yard.add("build")
        told.wait(0.01)
    thread.join()
