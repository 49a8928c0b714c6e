"""Every state and every event: what is allowed and where it leads, as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import Conflict
from taskyard.core import moves
from taskyard.core.draft import Draft
from taskyard.core.ids import short
from taskyard.core.retry import Policy
from taskyard.core.task import Standing, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.moves import Move

POLICY = Policy()
ID = "0" * 21
BOB = moves.Reviewer("bob", "n", "word")


def standing(
    state: State, *, errors: int = 0, crashes: int = 0, max_attempts: int = 3, assignee: str | None = None
) -> Standing:
    held = state is State.PROCESSING
    return Standing(
        ID,
        "build",
        5,
        assignee,
        state,
        7,
        errors,
        crashes,
        max_attempts,
        60.0,
        "ada" if held else None,
        "n" if held else None,
    )


EVENTS: dict[str, Callable[[Standing], Move]] = {
    "done": lambda at: moves.done(at, {"n": 1}),
    "fail": lambda at: moves.failed(at, POLICY, "broken"),
    "fail for good": lambda at: moves.failed(at, POLICY, "broken", again=False),
    "release": moves.released,
    "crash": lambda at: moves.crashed(at, POLICY, "lease ended"),
    "wake": moves.woken,
    "unblock": lambda at: moves.unblocked(at, later=False),
    "unblock early": lambda at: moves.unblocked(at, later=True),
    "cancel": lambda at: moves.cancelled(at, "not wanted"),
    "cancel with": lambda at: moves.cancelled_with(at, "1" * 21, State.FAILED),
    "retry": moves.retried,
    "edit": lambda at: moves.edited(at, Draft("build"), timed=False),
    "edit to later": lambda at: moves.edited(at, Draft("build", None, {"delay": 60}), timed=True),
    "edit to now": lambda at: moves.edited(at, Draft("build"), timed=True),
    "edit to after": lambda at: moves.edited(at, Draft("build"), timed=False, unmet=("1" * 21,)),
    "edit to later after": lambda at: moves.edited(
        at, Draft("build", None, {"delay": 60}), timed=True, unmet=("1" * 21,)
    ),
    "edit to free": lambda at: moves.edited(at, Draft("build"), timed=False, unmet=()),
    "edit to free early": lambda at: moves.edited(at, Draft("build"), timed=False, unmet=(), later=True),
    "resume": moves.resumed,
    "submit": lambda at: moves.submitted(at, {"n": 1}),
    "accept": lambda at: moves.accepted(at, BOB, {"n": 1}),
    "reject": lambda at: moves.rejected(at, BOB, "not yet"),
}

# A dash is a refusal.
TABLE = """
                     waiting    blocked    todo       processing  done  failed  cancelled
