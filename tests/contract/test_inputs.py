"""A task is handed the results of the tasks that it comes after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conftest import taken

if TYPE_CHECKING:
    import pytest

    from taskyard import Yard


def test_the_results_of_those_before_are_the_inputs_of_the_next(yard: Yard) -> None:
    one, two, silent = yard.add_many([{"kind": "build"}] * 3)
    last = yard.add("test", after=[two, one, silent]).id
    taken(yard.claim(one)).done({"path": "a.tar"})
    taken(yard.claim(two)).done([1, "ü"])
    taken(yard.claim(silent)).done()
    claim = taken(yard.claim(last))
    assert list(claim.inputs.items()) == [(two, [1, "ü"]), (one, {"path": "a.tar"}), (silent, None)]
    assert claim.inputs.left_out == 0
    assert yard.inputs(last) == claim.inputs


def test_a_task_that_comes_after_nothing_has_no_inputs_and_asks_for_none(
    yard: Yard, near: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    monkeypatch.setattr(type(near._store), "find", None)
    assert claim.inputs == {}


def test_what_failed_and_may_is_left_out(yard: Yard) -> None:
    good, failed, cancelled = yard.add_many([{"kind": "build"}] * 3)
    last = yard.add("test", after=[good, f"{failed}:run", f"{cancelled}:run"]).id
    taken(yard.claim(good)).done("well")
    taken(yard.claim(failed)).fail("broken", retry=False)
    yard.cancel(cancelled)
    assert taken(yard.claim(last)).inputs == {good: "well"}


def test_inputs_are_bounded_and_say_how_many_are_left_out(yard: Yard) -> None:
    many = yard.add_many([{"kind": "build"}] * 7)
    last = yard.add("test", after=many).id
    for id in many:
        taken(yard.claim(id)).done("x" * 1_000_000)
    claim = taken(yard.claim(last))
    assert (list(claim.inputs), claim.inputs.left_out) == (many[:4], 3)


def test_the_states_of_those_before_are_known(yard: Yard) -> None:
    one, two, three = yard.add_many([{"kind": "build"}] * 3)
    last = yard.add("test", after=[one, f"{two}:cancel", f"{three}:run"])
    taken(yard.claim(one)).done()
    taken(yard.claim(three)).fail("broken", retry=False)
    names = yard.shorten([one, two, three])
    assert yard.dependencies(last.id) == [
        {"id": one, "short": names[0], "state": "done", "on_failure": "block"},
        {"id": two, "short": names[1], "state": "todo", "on_failure": "cancel"},
        {"id": three, "short": names[2], "state": "failed", "on_failure": "run"},
    ]
    assert yard.dependencies(one) == []
    assert yard.report(two).followers(10) == [last.id]
