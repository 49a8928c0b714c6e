"""A command as a handler: run once for each task, behind a guard, with the task on its standard input."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from typing import TYPE_CHECKING, Any

from taskyard.core import draft
from taskyard.core.errors import ClaimLost, Invalid
from taskyard.core.words import encoded
from taskyard.worker import outcome
from taskyard.worker.guard_client import GuardLost, stop_strays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.worker.guard_client import Ended, GuardClient
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome
    from taskyard.worker.worktree import Worktrees
    from taskyard.yard.claim import Claim

RETRY_LATER, NO_RETRY = 75, 65  # EX_TEMPFAIL and EX_DATAERR of sysexits.h
REASON_MOST = 4096  # characters of standard error that become the reason
RESULT_MOST = 4 * draft.PAYLOAD_MOST  # bytes of result.json, which need not be compact
_EFFORT = 1 << 24  # characters that are searched for a result on standard output
_DEEP = 1 << 16  # characters that an object nested too deeply is charged as
_STRETCH = 1 << 14
_beginning = re.compile(r"\{(?=\s*[\"}])")
_line_ends = re.compile(r"[^\S\n]*(?:\n|\Z)").match
_decoder = json.JSONDecoder()


class Command:
    """Runs one command line for every task. `{id}`, `{kind}` and `{file}` in its words are replaced with the task's own."""

    def __init__(
        self,
        argv: Sequence[str],
        timeout: float | None = None,
        grace: float = 10.0,
        worktrees: Worktrees | None = None,
    ) -> None:
        if not argv or not argv[0]:
            raise Invalid("no command was given", hint="taskyard work -- CMD...")
        self.argv = list(argv)
        self.timeout = timeout
        self.grace = grace
        self._worktrees = worktrees

    def perform(self, job: Job, guarded: GuardClient) -> Outcome:
        """Run the command for this task, and return the outcome that its exit means."""
        workdir = job.folder()
        if self._worktrees is not None:
            job.worktree = tree = self._worktrees.make(job.claim)
            try:
                # Before the command: it may end the claim itself, and the next worker must find what this one left.
                job.note(f"works on the branch {tree.branch} in {tree.path}")
            except ClaimLost:
                return outcome.LOST
        ended = self._run(job, guarded, workdir, timeout=self._timeout(job))
        if isinstance(ended, outcome.Outcome):
            return ended
        if ended.stopped and job.cancelled:
            return outcome.LOST if job.lost else outcome.RELEASED
        if ended.deserted:
            return outcome.RELEASED
        meant = self._meaning(ended, workdir, self._timeout(job))
        if job.worktree is not None and meant.ending is outcome.Ending.DONE:
            return outcome.done(job.worktree.result(meant.result))
        return meant

    def _timeout(self, job: Job) -> float | None:
        """Return how long the command may run: the task's own timeout, else the worker's."""
        return self.timeout if job.task.timeout is None else job.task.timeout

    def check(self, job: Job, guarded: GuardClient, name: str, result: Any) -> Outcome | None:
        """Run the command as the check `name` on the task's result; return None if it passes."""
        ended = self._run(job, guarded, job.folder(), result, f"{encoded(name)}.", timeout=self.timeout)
        if isinstance(ended, outcome.Outcome):
            return ended
        if ended.deserted:
            return outcome.RELEASED
        if ended.error is None and ended.code == 0 and not ended.stopped:
            return None
        return outcome.error(f"the check {name!r} did not pass: {_complaint(ended, self.timeout)}")

    def _run(
        self,
        job: Job,
        guarded: GuardClient,
        workdir: str,
        result: Any = None,
        name: str = "",
        *,
        timeout: float | None,
    ) -> Ended | Outcome:
        task = {**job.claim.task_dict(), "result": result}
        text = draft.compact(task)
        job.is_guarded = True
        try:
            guarded.begin(
                self._words(job, workdir, text),
                environment=self._environment(job, workdir, timeout),
                folder=None if job.worktree is None else job.worktree.folder,
                stdin=text + "\n",
                logs=job.workdir,
                name=name,
                timeout=timeout,
                grace=self.grace,
                patience=job.claim.lease / 2,
            )
            job.stopped_by(guarded.stop)  # an earlier stop takes effect now, when there is a command to stop
            return guarded.end()
        except GuardLost:
            stop_strays("TASKYARD_CLAIM", job.handle)
            return outcome.crashed("the guard of its command was killed")
        finally:
            job.stopped_by(None)
            job.is_guarded = False

    def _environment(self, job: Job, workdir: str, timeout: float | None) -> dict[str, str | None]:
        variables = environment(job.claim, job.task.worker, workdir, job.check, timeout)
        return {**variables} if job.worktree is None else {**variables, **job.worktree.environment()}

    def _words(self, job: Job, workdir: str, task: str) -> list[str]:
        stands_for = {"{id}": job.id, "{kind}": job.kind}
        if any("{file}" in word for word in self.argv):
            path = os.path.join(workdir, "task.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(task + "\n")
            stands_for["{file}"] = path
        return [_filled(word, stands_for) for word in self.argv]

    def _meaning(self, ended: Ended, workdir: str, timeout: float | None) -> Outcome:
        if ended.error is None and not ended.timed_out:
            if ended.code == 0:
                return _with_result(ended, workdir)
            if ended.code == RETRY_LATER:
                return outcome.later(reason=_tail(ended.stderr) or None)
            if ended.code == NO_RETRY:
                return outcome.fatal(_complaint(ended, timeout))
        return outcome.error(_complaint(ended, timeout))


def environment(
    claim: Claim,
    worker: str | None,
    workdir: str | None,
    check: Sequence[str] | None = None,
    timeout: float | None = None,
) -> dict[str, str]:
    """Return the variables about the task that a command gets beside the worker's own environment."""
    variables = {
        "TASKYARD": claim.yard.url,
        "TASKYARD_CLAIM": claim.handle,
        "TASKYARD_TASK": claim.id,
        "TASKYARD_FENCE": str(claim.fence),
        "TASKYARD_WORKER": worker or "",
    }
    if workdir is not None:
        variables["TASKYARD_WORKDIR"] = workdir
    if timeout is not None:
        variables["TASKYARD_TIMEOUT"] = f"{timeout:.10g}"
    if check is not None:
        variables["TASKYARD_CHECK"] = draft.compact(check)  # for a `done` that the command calls itself
    return variables


def _filled(word: str, stands_for: Mapping[str, str]) -> str:
    """Return the word with its placeholders replaced; placeholders in the inserted text stay."""
    if "{" not in word:
        return word
    return re.sub("|".join(map(re.escape, stands_for)), lambda match: stands_for[match[0]], word)


def _with_result(ended: Ended, workdir: str) -> Outcome:
    path = os.path.join(workdir, "result.json")
    try:
        result = json.loads(_read(path)) if os.path.lexists(path) else _from_stdout(ended)
        draft.payload(result, "result")
    except (OSError, ValueError, RecursionError) as error:
        return outcome.error(f"result.json cannot be read: {error}")
    except Invalid as error:
        return outcome.error(f"its result cannot be kept: {error.message}")
    return outcome.done(result)


def _read(path: str) -> bytes:
    """Return the content of a regular file; not of a pipe or a device, which may have no end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a file")
        if status.st_size > RESULT_MOST:
            raise Invalid(f"it is {status.st_size} bytes, and the most is {draft.PAYLOAD_MOST}")
        return file.read(RESULT_MOST)


def _from_stdout(ended: Ended) -> Any:
    """Return the last object on standard output; raise `Invalid` if it is too long to be seen whole."""
    result = last_object(_from_a_line(ended.stdout) if ended.cut else ended.stdout)
    if result is None and ended.cut and ended.stdout.rstrip().endswith("}"):
        raise Invalid(f"it may be longer than {draft.PAYLOAD_MOST} bytes; keep the bulk in a file")
    return result


def _from_a_line(text: str) -> str:
    """Return the text from the first line on that may begin an object of its own, and not a part of another."""
    at = text.find("\n{")
    return "" if at < 0 else text[at:]


def last_object(text: str) -> dict[str, Any] | None:
    """Return the last JSON object in the text that stands at the end of a line; objects inside others or lists do not count."""
    found, effort = None, 0
    begin = _beginning.search(text)
    while begin is not None and effort < _EFFORT:
        if begin.start() > _STRETCH:
            text = text[begin.start() :]  # an error counts the lines before it, which would be all of them every time
            begin = _beginning.match(text) or begin
        try:
            value, end = _decoder.raw_decode(text, begin.start())
            if _line_ends(text, end):
                found = value
        except json.JSONDecodeError as error:
            effort += error.pos - begin.start()
            end = begin.end()
        except RecursionError:
            effort += _DEEP
            end = begin.end()
        begin = _beginning.search(text, end)
    return found


def _complaint(ended: Ended, timeout: float | None) -> str:
    """Return what went wrong, from the command's standard error if it wrote any."""
    if ended.error is not None:
        return f"the command cannot be started: {ended.error}"
    if ended.timed_out:
        how = outcome.timed_out(timeout or 0)
    elif ended.code < 0:
        how = f"killed by {_signal_name(-ended.code)}"
    else:
        how = f"exit {ended.code}"
    words = _tail(ended.stderr)
    return f"{how}: {words}" if words else how


def _tail(text: str) -> str:
    words = text.strip()
    return words if len(words) <= REASON_MOST else f"[...] {words[-REASON_MOST:]}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
