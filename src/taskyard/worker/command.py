"""A command as a handler: run once for each task, behind a guard, with the task on its standard input."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from taskyard import draft
from taskyard.errors import Invalid
from taskyard.worker import outcome
from taskyard.worker.guarded import GuardLost, stop_strays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.worker.guarded import Ended, Guarded
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome

RETRY_LATER, NO_RETRY = 75, 65  # EX_TEMPFAIL and EX_DATAERR of sysexits.h
REASON_MOST = 4096  # characters of standard error that become the reason
_EFFORT = 1 << 24  # characters that are looked through for a result on standard output
_decoder = json.JSONDecoder()


class Command:
    """Runs one command line for every task. `{id}`, `{kind}` and `{file}` in its words stand for the task's own."""

    def __init__(self, argv: Sequence[str], timeout: float | None = None, grace: float = 10.0) -> None:
        if not argv or not argv[0]:
            raise Invalid("no command was given", hint="taskyard work -- CMD...")
        self.argv = list(argv)
        self.timeout = timeout
        self.grace = grace

    def perform(self, job: Job, guarded: Guarded) -> Outcome:
        """Run it for this task, and tell what its ending means."""
        workdir = job.workdir
        ended = self._run(job, guarded, workdir)
        return ended if isinstance(ended, outcome.Outcome) else self._meaning(ended, workdir)

    def check(self, job: Job, guarded: Guarded, name: str, result: Any) -> Outcome | None:
        """Run it as the check of this name on what the task has come to; None if it is content."""
        ended = self._run(job, guarded, job.workdir, result, f"{name}.")
        if isinstance(ended, outcome.Outcome):
            return ended
        if ended.error is None and ended.code == 0 and not ended.timed_out:
            return None
        return outcome.error(f"the check {name!r} did not pass: {_complaint(ended, self.timeout)}")

    def _run(
        self, job: Job, guarded: Guarded, workdir: str | None, result: Any = None, name: str = ""
    ) -> Ended | Outcome:
        task = {**job.task.as_dict(), "result": result}
        text = draft.compact(task)
        job.stopped_by(guarded.stop)
        try:
            return guarded.run(
                self._words(job, workdir, text),
                environment=environment(job, workdir),
                stdin=text + "\n",
                logs=workdir,
                name=name,
                timeout=self.timeout,
                grace=self.grace,
            )
        except GuardLost:
            stop_strays(job.handle)
            return outcome.crashed("the guard of its command was killed")
        finally:
            job.stopped_by(None)

    def _words(self, job: Job, workdir: str | None, task: str) -> list[str]:
        stands_for = {"{id}": job.id, "{kind}": job.kind}
        if any("{file}" in word for word in self.argv):
            path = os.path.join(workdir or os.curdir, "task.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(task + "\n")
            stands_for["{file}"] = path
        return [_filled(word, stands_for) for word in self.argv]

    def _meaning(self, ended: Ended, workdir: str | None) -> Outcome:
        if ended.error is None and not ended.timed_out:
            if ended.code == 0:
                return _with_result(ended.stdout, workdir)
            if ended.code == RETRY_LATER:
                return outcome.later(reason=_tail(ended.stderr) or None)
            if ended.code == NO_RETRY:
                return outcome.fatal(_complaint(ended, self.timeout))
        return outcome.error(_complaint(ended, self.timeout))


def environment(job: Job, workdir: str | None) -> dict[str, str]:
    """What a command is told of its task, on top of the worker's own environment."""
    told = {
        "TASKYARD": job.claim.yard.url,
        "TASKYARD_CLAIM": job.handle,
        "TASKYARD_TASK": job.id,
        "TASKYARD_FENCE": str(job.fence),
        "TASKYARD_WORKER": job.task.worker or "",
    }
    return told if workdir is None else {**told, "TASKYARD_WORKDIR": workdir}


def _filled(word: str, stands_for: Mapping[str, str]) -> str:
    """The word with what its placeholders stand for; what was put in is not looked at again."""
    if "{" not in word:
        return word
    import re

    return re.sub("|".join(map(re.escape, stands_for)), lambda match: stands_for[match[0]], word)


def _with_result(stdout: str, workdir: str | None) -> Outcome:
    path = None if workdir is None else os.path.join(workdir, "result.json")
    try:
        if path is not None and os.path.lexists(path):
            with open(path, "rb") as file:
                content = file.read(draft.PAYLOAD_MOST * 2)
            result = json.loads(content)
        else:
            result = last_object(stdout)
        draft.payload(result, "result")
    except (OSError, ValueError, RecursionError) as error:
        return outcome.error(f"result.json cannot be read: {error}")
    except Invalid as error:
        return outcome.error(f"its result cannot be kept: {error.message}")
    return outcome.done(result)


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text, whatever stands before and after it; objects inside of others do not count."""
    found, position, effort = None, text.find("{"), 0
    while position >= 0 and effort < _EFFORT:
        try:
            found, end = _decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            effort += error.pos - position
            end = position + 1
        except RecursionError:
            end = position + 1
        position = text.find("{", end)
    return found


def _complaint(ended: Ended, timeout: float | None) -> str:
    """What went wrong, in the command's own words as far as it has any."""
    if ended.error is not None:
        return f"the command cannot be started: {ended.error}"
    if ended.timed_out:
        how = f"stopped after {timeout:g} s"
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
