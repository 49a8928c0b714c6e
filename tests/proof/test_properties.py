"""Whatever a crew does to a yard is legal as it is written down, and is not any more once a word of it is changed."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import taskyard
from taskyard import TaskyardError
from taskyard.proof import FinalState, History, HistoryWriter, RecordedYard, check
from tests.conftest import STORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.proof.history import Operation
    from taskyard.proof.recorded_yard import RecordedClaim

_serial = itertools.count(1)
WORKERS = ("ada", "bob", "cem")
VERBS = (
    "add", "add", "add", "keyed", "many", "claim", "claim", "claim", "claim", "done", "done", "fail", "release", "heartbeat",
    "note", "resume", "cancel", "retry", "edit", "again",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 2), st.integers(0, 7)), min_size=5, max_size=60)
RELAXED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


class Play:
    """A crew of three that plays steps in a yard, each with a history of its own."""

    def __init__(self, store: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="taskyard-play-")
        url = f"memory:play-{next(_serial)}" if store == "memory" else f"{self.folder}/yard"
        self.keeper = taskyard.init(url, durability="fast")
        self.crew = [RecordedYard(taskyard.open(url, worker=name), self._writer(name)) for name in WORKERS]
        self.ids: list[str] = []
        self.claims: list[RecordedClaim] = []
        self.verbs: dict[str, Callable[[RecordedYard, int], object]] = {
            "add": lambda who, pick: self.ids.append(who.add("build", {"n": pick}, after=self._some(pick)).id),
            "keyed": lambda who, pick: self.ids.append(who.add("build", pick, key=f"key-{pick % 3}").id),
            "many": lambda who, pick: self.ids.extend(who.add_many([{"kind": "test", "data": pick}] * 2)),
            "claim": lambda who, pick: self._take(who.claim(kinds=["build"] if pick == 1 else None)),
            "resume": lambda who, pick: self.claims.extend(who.resume()),
        }

    def _writer(self, name: str) -> HistoryWriter:
        return HistoryWriter(f"{self.folder}/history", name)

    def _some(self, pick: int) -> list[str]:
        return [self.ids[-1]] if pick == 7 and self.ids else []

    def _take(self, claim: RecordedClaim | None) -> None:
        if claim is not None:
            self.claims.append(claim)

    def step(self, verb: str, actor: int, pick: int) -> None:
        who = self.crew[actor]
        if verb in self.verbs:
            self.verbs[verb](who, pick)
        elif verb in ("cancel", "retry", "edit") and self.ids:
            id = self.ids[pick % len(self.ids)]
            who.edit(id, title="new") if verb == "edit" else getattr(who, verb)(id)
        elif self.claims:
            self.say(verb, self.claims[-1 - pick % len(self.claims)], pick)

    def say(self, verb: str, claim: RecordedClaim, pick: int) -> None:
        arguments: dict[str, tuple[Any, ...]] = {"done": (pick,), "fail": ("why", pick > 2), "note": ("word",)}
        getattr(claim, "done" if verb == "again" else verb)(*arguments.get("done" if verb == "again" else verb, ()))

    def told(self, steps: list[tuple[str, int, int]]) -> tuple[History, FinalState]:
        """The history of these steps and the yard after them."""
        try:
            for step in steps:
                try:
                    self.step(*step)
                except TaskyardError:
                    continue  # a refusal is an answer too
            return History.load(f"{self.folder}/history"), FinalState.of(self.keeper)
        finally:
            for recorded_yard in self.crew:
                recorded_yard.__exit__(None, None, None)
            self.keeper.close()
            shutil.rmtree(self.folder)


def operations(history: History, *verbs: str) -> list[Operation]:
    return [op for op in history if op.verb in verbs and op.answer is not None]


def takings(history: History) -> list[Operation]:
    return [op for op in operations(history, "claim") if op.answer and op.answer["claims"]]


@pytest.mark.parametrize("store", STORES[:2])
@RELAXED
@given(steps=STEPS)
def test_what_a_store_answers_is_legal(store: str, steps: list[tuple[str, int, int]]) -> None:
    verdict = check(*Play(store).told(steps))
    assert verdict.legal, str(verdict)


@RELAXED
@given(steps=STEPS, pick=st.integers(0, 99))
def test_a_winner_that_is_swapped_is_found(steps: list[tuple[str, int, int]], pick: int) -> None:
    history, final_state = Play("memory").told(steps)
    pairs = [(a, b) for a, b in itertools.combinations(takings(history), 2) if a.worker != b.worker]
    assume(pairs)
    one, other = pairs[pick % len(pairs)]
    one.answer, other.answer = other.answer, one.answer
    assert not check(history, final_state).legal


@RELAXED
@given(steps=STEPS, pick=st.integers(0, 99))
def test_a_fence_that_is_given_twice_is_found(steps: list[tuple[str, int, int]], pick: int) -> None:
    history, final_state = Play("memory").told(steps)
    first = takings(history)
    assume(len(first) > 1)
    one = first[pick % len(first)]
    other = first[(pick + 1) % len(first)]
    assert one.answer is not None
    id, fence, nonce = one.answer["claims"][0].split(".")
    other.answer = {"claims": [f"{id}.{fence}.{nonce[:-1]}{(int(nonce[-1]) + 5) % 10}"]}
    assert "fence_repeated" in check(history, final_state).codes


@RELAXED
@given(steps=STEPS, pick=st.integers(0, 99))
def test_an_ending_that_is_dropped_is_found(steps: list[tuple[str, int, int]], pick: int) -> None:
    history, final_state = Play("memory").told(steps)
    done = [final for final in final_state.tasks.values() if final.state == "done"]
    assume(done)
    final = done[pick % len(done)]
    final.state = "todo"
    final_state.listed[final.id] = ["todo"]
    assert "ending_lost" in check(history, final_state).codes


@RELAXED
@given(steps=STEPS, pick=st.integers(0, 99))
def test_a_task_that_is_lost_is_found(steps: list[tuple[str, int, int]], pick: int) -> None:
    history, final_state = Play("memory").told(steps)
    assume(final_state.listed)
    id = sorted(final_state.listed)[pick % len(final_state.listed)]
    del final_state.listed[id], final_state.tasks[id]
    assert "lost" in check(history, final_state).codes


@RELAXED
@given(steps=STEPS, pick=st.integers(0, 999), keep=st.booleans())
def test_what_got_no_answer_is_never_held_against_a_yard(
    steps: list[tuple[str, int, int]], pick: int, keep: bool
) -> None:
    """Both worlds: an operation that did happen is legal whether or not its caller lived to hear of it."""
    history, final_state = Play("memory").told(steps)
    answered = [op for op in history if op.answer is not None and op.verb not in ("claim", "resume")]
    assume(answered)
    for op in answered if keep else [answered[pick % len(answered)]]:
        op.answer, op.end, op.lines = None, None, (op.lines[0], None)
    verdict = check(history, final_state)
    assert verdict.legal, str(verdict)
