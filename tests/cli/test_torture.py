"""What `torture` says when it cannot come to its end: what it has left, and where."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Unavailable
from taskyard.doors.cli.verbs.upkeep import torture
from taskyard.proof.torture.run import TortureRun
from taskyard.stores.directory import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer


def scratch(yard: Path) -> list[Path]:
    return list(yard.parent.glob(".taskyard-torture-*"))


@pytest.mark.parametrize("error", [Unavailable("no room", hint="make room"), OSError("no room")])
def test_a_yard_that_gives_out_in_the_middle_of_it_is_told_with_what_is_kept(
    ask: Callable[..., Any], yard: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_: object) -> None:
        raise error

    monkeypatch.setattr(TortureRun, "run", run)
    told = ask("torture", "--tasks", "5", code=8)
    (kept,) = scratch(yard)
    assert told["message"] == "the torture broke off: no room"
    assert told["hint"].endswith(f"what there is of it is kept in {kept}")
    assert told["hint"].startswith("make room; ") == isinstance(error, Unavailable)


def test_who_asks_twice_to_end_it_is_told_what_is_kept(
    run: Callable[..., Answer], yard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TortureRun, "run", twice)
    answer = run("torture", "--tasks", "5", "--json")
    (kept,) = scratch(yard)
    assert (answer.code, answer.out) == (130, "")
    assert answer.err == f"taskyard: interrupted: what there is of it is kept in {kept}\n"


def test_where_no_scratch_yard_can_be_made_nothing_is_left_of_it(
    ask: Callable[..., Any], yard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = layout.make

    def half(path: str, *args: Any, **options: Any) -> None:
        make(path, *args, **options)
        raise Unavailable("no room")

    monkeypatch.setattr(layout, "make", half)
    assert ask("torture", "--tasks", "5", code=8)["message"] == "no room"
    assert scratch(yard) == []


def test_a_third_interrupt_does_not_keep_it_from_ending_its_processes() -> None:
    done: list[str] = []

    class Impatient:
        interrupted = False
        scratch = SimpleNamespace(folder="there")

        def run(self, _: object) -> None:
            try:
                signal.raise_signal(signal.SIGINT)
                done.append("went on")
                signal.raise_signal(signal.SIGINT)
                done.append("never")
            finally:
                signal.raise_signal(signal.SIGINT)
                done.append("ended them")

    with pytest.raises(KeyboardInterrupt, match="kept in there"):
        torture._run(Impatient(), as_json=True)  # type: ignore[arg-type]
    assert done == ["went on", "ended them"]
