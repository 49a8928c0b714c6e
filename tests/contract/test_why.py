"""Why nothing is ready, and why a task is where it is: the same facts on every store, and asking changes nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.yard import why
from tests.conftest import crash, outlast, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Task, Yard


def failed(yard: Yard, **options: Any) -> Task:
    """A task that has failed for good."""
    task = yard.add("build", **options)
    taken(yard.claim(task.id)).fail("boom", retry=False)
    return task


def codes(facts: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in facts["reasons"]]


# Why nothing is ready


def test_an_empty_yard_has_no_task(yard: Yard) -> None:
    facts = yard.why()
    assert facts["message"] == "there is no task"
    assert facts["empty"] == {"kinds": [], "missions": []}


def test_a_kind_without_tasks_is_named(yard: Yard) -> None:
    yard.add("build")
    assert "there is no task of kind test" in yard.why(kinds=["test"])["message"]


def test_a_pause_comes_first(yard: Yard) -> None:
    yard.add("build", delay=1000)
    yard.pause()
    facts = yard.why()
    assert facts["paused"] == {"yard": True, "kinds": []}
    assert facts["message"].startswith("paused: the whole yard; 1 task is not due yet")
    assert facts["next"] == "'taskyard unpause' ends the pause"


def test_only_a_pause_of_the_kinds_in_question_is_a_reason(yard: Yard) -> None:
    yard.pause("deploy")
    yard.pause("build")
    assert yard.why()["paused"] == {"yard": False, "kinds": ["build", "deploy"]}
    assert yard.why(kinds="build")["paused"] == {"yard": False, "kinds": ["build"]}
    assert "paused" not in yard.why(kinds="test")


def test_what_is_blocked_behind_a_failed_task_names_it(yard: Yard) -> None:
    root = failed(yard)
    for _ in range(3):
        yard.add("build", after=[root.id])
    assert yard.claim() is None
    facts = yard.why()
    assert facts["blocked"] == [{"behind": root.id, "short": root.short, "state": "failed", "count": 3}]
    assert facts["message"] == f"3 tasks are blocked behind {root.short}, which failed"
    assert f"'taskyard retry {root.short}'" in facts["next"]


def test_what_is_blocked_behind_a_cancelled_task_names_it(yard: Yard) -> None:
    root = yard.add("build")
    yard.add("build", after=[root.id])
    yard.cancel(root.id)
    assert yard.why()["message"] == f"1 task is blocked behind {root.short}, which was cancelled"


def test_a_chain_is_followed_to_its_root(yard: Yard) -> None:
    root = failed(yard)
    last = root
    for _ in range(5):
        last = yard.add("build", after=[last.id])
    [entry] = yard.why()["blocked"]
    assert (entry["behind"], entry["count"]) == (root.id, 5)


def test_what_is_blocked_behind_a_running_task_comes_after_what_cannot_go_on(yard: Yard) -> None:
    root = failed(yard)
    yard.add("build", after=[root.id])
    running = taken(yard.claim(yard.add("test").id))
    for _ in range(2):
        yard.add("build", after=[running.task.id])
    assert [(entry["state"], entry["count"]) for entry in yard.why()["blocked"]] == [("failed", 1), ("processing", 2)]


def test_one_need_that_failed_is_enough(yard: Yard) -> None:
    good, root = yard.add("test"), failed(yard)
    yard.add("build", after=[good.id, root.id])
    assert [entry["behind"] for entry in yard.why()["blocked"]] == [root.id]


def test_a_resource_in_use_is_named_with_its_user(yard: Yard) -> None:
    claim = taken(yard.claim(yard.add("build", uses=["db"]).id))
    yard.add("build", uses=["disk", "db"])
    assert yard.claim(worker="bob") is None
    facts = yard.why(worker="bob")
    short = yard.get(claim.task.id).short
    assert facts["in_use"] == [
        {"resource": "db", "count": 1, "task": claim.task.id, "short": short, "by": "ada", "held": "db"}
    ]
    assert facts["message"].startswith(f"1 task waits for 'db', which ada uses for {short}")
    claim.done()
    assert "in_use" not in yard.why(worker="bob")


def test_the_next_that_is_due_is_named(yard: Yard) -> None:
    yard.add("build", delay=5000)
    yard.add("build", delay=600)
    yard.add("test", delay=60)
    assert yard.claim() is None
    due = yard.why()["due"]
    assert (due["count"], 0 < due["in"] <= 60) == (3, True)
    assert 60 < yard.why(kinds="build")["due"]["in"] <= 600
    assert yard.why()["message"].startswith("3 tasks are not due yet, the next in ")


def test_the_soonest_counts_also_if_it_was_added_after_many(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "SAMPLE", 3)
    for _ in range(5):
        yard.add("build", delay=100_000)
    yard.add("test", delay=500)
    yard.add("build", delay=9000)
    due = yard.why()["due"]
    assert (due["count"], due["at_least"], due["in"] <= 500) == (3, True, True)
    assert 500 < yard.why(kinds="build")["due"]["in"] <= 9000


def test_what_only_another_worker_can_have_is_a_reason(yard: Yard) -> None:
    yard.add("build", assignee="bob")
    assert yard.claim() is None
    facts = yard.why()
    assert facts["assigned"] == [{"worker": "bob", "count": 1}]
    assert facts["message"] == "1 task is assigned to bob"
    assert yard.why(worker="bob")["ready"] == {"count": 1}


def test_kinds_that_were_not_asked_for_are_named(yard: Yard) -> None:
    yard.add("test")
    assert yard.claim(kinds="test", worker="bob") is not None
    yard.add("test")
    assert yard.claim(kinds="build") is None
    facts = yard.why(kinds="build")
    assert facts["other_kinds"] == [{"kind": "test", "count": 1}]
    assert facts["message"].startswith("1 task of other kinds is ready: test")


def test_a_kind_that_no_worker_has_asked_for_is_named(yard: Yard) -> None:
    yard.add("build")
    yard.add("test")
    assert yard.claim(kinds="deploy") is None
    found = yard.why()["unserved"]
    assert {entry["kind"]: (entry["count"], entry["since"]) for entry in found} == {
        "build": (1, None),
        "test": (1, None),
    }
    taken(yard.claim(kinds=["build"])).release()
    assert [entry["kind"] for entry in yard.why()["unserved"]] == ["test"]


def test_a_claim_of_any_kind_asks_for_all(yard: Yard) -> None:
    yard.add("build")
    taken(yard.claim()).release()
    assert "unserved" not in yard.why()


def test_a_claim_by_id_asks_for_no_kind(yard: Yard) -> None:
    taken(yard.claim(yard.add("build").id)).release()
    assert [entry["kind"] for entry in yard.why()["unserved"]] == ["build"]


def test_an_hour_without_a_claim_of_its_kind_is_a_reason(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.add("build")
    assert yard.claim(kinds="test") is None
    taken(yard.claim(kinds="build")).release()
    assert "unserved" not in yard.why(kinds="build")
    monkeypatch.setattr(why, "UNSERVED", 0.0)
    [entry] = yard.why(kinds="build")["unserved"]
    assert entry["since"] is not None
    assert 0 <= entry["for"] < 3600


def test_what_workers_hold_is_a_reason(yard: Yard) -> None:
    yard.add("build")
    taken(yard.claim())
    assert yard.claim(worker="bob") is None
    facts = yard.why(worker="bob")
    assert (facts["running"], facts["message"]) == (1, "1 task is in workers' hands")


def test_all_that_is_done_is_a_reason(yard: Yard) -> None:
    yard.add("build")
    taken(yard.claim()).done()
    facts = yard.why()
    assert (facts["done"], facts["message"]) == (True, "everything is done")


def test_all_that_has_ended_says_what_failed(yard: Yard) -> None:
    failed(yard)
    facts = yard.why()
    assert (facts["done"], facts["failed"]) == (True, 1)
    assert facts["message"] == "everything has ended, and 1 task failed"


def test_all_that_was_cancelled_is_not_done(yard: Yard) -> None:
    for _ in range(2):
        yard.cancel(yard.add("build").id)
    facts = yard.why()
    assert (facts["done"], facts["cancelled"]) == (True, 2)
    assert facts["message"] == "everything has ended, and 2 tasks were cancelled"


def test_what_is_ready_is_no_mystery(yard: Yard) -> None:
    yard.add("build")
    taken(yard.claim()).release()
    facts = yard.why()
    assert (facts["ready"], facts["message"]) == ({"count": 1}, "1 task is ready")


def test_only_the_mission_in_question_counts(yard: Yard) -> None:
    yard.add("build", mission="one", delay=1000)
    yard.add("build", mission="two")
    facts = yard.why(mission="one")
    assert facts["due"]["count"] == 1
    assert "ready" not in facts
    assert yard.why(mission="three")["message"] == "there is no task of mission three"


def test_counts_that_end_at_the_bound_are_marked(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "SAMPLE", 2)
    root = failed(yard)
    for _ in range(3):
        yard.add("build", after=[root.id])
    assert yard.why()["message"] == f"at least 2 tasks are blocked behind {root.short}, which failed"


def test_asking_why_changes_nothing(yard: Yard) -> None:
    root = failed(yard)
    for task in (yard.add("build", after=[root.id]), yard.add("test", delay=1000), yard.add("test"), root):
        yard.why(task.id)
    before, log = yard.stats(), yard.log_end()
    yard.why()
    ages = ("ages", "oldest_ready")  # which the clock alone changes
    assert {name: figure for name, figure in yard.stats().items() if name not in ages} == {
        name: figure for name, figure in before.items() if name not in ages
    }
    assert yard.events(cursor=log) == []


# Why a task is where it is


def test_a_task_that_waits_says_until_when(yard: Yard) -> None:
    task = yard.add("build", delay=1000)
    facts = yard.why(task.id)
    assert (facts["state"], facts["task"]["id"], codes(facts)) == ("waiting", task.id, ["not_due"])
    assert facts["reasons"][0]["at"] == yard.get(task.id).not_before
    assert "'taskyard retry" in facts["next"]


def test_a_task_in_backoff_names_its_error(yard: Yard) -> None:
    task = yard.add("build")
    taken(yard.claim()).fail("the disk is full")
    facts = yard.why(task.id)
    assert codes(facts) == ["not_due", "backoff"]
    assert facts["message"].endswith("its last attempt, by ada, failed: the disk is full")


def test_a_task_in_backoff_after_crashes_says_so(yard: Yard) -> None:
    task = yard.add("build")
    for _ in range(2):
        crash(yard, task.id)
    facts = yard.why(task.id)
    assert (codes(facts), facts["reasons"][1]["outcome"]) == (["not_due", "backoff"], "crash")


def test_a_blocked_task_names_each_need_with_its_state(yard: Yard) -> None:
    waits, runs = yard.add("build", delay=1000), yard.add("test")
    taken(yard.claim(runs.id))
    task = yard.add("deploy", after=[waits.id, runs.id])
    facts = yard.why(task.id)
    assert {(reason["task"], reason["state"]) for reason in facts["reasons"]} == {
        (waits.id, "waiting"),
        (runs.id, "processing"),
    }
    assert facts["next"] == "it goes on by itself when all that it comes after are done"


def test_a_need_that_is_done_is_no_reason(yard: Yard) -> None:
    first, second = yard.add("build"), yard.add("build")
    task = yard.add("deploy", after=[first.id, second.id])
    taken(yard.claim(first.id)).done()
    assert [reason["task"] for reason in yard.why(task.id)["reasons"]] == [second.id]


def test_a_task_behind_a_failure_names_the_root_and_the_way(yard: Yard) -> None:
    root = failed(yard)
    middle = yard.add("build", after=[root.id])
    task = yard.add("build", after=[middle.id])
    facts = yard.why(task.id)
    assert codes(facts) == ["stuck", "behind"]
    stuck = facts["reasons"][0]
    assert (stuck["task"], stuck["through"]) == (root.id, [middle.short])
    assert facts["next"] == f"'taskyard retry {root.short}' tries that one again"


def test_a_ready_task_says_how_many_are_before_it(yard: Yard) -> None:
    yard.add("build")
    task = yard.add("build")
    yard.add("build")
    yard.add("build", priority=1)
    taken(yard.claim()).release()
    [reason] = yard.why(task.id)["reasons"]
    assert (reason["code"], reason["before"]) == ("ready", 2)
    [first] = yard.why(yard.ready()[0].id)["reasons"]
    assert first["code"] == "ready"


def test_a_ready_task_of_a_paused_kind_or_yard_says_so(yard: Yard) -> None:
    task = yard.add("build")
    yard.pause("build")
    assert yard.why(task.id)["message"].startswith("the kind build is paused")
    yard.pause()
    assert yard.why(task.id)["message"].startswith("the whole yard is paused")


def test_an_assigned_task_names_its_worker(yard: Yard) -> None:
    task = yard.add("build", assignee="bob")
    assert codes(yard.why(task.id)) == ["assigned"]
    assert codes(yard.why(task.id, worker="bob")) == ["ready"]


def test_a_task_that_waits_for_a_resource_names_who_has_it(yard: Yard) -> None:
    claim = taken(yard.claim(yard.add("build", uses=["db"]).id))
    task = yard.add("build", uses=["db"])
    assert yard.claim(worker="bob") is None
    [reason] = yard.why(task.id)["reasons"]
    assert (reason["code"], reason["resource"], reason["task"]) == ("in_use", "db", claim.task.id)
    assert reason["worker"] == "ada"


def test_a_ready_task_of_a_kind_that_no_worker_asks_for_says_so(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    task = yard.add("build")
    assert codes(yard.why(task.id)) == ["ready", "unserved"]
    taken(yard.claim(kinds="build")).release()
    assert codes(yard.why(task.id)) == ["ready"]
    monkeypatch.setattr(why, "UNSERVED", 0.0)
    assert codes(yard.why(task.id)) == ["ready", "unserved"]


def test_a_held_task_names_its_holder_and_its_lease(yard: Yard) -> None:
    task = yard.add("build")
    taken(yard.claim())
    [reason] = yard.why(task.id)["reasons"]
    assert (reason["code"], reason["worker"], reason["heartbeat_at"]) == ("held", "ada", None)
    assert reason["lease_until"] == yard.get(task.id).lease_until
    [claimed] = yard.events(task=task.id, event="claimed")
    assert reason["since"] == claimed["at"]


def test_a_lapsed_claim_says_that_the_next_sweep_takes_it(yard: Yard) -> None:
    task = yard.add("build")
    claim: Claim = taken(yard.claim(lease=0.05))
    outlast(claim)
    facts = yard.why(task.id)
    assert (facts["state"], codes(facts)) == ("processing", ["lapsed", "held"])


def test_a_done_task_says_who_did_it(yard: Yard) -> None:
    task = yard.add("build")
    taken(yard.claim()).done({"ok": True})
    [reason] = yard.why(task.id)["reasons"]
    assert (reason["code"], reason["worker"]) == ("done", "ada")
    assert reason["at"] is not None


def test_a_failed_task_has_its_reason_and_how_to_retry(yard: Yard) -> None:
    task = failed(yard)
    facts = yard.why(task.id)
    [reason] = facts["reasons"]
    assert (reason["code"], reason["worker"], reason["reason"]) == ("failed", "ada", "boom")
    assert facts["next"] == f"'taskyard retry {task.short}' tries it again"


def test_a_cancelled_task_says_who_cancelled_it_and_why(yard: Yard) -> None:
    task = yard.add("build")
    yard.cancel(task.id, "not needed")
    [reason] = yard.why(task.id)["reasons"]
    assert (reason["code"], reason["worker"], reason["reason"]) == ("cancelled", "ada", "not needed")
    assert reason["at"] is not None


def test_a_short_name_serves_and_an_unknown_one_is_refused(yard: Yard) -> None:
    task = yard.add("build")
    assert yard.why(task.short)["task"]["id"] == task.id
    with pytest.raises(taskyard.NotFound):
        yard.why("0000zzzzzzzzzzzzzzzzz")


# Waiting for what can never end


def test_a_wait_for_what_can_never_end_ends_at_once(yard: Yard) -> None:
    root = failed(yard)
    middle = yard.add("build", after=[root.id])
    task, other = yard.add("build", after=[middle.id]), yard.add("test")
    with pytest.raises(taskyard.Stuck) as stuck:
        yard.wait(other.id, task.id)
    assert stuck.value.message == (
        f"{task.short} can never end by itself: it is blocked behind {root.short}, which failed"
    )
    assert [waited.id for waited in stuck.value.tasks] == [other.id, task.id]
    assert stuck.value.why is not None
    assert (stuck.value.why["task"], stuck.value.why["blocked"][0]["behind"]) == (task.id, root.id)


def test_a_wait_ends_when_its_task_gets_stuck(yard: Yard) -> None:
    root = yard.add("build")
    task = yard.add("build", after=[root.id])
    claim = taken(yard.claim(root.id))
    met: list[Exception] = []

    def wait() -> None:
        try:
            yard.wait(task.id, timeout=30)
        except taskyard.TaskyardError as error:
            met.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    claim.fail("boom", retry=False)
    waiter.join(30)
    assert [type(error) for error in met] == [taskyard.Stuck]


def test_a_wait_goes_on_while_all_that_its_task_needs_can_still_be_done(yard: Yard) -> None:
    root = yard.add("build")
    task = yard.add("build", after=[root.id])
    with pytest.raises(taskyard.TimedOut):
        yard.wait(task.id, timeout=0)
    wait_until(lambda: yard.get(task.id).state == "blocked")


def test_a_task_that_is_cancelled_with_another_names_what_must_be_retried_first(yard: Yard) -> None:
    root = failed(yard)
    task = yard.add("test", after=f"{root.id}:cancel")
    facts = yard.why(task.id)
    assert codes(facts) == ["cancelled", "cancelled_with"]
    assert (
        facts["next"] == f"'taskyard retry {root.short}' first; then 'taskyard retry {task.short}' puts this one back"
    )
    yard.retry(root.id)
    assert codes(yard.why(task.id)) == ["cancelled"]
    assert yard.why(task.id)["next"] == f"'taskyard retry {task.short}' puts it back"
    yard.retry(task.id)


def test_a_full_yard_is_named(yard: Yard) -> None:
    yard.set_settings({"max_todo": 2, "kinds": {"build": {"max_todo": 1}}})
    yard.add("build", delay=1000)
    facts = yard.why()
    assert facts["full"] == [{"kind": "build", "count": 1, "max_todo": 1}]
    assert "kind build is full (1 of 1): an add is refused, or waits for room" in facts["message"]
    yard.add("test", delay=1000)
    assert "the yard is full (2 of 2), kind build is full (1 of 1)" in yard.why()["message"]


def test_why_a_task_failed_names_the_error_at_the_end_of_a_traceback(yard: Yard) -> None:
    task = yard.add("build")
    trace = (
        'Traceback (most recent call last):\n  File "importer.py", line 214, in read\nValueError: no number: "n/a"\n'
    )
    taken(yard.claim(task.id)).fail(trace, retry=False)
    assert 'ValueError: no number: "n/a"' in yard.why(task.id)["message"]
