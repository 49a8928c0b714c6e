"""Each reason why nothing is ready, and why a task is where it is, as the clause that people read."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard.core import reasons, task_reasons

BEHIND = {"behind": "x", "short": "0-kf12", "count": 3}
USED = {"resource": "db", "held": "db", "task": "x", "short": "0-kf12", "by": "ada", "count": 2}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (0.4, "0 s"), (90, "90 s"), (185, "3 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_a_duration_has_at_least_two_of_its_unit(seconds: float, text: str) -> None:
    assert reasons.duration(seconds) == text


@pytest.mark.parametrize(
    ("facts", "clause"),
    [
        ({"paused": {"yard": True, "kinds": []}}, "paused: the whole yard"),
        ({"paused": {"yard": True, "kinds": ["a", "b"]}}, "paused: the whole yard, and a, b"),
        ({"paused": {"yard": False, "kinds": ["a"]}}, "paused: a"),
        ({"unusable": ["todo/5-a: Permission denied"]}, "passed over: todo/5-a: Permission denied"),
        ({"unusable": ["todo/5-a: no", "x", "y"]}, "passed over: todo/5-a: no and 2 more"),
        ({"ready": {"count": 1}}, "1 task is ready"),
        ({"ready": {"count": 100, "at_least": True}}, "at least 100 tasks are ready"),
        ({"blocked": [{**BEHIND, "state": "failed"}]}, "3 tasks are blocked behind 0-kf12, which failed"),
        ({"blocked": [{**BEHIND, "state": "cancelled"}]}, "3 tasks are blocked behind 0-kf12, which was cancelled"),
        ({"blocked": [{**BEHIND, "count": 1, "state": "todo"}]}, "1 task is blocked behind 0-kf12, which is todo"),
        ({"in_use": [USED]}, "2 tasks wait for 'db', which ada uses for 0-kf12"),
        ({"in_use": [{**USED, "count": 1}]}, "1 task waits for 'db', which ada uses for 0-kf12"),
        ({"other_kinds": [{"kind": "b", "count": 1}]}, "1 task of other kinds is ready: b"),
        (
            {"other_kinds": [{"kind": name, "count": 2} for name in "abcd"]},
            "8 tasks of other kinds are ready: a, b, c, ...",
        ),
        ({"assigned": [{"worker": "bob", "count": 2}]}, "2 tasks are assigned to bob"),
        (
            {"unserved": [{"kind": "b", "count": 1, "for": None}]},
            "no worker has asked for kind b yet (1 task)",
        ),
        (
            {"unserved": [{"kind": "b", "count": 2, "for": 7300.0}]},
            "no worker has asked for kind b for 2 h (2 tasks)",
        ),
        (
            {"unserved": [{"kind": "b", "count": 2, "for": 7300.0}, {"kind": "c", "count": 1, "for": None}]},
            "no worker has asked for kinds b, c for an hour (3 tasks)",
        ),
        ({"due": {"count": 1, "in": 40.2}}, "1 task is not due yet, the next in 40 s"),
        ({"due": {"count": 2, "in": -1.0}}, "2 tasks are not due yet, the next now"),
        ({"running": 2}, "2 tasks are in workers' hands"),
        ({"dropped": 1}, "1 dropped file is not taken in yet"),
        ({"set_aside": 2}, "2 dropped files are set aside, because no task could be made of them"),
        ({"not_tasks": [{"name": "a.txt", "reason": "not JSON"}]}, "a.txt in the drop box: not JSON"),
        ({"done": True}, "everything is done"),
        ({"done": True, "failed": 1}, "everything has ended, and 1 task failed"),
        ({"done": True, "cancelled": 1}, "everything has ended, and 1 task was cancelled"),
        (
            {"done": True, "failed": 1, "cancelled": 2},
            "everything has ended, and 1 task failed and 2 tasks were cancelled",
        ),
        ({"empty": {"kinds": [], "missions": []}}, "there is no task"),
        ({"empty": {"kinds": ["a"], "missions": ["m"]}}, "there is no task of kind a of mission m"),
    ],
)
def test_each_reason_is_one_clause(facts: dict[str, Any], clause: str) -> None:
    assert reasons.clauses(facts) == [clause]
    assert reasons.sentence(facts) == clause


def test_the_most_telling_reason_comes_first_and_three_are_enough() -> None:
    facts = {
        "running": 2,
        "due": {"count": 1, "in": 40.0},
        "blocked": [{**BEHIND, "state": "processing"}, {**BEHIND, "state": "failed"}],
        "paused": {"yard": True, "kinds": []},
    }
    assert reasons.sentence(facts) == (
        "paused: the whole yard; 3 tasks are blocked behind 0-kf12, which failed; 1 task is not due yet, the next in 40 s"
    )


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        ({"paused": {"yard": True, "kinds": []}, "running": 1}, "'taskyard unpause' ends the pause"),
        ({"paused": {"yard": False, "kinds": ["a"]}}, "'taskyard unpause a' ends the pause"),
        ({"paused": {"yard": False, "kinds": ["a", "b"]}}, "'taskyard unpause a' ends the first of these pauses"),
        ({"unusable": ["x"]}, "check who owns that folder"),
        ({"ready": {"count": 1}}, "'taskyard claim' takes"),
        ({"blocked": [{**BEHIND, "state": "failed"}]}, "'taskyard retry 0-kf12'"),
        ({"blocked": [{**BEHIND, "state": "todo"}]}, "'taskyard claim --wait 60'"),
        ({"in_use": [USED]}, "db is free when task 0-kf12 ends"),
        ({"unserved": [{"kind": "b"}]}, "taskyard work --kind b -- CMD"),
        ({"other_kinds": [{"kind": "b"}]}, "'taskyard claim --kind b'"),
        ({"assigned": [{"worker": "bob"}]}, "--worker bob"),
        ({"due": {"count": 1, "in": 1}}, "'taskyard claim --wait 60'"),
        ({"done": True}, "'taskyard stats'"),
    ],
)
def test_each_reason_comes_with_what_would_change_it(facts: dict[str, Any], way: str) -> None:
    assert way in reasons.way_out(facts)


AT = "2026-01-31T12:00:00.000Z"
TASK = [
    (task_reasons.not_due(AT, 40.0), "it is due in 40 s", "'taskyard retry 0-me'"),
    (task_reasons.not_due(AT, -2.0), "it is due now, and the next sweep wakes it", "goes on by itself"),
    (task_reasons.backoff("error", "boom\nmore", "ada"), "its last attempt, by ada, failed: boom", "show 0-me"),
    (task_reasons.backoff("crash", None, "ada"), "its last attempt, by ada, crashed", "show 0-me"),
    (task_reasons.behind("x", "0-a", "todo"), "it comes after 0-a, which is todo", "goes on by itself"),
    (
        task_reasons.stuck("x", "0-a", "failed", ["0-b"]),
        "it stays blocked until 0-a, which failed, is retried, through 0-b",
        "'taskyard retry 0-a'",
    ),
    (task_reasons.paused(None), "the whole yard is paused", "'taskyard unpause' ends"),
    (task_reasons.paused("a"), "the kind a is paused", "'taskyard unpause a' ends"),
    (task_reasons.assigned("bob"), "it is assigned to bob, and to no other worker", "--worker bob"),
    (task_reasons.in_use("db", "db", "x", "0-a", "bob"), "it uses 'db', which bob uses for 0-a", "when task 0-a ends"),
    (task_reasons.refused(["todo/5-a: no"]), "passed over: todo/5-a: no", "who owns that folder"),
    (task_reasons.unserved("a", None, None), "no worker has asked for kind a yet", "work --kind a"),
    (task_reasons.unserved("a", AT, 7300.0), "no worker has asked for kind a for 2 h", "work --kind a"),
    (task_reasons.ready("a", 0, False), "it is ready: the next claim of kind a gets it", "'taskyard claim 0-me'"),
    (task_reasons.ready("a", 3, True), "it is ready: at least 3 tasks of its kind are before it", "claim 0-me"),
    (
        task_reasons.held("ada", (AT, 60.0), (AT, 5.0), (AT, 55.0)),
        "ada has held it for 60 s; its lease ends in 55 s, the last heartbeat was 5 s ago",
        "when ada ends it",
    ),
    (
        task_reasons.held("ada", None, None, (AT, -5.0)),
        "ada holds it; its lease ended 5 s ago, no heartbeat yet",
        "when ada ends it",
    ),
    (task_reasons.lapsed("ada"), "its lease is over: the next sweep gives it back, unless ada", "'taskyard janitor'"),
    (task_reasons.dead("ada"), "the process of ada is dead", "'taskyard janitor'"),
    (task_reasons.ended("done", (AT, 5.0), "ada", None), "it was done 5 s ago, by ada", "it is done"),
    (task_reasons.ended("failed", None, "ada", "boom"), "it failed, by ada: boom", "'taskyard retry 0-me'"),
    (task_reasons.ended("cancelled", (AT, 5.0), "ada", None), "it was cancelled 5 s ago, by ada", "retry 0-me"),
    (task_reasons.set_aside("a", "not JSON", AT), "a lies aside in failed/, and is no task: not JSON", "retry 0-me"),
    (task_reasons.not_a_task("a.txt", "no"), "a.txt in the drop box is no task: no", "put it right"),
    (task_reasons.guest("a", "processing", None, AT), "a is held by another program", "has to end it"),
]


@pytest.mark.parametrize(("reason", "message", "way"), TASK, ids=[reason["message"] for reason, _, _ in TASK])
def test_each_reason_of_a_task_says_what_would_move_it(reason: dict[str, Any], message: str, way: str) -> None:
    assert message in reason["message"]
    assert way in task_reasons.way_out("0-me", [reason])
