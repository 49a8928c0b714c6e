"""A Python function as a handler, plain or async."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import ClaimLost, TaskyardError
from taskyard.worker import outcome
from taskyard.worker.outcome import Fail, Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.worker.guard_client import GuardClient
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome


GRACE = 10.0  # seconds that a function has to return after its timeout


class Function:
    """Calls one function for every task; its return value is the result, its exception the error."""

    def __init__(self, call: Callable[[Job], Any], timeout: float | None = None) -> None:
        self._call = call
        self._timeout = timeout
        self._is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004  an object whose call is async, not whether it can be called
        )

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:  # noqa: ARG002  commands need the guard
        """Call the function with this job, and return the outcome."""
        timeout = self._timeout if job.task.timeout is None else job.task.timeout
        if timeout is None:
            return self._called(job)
        with Timeout(job, timeout):
            ended = self._called(job)
        return ended if job.timed_out is None or job.lost else outcome.error(outcome.timed_out(timeout))

    def _called(self, job: Job) -> Outcome:
        try:
            result = asyncio.run(self._awaited(job)) if self._is_async else self._call(job)
            return outcome.RELEASED if job.released and job.noticed else outcome.done(result)
        except Retry as retry:
            return outcome.later(retry.after, retry.reason)
        except Fail as fail:
            return outcome.fatal(fail.reason)
        except BaseException as error:
            if job.lost and isinstance(error, (ClaimLost, asyncio.CancelledError)):
                return outcome.LOST
            if job.released and isinstance(error, asyncio.CancelledError):
                return outcome.RELEASED
            return outcome.error(_told(error))

    async def _awaited(self, job: Job) -> Any:
        task = asyncio.ensure_future(self._call(job))
        loop = asyncio.get_running_loop()

        def cancel(grace: float) -> None:  # noqa: ARG001  it is cancelled at its next await
            loop.call_soon_threadsafe(task.cancel)

        job.stopped_by(cancel)
        if job.timed_out is not None:
            task.cancel()
        try:
            return await task
        finally:
            job.stopped_by(None)


class Timeout:
    """Stops a job after some seconds; a function that then goes on loses its claim `GRACE` seconds later."""

    def __init__(self, job: Job, seconds: float) -> None:
        self._job = job
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="taskyard-timeout", daemon=True)

    def _watch(self) -> None:
        if self._over.wait(self._seconds):
            return
        self._job.time_out(self._seconds)
        if self._over.wait(GRACE):
            return
        self._job.lost = True  # first: what the function returns from here on is not published
        try:
            self._job.claim.fail(outcome.timed_out(self._seconds))
        except TaskyardError:
            return  # lost already, or the yard is away: the lease ends by itself

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _told(error: BaseException) -> str:
    """Return the error in a line, and its traceback."""
    first = f"{type(error).__name__}: {error}".strip(": ")
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without this module's own line
    return f"{first}\n\n{''.join(traceback.format_exception(type(error), error, trace)).rstrip()}"
