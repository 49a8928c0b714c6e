"""A yard whose server may be away: adds and endings go to its spool then, and are replayed when it is back."""

from __future__ import annotations

import time

from taskyard.core import draft as drafts_module
from taskyard.core import words
from taskyard.core.errors import Away, Invalid, NotFound, Unavailable
from taskyard.core.task import Standing, State
from taskyard.spool import entries
from taskyard.spool.away_store import AwayStore
from taskyard.spool.folder import Folder
from taskyard.spool.replay import REPLAYED, Replay
from taskyard.yard import Yard
from taskyard.yard.arguments import Added
from taskyard.yard.claim_verbs import handle_of, legal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Unpack

    from taskyard.core.draft import Draft
    from taskyard.core.options import NewTask, TaskOptions
    from taskyard.core.task import Task
    from taskyard.port import ClaimRef
    from taskyard.store import Store
    from taskyard.yard.claim import Claim

    _Yard = Yard  # every yard has these verbs, also one behind a gateway
else:
    _Yard = object

SHARE, SHARE_SECONDS = 500, 2.0  # entries, and time, that a command spends on the spool unasked
_LOOK_EVERY = 1.0  # seconds between two looks of a long-lived process at its spool
_ALL_SECONDS = 60.0  # for a spool that has to be empty before an add can refer to what is in it
_NOTICES_MOST = 20


