"""The tour, as a new user takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_the_tour_kills_one_stops_one_and_loses_nothing(tmp_path: Path, run: Callable[..., Answer]) -> None:
    answer = run("demo", str(tmp_path / "tour"))
    assert answer.code == 0, answer.out + answer.err
    for signal in ("kill -9", "kill -STOP", "kill -CONT"):
        assert signal in answer.out
    assert "16 tasks, 16 done exactly once, 16 pictures as they should be" in answer.out
    assert "\x1b" not in answer.out
    with taskyard.open(tmp_path / "tour" / "yard") as yard:
        assert yard.counts()["done"] == 16
        assert list((tmp_path / "tour" / "yard" / "processing").iterdir()) == []


def test_the_tour_as_json_is_one_value(ask: Callable[..., Any]) -> None:
    verdict = ask("demo")
    assert verdict["done_once"] == verdict["tasks"] == verdict["right_pictures"] == 16
    assert verdict["crashes"] >= 2
    assert verdict["seconds"] < 60


def test_the_tour_does_not_write_into_a_folder_that_is_there(tmp_path: Path, ask: Callable[..., Any]) -> None:
    assert ask("demo", str(tmp_path), code=2)["code"] == "invalid"
    assert [path.name for path in tmp_path.iterdir()] == [".taskyard"]
