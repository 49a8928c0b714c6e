"""Old files of the log leave for archive/, each as a whole."""

from __future__ import annotations

import re
import time

from taskyard.stores.directory.archive import keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.ground import Ground

_PAGE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}\..+\.jsonl")
_HOUR = len("2026-01-31T12")


class Pages:
    """Finds the files that tell only of what was let go of."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._folder = f"{ground.root}/events"

    def prune(self, horizon: float, apply: bool) -> int:
        """How many files go, or would go, because their newest event is from before the horizon."""
        old = self._before(horizon) if horizon else []
        for name in old if apply else []:
            try:
                keep(self._ground, f"events-{name}.gz", self._disk.read(f"{self._folder}/{name}"))
                self._disk.unlink(f"{self._folder}/{name}")
            except FileNotFoundError:
                continue  # another janitor was quicker
        return len(old)

    def _before(self, horizon: float) -> list[str]:
        now = self._ground.clock.exact()
        over = _hour(now - 3_600_000)  # nobody writes to files of earlier hours any more
        names = [name for name in self._ground.lookup.names(self._folder) if _PAGE.fullmatch(name)]
        return sorted(name for name in names if name[:_HOUR] < over and self._is_before(name, horizon))

    def _is_before(self, name: str, horizon: float) -> bool:
        if name[:_HOUR] < _hour(horizon):
            return True
        try:
            return self._disk.changed_at(f"{self._folder}/{name}") < horizon
        except FileNotFoundError:
            return False


def _hour(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H", time.gmtime(moment // 1000))
