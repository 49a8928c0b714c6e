"""The same seed has the same plan, and another seed another."""

from __future__ import annotations

from itertools import islice

from taskyard.proof.torture.plan import LEASE, Plan


def told(seed: int) -> tuple[object, ...]:
    plan = Plan(seed, 6)
    actions = [list(islice(plan.actions(slot, life), 300)) for slot in range(6) for life in (1, 2)]
    return actions, list(islice(plan.faults(), 300)), [plan.skew(slot, 1) for slot in range(6)]


def test_a_plan_is_its_seed() -> None:
    assert told(7) == told(7)
    assert told(7)[0] != told(8)[0]
    assert told(7)[1] != told(8)[1]


def test_each_life_of_each_process_does_something_else() -> None:
    actions, _, _ = told(7)
    assert isinstance(actions, list)
    assert len({tuple(row) for row in actions}) == len(actions)


def test_a_plan_has_all_there_is_to_fear() -> None:
    plan = Plan(1, 6)
    faults = list(islice(plan.faults(), 200))
    assert {fault.kills for fault in faults} == {True, False}
    assert all(fault.stop > LEASE for fault in faults)
    assert {fault.slot for fault in faults} == set(range(6))
    names = [plan.name(slot) for slot in range(6)]
    assert len(set(names)) < len(names), "some have the same name"
    assert any(plan.skew(slot, 1) for slot in range(6))
    verbs = {action.verb for action in islice(plan.actions(0, 1), 2000)}
    assert verbs >= {
        "add_keyed",
        "add_after",
        "add_late",
        "drop",
        "forget",
        "oversleep",
        "resume",
        "speak_late",
        "cancel",
    }
