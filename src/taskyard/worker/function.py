"""A Python function as a handler, plain or async."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import ClaimLost
from taskyard.worker import outcome
from taskyard.worker.outcome import Fail, Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.worker.guard_client import GuardClient
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome


class Function:
    """Calls one function for every task; its return value is the result, its exception the error."""

    def __init__(self, call: Callable[[Job], Any]) -> None:
        self._call = call
        self._is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004  an object whose call is async, not whether it can be called
        )

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:  # noqa: ARG002  commands need the guard
        """Call the function with this job, and return the outcome."""
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
        try:
            return await task
        finally:
            job.stopped_by(None)


def _told(error: BaseException) -> str:
    """Return the error in a line, and its traceback."""
    first = f"{type(error).__name__}: {error}".strip(": ")
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without this module's own line
    return f"{first}\n\n{''.join(traceback.format_exception(type(error), error, trace)).rstrip()}"
