"""One run of a worker: slots that claim and work, one source of heartbeats for all of them, and an orderly end.

The main thread only waits and handles signals; every slot is a thread. After a stop nothing new is claimed. Running tasks
get their grace while heartbeats go on; then they are stopped and released.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from taskyard.core.errors import Conflict, NotFound, TaskyardError, Unavailable
from taskyard.worker import outcome
from taskyard.worker.alive_file import AliveFile
from taskyard.worker.batched_dones import BatchedDones
from taskyard.worker.guard_client import GuardClient
from taskyard.worker.job import Job
from taskyard.worker.options import Tally
from taskyard.worker.outage import Trouble
from taskyard.worker.pause_notice import Pauses
from taskyard.worker.runner import Runner
from taskyard.worker.wakeup import MainThreadWakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.port import Waiter, YardPort
    from taskyard.worker.command import Command
    from taskyard.worker.heartbeats import Beats
    from taskyard.worker.options import Options
    from taskyard.worker.outcome import Outcome
    from taskyard.worker.runner import Performer
    from taskyard.yard.claim import Claim

LAST_GRACE = 2.0  # seconds between TERM and KILL for commands that did not finish within the worker's own grace
UNHEARD = 1.0  # seconds that a Python handler has to notice `cancelled` before its task is released while it still runs
_LONG = 3600.0
_LOOK = 0.5
_SWEEP_LOOK = 1.0  # seconds between two checks whether a sweep is due, while no slot claims
_LOOK_AGAIN = 0.05
_SIGN_EVERY = 10.0  # seconds between two signs of life while all slots are busy
_LATE = 10.0  # seconds by which a heartbeat may be overdue: then it is not the machine that is slow


class Run:
    """The state of one run."""

    def __init__(
        self,
        yard: YardPort,
        options: Options,
        performer: Callable[[str], Performer | None],
        checks: Mapping[str, Command],
        beats: Callable[[], Beats],
        report: Callable[[Job, Outcome, float], None],
        tell: Callable[[str], None],
        *,
        runs_commands: bool,
    ) -> None:
        self._runs_commands = runs_commands
        self._yard = yard
        self._options = options
        self._performer = performer
        self._checks = checks
        self._make_beats = beats
        self._report = report
        self._tell = tell
        self._trouble = Trouble(tell)
        self._pauses = Pauses(yard, options.kinds, tell)
        self.tally = Tally()
        self._alive = None if options.alive is None else AliveFile(options.alive)
        self._stopping = threading.Event()
        self._given_up = threading.Event()
        self.news = MainThreadWakeup()
        self._stops = 0
        self._door = threading.Lock()
        self._held: dict[str, Job] = {}
        """The jobs that were claimed and have not ended: no more than there are slots."""
        self._ready: deque[Job] = deque()
        """Those of them that no slot has taken yet."""
        self._publishes_together = self._yard.batch > 1
        self._outbox = BatchedDones(yard, self._over_with, self._wait_out)
        self._claimed = 0
        self._busy_until = time.monotonic()
        self._idle_for_good = False
        self._quiet: str | None = None
        """The cursor of the log's end when nothing was left to do."""
        self._own: list[tuple[str, str]] = []
        self._failure: BaseException | None = None
        self._at_work = options.concurrency
        """The number of slots that have not ended; counted, because a thread that reports its end is still alive."""
        self._counting = threading.Lock()

    # The main thread

    def go(self, lock: int | None) -> Tally:
        """Work until a stop, or until a limit of the options is reached."""
        self._heed()
        self._beats = self._make_beats()
        self._take_over()
        for number in range(1, self._options.concurrency + 1):
            threading.Thread(target=self._work, args=(GuardClient(lock),), name=f"slot {number}", daemon=True).start()
        if self._publishes_together:
            threading.Thread(target=self._publish, name="outbox", daemon=True).start()
        sweeper = threading.Thread(target=self._sweep_while_busy, name="sweeper", daemon=True)
        sweeper.start()
        try:
            self._wait()
        finally:
            self._given_up.set()
            self._outbox.close()
            self._beats.close()
            if self._alive is not None:
                self._alive.close()
            sweeper.join(LAST_GRACE)  # a sweep that waits for a yard that is away must not hold up the end
        if self._failure is not None:
            raise self._failure
        return self.tally

    @property
    def is_drained(self) -> bool:
        """Whether the run ended by itself because nothing was left to claim."""
        return self._options.drain and self._idle_for_good

    def stop(self) -> None:
        """Claim nothing more and finish running tasks within the grace; a second call stops at once. Signals call this too."""
        self._stops += 1
        self.news.tell()

    def _heed(self) -> None:
        if self._stops and not self._stopping.is_set():
            self._stopping.set()
            self._yard.wake()
            running = len(self._held)
            if running and self._failure is None:
                tasks = "the task that runs" if running == 1 else f"the {running} tasks that run"
                self._tell(
                    f"stopping: {tasks} may take {self._options.grace:.10g} s to finish; a second signal stops at once"
                )

    def _wait(self) -> None:
        while self._at_work and not self._stopping.is_set():
            self.news.wait(_LONG)
            self._heed()
        grace_ends = time.monotonic() + self._options.grace
        self._join(lambda: self._stops > 1 or time.monotonic() >= grace_ends, grace_ends)
        self._given_up.set()
        at_once = self._stops > 1
        for job in list(self._held.values()):
            job.stop(0.0 if at_once else min(LAST_GRACE, self._options.grace), lost=False)
        last = time.monotonic() + LAST_GRACE + UNHEARD
        self._join(lambda: time.monotonic() >= last, last)
        for job in list(self._held.values()):
            self._hand_back(job)

    def _join(self, enough: Callable[[], bool], until: float) -> None:
        while self._at_work and not enough():
            self.news.wait(min(until - time.monotonic(), _LOOK))
            self._heed()

    def _hand_back(self, job: Job) -> None:
        """Release the task of a Python handler, which cannot be stopped from outside; its thread ends with the process.

        A command that still runs is left to its guard: the task is free when the command's last process has exited, not before.
        """
        if job.is_guarded or self._held.pop(job.handle, None) is None:
            return
        self._beats.drop([job])
        try:
            job.claim.release()
        except TaskyardError:
            return  # the end of the lease will release it
        self._end(job, outcome.RELEASED, 0.0)

    def _take_over(self) -> None:
        """Give back what dead processes of this worker's name held; this run claims those tasks first."""
        try:
            own = self._yard.give_back_dead()
            self._own = own if self._options.mission is None else []  # claims find those of the mission
        except Unavailable as error:
            self._trouble.met(error)

    # Slots

    def _work(self, guarded: GuardClient) -> None:
        runner = Runner(self._performer, self._checks, guarded, self._wait_out)
        try:
            if self._runs_commands:
                guarded.start()
            while (job := self._next()) is not None:
                self._run(job, runner)
        except BaseException as error:
            self._fail(error)
        finally:
            guarded.close()
            with self._counting:
                self._at_work -= 1
            self.news.tell()

    def _sweep_while_busy(self) -> None:
        """Sweep while no slot claims, so that a dead worker's task comes back also if every worker is busy."""
        while not self._given_up.wait(_SWEEP_LOOK):
            if not self._door.locked():
                try:
                    self._yard.tend()
                    self._sign_while_busy()
                except TaskyardError:
                    continue  # the next round tries again

    def _sign_while_busy(self) -> None:
        """Give a sign of life if the yard answers for the claims that are held: no slot asks it anything meanwhile."""
        held = [job.claim.ref for job in list(self._held.values())]
        if self._alive is not None and held and self._alive.age() > _SIGN_EVERY:
            self._yard.holding(held)
            self._sign()

    def _sign(self) -> None:
        """Give a sign of life, unless heartbeats are overdue."""
        if self._alive is not None and self._beats.overdue() < _LATE:
            self._alive.sign()

    def _publish(self) -> None:
        try:
            self._outbox.run()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self.stop()

    def _run(self, job: Job, runner: Runner) -> None:
        job.began = time.monotonic()
        ended = outcome.LOST
        try:
            if self._stops:
                job.released = True  # claimed at the moment of the stop, and not begun
                ended = runner.give_back(job)
            else:
                ended = runner.perform(job)
                if self._publishes_together and self._outbox.takes(job, ended):
                    self._outbox.put(job, ended, runner)
                    return
                ended = runner.conclude(job, ended)
        except BaseException:
            self._let_go([job])
            raise
        self._over_with([(job, ended)])

    def _over_with(self, ended: list[tuple[Job, Outcome]]) -> None:
        """Stop holding these jobs and report each outcome; a job that `_hand_back` released was reported then."""
        mine = self._let_go([job for job, _ in ended])
        for job, how in ended:
            if job in mine:
                self._end(job, how, time.monotonic() - job.began)

    def _let_go(self, jobs: list[Job]) -> list[Job]:
        mine = [job for job in jobs if self._held.pop(job.handle, None) is not None]
        for job in jobs:
            job.close()
        self._beats.drop(jobs)
        self._busy_until = time.monotonic()
        return mine

    def _end(self, job: Job, ended: Outcome, seconds: float) -> None:
        if job.worktree is not None:
            job.worktree.close()
        with self._counting:
            self.tally.add(ended.ending)
        self._report(job, ended, seconds)

    def _next(self) -> Job | None:
        """Wait for the next task and return it; None if the run is over."""
        job = self._pop()  # without the door: a quick slot takes several, and no other slot has to be woken
        if job is not None:
            return job
        self._outbox.flush()
        patience = None
        with self._door:  # one slot claims, and waits, for all of them
            while (job := self._pop()) is None and not self._is_over():
                try:
                    found = self._claim()
                    self._trouble.over()
                    self._sign()
                    if not found:
                        self._trouble.passed(self._yard.unusable())
                    if found:
                        self._take(found)
                    elif self._is_idle_for_good():
                        self._idle_for_good = True
                    elif patience is None:
                        patience = self._waiter()
                    else:
                        self._pauses.look()
                        patience.nap(self._soonest())
                except Unavailable as error:
                    self._stopping.wait(self._trouble.met(error))
            return job

    def _waiter(self) -> Waiter:
        """Return what to wait with: a run that drains ends with what others do, any other waits for a task alone."""
        if self._options.drain:
            return self._yard.waiter(None, lambda: bool(self._stops))
        options = self._options
        return self._yard.claim_waiter(None, lambda: bool(self._stops), kinds=options.kinds, mission=options.mission)

    def _pop(self) -> Job | None:
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    def _take(self, claims: list[Claim]) -> None:
        jobs = [Job(claim) for claim in claims]
        self._claimed += len(jobs)
        for job in jobs:
            self._held[job.handle] = job
        self._beats.hold(jobs)
        self._ready.extend(jobs)

    def _claim(self) -> list[Claim]:
        """Claim a task for each idle slot if the yard claims in batches, else one."""
        kinds = self._options.kinds
        while self._own:
            id, kind = self._own.pop(0)
            try:
                claim = self._yard.claim(id) if kinds is None or kind in kinds else None
                if claim is not None:
                    return [claim]
            except (Conflict, NotFound):
                continue  # not due yet, or claimed by another worker
        self._outbox.flush()  # a done that is published now frees a slot as well
        number = min(self._options.concurrency - len(self._held), self._yard.batch)
        if self._options.max_tasks is not None:
            number = min(number, self._options.max_tasks - self._claimed)
        return self._yard.claim_many(max(number, 1), kinds=kinds, mission=self._options.mission)

    def _is_over(self) -> bool:
        most = self._options.max_tasks
        return bool(self._stops) or self._idle_for_good or (most is not None and self._claimed >= most)

    def _is_idle_for_good(self) -> bool:
        """Whether the run ends because nothing is ready."""
        options = self._options
        if options.once:
            return True
        if options.idle_exit is not None and not self._held:
            return time.monotonic() - self._busy_until >= options.idle_exit
        return options.drain and self._is_drained()

    def _is_drained(self) -> bool:
        """Whether two looks found nothing left, and nothing happened between them.

        One look may miss a task that moves against the order of the look, or one that a recent done is about to unblock.
        """
        log = self._yard.log_end()
        if self._yard.remains(self._options.kinds, self._options.mission):
            self._quiet = None
            return False
        before, self._quiet = self._quiet, log
        return before is not None and not self._yard.events(cursor=before, limit=1)

    def _soonest(self) -> float | None:
        """Return seconds until the next look is due even if nothing happens; None if none is."""
        alarm = self._yard.alarm()
        if self._quiet is not None:
            return _LOOK_AGAIN
        if self._options.idle_exit is None or self._held:
            return alarm
        left = max(0.0, self._busy_until + self._options.idle_exit - time.monotonic())
        return left if alarm is None else min(left, alarm)

    def _wait_out(self, error: Unavailable) -> bool:
        """Wait before another try to store an outcome; return False if the run has given up."""
        if self._given_up.is_set():
            return False
        self._given_up.wait(self._trouble.met(error))
        return True
