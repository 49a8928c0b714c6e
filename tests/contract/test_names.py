"""Opening: what a yard is called, who the worker is, and that open never creates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Invalid, NoYard, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Yard


def test_making_a_yard_twice_keeps_what_is_in_it(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    with taskyard.init(yard_url) as again:
        assert again.get(id).id == id
        assert again.url == yard.url


def test_a_yard_can_be_opened_by_its_own_url(yard: Yard) -> None:
    id = yard.add("build").id
    with taskyard.open(yard.url) as again:
        assert again.get(id).id == id


def test_the_worker_is_the_one_given_else_that_of_the_environment(
    yard_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_ID", "agent")
    with taskyard.open(yard_url) as yard:
        assert yard.worker == "agent"
    monkeypatch.setenv("TASKYARD_WORKER", "worker")
    with taskyard.open(yard_url) as yard:
        assert yard.worker == "worker"
    with taskyard.open(yard_url, worker="given") as yard:
        assert yard.worker == "given"


def test_the_yard_of_the_environment_is_opened_where_none_is_named(
    yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = yard.add("build").id
    monkeypatch.setenv("TASKYARD", yard_url)
    with taskyard.open() as found:
        assert found.get(id).id == id


def test_a_yard_that_is_missing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        taskyard.open(str(tmp_path / "nowhere")).counts()
    assert not (tmp_path / "nowhere").exists()


def test_no_yard_named_and_none_found_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoYard) as caught:
        taskyard.open()
    assert caught.value.hint


@pytest.mark.parametrize("url", ["", "gopher://there", "file://elsewhere/path", "a\0b"])
def test_what_names_no_yard_is_invalid(url: str) -> None:
    with pytest.raises(Invalid):
        taskyard.open(url)


def test_an_empty_name_is_not_taken_for_none(yard_url: str) -> None:
    with pytest.raises(taskyard.Invalid, match="worker"):
        taskyard.open(yard_url, worker="")