class Spooling(_Yard):
    """The verbs of a yard that has a spool, in front of those of the yard itself."""

    _folder: Folder

    def use_spool(self, path: str) -> None:
        """Keep the spool in this folder."""
        self._folder = Folder(path)
        self._spooled: set[str] = set()
        self._replay_at = 0.0
        self.notices: list[str] = []

    # What is spooled

    def add(
        self, kind: str, data: Any = None, *, conn: Any = None, wait: float = 0, **options: Unpack[TaskOptions]
    ) -> Task:
        """Add a new task and return it. If the server is away it is kept in the spool, and `task.spooled` is True."""
        if conn is not None:
            return super().add(kind, data, conn=conn, wait=wait, **options)
        try:
            return super().add(kind, data, wait=wait, **options)
        except NotFound:
            if not self._replayed_all():
                raise
            return super().add(kind, data, wait=wait, **options)
        except Away as away:
            return self._keep([drafts_module.Draft(kind, data, options)], away)[0]

    def add_many(self, tasks: Iterable[NewTask | dict[str, Any]], *, conn: Any = None, wait: float = 0) -> Added:
        """Add many tasks. If the server is away they are kept in the spool, as one entry, and `.spooled` is True."""
        given: list[Any] = list(words.several(tasks, "tasks"))
        if conn is not None:
            return super().add_many(given, conn=conn, wait=wait)
        try:
            return super().add_many(given, wait=wait)
        except NotFound:
            if not self._replayed_all():
                raise
            return super().add_many(given, wait=wait)
        except Away as away:
            kept = self._keep([drafts_module.Draft.of(fields) for fields in given], away)
            added = Added(task.id for task in kept)
            added.created, added.spooled = len(kept), True
            return added

    def done(self, claim: ClaimRef, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result. If the server is away, the ending is kept in the spool."""
        try:
            super().done(claim, result, conn=conn, verified=verified)
        except Away:
            if conn is not None:
                raise
            self._keep_done(claim, result, verified)

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """End these claims as done with these results; if the server is away, in the spool."""
        try:
            return super().done_many(ended)
        except Away:
            for claim, result in ended:
                self._keep_done(claim, result, False)
            return [True] * len(ended)

    def fail(self, claim: ClaimRef, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error. If the server is away, the ending is kept in the spool, and the state is `processing`."""
        try:
            return super().fail(claim, reason, retry)
        except Away:
            self._keep_ending(entries.FAIL, claim, reason=legal_text(reason, "reason"), retry=retry)
            return State.PROCESSING

    def _keep(self, drafts: list[Draft], away: Away) -> list[Task]:
        self._folder.put(entries.added(drafts, self.by, away))
        return [entries.promised(draft) for draft in drafts]

    def _keep_done(self, claim: ClaimRef, result: Any, verified: bool) -> None:
        drafts_module.payload(result, "result")  # a gateway that is away has not checked it
        is_free = isinstance(claim, Standing) and claim.verified is False
        self._keep_ending(
            entries.DONE, claim, result=result, verified=verified or is_free, cwd=None if is_free else entries.here()
        )

    def _keep_ending(self, verb: str, claim: ClaimRef, **brought: Any) -> None:
        handle = handle_of(claim)
        self._folder.put(entries.ended(verb, handle, self.worker, self.by, **brought))
        self._spooled.add(str(handle))

    def is_spooled(self, claim: ClaimRef) -> bool:
        """Whether this yard has put the ending of this claim into its spool."""
        return str(handle_of(claim)) in self._spooled

    # What is replayed

    def claim(self, id: str | None = None, **options: Any) -> Claim | None:
        """Claim a task, after a share of the spool."""
        self._share()
        return super().claim(id, **options)

    def claim_many(self, number: int, **options: Any) -> list[Claim]:
        """Claim up to `number` tasks, after a share of the spool."""
        self._share()
        return super().claim_many(number, **options)

    def tend(self) -> None:
        """Do a share of the janitor's work and of the spool, if they are due."""
        self.tend_spool()
        super().tend()

    def _share(self) -> None:
        """Replay a share of the spool, if there is something in it; raise `Away` if the server is away."""
        now = time.monotonic()
        if now < self._replay_at:
            return
        self._replay_at = now + _LOOK_EVERY
        if self._folder.has_entries():
            self._replayed_unasked(SHARE, SHARE_SECONDS)
            self._replay_at = time.monotonic() + (0.0 if self._spooled else _LOOK_EVERY)

    def _replayed_unasked(self, most: int | None, seconds: float) -> Replay | None:
        """Replay a share that the caller did not ask for; what is wrong with the spool is a notice. Raise `Away`."""
        try:
            return self._replayed(most, seconds)
        except Away:
            raise
        except (Unavailable, Invalid) as error:
            self._notice(error.message)
            return None

    def _replayed(
        self, most: int | None = None, seconds: float | None = None, *, checks: bool = False, failed: bool = False
    ) -> Replay:
        def acting_for(worker: str, by: str) -> Yard:
            twin = super(Spooling, self).acting_for(worker or None, by=by or None)
            twin.tends = False  # a share of the upkeep would begin with a share of the spool
            return twin

        replay = Replay(self._folder, acting_for, with_checks=checks, with_failed=failed)
        try:
            replay.go(most, seconds)
        finally:
            for why in dict.fromkeys(replay.denied.values()):
                self._notice(f"what is in the spool has to wait: {why}")
            for refused in replay.refused:
                why = f"{refused['error']['message']}; 'taskyard spool' shows it"
                self._notice(f"a spooled {refused['verb'] or 'entry'} was refused: {why}")
        return replay

    def _notice(self, text: str) -> None:
        if text not in self.notices and len(self.notices) < _NOTICES_MOST:
            self.notices.append(text)

    def _replayed_all(self) -> bool:
        """Replay all of the spool, because an add refers to a task that may be in it; return whether anything was replayed."""
        replay = self._replayed_unasked(None, _ALL_SECONDS) if self._folder.has_entries() else None
        return replay is not None and replay.counts[REPLAYED] > 0

    def tend_spool(self) -> None:
        """Replay a share of the spool, if there is something in it and the server is there."""
        try:
            self._share()
        except Away:
            return

    # Looking at it

    def spool(self) -> dict[str, Any]:
        """Return the `path` of the spool and its `entries`, oldest first: what waits, and what the yard has refused."""
        shown = [self._shown(name, failed) for failed in (True, False) for name in self._folder.names(failed=failed)]
        return {
            "path": self._folder.path,
            "entries": sorted((one for one in shown if one), key=lambda one: str(one["name"])),
        }

    def _shown(self, name: str, failed: bool) -> dict[str, Any] | None:
        try:
            entry = self._folder.read(name, failed=failed)
        except Invalid:
            return entries.shown(name, None, failed=failed)
        return None if entry is None else entries.shown(name, entry, failed=failed)

    def replay_spool(self, *, failed: bool = False) -> dict[str, Any]:
        """Say everything in the spool to the yard, now; with `failed`, also what it has refused before."""
        counts: dict[str, int] = {}
        if self._folder.has_entries() or (failed and self._folder.names(failed=True)):
            replay = self._replayed(checks=True, failed=failed)
            if replay.is_locked:
                raise Unavailable("another process replays this spool", hint="look again in a moment: taskyard spool")
            counts = replay.counts
        return {**super().replay_spool(), **counts, **self.spool()}


class SpooledYard(Spooling, Yard):
    """A yard in a database, with its spool in the folder `path`."""

    def __init__(self, store: Store, path: str, worker: str | None = None) -> None:
        super().__init__(store, worker)
        self.use_spool(path)


def opened(
    open_store: Callable[[], Store], url: str, label: str, path: str, worker: str | None, *, unknown: bool
) -> SpooledYard:
    """Open a yard that has a spool; if its server is away, the first verb that reaches it opens it.

    A yard that was never reached from this machine raises `Away` then, unless it may be `unknown`.
    """
    folder = Folder(path)
    try:
        store: Any = open_store()
        folder.note_yard()
    except Away as away:
        if not unknown and not folder.is_there():
            raise
        store = AwayStore(open_store, url, label, away)
    return SpooledYard(store, path, worker)
