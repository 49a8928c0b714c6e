"""claim: one wins, in the order of urgency and age, and only what serves."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict, Invalid, NotFound, State
from taskyard.core import times
from tests.conftest import outlast, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def test_an_empty_yard_has_nothing_to_claim(yard: Yard) -> None:
    assert yard.claim() is None


def test_a_claimed_task_is_in_processing_with_its_holder(yard: Yard) -> None:
    id = yard.add("build", {"n": 1}).id
    claim = taken(yard.claim())
    assert (claim.task.id, claim.task.state, claim.task.worker, claim.fence) == (id, State.PROCESSING, "ada", 1)
    task = yard.get(id)
    assert (task.state, task.worker, task.fence) == (State.PROCESSING, "ada", 1)
    assert task.lease_until is not None
    assert claim.lease_until is not None
    # A claim's lease is told from just before the move, a look's from just after it.
    assert abs(times.moment(task.lease_until, "it") - times.moment(claim.lease_until, "it")) < 1000


def test_a_claimed_task_is_nobody_elses(yard: Yard, yard_url: str) -> None:
    yard.add("build")
    taken(yard.claim())
    with taskyard.open(yard_url) as other:
        assert other.claim() is None


def test_a_handle_is_one_shell_safe_word_that_is_no_id(yard: Yard) -> None:
    yard.add("build", assignee="host/agent 1")
    handle = taken(yard.claim(worker="host/agent 1")).handle
    assert re.fullmatch(r"[0-9a-z][0-9a-z.]{0,159}", handle)
    with pytest.raises(NotFound):
        yard.get(handle)


def test_a_task_id_is_no_handle(yard: Yard) -> None:
    task = yard.add("build")
    with pytest.raises(Invalid) as caught:
        yard.held(task.id)
    assert caught.value.hint is not None
    assert "handle" in caught.value.hint


@pytest.mark.parametrize(
    "handle", ["", "x", "a.b.c", "0000000000000000000.1.00000000", "-" * 30, "0" * 21 + ".0." + "0" * 8]
)
def test_what_is_no_handle_is_invalid(yard: Yard, handle: str) -> None:
    with pytest.raises(Invalid):
        yard.held(handle)


def test_a_handle_is_enough_to_go_on_in_another_process(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    handle = taken(yard.claim()).handle
    with taskyard.open(yard_url, worker="other") as other:
        claim = other.held(handle)
        assert (claim.fence, claim.handle, claim.task.id) == (1, handle, id)
        claim.heartbeat(progress=0.5)
        claim.done({"ok": True})
    task = yard.get(id)
    assert (task.state, task.result, task.worker) == (State.DONE, {"ok": True}, "ada")


def test_equal_tasks_are_handed_out_in_the_order_they_came(yard: Yard) -> None:
    made = yard.add_many({"kind": "build"} for _ in range(30))
    assert [taken(yard.claim()).task.id for _ in made] == made


def test_tasks_added_one_by_one_are_handed_out_in_the_order_they_came(yard: Yard) -> None:
    made = [yard.add("build").id for _ in range(10)]
    assert [taken(yard.claim()).task.id for _ in made] == made


def test_the_lower_number_goes_first_whatever_its_age_and_kind(yard: Yard) -> None:
    made = {priority: yard.add(f"kind{priority % 3}", priority=priority).id for priority in (5, 9, 0, 3, 7, 1)}
    assert [taken(yard.claim()).task.id for _ in made] == [made[priority] for priority in sorted(made)]


def test_an_urgent_task_added_later_overtakes(yard: Yard) -> None:
    first, second = yard.add("build").id, yard.add("build").id
    assert taken(yard.claim()).task.id == first
    urgent = yard.add("build", priority=0).id
    assert [taken(yard.claim()).task.id for _ in range(2)] == [urgent, second]


def test_only_the_kinds_asked_for_are_handed_out(yard: Yard) -> None:
    yard.add("build")
    deploy, test = yard.add("deploy").id, yard.add("test").id
    got = {taken(yard.claim(kinds=["deploy", "test"])).task.id for _ in range(2)}
    assert got == {deploy, test}
    assert yard.claim(kinds=["deploy", "test"]) is None
    assert yard.claim(kinds="other") is None
    assert yard.claim(kinds="build") is not None


def test_kinds_are_not_prefixes_nor_patterns_nor_case_blind(yard: Yard) -> None:
    yard.add("build.linux")
    for kind in ("build", "build.", "Build.linux", "build:linux"):
        assert yard.claim(kinds=kind) is None


def test_asking_for_an_illegal_kind_is_invalid(yard: Yard) -> None:
    with pytest.raises(Invalid):
        yard.claim(kinds=["*"])


def test_an_assigned_task_is_handed_only_to_that_worker(yard: Yard) -> None:
    mine = yard.add("build", assignee="bob").id
    assert yard.claim() is None
    assert yard.claim(worker="bo") is None
    assert taken(yard.claim(worker="bob")).task.id == mine


def test_a_worker_gets_its_own_and_everybodys_tasks(yard: Yard) -> None:
    yard.add("build", assignee="eve")
    wanted = {yard.add("build", assignee="bob").id, yard.add("build").id}
    assert {taken(yard.claim(worker="bob")).task.id for _ in range(2)} == wanted
    assert yard.claim(worker="bob") is None


@pytest.mark.parametrize("name", ["host/agent 1", "../..", "日本", "a.b-c.json", "a%2Fb", "x" * 60, "-1-"])
def test_odd_worker_names_come_back_exactly(yard: Yard, name: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(worker=name))
    assert claim.task.worker == yard.get(id).worker == name
    assert [task.id for task in yard.find(worker=name)] == [id]
    claim.note("hello")
    claim.done()
    report = yard.report(id)
    assert report.task.worker == report.history[0]["worker"] == report.notes[0]["worker"] == name


@pytest.mark.parametrize("name", ["", "x" * 61, "a\nb", "a\0", "é" * 11, "\udc80"])
def test_illegal_worker_names_are_refused(yard: Yard, yard_url: str, name: str) -> None:
    with pytest.raises(Invalid):
        yard.claim(worker=name)
    if name:
        with pytest.raises(Invalid):
            taskyard.open(yard_url, worker=name)


def test_a_nameless_worker_gets_a_name_of_its_own(yard_url: str) -> None:
    with taskyard.open(yard_url) as one, taskyard.open(yard_url) as two:
        assert one.worker != two.worker


def test_one_very_task_can_be_claimed_by_id_or_prefix(yard: Yard) -> None:
    first, second, third = yard.add_many({"kind": "build"} for _ in range(3))
    assert taken(yard.claim(second)).task.id == second
    [short] = yard.shorten([third])
    assert taken(yard.claim(short.upper())).task.id == third
    assert taken(yard.claim()).task.id == first
    assert yard.claim() is None


def test_a_named_task_that_is_not_in_todo_is_refused(yard: Yard) -> None:
    held = yard.add("build").id
    claim = taken(yard.claim(held))
    waiting = yard.add("build", delay=1000).id
    cancelled = yard.add("build").id
    yard.cancel(cancelled)
    for id in (held, waiting, cancelled):
        with pytest.raises(Conflict):
            yard.claim(id)
    claim.done()
    with pytest.raises(Conflict):
        yard.claim(held)


def test_a_named_task_of_somebody_else_is_refused(yard: Yard) -> None:
    id = yard.add("build", assignee="bob").id
    with pytest.raises(Conflict):
        yard.claim(id)
    assert taken(yard.claim(id, worker="bob")).task.id == id


def test_a_named_task_that_is_due_is_handed_out(yard: Yard) -> None:
    id = yard.add("build", delay=0.05).id

    def claimed() -> bool:
        try:
            return yard.claim(id) is not None
        except Conflict:
            return False

    wait_until(claimed)


def test_a_named_task_that_a_dead_worker_left_is_handed_out(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    with taskyard.open(yard_url, worker="bob") as other:
        lost = taken(other.claim(id, lease=0.05))
    outlast(lost)
    assert taken(yard.claim(id)).fence > lost.fence
    assert not yard.held(lost.handle).holds()


def test_a_claim_can_be_asked_whether_it_holds_without_a_trace(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=60))
    before = yard.get(id).as_dict()
    with taskyard.open(yard_url) as other:
        assert other.held(claim.handle).holds()
        assert other.held(claim.handle).lease == claim.lease == 60
    assert yard.get(id).as_dict() == before
    claim.done()
    assert not claim.holds()


def test_claiming_an_unknown_id_is_not_found(yard: Yard) -> None:
    for id in ("0" * 21, "zzzz", "nonsense!", "ab"):
        with pytest.raises(NotFound):
            yard.claim(id)


def test_a_delayed_task_is_waiting_and_not_handed_out(yard: Yard) -> None:
    task = yard.add("build", delay=1000)
    assert task.state is State.WAITING
    assert task.not_before is not None
    assert task.not_before > task.created_at
    assert yard.claim() is None
    assert yard.counts()["waiting"] == 1


def test_a_delayed_task_is_handed_out_when_its_time_has_come(yard: Yard) -> None:
    id = yard.add("build", delay=0.05).id
    claim = wait_until(yard.claim)
    assert claim.task.id == id
    assert yard.get(id).not_before is not None


def test_a_moment_in_the_future_makes_a_task_wait_and_comes_back(yard: Yard) -> None:
    task = yard.add("build", not_before="2050-01-31T12:00:00.250+02:00")
    assert (task.state, task.not_before) == (State.WAITING, "2050-01-31T10:00:00.250Z")
    assert yard.get(task.id).not_before == task.not_before


def test_a_moment_in_the_past_makes_no_task_wait(yard: Yard) -> None:
    task = yard.add("build", not_before="2001-01-31T12:00:00Z")
    assert task.state is State.TODO
    assert taken(yard.claim()).task.id == task.id


def test_a_waiting_task_keeps_its_priority(yard: Yard) -> None:
    urgent = yard.add("build", priority=1, delay=0.05).id
    yard.add("build", priority=5)

    def woken() -> bool:
        yard.sweep()
        return yard.get(urgent).state is State.TODO

    wait_until(woken)
    assert taken(yard.claim()).task.id == urgent


def test_a_patient_claim_gets_what_is_added_meanwhile(yard: Yard, yard_url: str) -> None:
    got: list[str] = []

    def work() -> None:
        with taskyard.open(yard_url) as other:
            got.append(taken(other.claim(wait=10)).task.id)

    thread = threading.Thread(target=work)
    thread.start()
    id = yard.add("build").id
    thread.join(10)
    assert got == [id]


def test_a_patient_claim_wakes_what_becomes_due(yard: Yard) -> None:
    id = yard.add("build", delay=0.1).id
    assert taken(yard.claim(wait=10)).task.id == id


def test_a_patient_claim_gives_up_in_the_end(yard: Yard) -> None:
    assert yard.claim(wait=0.05) is None


def test_a_claim_can_wait_for_no_negative_time(yard: Yard) -> None:
    with pytest.raises(Invalid):
        yard.claim(wait=-1)


@pytest.mark.parametrize("shared", [True, False], ids=["one yard", "a yard each"])
def test_eight_threads_racing_get_each_task_once(yard: Yard, yard_url: str, shared: bool) -> None:
    made = yard.add_many({"kind": "build"} for _ in range(300))
    start = threading.Barrier(8)
    got: list[list[tuple[str, str]]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        mine = yard if shared else taskyard.open(yard_url, worker=f"w{number}")
        start.wait()
        while True:
            claim = mine.claim()
            if claim is None:
                break
            claim.done(number)
            got[number].append((claim.task.id, claim.handle))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    everything = [item for part in got for item in part]
    assert sorted(id for id, _ in everything) == sorted(made)
    assert len({handle for _, handle in everything}) == 300
    assert yard.counts()["done"] == 300


def test_eight_threads_racing_for_one_task_have_one_winner(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    start = threading.Barrier(8)
    won: list[int] = []

    def work(number: int) -> None:
        with taskyard.open(yard_url, worker="same name") as mine:
            start.wait()
            try:
                if mine.claim(id if number % 2 else None) is not None:
                    won.append(number)
            except Conflict:
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(won) == 1
    assert yard.get(id).fence == 1


@pytest.mark.parametrize("ending", ["done", "fail", "release"])
def test_a_claim_keeps_its_handle_and_fence_after_it_is_over(yard: Yard, ending: str) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    before = (claim.handle, claim.fence)
    getattr(claim, ending)()
    assert (claim.handle, claim.fence) == before


def test_a_claim_that_never_told_its_handle_can_still_repeat_itself(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    claim.release()
    claim.release()
    assert claim.handle.startswith(claim.task.id)