done                 -          -          -          done        -     -       -
fail                 -          -          -          waiting     -     -       -
fail for good        -          -          -          failed      -     -       -
release              -          -          -          todo        -     -       -
crash                -          -          -          todo        -     -       -
wake                 todo       -          -          -           -     -       -
unblock              -          todo       -          -           -     -       -
unblock early        -          waiting    -          -           -     -       -
cancel               cancelled  cancelled  cancelled  cancelled   -     -       -
cancel with          -          cancelled  -          -           -     -       -
retry                todo       -          -          -           -     todo    todo
edit                 waiting    blocked    todo       -           -     -       -
edit to later        waiting    blocked    waiting    -           -     -       -
edit to now          todo       blocked    todo       -           -     -       -
edit to after        blocked    blocked    blocked    -           -     -       -
edit to later after  blocked    blocked    blocked    -           -     -       -
edit to free         waiting    todo       todo       -           -     -       -
edit to free early   waiting    waiting    todo       -           -     -       -
resume               -          -          -          processing  -     -       -
submit               -          -          -          waiting     -     -       -
accept               done       -          -          -           -     -       -
reject               todo       -          -          -           -     -       -
"""


def cells() -> list[tuple[str, State, str]]:
    states, *rows = TABLE.strip().splitlines()
    columns = [State(name) for name in states.split()]
    table = []
    for row in rows:
        event, answers = row[:21].strip(), row[21:].split()
        table += [(event, state, answer) for state, answer in zip(columns, answers, strict=True)]
    return table


def test_the_table_is_whole() -> None:
    assert {(event, state) for event, state, _ in cells()} == {(event, state) for event in EVENTS for state in State}


@pytest.mark.parametrize(("event", "state", "answer"), cells())
def test_every_state_allows_what_the_table_says(event: str, state: State, answer: str) -> None:
    at = standing(state)
    if answer == "-":
        with pytest.raises(Conflict, match=state):
            EVENTS[event](at)
        return
    move = EVENTS[event](at)
    assert move.to is State(answer)
    assert move.fence == at.fence + (0 if move.keeps_claim else 1)
    assert (move.outcome is not None) == (state is State.PROCESSING or move.reviewer is not None)
    own_time = event.startswith(("edit", "unblock"))  # a draft and a blocked task have their own time
    assert (move.delay > 0) == (move.to is State.WAITING and not own_time)


@pytest.mark.parametrize("state", State)
def test_only_what_is_in_todo_can_be_claimed(state: State) -> None:
    if state is State.TODO:
        assert moves.claimed(standing(state), "ada") == 8
    else:
        with pytest.raises(Conflict, match=state):
            moves.claimed(standing(state), "ada")


def test_an_assigned_task_can_be_claimed_by_that_worker_only() -> None:
    at = standing(State.TODO, assignee="bob")
    assert moves.claimed(at, "bob") == 8
    for worker in ("ada", None):
        with pytest.raises(Conflict, match="bob"):
            moves.claimed(at, worker)


@pytest.mark.parametrize(
    ("errors", "most", "to"),
    [(0, 3, "waiting"), (1, 3, "waiting"), (2, 3, "failed"), (0, 1, "failed"), (5, 3, "failed")],
)
def test_errors_end_at_the_tasks_own_cap(errors: int, most: int, to: str) -> None:
    move = moves.failed(standing(State.PROCESSING, errors=errors, crashes=1, max_attempts=most), POLICY, "broken")
    assert (move.to, move.errors, move.crashes, move.reason, move.outcome) == (
        State(to),
        errors + 1,
        1,
        "broken",
        "error",
    )
    assert move.keeps_claim == (to == "failed")


@pytest.mark.parametrize(("crashes", "to"), [(0, "todo"), (1, "waiting"), (2, "failed"), (9, "failed")])
def test_crashes_end_at_the_yards_cap_and_never_keep_the_claim(crashes: int, to: str) -> None:
    move = moves.crashed(standing(State.PROCESSING, errors=1, crashes=crashes), POLICY, "lease ended")
    assert (move.to, move.errors, move.crashes, move.outcome) == (State(to), 1, crashes + 1, "crash")
    assert not move.keeps_claim
    assert move.fence == 8


def test_an_ending_keeps_the_claim_and_its_fence() -> None:
    done = moves.done(standing(State.PROCESSING, errors=1, crashes=2), {"n": 1})
    assert (done.keeps_claim, done.fence, done.result, done.errors, done.crashes) == (True, 7, {"n": 1}, 1, 2)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_a_retry_of_what_has_ended_starts_the_counters_over(state: State) -> None:
    move = moves.retried(standing(state, errors=3, crashes=2))
    assert (move.errors, move.crashes, move.fence) == (0, 0, 8)


@pytest.mark.parametrize("timed", [False, True])
def test_an_edit_keeps_the_counters(timed: bool) -> None:
    move = moves.edited(standing(State.WAITING, errors=2, crashes=1), Draft("build"), timed)
    assert (move.errors, move.crashes, move.outcome, move.fence) == (2, 1, None, 8)


def test_a_resume_is_a_new_claim_that_counts_nothing() -> None:
    move = moves.resumed(standing(State.PROCESSING, errors=2, crashes=1))
    assert (move.errors, move.crashes, move.outcome, move.fence) == (2, 1, "resumed", 8)
    assert not move.keeps_claim


def test_what_was_called_off_while_it_was_blocked_is_blocked_again_by_a_retry() -> None:
    at = standing(State.CANCELLED, errors=1)
    at.unmet = ("1" * 21,)
    move = moves.retried(at)
    assert (move.to, move.fence, move.errors) == (State.BLOCKED, 8, 0)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.FAILED, "task 1111-1111, which it comes after, failed"),
        (State.CANCELLED, "task 1111-1111, which it comes after, was cancelled"),
    ],
)
def test_what_is_cancelled_with_another_says_with_which_and_why(state: State, reason: str) -> None:
    move = moves.cancelled_with(standing(State.BLOCKED, errors=1), "1" * 21, state)
    assert (move.event, move.to, move.reason, move.fence, move.errors) == ("cancelled", State.CANCELLED, reason, 8, 1)


def test_an_edit_says_which_needs_were_unmet_only_if_it_changes_them() -> None:
    at = standing(State.BLOCKED)
    assert moves.edited(at, Draft("build"), timed=False).unmet is None
    assert moves.edited(at, Draft("build"), timed=False, unmet=()).unmet == ()


def test_refusals_tell_what_a_blocked_task_waits_for() -> None:
    at = standing(State.BLOCKED)
    at.unmet = tuple(str(digit) * 21 for digit in range(1, 6))
    for refused in (moves.retried, lambda blocked: moves.claimed(blocked, "ada")):
        with pytest.raises(Conflict) as refusal:
            refused(at)
        assert refusal.value.hint == "it waits for 1111-1111, 2222-2222, 3333-3333 and 2 more to be done"


def test_a_refusal_for_what_is_in_use_says_what_and_who_has_it() -> None:
    refusal = moves.in_use(standing(State.TODO), "port 80", "port 80", standing(State.PROCESSING))
    assert "'port 80'" in refusal.message
    assert "ada" in str(refusal.hint)


def test_a_refusal_for_a_pause_says_what_to_unpause() -> None:
    at = standing(State.TODO)
    assert moves.paused(at, whole=True).hint == "'taskyard unpause' ends the pause"
    assert moves.paused(at, whole=False).hint == "'taskyard unpause build' ends the pause"


@pytest.mark.parametrize("decide", [moves.retried, moves.woken])
def test_a_waiting_task_that_becomes_due_keeps_its_counters(decide: Callable[[Standing], Move]) -> None:
    move = decide(standing(State.WAITING, errors=2, crashes=1))
    assert (move.errors, move.crashes, move.outcome) == (2, 1, None)


def test_a_decision_changes_nothing() -> None:
    for event in EVENTS.values():
        for state in State:
            at = standing(state)
            before = {name: getattr(at, name) for name in Standing.__slots__}
            try:
                event(at)
            except Conflict as refusal:
                assert short(ID) in refusal.message  # noqa: PT017  both ways are right here
            assert {name: getattr(at, name) for name in Standing.__slots__} == before
