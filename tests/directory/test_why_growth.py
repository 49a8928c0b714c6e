"""Asking why reads no more of a large yard than of a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard

if TYPE_CHECKING:
    import pytest


def reads(place: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many files and folders one answer opens."""
    with taskyard.open(place, worker="bob") as yard:
        disk: Any = type(yard._store._context.disk)  # type: ignore[attr-defined]
        count = 0

        def counted(name: str) -> Any:
            real = getattr(disk, name)

            def call(self: Any, *args: Any) -> Any:
                nonlocal count
                count += 1
                return real(self, *args)

            return call

        with monkeypatch.context() as patch:
            for name in ("listdir", "read"):
                patch.setattr(disk, name, counted(name))
            assert yard.why()["message"]
        return count


def test_the_number_of_reads_does_not_grow_with_the_tasks(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(place) as yard:
        yard.add_many({"kind": "build"} for _ in range(1000))
        few = reads(place, monkeypatch)
        yard.add_many({"kind": "build"} for _ in range(19_000))
        assert reads(place, monkeypatch) <= few + 60, "one more listing for each segment at most"
