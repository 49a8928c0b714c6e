"""Tokens stay with their yard: a copy takes none along, and keeps its own."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import opening
from taskyard.doors.cli import main
from tests.copying.test_same import STORES
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_copy_has_none_of_the_tokens_and_keeps_its_own(tmp_path: Path) -> None:
    first, second, third, fourth = str(tmp_path / "first"), postgres.url(), str(tmp_path / "third"), postgres.url()
    for url in (first, third, fourth):
        with taskyard.init(url, worker="ada") as yard:
            yard.new_token(f"of {yard.label}"[-20:])
            yard.pause()
    with taskyard.open(first) as yard:
        yard.add("build")
    for source, target in ((first, second), (second, third), (first, fourth)):
        with taskyard.init(target) as yard:
            before = yard.token_digests()
        for _ in range(2):  # the second time it compares, and finds them equal
            assert main(["copy", source, target]) == 0
        with taskyard.open(target) as yard:
            assert yard.token_digests() == before
            assert yard.counts()["todo"] == 1


@pytest.mark.parametrize("store", STORES)
def test_a_copy_keeps_what_was_done_to_itself_in_its_log(store: str, new: Callable[[str], str]) -> None:
    origin, target = new("directory"), new(store)
    with taskyard.init(target, worker="bob") as yard:
        yard.new_token("own")
        own = list(yard.events())
    with taskyard.init(origin, worker="ada") as yard:
        yard.pause()
        yard.add("build")
        yard.cancel(yard.add("build").id)
    assert main(["copy", origin, target]) == 0
    with taskyard.open(target) as yard:
        events = list(yard.events())
    assert own == [event for event in events if not event["task"]]
    assert [event["event"] for event in events if event["task"]] == ["added", "added", "cancelled"]
    with closing(opening.endpoint(target, target=True)) as unfinished:
        unfinished.clear_events()  # as a copy that was killed does, if it finds another beginning there
    with taskyard.open(target) as yard:
        assert list(yard.events()) == own
