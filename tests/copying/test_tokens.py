"""Tokens stay with their yard: a copy takes none along, and keeps its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard.doors.cli import main
from tests.servers import postgres

if TYPE_CHECKING:
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
