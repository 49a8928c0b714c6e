"""Retention: ended tasks leave the yard for archive/, as compressed JSON Lines, with all that belongs to them.

A task is archived and synced before anything of it is removed. Its file goes to dead/ first, so that it is gone from its
state at one stroke; then its key, records, notes and edits; at last the file. Whoever finds it in dead/ can finish.
"""

from __future__ import annotations

import json
import re
import time

from taskyard import ids
from taskyard.errors import Invalid
from taskyard.stores.directory.names import Token
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.adding import Adder
    from taskyard.stores.directory.ground import Ground
    from taskyard.stores.directory.looking import Looking
    from taskyard.stores.directory.lookup import Found

ENDED = (State.DONE, State.FAILED, State.CANCELLED)
SHARE = 2000  # tasks that leave with one sweep
_LOG = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}\..+\.jsonl")
_WORTHWHILE = 500  # an unasked prune waits until there are so many, so that archives don't come in crumbs


class Pruning:
    """Finds what may go, tells of it, and lets it go."""

    def __init__(self, ground: Ground, looking: Looking, adder: Adder) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._root = ground.root
        self._looking = looking
        self._adder = adder

    def by_retention(self, by: str) -> int:
        """As much as the yard's own settings ask for, a bounded share; nothing where they ask for nothing."""
        retention = self._ground.retention
        if retention.age is None and retention.count is None:
            return 0
        tasks = self.candidates(retention.age, retention.count, SHARE)
        if len(tasks) < _WORTHWHILE:
            tasks = []
        return len(self.apply(tasks, by)) + self._prune_events(retention.age, apply=True)

    def plan(self, age: float | None, count: int | None, apply: bool, by: str) -> dict[str, Any]:
        """What would go, or with `apply` what went."""
        tasks = self.candidates(age, count, None)
        oldest = min((ids.created(found.token.id) for _, found in tasks), default=None)
        archives = self.apply(tasks, by) if apply else []
        return {
            "tasks": len(tasks),
            "events": self._prune_events(age, apply),
            "oldest": oldest,
            "archives": sorted(set(archives)),
            "applied": apply,
        }

    def candidates(self, age: float | None, count: int | None, most: int | None) -> list[tuple[int, Found]]:
        """Ended tasks that are too old or too many, those that ended first at the front."""
        if age is None and count is None:
            return []
        now = self._ground.clock.exact()
        ended = self._ended(most if count is None else None)
        ended.sort(key=lambda pair: (pair[0], ids.age_key(pair[1].token.id)))
        surplus = len(ended) - count if count is not None else 0
        chosen = [
            pair
            for position, pair in enumerate(ended)
            if position < surplus or (age is not None and now - pair[0] > age * 1000)
        ]
        return chosen if most is None else chosen[:most]

    def _ended(self, most: int | None) -> list[tuple[int, Found]]:
        """Ended tasks and when they ended, from the oldest segments on."""
        from taskyard.stores.directory.lookup import Found

        ended: list[tuple[int, Found]] = []
        for state in ENDED:
            taken = 0
            for segment in sorted(filter(ids.is_segment, self._ground.lookup.names(f"{self._root}/{state}"))):
                if most is not None and taken >= most:
                    break
                folder = f"{self._root}/{state}/{segment}"
                for name in self._ground.lookup.names(folder):
                    token = Token.parse(name)
                    if token is None:
                        continue
                    try:
                        ended.append((self._disk.changed_at(f"{folder}/{name}"), Found(state, (folder, name), token)))
                        taken += 1
                    except FileNotFoundError:
                        continue  # retried by hand just now
        return ended

    def apply(self, tasks: list[tuple[int, Found]], by: str) -> list[str]:
        """Archive and remove these; gives for each that went the archive that it is in."""
        gone: list[str] = []
        for start in range(0, len(tasks), SHARE):
            batch = [found for _, found in tasks[start : start + SHARE]]
            archive = self._archive(batch, by)
            gone += [archive for found in batch if self._remove(found)]
        return gone

    def _archive(self, batch: list[Found], by: str) -> str:
        from gzip import compress

        lines = []
        for found in batch:
            try:
                report = self._looking.of(found)
            except FileNotFoundError:
                continue
            entry = {
                "task": report.task.as_dict(),
                "history": report.history,
                "notes": report.notes,
                "stale_results": report.stale_results,
                "pruned_by": by,
            }
            lines.append(json.dumps(entry, ensure_ascii=False))
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(self._ground.clock.now() // 1000))
        name = f"tasks-{stamp}-{ids.base32(ids.chance(20), 4)}.jsonl.gz"
        self._keep(name, compress(("\n".join(lines) + "\n").encode()))
        return name

    def _keep(self, name: str, content: bytes) -> None:
        draft = self._ground.draft()
        self._disk.create(draft, content, sync=True)
        self._disk.rename(draft, f"{self._root}/archive/{name}")
        self._disk.sync(f"{self._root}/archive")

    def _remove(self, found: Found) -> bool:
        folder, name = found.place
        if not self._ground.mover.move(f"{folder}/{name}", f"{self._root}/dead", name):
            return False
        self.finish(name)
        self._ground.mover.drop(folder)
        return True

    def finish(self, name: str) -> None:
        """Remove all that belongs to a task whose file is in dead/."""
        id = name.split(".", 1)[0]
        segment = id[: ids.SEGMENT]
        path = f"{self._root}/dead/{name}"
        try:
            if self._disk.links(path) > 1:
                self._adder.keys.release(self._disk.read(path))
        except FileNotFoundError:
            return
        except Invalid:
            pass  # a broken file tells no key; the key is let go of when somebody asks for it
        for place in ("results", "edits"):
            folder = f"{self._root}/{place}/{segment}"
            for entry in self._ground.lookup.names(folder):
                if entry.startswith(id):
                    self._disk.remove(f"{folder}/{entry}")
            self._ground.mover.drop(folder)
        self._disk.remove_tree(f"{self._root}/attempts/{segment}/{id}")
        self._ground.mover.drop(f"{self._root}/attempts/{segment}")
        self._disk.remove(path)

    def _prune_events(self, age: float | None, apply: bool) -> int:
        """Files of the log that are wholly older than that go to the archive, compressed."""
        if age is None:
            return 0
        limit = time.strftime("%Y-%m-%dT%H", time.gmtime(self._ground.clock.exact() // 1000 - int(age) - 3600))
        old = [
            name for name in self._ground.lookup.names(f"{self._root}/events") if _LOG.fullmatch(name) and name < limit
        ]
        for name in old if apply else []:
            from gzip import compress

            path = f"{self._root}/events/{name}"
            try:
                self._keep(f"events-{name}.gz", compress(self._disk.read(path)))
                self._disk.unlink(path)
            except FileNotFoundError:
                continue
        return len(old)
