"""Threads that wait on a yard, and how to see by what they are woken."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.conftest import SOON, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Yard


class Claimer:
    """A claim that waits, in a thread."""

    def __init__(self, yard: Yard, **options: Any) -> None:
        self.yard = yard
        self.answer: list[Claim | None] = []
        self._thread = threading.Thread(target=lambda: self.answer.append(yard.claim(wait=120, **options)), daemon=True)
        self._thread.start()

    @property
    def source(self) -> Any:
        return self.yard._store.wakeup.source  # type: ignore[attr-defined]

    def asleep(self) -> Claimer:
        """Wait until a pop is under way for it."""
        wait_until(lambda: self.source._popping)
        return self

    def got(self) -> Claim:
        self._thread.join(SOON)
        assert not self._thread.is_alive(), "not woken"
        [claim] = self.answer
        assert claim is not None, "woken, and nothing was ready"
        return claim


def is_live(yard: Yard) -> bool:
    return bool(yard._store.wakeup.source.is_live)  # type: ignore[attr-defined]
