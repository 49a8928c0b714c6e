"""`work`: run a command once for each task."""

from __future__ import annotations

import os
import sys

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.doors.cli import output, replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.worker import Job, Outcome, Tally


def work(call: Call) -> Reply:
    """Claim tasks and run the command for each, until the options or a signal end the worker."""
    from taskyard.worker import Worker, guard, supervisor_pipe

    given = call.given
    options: dict[str, Any] = {
        "kinds": given.texts("kind"),
        "mission": given.text("mission"),
        "concurrency": given.integer("concurrency"),
        "drain": given.flag("drain"),
        "once": given.flag("once"),
        "max_tasks": given.integer("max-tasks"),
        "idle_exit": given.seconds("idle-exit"),
        "grace": given.seconds("grace"),
        "alive": given.text("alive"),
    }
    checks = dict(_check(text) for text in given.texts("check") or ())
    _adopt(call)
    if call.yard.one_process:
        raise Invalid(
            "a command is another process, and a memory: yard is for one", hint="name a directory with --yard"
        )
    for words in (given.words, *checks.values()):
        must_be_there(words[0])
    grace, timeout = given.seconds("grace"), given.seconds("timeout", least=0.001)
    worker = Worker(call.yard, checks=checks, check_timeout=timeout)
    worktrees = given.text("worktree") if given.flag("worktree") else None
    worker.command(given.words, timeout=timeout, grace=10.0 if grace is None else grace, worktrees=worktrees)
    guard.adopt_orphans()
    supervised = supervisor_pipe.hold(worker.stop)
    listened = sys.stdout is not None  # without a stdout nothing is printed, and the worker works all the same
    if not call.as_json and sys.stderr is not None and sys.stderr.isatty():
        replies.remark(
            f"{call.yard.worker} works in {call.yard.label}; Ctrl-C lets what runs finish, twice stops at once"
        )
    tally = worker.run(
        report=_report if listened and not call.as_json else lambda *_: None,
        tell=lambda text: replies.remark(f"taskyard: warning: {text}"),
        **{name: value for name, value in options.items() if value is not None},
    )
    if given.flag("once") and not tally.total:
        from taskyard.doors.cli.verbs.claim import nothing_ready

        raise nothing_ready(call, "nothing is ready")
    # A crew counts failed tasks itself, and takes any exit code but 0 for a dead worker.
    code = 1 if given.flag("drain") and tally["failed"] and not supervised else 0
    data: dict[str, Any] = {"worker": call.yard.worker, "ended": tally.as_dict()}
    if tally.why is not None:
        data["why"] = tally.why
        if not supervised:
            replies.remark(f"taskyard: left behind: {output.plain(tally.why['message'])}\n  {tally.why['next']}")
    return Reply(data, lambda: _sum(tally) if listened else "", code)


def _adopt(call: Call) -> None:
    """Make a yard of four folders that were made by hand, if `--yard` leads to such folders."""
    from taskyard import opening

    if opening.adopt(call.given.text("yard")):
        replies.remark(f"taskyard: {call.yard.url} is a yard now; it had a queue's folders, made by hand")


def must_be_there(program: str) -> None:
    """Raise `Invalid` if the program does not exist: a mistyped one would use up the attempts of every task."""
    if "{" in program:
        return  # each task names its own program
    places = [""] if os.sep in program else os.get_exec_path()  # shutil.which costs 3 ms at every start
    if not any(os.access(os.path.join(place, program), os.X_OK) for place in places):
        raise Invalid(
            f"there is no command {ascii(program)[:60]}", hint="check its spelling, its path and that it may be run"
        )


def _check(text: str) -> tuple[str, list[str]]:
    name, equals, command = text.partition("=")
    import shlex

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Invalid(f"--check {ascii(text)[:60]}: {error}") from None
    if not equals or not name or not words:
        raise Invalid(f"--check needs NAME=COMMAND, not {ascii(text)[:60]}", hint="--check tests='make test'")
    return name, words


def _report(job: Job, ended: Outcome, seconds: float) -> None:
    words = [f"{seconds:.2f} s", job.title or "", (ended.reason or "").strip().partition("\n")[0]]
    rest = output.plain("  ".join(filter(None, words)))
    room = output.columns()
    line = f"{ended.ending:<8}  {ids.short(job.id)}  {job.kind}  {rest}"
    line = line if room is None else output.cut(line, room)
    replies.say(output.paint(line[:8], ended.ending) + line[8:])


_WORDS = {"failed": "failed for good"}


def _sum(tally: Tally) -> str:
    if not tally.total:
        return "nothing to do"
    ended = tally.as_dict().items()
    return ", ".join(
        f"{number} {'errors' if ending == 'error' and number > 1 else _WORDS.get(ending, ending)}"
        for ending, number in ended
    )


COMMANDS = {
    "work": Command(
        work,
        "Take tasks and run CMD once for each, until SIGTERM or Ctrl-C. The task is on CMD's standard input as JSON. {id}, {kind} and {file} in its words stand for the "
        "task's id, its kind and a file with the same JSON. Exit 0 is done, 75 is later (not counted), 65 is failed for good, all else is an error and tried again while attempts are left. The result is "
        "$TASKYARD_WORKDIR/result.json, else the last JSON object on standard output; the reason of an error is the end of standard error. Both are kept in the attempt's folder. CMD may call note, heartbeat, done and fail "
        "itself: $TASKYARD_CLAIM is set, and what it said stands. Heartbeats go on beside it. When the claim is lost or cancelled, all of CMD's processes are stopped; when this worker is killed, too.",
        (
            ("taskyard work -- ./sharpen.sh", "every task, one at a time"),
            (
                "taskyard work --kind build --concurrency 4 --drain -- make {kind}",
                "four builds at a time, until there are none",
            ),
            ("taskyard work --once -- claude -p 'Do the task in {file}'", "one task; exit 3 if nothing is ready"),
            (
                "taskyard work --check tests='make test' -- ./agent",
                "tasks added with --verify tests are done only if 'make test' passes",
            ),
        ),
        words="-- CMD...",
        least=1,
        most=None,
        options=(
            Option("--kind", "KIND", "only tasks of this kind", many=True),
            Option("--mission", "TEXT", "only tasks of this mission"),
            Option("--concurrency", "N", "so many tasks at a time (default 1)"),
            Option(
                "--drain",
                None,
                "end when nothing of these kinds is ready, running or to be tried again; exit 1 if tasks failed for good",
            ),
            Option("--once", None, "one task, then end; exit 3 if nothing is ready"),
            Option("--max-tasks", "N", "end after so many tasks"),
            Option("--idle-exit", "S", "end after so long without a task"),
            Option("--timeout", "S", "stop a command, or a check, that takes longer; counted as an error"),
            Option(
                "--grace",
                "S",
                "how long a command may go on when the worker is asked to stop, and how long it has to end when it is stopped (default 10)",
            ),
            Option(
                "--worktree",
                "[DIR]",
                "run each command in a git worktree and branch of its own, named by the claim; in DIR, else beside the checkout",
            ),
            Option("--alive", "FILE", "touch this file at each sign of life, for 'taskyard alive'"),
            Option(
                "--check", "NAME=CMD", "the command behind the check of this name (else that of yard.json)", many=True
            ),
        ),
        lasts=True,
    ),
}
