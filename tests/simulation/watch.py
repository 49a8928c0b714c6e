"""What must hold at every single moment, seen on the disk while others work on it."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

from taskyard.stores.directory.recovery.liveness import INCARNATION

if TYPE_CHECKING:
    from .files import Files

STATES = ("waiting", "blocked", "todo", "processing", "done", "failed", "cancelled")
_TASK = re.compile(r"([0-9a-hjkmnp-tv-z]{21})\.([0-9]+)\.e[0-9]+\.c[0-9]+[^/]*\.json")
_CLAIM = re.compile(
    r"(?P<id>[^.]+)\.(?P<fence>[0-9]+)\.e[0-9]+\.c(?P<crashes>[0-9]+).*\.l(?P<lease>[0-9]+)(?P<vouched>\.L)?"
    r"\.(?P<worker>[^.]+)-(?P<nonce>[0-9a-z]+)\.json"
)
_CRASHES = re.compile(r"/[^/]+\.e[0-9]+\.c([0-9]+)[^/]*$")


def _handle(claim: re.Match[str]) -> str:
    return f"{claim['id']}.{claim['fence']}.{claim['nonce']}"


class Violation(AssertionError):
    """The promise is broken; `kind` says which part of it."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind
        self.what = what


@functools.lru_cache(maxsize=100_000)
def task_at(root: str, path: str) -> tuple[str, str, int] | None:
    """Id, state and fence of the task that this path names, or None if it is no task's."""
    if not path.startswith(f"{root}/"):
        return None
    state, _, rest = path[len(root) + 1 :].partition("/")
    match = _TASK.fullmatch(rest.rpartition("/")[2])
    if state not in STATES or match is None or (state != "processing" and "/" not in rest):
        return None
    return match[1], state, int(match[2])


