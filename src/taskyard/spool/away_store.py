"""Stands for a store whose server was away when the yard was opened; the first verb that reaches it opens it."""

from __future__ import annotations

import threading
import time

from taskyard.core.errors import Away
from taskyard.core.retry import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.store import Store

_AGAIN_AFTER = 0.5  # seconds, at the least, between two attempts; those that took long come less often


class AwayStore:
    """Raises `Away` for every verb until the server answers, and passes on every verb from then on."""

    def __init__(self, open_store: Callable[[], Store], url: str, label: str, away: Away) -> None:
        self.url = url
        self.label = label
        self._open_store = open_store
        self._away = away
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._try_at = time.monotonic() + _AGAIN_AFTER

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases; the defaults until the server has answered."""
        return Policy() if self._store is None else self._store.policy

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._reached() if self._store is None else self._store, verb)

    def _reached(self) -> Store:
        with self._lock:
            if self._store is not None:
                return self._store
            began = time.monotonic()
            if began < self._try_at:
                raise self._away
            try:
                self._store = self._open_store()
            except Away as away:
                now = time.monotonic()
                self._away, self._try_at = away, now + max(_AGAIN_AFTER, now - began)
                raise
            return self._store

    def close(self) -> None:
        """Close the store if it was opened."""
        if self._store is not None:
            self._store.close()
