"""Whatever happens to its tasks, a store answers as the memory store does, and no fence ever falls.

Both stores are driven through the same random story: adds with and without a key, claims, lapses, resumes, endings on
time and late, cancels, retries, edits, pauses.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import taskyard
from taskyard import TaskyardError
from tests.conftest import STORES, lapse, sized, taken
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard

_serial = itertools.count(1)
NEVER = 86_400.0  # a backoff that no test outlasts: what waits is woken by hand, in both stores alike


class Pair:
    """One task in both stores, or one claim of it."""

    def __init__(self, model: Any, subject: Any) -> None:
        self.model = model
        self.subject = subject


class Story(RuleBasedStateMachine):
    """The memory store is the model; a subclass says which store is its subject."""

    subject_store = "memory"
    tasks = Bundle("tasks")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="taskyard-story-")
        self.model = self._open("memory")
        self.subject = self._open(self.subject_store)
        self.known: list[Pair] = []
        self.fences: dict[str, int] = {}
        self.claimed: dict[str, int] = {}

    def _open(self, store: str) -> Yard:
        urls = {"memory": lambda: f"memory:story-{next(_serial)}", "postgresql": postgres.url}
        url = urls.get(store, lambda: f"{self.folder}/yard")()
        yard = taskyard.init(url, worker="ada", durability="fast")
        yard.policy.backoff = yard.policy.backoff_cap = NEVER
        return yard

    def teardown(self) -> None:
        self.model.close()
        self.subject.close()
        shutil.rmtree(self.folder)

    def both(self, act: Callable[[Claim], Any], claim: Pair) -> None:
        """Do it with both claims; both stores allow it, or both refuse it in the same way."""
        _alike(_answer(act, claim.model), _answer(act, claim.subject))

    def same(self, verb: str, task: Pair, **options: Any) -> tuple[Any, Any]:
        """Ask both yards for it, and give both answers."""
        return _alike(
            _answer(getattr(self.model, verb), task.model, **options),
            _answer(getattr(self.subject, verb), task.subject, **options),
        )

    def won(self, pair: Pair) -> Pair:
        for claim in (pair.model, pair.subject):
            id = claim.task.id
            assert claim.fence > self.claimed.get(id, 0), "a fence was given twice"
            self.claimed[id] = claim.fence
        return pair

    @initialize(target=tasks, attempts=st.integers(1, 3))
    def begin(self, attempts: int) -> Pair:
        return self.add(attempts)

    @rule(target=tasks, attempts=st.integers(1, 3))
    def add_another(self, attempts: int) -> Pair:
        return self.add(attempts)

    def add(self, attempts: int) -> Pair:
        pair = Pair(*(yard.add("build", max_attempts=attempts).id for yard in (self.model, self.subject)))
        self.known.append(pair)
        return pair

    @rule(
        target=tasks, key=st.sampled_from(["one", "two"]), kind=st.sampled_from(["build", "test"]), n=st.integers(0, 1)
    )
    def add_with_a_key(self, key: str, kind: str, n: int) -> Any:
        """The same key may come again with the same kind and data, and with no others."""
        answers = [_answer(yard.add, kind, data=n, key=key) for yard in (self.model, self.subject)]
        model, subject = _alike(*answers)
        if isinstance(model, TaskyardError):
            return multiple()
        assert model.created == subject.created
        if model.created:
            self.known.append(Pair(model.id, subject.id))
            return self.known[-1]
        assert (model.id, subject.id) in [(pair.model, pair.subject) for pair in self.known]
        return multiple()

    @rule(
        task=tasks,
        changes=st.fixed_dictionaries(
            {},
            optional={
                "title": st.sampled_from([None, "Docs"]),
                "data": st.sampled_from([None, 1, {"n": 1}]),
                "priority": st.integers(0, 9),
                "assignee": st.sampled_from([None, "ada", "bob"]),
                "max_attempts": st.integers(1, 4),
                "delay": st.sampled_from([0, NEVER]),
            },
        ),
    )
    def edit(self, task: Pair, changes: dict[str, Any]) -> None:
        self.same("edit", task, **changes)

    @rule(target=claims)
    def resume(self) -> Any:
        model, subject = ({claim.task.id: claim for claim in yard.resume()} for yard in (self.model, self.subject))
        pairs = [pair for pair in self.known if pair.model in model]
        assert {pair.subject for pair in pairs} == set(subject)
        return multiple(*(self.won(Pair(model[pair.model], subject[pair.subject])) for pair in pairs))

    @rule(kind=st.sampled_from([None, "build"]), on=st.booleans())
    def pause(self, kind: str | None, on: bool) -> None:
        for yard in (self.model, self.subject):
            (yard.pause if on else yard.unpause)(kind)

    @rule(target=claims, task=tasks, first=st.sampled_from([None, "retry"]))
    def claim(self, task: Pair, first: str | None) -> Any:
        if first is not None:
            self.steer(task, first)
        model, subject = self.same("claim", task)
        return multiple() if isinstance(model, TaskyardError) else self.won(Pair(model, subject))

    @rule(target=claims)
    def claim_any(self) -> Any:
        """Stores may differ in whom they serve first after a release, but not in whether there is something."""
        subject = self.subject.claim()
        if subject is None:
            assert self.model.claim() is None
            return multiple()
        [task] = [pair for pair in self.known if pair.subject == subject.task.id]
        return self.won(Pair(taken(self.model.claim(task.model)), subject))

    @rule(target=claims, task=tasks)
    def claim_and_lapse(self, task: Pair) -> Any:
        claims: list[Claim] = []
        for yard, id in ((self.model, task.model), (self.subject, task.subject)):
            try:
                claims.append(taken(yard.claim(id, lease=0.001)))
            except TaskyardError:
                continue
            lapse(yard, claims[-1])
        assert len(claims) != 1, "one store handed the task out and the other did not"
        return self.won(Pair(*claims)) if claims else multiple()

    @rule(claim=claims, result=st.sampled_from([None, "one", "two"]))
    def done(self, claim: Pair, result: str | None) -> None:
        self.both(lambda held: held.done(result), claim)

    @rule(claim=claims, reason=st.sampled_from(["broken", "torn"]), retry=st.booleans())
    def fail(self, claim: Pair, reason: str, retry: bool) -> None:
        self.both(lambda held: held.fail(reason, retry=retry), claim)

    @rule(claim=claims)
    def release(self, claim: Pair) -> None:
        self.both(lambda held: held.release(), claim)

    @rule(claim=claims, note=st.sampled_from([None, "halfway"]))
    def heartbeat(self, claim: Pair, note: str | None) -> None:
        self.both(lambda held: held.heartbeat(note=note), claim)

    @rule(target=claims, claim=consumes(claims))
    def forget_all_but_the_handle(self, claim: Pair) -> Pair:
        return Pair(self.model.held(claim.model.handle), self.subject.held(claim.subject.handle))

    @rule(task=tasks, verb=st.sampled_from(["retry", "cancel"]))
    def steer(self, task: Pair, verb: str) -> None:
        self.same(verb, task)

    @invariant()
    def both_tell_the_same_of_every_task(self) -> None:
        for pair in self.known:
            assert _told(self.model, pair.model) == _told(self.subject, pair.subject)

    @invariant()
    def no_fence_falls(self) -> None:
        for pair in self.known:
            for yard, id in ((self.model, pair.model), (self.subject, pair.subject)):
                fence = yard.get(id).fence
                assert fence >= self.fences.get(id, 0)
                assert fence >= self.claimed.get(id, 0)
                self.fences[id] = fence

    @invariant()
    def both_count_the_same(self) -> None:
        told = [yard.stats() for yard in (self.model, self.subject)]
        for stats in told:
            del stats["lost_races"]  # a list that is out of date counts as one, and memory has no such lists
            for name in ("ages", "oldest_ready"):  # the clock alone changes them, and no two yards are of one age
                del stats[name]
        assert told[0] == told[1]

    @invariant()
    def both_logs_tell_the_same_story_of_every_task(self) -> None:
        stories: list[dict[str, list[Any]]] = []
        for yard in (self.model, self.subject):
            story: dict[str, list[Any]] = {}
            for event in yard.events():
                told = {name: event[name] for name in event.keys() - {"at", "task", "short", "due"}}
                story.setdefault(event["task"], []).append(told)
            stories.append(story)
        for pair in self.known:
            assert stories[0][pair.model] == stories[1][pair.subject]


def _answer(act: Callable[..., Any], argument: Any, **options: Any) -> Any:
    try:
        return act(argument, **options)
    except TaskyardError as refusal:
        return refusal


def _alike(model: Any, subject: Any) -> tuple[Any, Any]:
    assert type(model) is type(subject), f"the model says {model!r}, the subject {subject!r}"
    return model, subject


def _told(yard: Yard, id: str) -> dict[str, Any]:
    """Everything about a task that does not hang on ids, moments and chance."""
    report = yard.report(id)
    task = report.task
    return {
        "task": (task.state, task.attempts, task.max_attempts, task.worker, task.result, task.error),
        "draft": (task.kind, task.title, task.data, task.priority, task.assignee, task.key),
        "waits": task.not_before is not None,
        "held": task.lease_until is not None,
        "history": [(entry["outcome"], entry["reason"], entry["worker"]) for entry in report.history],
        "notes": [(note["text"], note["worker"]) for note in report.notes],
        "stale": sorted(
            (late["outcome"], str(late["result"]), str(late["reason"]), late["worker"]) for late in report.stale_results
        ),
    }


@sized("stories", 8, 60)
@pytest.mark.parametrize("store", [store for store in STORES if not store.startswith("shared")])
def test_every_story_ends_the_same_in_every_store(store: str, stories: int) -> None:
    story = type(f"StoryOf{store.title()}", (Story,), {"subject_store": store})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        story,
        settings=settings(max_examples=stories, stateful_step_count=30, deadline=None, suppress_health_check=checks),
    )
