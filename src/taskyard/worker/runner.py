"""Run one claim to its end, as a pipeline: perform; then check whether it was settled, verify, publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from taskyard.core import draft, retry
from taskyard.core.errors import ClaimLost, Conflict, Invalid, NotFound, Unavailable
from taskyard.core.task import State
from taskyard.worker import outcome
from taskyard.worker.outcome import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.worker.command import Command
    from taskyard.worker.guard_client import GuardClient
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome


class Performer(Protocol):
    """Something that can perform a task: a command, or a Python function."""

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:
        """Perform the task and return the outcome; raise nothing."""


class Runner:
    """Runs the claims of one slot."""

    def __init__(
        self,
        performer: Callable[[str], Performer | None],
        checks: Mapping[str, Command],
        guarded: GuardClient,
        patience: Callable[[Unavailable], bool],
    ) -> None:
        self._performer = performer
        self._checks = checks
        self._guarded = guarded
        self._patience = patience

    def perform(self, job: Job) -> Outcome:
        """Perform the task, or refuse it."""
        return self._refused(job) or self._performed(job)

    def conclude(self, job: Job, result: Outcome) -> Outcome:
        """Publish the outcome, unless the work itself has ended the claim."""
        result = self._settled(job, result)
        if result in (outcome.SETTLED, outcome.SETTLED_AS_FAILED):
            job.claim.ended()
            return result
        result = self._verified(job, result)
        return self.publish(job, result)

    def give_back(self, job: Job) -> Outcome:
        """Release a task that was not begun."""
        return self.publish(job, outcome.RELEASED)

    def _refused(self, job: Job) -> Outcome | None:
        """Return an error for a task whose check this worker does not know: before the work, because it could never be done."""
        if job.task.verify is None:
            return None
        if job.task.verify not in self._checks:
            return outcome.error(f"the task asks for the check {job.task.verify!r}, which this worker does not know")
        job.check = self._checks[job.task.verify].argv
        return None

    def _performed(self, job: Job) -> Outcome:
        performer = self._performer(job.kind)
        if performer is None:
            return outcome.error(f"this worker has no handler for {job.kind!r}")
        try:
            return performer.perform(job, self._guarded)
        except Unavailable as error:
            return outcome.later(reason=error.message)  # no folder to work in: the fault is the yard's, not the task's
        except OSError as error:
            return outcome.later(reason=f"the work could not be begun: {error.strerror or error}")

    def _settled(self, job: Job, result: Outcome) -> Outcome:
        """Return the ending that the work itself gave its claim, if any; else the result, unless the worker stopped it."""
        try:
            if not job.claim.holds():  # also a job that was stopped for it: its command may have given the claim up
                state = job.claim.settled()
                if state is not None:
                    return outcome.SETTLED_AS_FAILED if state is State.FAILED else outcome.SETTLED
        except (Unavailable, NotFound):
            pass  # `publish` meets the same error
        return result if result.ending is Ending.DONE else _taken_away(job) or result

    def _verified(self, job: Job, result: Outcome) -> Outcome:
        if result.ending is not Ending.DONE or job.task.verify is None or job.lost:
            return result
        try:
            draft.payload(result.result, "result")
        except Invalid:
            return result  # no check can read it; `publish` reports why
        bad = self._checks[job.task.verify].check(job, self._guarded, job.task.verify, result.result)
        return result if bad is None else _taken_away(job) or bad

    def publish(self, job: Job, result: Outcome) -> Outcome:
        """Store the outcome, and retry while the store is unreachable and `patience` returns True."""
        while True:
            try:
                return self._publish(job, result)
            except Unavailable as error:
                if not self._patience(error):
                    return outcome.LOST
            except (ClaimLost, Conflict, NotFound):
                return outcome.LOST

    def _publish(self, job: Job, result: Outcome) -> Outcome:
        claim, reason = job.claim, result.reason or "no reason was given"
        if result.ending is Ending.DONE:
            try:
                claim.done(result.result, verified=True)  # by _verified
            except Invalid as error:
                result = outcome.error(f"its result cannot be kept: {error.message}")
                return _used_up(result, claim.fail(result.reason or ""))
        elif result.ending is Ending.ERROR:
            return _used_up(result, claim.fail(reason))
        elif result.ending is Ending.FATAL:
            claim.fail(reason, retry=False)
        elif result.ending is Ending.CRASHED:
            return _used_up(result, claim.crash(reason))
        elif result.ending is Ending.LATER:
            claim.release(self._delay(job, result.after), result.reason)
        elif result.ending is Ending.RELEASED:
            claim.release()
        return result

    def _delay(self, job: Job, after: Any) -> float:
        """Return how long a released task waits: `after` if it is legal, else longer each time."""
        if isinstance(after, (int, float)) and 0 <= after < 1e9:
            return float(after)
        before = sum(entry["outcome"] == "released" for entry in job.history) if job.fence > 1 else 0
        return retry.backoff(job.claim.yard.policy, before)


def _used_up(result: Outcome, state: State) -> Outcome:
    """Return the result, or a fatal one if the task has no attempts left."""
    return result if state is not State.FAILED else outcome.fatal(result.reason or "no reason was given")


def _taken_away(job: Job) -> Outcome | None:
    """Return the outcome of work that the worker stopped, which replaces the work's own; None if it was not stopped."""
    if job.lost:
        return outcome.LOST
    return outcome.RELEASED if job.released else None
