"""Steering a yard: what people do to tasks that they do not work on, and to the yard as a whole."""

from __future__ import annotations

from taskyard.core import draft, ids, moves, times, words
from taskyard.core.errors import Ambiguous, Conflict, Invalid, NotFound
from taskyard.core.task import State
from taskyard.yard import arguments
from taskyard.yard.claim_verbs import legal_text
from taskyard.yard.reading import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Unpack

    from taskyard.core.moves import Move
    from taskyard.core.options import EditOptions
    from taskyard.core.task import Standing, Task

_TRIES = 20  # times that a decision is made anew because the task moved in between


class SteeringVerbs(Reading):
    """The verbs that cancel, retry, edit, review, pause, set and prune."""

    def _nonce(self) -> str:
        """Return a nonce that no other claim has."""
        raise NotImplementedError

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Cancel a task; a worker that holds it loses its claim."""
        text = None if reason is None else legal_text(reason, "reason")
        return self._revise(id, lambda standing: moves.cancelled(standing, text))

    def retry(self, id: str) -> Task | None:
        """Retry a failed or cancelled task, or make a waiting one ready now.

        The name of a file that was set aside puts that file back into the drop box. Then this returns None, because the file
        is not a task until it is taken in.
        """
        dropbox = self._store.dropbox
        if dropbox is not None and self._names_a_file(id):
            dropbox.give_back(id)
            self._sweep()
            again = next((entry for entry in dropbox.set_aside() if str(entry["name"]).split("~")[0] == id), None)
            if again is not None:
                raise Conflict(
                    f"{id} was set aside again: {again['reason']}",
                    hint=f"put failed/{again['name']}.json right, then retry",
                )
            return None
        return self._revise(id, self._retried)

    def _retried(self, standing: Standing) -> Move:
        if standing.unmet and standing.state is State.CANCELLED:
            from taskyard.yard import dependencies

            dependencies.refuse_doomed(self._store, standing)
        return moves.retried(standing)

    def bulk(
        self,
        verb: str,
        ids: Iterable[str] | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        reason: str | None = None,
        apply: bool = False,
        most: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> dict[str, Any]:
        """Cancel, retry or release the tasks that are named, or all that match; without `apply` only count them.

        Return `count`, how many were `changed`, those that were `refused` with the reason, and the first `tasks`. With `most`, no
        more than so many are chosen. `progress` is called with how many are done, of how many.
        """
        from taskyard.yard import bulk

        text = None if reason is None else legal_text(reason, "reason")
        decided = bulk.decide(bulk.verb(verb), text, self._retried)
        filters = (state, kind, mission, worker)
        if (ids is None) == all(given is None for given in filters):
            raise Invalid(
                f"{verb} needs tasks, or a filter that chooses them", hint="give ids, or state, kind, mission or worker"
            )
        self._look()
        if ids is not None:
            choice = bulk.named(self._store, [self._task_id(id) for id in ids])
        else:
            choice = bulk.matching(self._store, arguments.query(*filters, states=bulk.STATES[verb]), most)
        self._name(choice.first)
        done = bulk.apply(self._store, bulk.order(choice, verb), decided, self.by, progress) if apply else None
        return bulk.answer(choice, done)

    def _names_a_file(self, name: str) -> bool:
        """Whether this names a file that is set aside, and no task; raise `Ambiguous` if it may be either.

        A whole id always names the task.
        """
        aside = any(entry["name"] == name for entry in self.set_aside())
        try:
            self._store.stand(arguments.task_id(name))
        except Ambiguous:
            pass
        except NotFound:
            return aside
        if aside and not ids.is_id(name.lower()):
            raise Ambiguous(
                f"{name!a} names a task, and a file that is set aside",
                hint=f"give the task's whole id; or move failed/{name}.json, which is the file, into todo/",
            )
        return False

    def edit(self, id: str, **changes: Unpack[EditOptions]) -> Task:
        """Change a task that no worker holds.

        What can be changed: title, data, priority, assignee, delay, not_before, expires, timeout, max_attempts, after.
        `after` replaces all that the task comes after; None or an empty list removes it.
        """
        if not changes:
            raise Invalid("nothing to edit", hint=f"name what to change: {', '.join(draft.EDITABLE)}")
        timed = "delay" in changes or "not_before" in changes
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            moves.editable(standing)
            report = self._store.get(whole)
            if report.task.review == "pending":
                from taskyard.yard import review

                review.refuse_loss(report.task, changes)
            old = report.draft()
            if old is None:
                continue
            new, unmet = old.changed(changes), None
            if "after" in changes:
                from taskyard.yard import dependencies

                new.after, unmet = dependencies.replaced(self._store, whole, new.after)
            later = report.task.not_before is not None
            move = moves.edited(standing, new, timed, unmet, later, expires="expires" in changes)
            if self._store.shift([(standing, move)], self.by)[0]:
                if unmet:
                    self._refuse_crossed(whole, old.after, new.after)
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def _refuse_crossed(self, id: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Undo this caller's edit if it and another caller's edit have made a cycle, and raise `Conflict`."""
        from taskyard.yard import dependencies

        crossed = dependencies.standing_cycle(self._store, id, after)
        if crossed is not None:
            self.edit(id, after=list(before))
            raise crossed

    def accept(self, id: str) -> Task:
        """Accept what was submitted for review: the task is done with it. Raise `Conflict` if nothing waits for review."""
        return self._reviewed(id, None)

    def reject(self, id: str, note: str) -> Task:
        """Reject what was submitted: the task goes back to todo, no error is counted, and its next worker reads the note."""
        return self._reviewed(id, legal_text(note, "note"))

    def _reviewed(self, id: str, note: str | None) -> Task:
        from taskyard.yard import review

        self.tend()
        return self._after(review.review(self._store, self._task_id(id), self.worker, self.by, note, self._nonce()))

    def pause(self, kind: str | None = None) -> None:
        """Stop handing out tasks, of this kind or of any; running tasks go on."""
        self._pause(kind, True)

    def unpause(self, kind: str | None = None) -> None:
        """End a `pause` with the same arguments."""
        self._pause(kind, False)

    def _pause(self, kind: str | None, on: bool) -> None:
        named = None if kind is None else words.kind(kind)
        self._store.settings.pause(named, on)
        self._store.log.write("paused" if on else "unpaused", self.by, named or "")

    def settings(self) -> dict[str, Any]:
        """Return every setting of the yard, as it was set or by default."""
        from taskyard.core import settings

        return settings.effective(self._store.settings.read())

    def set_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change settings, and return all of them; None takes one back to its default.

        Of `kinds` and `checks` only those that are named change: `{"kinds": {"build": {"concurrency": 2}}}`. Other processes
        heed it within seconds; what was claimed before stays as it is.
        """
        from taskyard.core import settings

        written = self._store.settings.change(lambda before: settings.changed(before, changes))
        self._store.log.write("configured", self.by, more={"changes": changes})
        return settings.effective(written)

    def _revise(self, id: str, decide: Callable[[Standing], Move]) -> Task:
        self.tend()
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            if self._store.shift([(standing, decide(standing))], self.by)[0]:
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def _after(self, moved: Standing) -> Task:
        task = self._store.get(moved.id).task
        self._name([task])
        return task

    def prune(
        self,
        age: Any = None,
        count: int | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        ids: Iterable[str] | str | None = None,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Move ended tasks to the archive: those that ended longer ago than `age`, or beyond the newest `count`.

        With a filter (a state, kind, mission, the worker that ended them) or `ids`: only of those that match, all of them if no age and no
        count is given, and no page of the log goes. Without `apply` it only returns what would go.
        """
        filters = (state, kind, mission, worker)
        only = None if all(given is None for given in (*filters, ids)) else arguments.query(*filters)
        if only is not None and ids is not None:
            only.ids = [self._store.stand(self._task_id(id)).id for id in words.several(ids, "ids")]
        if age is None and count is None:
            if only is None:
                raise Invalid(
                    "prune needs an age or a count",
                    hint="say which ended tasks go: --older-than 30d, or all but --keep 1000",
                )
            count = 0
        seconds = None if age is None else times.seconds(age, "age")
        number = None if count is None else draft.integer(count, "count", 0, 10**9)
        summary = self._store.upkeep.prune(seconds, number, self.by, apply=apply, only=only)
        if apply:
            self._store.log.write("pruned", self.by, more={"count": summary["tasks"]})
        summary["oldest"] = None if summary["oldest"] is None else times.rfc3339(summary["oldest"])
        return summary
