"""Moves old pages of the log to archive/, each as a whole."""

from __future__ import annotations

import re
import time

from taskyard.stores.directory.log.lines import is_huge, pieces
from taskyard.stores.directory.log.writer import page_number
from taskyard.stores.directory.retention.archive import write_archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.context import Context

PAGE_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}\.[^.]+(?:\.[1-9][0-9]{0,5})?\.jsonl")
_HOUR = len("2026-01-31T12")
_PIECE = 1 << 20


class Pages:
    """Finds the pages whose events are all old."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._folder = f"{context.root}/events"
        self._writers = context.writers()

    def prune(self, horizon: float, apply: bool, end: float | None = None) -> int:
        """Archive the pages whose newest event is from before the horizon; return how many, or how many it would be.

        After `end`, by the monotonic clock, it archives one and no more: the others wait for the next sweep.
        """
        old = self._before(horizon) if horizon > 0 else []
        if not apply:
            return len(old)
        for number, name in enumerate(old):
            if number and end is not None and time.monotonic() > end:
                return number
            try:
                path = f"{self._folder}/{name}"
                if not self._disk.is_file(path) or is_huge(self._disk, path):
                    continue  # not a log page
                write_archive(self._context, f"events-{name}.gz", self._content(path))
                self._disk.unlink(f"{self._folder}/{name}")
            except (FileNotFoundError, PermissionError):
                continue  # another janitor was quicker, or it is not readable for this user
        return len(old)

    def _content(self, path: str) -> Iterator[bytes]:
        """Read the page as it is, however long the shell client has made it."""
        yield from pieces(self._disk, path, _PIECE)
        self._disk.size(path)  # raises if it is gone: then only a part may have been read

    def _before(self, horizon: float) -> list[str]:
        names = sorted(name for name in self._context.locator.names(self._folder) if PAGE_NAME.fullmatch(name))
        over = _hour(self._context.clock.exact() - 3_600_000)  # no process writes to the pages of earlier hours
        left = [name for name in names if name[:_HOUR] < over]
        if self._context.local:  # on a network, other machines see a writer's note late
            left += self._left([name for name in names if name[:_HOUR] >= over])
        return [name for name in left if self._is_before(name, horizon)]

    def _left(self, names: list[str]) -> list[str]:
        """Return pages of the current hour that no process writes to: neither the first nor the last, nor held."""
        last: dict[str, int] = {}
        for name in names:
            log, number = page_number(name)
            last[log] = max(number, last.get(log, 0))
        inner = [name for name in names if 0 < page_number(name)[1] < last[page_number(name)[0]]]
        if inner:
            held = self._writers.pages()  # after the listing: see writer.py
            inner = [name for name in inner if name not in held]
        return inner

    def _is_before(self, name: str, horizon: float) -> bool:
        if name[:_HOUR] < _hour(horizon):
            return True
        try:
            return self._disk.changed_at(f"{self._folder}/{name}") < horizon
        except FileNotFoundError:
            return False


def _hour(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H", time.gmtime(moment // 1000))