class Watch:
    """Follows every task from name to name."""

    def __init__(self, files: Files, root: str, *, strict: bool = True) -> None:
        self._files = files
        self._root = root
        self._strict = strict
        """Whether a task may never have two names; not where a power cut has left two for the sweep to put right."""
        self.places: dict[str, set[str]] = {}
        self.left: set[str] = set()
        """Tasks that were let go: pruned, or given back to the drop box."""
        self._fences: dict[str, int] = {}
        self._beats: dict[str, tuple[int, bool]] = {}
        """When each claim was last made or renewed, and whether it was written down by then that it has crashed."""
        self._mark: int | None = None
        self._recorded: set[str] = set()
        """The claims of which it is written down that they have crashed."""
        for folder, names in files.names.items():
            for name in names:
                self._arrived(f"{folder}/{name}")

    def copy(self, files: Files) -> Watch:
        """The same, to go on from, of this copy of the disk."""
        twin = Watch.__new__(Watch)
        twin.__dict__.update(self.__dict__)
        twin._files = files
        twin.places = {id: set(paths) for id, paths in self.places.items()}
        twin.left, twin._recorded = set(self.left), set(self._recorded)
        twin._fences, twin._beats = self._fences.copy(), self._beats.copy()
        return twin

    def mark(self) -> object:
        """All that decides what will be allowed."""
        if self._mark is None:
            parts = frozenset(self._beats.items()), frozenset(self._fences.items()), frozenset(self.left)
            self._mark = hash(parts)
        return self._mark

    def holder(self, id: str) -> str | None:
        """The nonce of whoever holds the task now."""
        for path in self.places.get(id, ()):
            if f"{self._root}/processing/" in path:
                return path.removesuffix(".json").rpartition("-")[2]
        return None

    def _arrived(self, path: str) -> None:
        task = task_at(self._root, path)
        if task is not None:
            self.places.setdefault(task[0], set()).add(path)
            self._fences[task[0]] = max(task[2], self._fences.get(task[0], 0))
            self._beats[path] = (
                self._files.nodes[self._files.names[path.rpartition("/")[0]][path.rpartition("/")[2]]].ctime,
                False,
            )

    def _is_there(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self._files.names.get(folder, ())

    def after(self, call: str, args: tuple[Any, ...], failed: bool) -> None:
        """A call was made that may have changed names; `Violation` if that was not allowed."""
        self._mark = None
        if call == "utime" and not failed and args[0] in self._beats:
            claim = _CLAIM.fullmatch(args[0].rpartition("/")[2])
            self._beats[args[0]] = (self._files.now, claim is not None and _handle(claim) in self._recorded)
        if failed or call in ("write", "pwrite", "utime", "mkdir", "rmdir"):
            return
        if call == "link" and args[1].endswith(".crash.json"):
            self._recorded.add(args[1].rpartition("/")[2].removesuffix(".crash.json"))
        if call == "rename":
            self._check_reap(*args)
            self._check_needs(*args)
        paths = [arg for arg in args if isinstance(arg, str)]
        over = self._files.overwritten if call == "rename" else None
        if over is not None and over.startswith((f"{self._root}/results/", f"{self._root}/keys/")):
            raise Violation("replaced", f"{over[len(self._root) + 1 :]} was there already, and was replaced")
        if over is not None and task_at(self._root, over) is not None:
            raise Violation("lost", f"{over[len(self._root) + 1 :]} was overwritten")
        ids = {task[0] for path in paths if (task := task_at(self._root, path)) is not None}
        for id in ids:
            self._follow(id, call, paths)
        if call == "unlink" and paths[0].startswith(f"{self._root}/results/"):
            self._record_removed(paths[0])

    def _check_reap(self, path: str, target: str) -> None:
        """Nobody is reaped whose lease was not over when it was written down that it has crashed.

        (A heartbeat after that, between the janitor's last look and its move, comes too late: the protocol says so.)
        """
        if "/processing/" in target:
            self._beats[target] = (self._files.now, False)
        claim = _CLAIM.fullmatch(path.rpartition("/")[2]) if path in self._beats and "/processing/" in path else None
        crashes = _CRASHES.search(target)
        if claim is None or crashes is None or int(crashes[1]) <= int(claim["crashes"]):
            return
        when, too_late = self._beats[path]
        if claim["vouched"] and self._is_dead(claim):
            return
        if self._files.now - when <= int(claim["lease"]) * 1_000_000 and not too_late:
            raise Violation("too early", f"{_handle(claim)} was reaped, and its lease was not over")

    def _is_dead(self, claim: re.Match[str]) -> bool:
        """Whether the process of a claim has left the file that it had locked."""
        ino = self._files.names[f"{self._root}/workers"].get(f"{claim['worker']}-{claim['nonce'][:INCARNATION]}")
        return ino is not None and not self._files.nodes[ino].locks

    def _check_needs(self, path: str, target: str) -> None:
        """Nobody is let go before all that it comes after is done."""
        state = target[len(self._root) + 1 :].partition("/")[0]
        if f"{self._root}/blocked/" not in path or state not in ("todo", "waiting"):
            return
        folder, _, name = target.rpartition("/")
        content = json.loads(self._files.nodes[self._files.names[folder][name]].content)
        policies = content.get("on_failure") or {}
        for other in content.get("after") or ():
            self._files.seen.append(("r", ("task", other)))
            there = self.places.get(other)
            met = ("done", "failed", "cancelled") if policies.get(other) == "run" else ("done",)
            if there and not any(place[len(self._root) + 1 :].startswith(met) for place in there):
                raise Violation("too early", f"{name[:21]} is let go, and {other} is not done")

    def _follow(self, id: str, call: str, paths: list[str]) -> None:
        known = self.places.setdefault(id, set())
        before = set(known)
        known.difference_update([path for path in known if not self._is_there(path)])
        for path in paths:
            task = task_at(self._root, path)
            if task is not None and task[0] == id and self._is_there(path) and path not in known:
                known.add(path)
                self._check_fence(id, task[1], task[2], before)
        if len(known) > 1 and self._strict:
            short = sorted(path[len(self._root) + 1 :] for path in known)
            raise Violation("two places", f"{id} is in {' and in '.join(short)}")
        target = paths[-1]
        left = call == "rename" and (f"{self._root}/dead/" in target or target == f"{self._root}/todo/{id}.json")
        if left:
            self.left.add(id)
        elif known:
            self.left.discard(id)
        if not known and before and not left:
            raise Violation("lost", f"{id} has no name any more")

    def _check_fence(self, id: str, state: str, fence: int, before: set[str]) -> None:
        last = self._fences.get(id)
        self._fences[id] = max(fence, last or 0)
        if last is None or fence > last or not self._strict:
            return
        same = fence == last and (state in ("done", "failed") or (state == "waiting" and before))
        if not same and before:
            raise Violation("fence", f"{id} went to {state} with fence {fence}, and had {last} before")

    def _record_removed(self, path: str) -> None:
        id = path.rpartition("/")[2][:21]
        if self.places.get(id):
            raise Violation("lost", f"the record {path.rpartition('/')[2]} of a task that is there was removed")
