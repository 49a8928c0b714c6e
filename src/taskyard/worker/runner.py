"""Run one claim to its end, as a pipeline: perform; then see whether it was settled, verify, publish."""

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
    """Whatever can do a task: a command, or a Python function."""

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:
        """Do it, and tell how that went; nothing is raised."""


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
        """Do the task."""
        return self._refused(job) or self._performed(job)

    def conclude(self, job: Job, result: Outcome) -> Outcome:
        """Publish how it ended, unless that was said already or does not stand."""
        result = self._settled(job, result)
        if result in (outcome.SETTLED, outcome.SETTLED_AS_FAILED):
            job.claim.ended()
            return result
        result = self._verified(job, result)
        return self.publish(job, result)

    def give_back(self, job: Job) -> Outcome:
        """Hand back a task that was not begun."""
        return self.publish(job, outcome.RELEASED)

    def _refused(self, job: Job) -> Outcome | None:
        """A task whose check nobody here knows could never be done: said before the work, not after it."""
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
            return outcome.later(reason=error.message)  # no folder to work in: the yard is in trouble, not the task
        except OSError as error:
            return outcome.later(reason=f"the work could not be begun: {error.strerror or error}")

    def _settled(self, job: Job, result: Outcome) -> Outcome:
        """What the work itself has said about its claim stands; work that we stopped has said nothing."""
        try:
            if not job.lost and not job.claim.holds():
                state = job.claim.settled()
                if state is not None:
                    return outcome.SETTLED_AS_FAILED if state is State.FAILED else outcome.SETTLED
        except (Unavailable, NotFound):
            pass  # told when it is published
        return result if result.ending is Ending.DONE else _taken_away(job) or result

    def _verified(self, job: Job, result: Outcome) -> Outcome:
        if result.ending is not Ending.DONE or job.task.verify is None or job.lost:
            return result
        try:
            draft.payload(result.result, "result")
        except Invalid:
            return result  # nothing that could be shown to a check; publishing it tells why
        bad = self._checks[job.task.verify].check(job, self._guarded, job.task.verify, result.result)
        return result if bad is None else _taken_away(job) or bad

    def publish(self, job: Job, result: Outcome) -> Outcome:
        """Say it to the store, as often as it takes: a result that cannot be stored now is stored later."""
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
        """How long a task that is not counted waits: as asked, else longer each time."""
        if isinstance(after, (int, float)) and 0 <= after < 1e9:
            return float(after)
        before = sum(entry["outcome"] == "released" for entry in job.history) if job.fence > 1 else 0
        return retry.backoff(job.claim.yard.policy, before)


def _used_up(result: Outcome, state: State) -> Outcome:
    """What was to be tried again, and has no attempts left, has failed for good."""
    return result if state is not State.FAILED else outcome.fatal(result.reason or "no reason was given")


def _taken_away(job: Job) -> Outcome | None:
    """What is said of work that was stopped, rather than what it said itself; nothing if it was not."""
    if job.lost:
        return outcome.LOST
    return outcome.RELEASED if job.released else None
