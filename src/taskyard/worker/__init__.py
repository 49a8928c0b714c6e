"""Workers: claim, run, renew, report. Users import `Worker`; `doors` run commands with it."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Unpack

from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.words import kind as legal_kind
from taskyard.worker.command import Command
from taskyard.worker.heartbeats import ThreadBeats
from taskyard.worker.job import Job
from taskyard.worker.options import OPTIONS, Options, Tally
from taskyard.worker.outcome import Fail, Outcome, Retry
from taskyard.worker.run import Run
from taskyard.worker.stop_signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from logging import Logger

    from taskyard.core.options import RunOptions
    from taskyard.port import YardPort
    from taskyard.worker.heartbeats import Beats
    from taskyard.worker.runner import Performer

__all__ = ["Fail", "Job", "Outcome", "Retry", "Tally", "Worker"]

LEASE = 60.0  # seconds, with a beat every third of it


class Worker:
    """Claims tasks from a yard and calls a handler for each.

    worker = taskyard.Worker(yard)

    @worker.handles("sharpen")
    def sharpen(task):
        return {"size": len(task.data["inputFile"])}

    worker.run()
    """

    def __init__(
        self, yard: YardPort, *, checks: Mapping[str, Sequence[str]] | None = None, check_timeout: float | None = None
    ) -> None:
        self._yard = yard
        self._handlers: dict[str, Performer] = {}
        self._any: Performer | None = None
        known = {**yard.checks, **(checks or {})}
        self._checks = {name: Command(argv, check_timeout) for name, argv in known.items()}
        self._run: Run | None = None
        self._stopped = False

    def handles(
        self, *kinds: str, timeout: float | None = None
    ) -> Callable[[Callable[[Job], Any]], Callable[[Job], Any]]:
        """Register a function, plain or async, as the handler of these kinds; without kinds, of all that have no other.

        An attempt that takes longer than `timeout` seconds is an error; a task's own timeout comes first.
        """

        def register(call: Callable[[Job], Any]) -> Callable[[Job], Any]:
            from taskyard.worker.function import Function

            self._register(Function(call, timeout), kinds)
            return call

        return register

    def command(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        grace: float = 10.0,
        worktrees: str | None = None,
    ) -> None:
        """Register a command for every task that has no handler; it gets the task as JSON on its standard input.

        With `worktrees`, each run has a git worktree and branch of its own in that folder; "" is beside the checkout.
        """
        trees = None
        if worktrees is not None:
            from taskyard.worker.worktree import Worktrees

            trees = Worktrees(os.getcwd(), worktrees or None)
        self._register(Command(argv, timeout, grace, trees), ())

    def _register(self, performer: Performer, kinds: Sequence[str]) -> None:
        for kind in kinds:
            self._handlers[legal_kind(kind)] = performer
        if not kinds:
            self._any = performer

    def run(
        self,
        *,
        report: Callable[[Job, Outcome, float], None] | None = None,
        tell: Callable[[str], None] | None = None,
        **options: Unpack[RunOptions],
    ) -> Tally:
        """Work until a signal, `stop()`, or a limit in the options; return how many tasks ended in each way.

        Options: kinds, mission, concurrency, processes (rather than threads), drain, once, max_tasks, idle_exit, grace, alive (a file that is
        touched at each sign of life, for `taskyard alive`).
        """
        if not self._handlers and self._any is None:
            raise Invalid("this worker has no handlers", hint="put @worker.handles('kind') before a function")
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise Invalid(f"not an option of run: {unknown[0]}", hint=f"known are {', '.join(OPTIONS)}")
        if self._any is None:
            options.setdefault("kinds", sorted(self._handlers))
        wanted = Options(**options)
        if wanted.processes:
            from taskyard.worker import prefork

            if self._yard.one_process:
                raise Invalid("a memory: yard is for one process", hint="leave processes out to use threads")

            def begin(share: Options, count: Callable[[str], object]) -> Tally:
                def counted(job: Job, ended: Outcome, seconds: float) -> None:
                    count(ended.ending)
                    (report or _reported)(job, ended, seconds)

                return self._begin(share, counted, tell or _warned)

            tally = prefork.run(wanted, begin, self.stop)
            if wanted.drain and not self._stopped:
                tally.why = self._left(wanted)
            return tally
        return self._begin(wanted, report or _reported, tell or _warned)

    def _begin(
        self, options: Options, report: Callable[[Job, Outcome, float], None], tell: Callable[[str], None]
    ) -> Tally:
        lock = self._yard.vouch(min(LEASE, self._yard.policy.lease))
        self._run = run = Run(
            self._yard,
            options,
            self._performer,
            self._checks,
            self._beats,
            report,
            tell,
            runs_commands=self._runs_commands_only(),
        )
        if self._stopped:
            run.stop()
        with Signals(run):
            tally = run.go(lock)
        if run.is_drained:
            tally.why = self._left(options)
        return tally

    def _left(self, options: Options) -> dict[str, Any] | None:
        """Return why tasks of these kinds are left; None if none is, or the yard cannot be read any more."""
        try:
            why = self._yard.why(kinds=options.kinds)
        except TaskyardError:
            return None
        return why if "done" not in why and "empty" not in why else None

    def _performer(self, kind: str) -> Performer | None:
        return self._handlers.get(kind, self._any)

    def _beats(self) -> Beats:
        if self._runs_commands_only() or self._yard.one_process:
            return ThreadBeats()
        from taskyard.worker.heartbeat_process import ProcessBeats

        return ProcessBeats(self._yard.url, self._yard.worker)

    def _runs_commands_only(self) -> bool:
        return all(isinstance(one, Command) for one in (*self._handlers.values(), *filter(None, [self._any])))

    def stop(self) -> None:
        """Claim nothing more, finish running tasks within the grace, and return from `run`; a second call stops at once."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()


def _reported(job: Job, ended: Outcome, seconds: float) -> None:
    import logging  # 6 ms, and the command line prints its own reports

    level = logging.INFO if ended.reason is None else logging.WARNING
    if not _logger().isEnabledFor(level):
        return
    reason = "" if ended.reason is None else f": {ended.reason.partition(chr(10))[0][:200]}"
    form = "%s %s %s after %.2f s%s"
    _logger().log(level, form, job.kind, job.id, ended.ending, seconds, reason)


def _warned(text: str) -> None:
    _logger().warning(text)


@functools.cache
def _logger() -> Logger:
    import logging

    return logging.getLogger("taskyard")
