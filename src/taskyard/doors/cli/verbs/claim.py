"""`claim` and `resume`: claim one task, or take over all claims of this worker's name."""

from __future__ import annotations

import os

from taskyard.core import ids, words
from taskyard.core.errors import Ambiguous, Invalid, NotFound
from taskyard.core.json_codec import encode
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, NothingReady, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.processes import Process
    from taskyard.yard.claim import Claim

_INPUTS_SHOWN = 20  # results of other tasks that the text form shows
_INPUT_MOST = 200  # characters of each


def claim(call: Call) -> Reply:
    """Claim the oldest of the most urgent tasks that match, or the named one."""
    given = call.given
    wait = given.seconds("wait") or 0.0
    lease = given.seconds("lease")
    keep = given.text("keep")
    watched = None if keep is None else _watched(call, keep)
    if wait:
        _warn_of_pause(call)
    try:
        taken = call.yard.claim(
            given.word(0), kinds=given.texts("kind"), mission=given.text("mission"), wait=wait, lease=lease
        )
    except Ambiguous:
        raise
    except NotFound as error:
        raise NotFound(error.message, hint=_kind_meant(str(given.word(0))) or error.hint) from None
    if taken is None:
        raise nothing_ready(call, f"nothing was ready within {wait:.10g} s" if wait else "nothing is ready")
    if watched is not None:
        _start_keeper(call, taken, watched)
    call.name(taken.task)
    history = _history(taken)
    stands = f"the task is claimed all the same: 'taskyard release {taken.handle}' hands it back"

    def text() -> str:
        return taken.handle if given.flag("handle") else f"{_page(taken, history)}\n\n{_next(taken)}"

    return Reply(_data(taken, history), text, stands=stands)


def _warn_of_pause(call: Call) -> None:
    """Print a warning before a wait if all requested kinds are paused: until that ends, the wait cannot succeed."""
    from taskyard.core import reasons
    from taskyard.doors.cli import replies
    from taskyard.doors.cli.verbs import pause

    now, kinds = call.yard.paused(), call.given.texts("kind")
    if now["yard"] or (kinds and set(kinds) <= set(now["kinds"])):
        replies.remark(
            f"taskyard: warning: {reasons.paused(pause.concerning(now, kinds) or now)}; waiting all the same"
        )


def nothing_ready(call: Call, message: str) -> NothingReady:
    """Return the error for "no task is ready", with the reason: a claim that succeeds never looks for one."""
    why = call.yard.why(kinds=call.given.texts("kind"), mission=call.given.text("mission"))
    return NothingReady(f"{message}: {why['message']}", hint=why["next"], why=why)


def _kind_meant(word: str) -> str | None:
    """Return a hint on how to claim by kind, if the word could be a kind and is no id."""
    try:
        kind = words.kind(word)
    except Invalid:
        return None
    is_name = ids.is_id(word) or (word[0].isdigit() and "-" in word and ids.pattern(word) is not None)
    return None if is_name else f"if {word} is a kind: taskyard claim --kind {kind}"


def resume(call: Call) -> Reply:
    """Take over every claim of this worker's name, under new handles."""
    if call.given.text("worker") is None and "TASKYARD_TASK" in os.environ:
        raise Invalid(
            "this process works on a task that its worker claimed, and a resume would shut that worker out",
            hint="go on with the task: $TASKYARD_CLAIM has its handle, 'taskyard show $TASKYARD_TASK' tells about it",
        )
    claims = [(taken, _history(taken)) for taken in call.yard.resume()]
    for taken, _ in claims:
        call.name(taken.task)

    def text() -> str:
        if not claims:
            from taskyard.doors.cli.replies import remark

            remark(f"{call.yard.worker} holds nothing")
            return ""
        return "\n\n".join(_page(*each) for each in claims) + f"\n\n{_next(claims[0][0])}"

    return Reply({"claims": [_data(*each) for each in claims]}, text)


def _watched(call: Call, pid: str) -> Process:
    """Return the process that the claim is kept for; raise before anything is claimed if it cannot be watched."""
    from taskyard.doors.cli import keeper

    watched = keeper.watched(pid)
    if call.yard.one_process:
        raise Invalid("a keeper is another process, and a memory: yard is for one", hint="leave --keep out")
    return watched


def _start_keeper(call: Call, taken: Claim, watched: Process) -> None:
    from taskyard.doors.cli import keeper, replies

    try:
        keeper.start(call.yard, taken, watched)
    except OSError as error:  # a warning only: the task is claimed by now, and its worker must get the handle
        replies.remark(f"taskyard: warning: no keeper could be started ({error.strerror or error}): send heartbeats")


def _history(taken: Claim) -> list[dict[str, Any]]:
    return taken.history if taken.fence > 1 else []  # the first claim has no history, and reading it costs 1 ms


def _data(taken: Claim, history: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "claim": taken.handle,
        "fence": taken.fence,
        "task": taken.task_dict(),
        "workdir": taken.workdir_path,
        "history": history,
        "lease_until": taken.lease_until,
    }


def _page(taken: Claim, history: list[dict[str, Any]]) -> str:
    from taskyard.doors.cli import ages, output

    task = taken.task
    before = [
        f"{entry['outcome']} by {entry['worker']}, {ages.ago(entry['at'])}"
        + (f": {entry['reason']}" if entry["reason"] else "")
        + "".join(f"\n  noted: {note}" for note in entry["notes"])
        + (f"\n  left in {entry['workdir']}" if entry["workdir"] else "")
        for entry in history
    ]
    return output.fields(
        (
            ("claim", taken.handle),
            ("task", f"{task.short} ({task.kind}, priority {task.priority})"),
            ("title", task.title),
            ("mission", task.mission),
            ("data", output.json_text(task.data)),
            ("inputs", _inputs(taken)),
            ("lease", f"until {ages.moment(taken.lease_until)}" if taken.lease_until else None),
            ("workdir", taken.workdir_path),
            ("before", "\n".join(before) or None),
        )
    )


def _inputs(taken: Claim) -> str | None:
    """Return the results of the tasks that this one comes after, a line each; the JSON has them whole."""
    if not taken.task.after:
        return None
    from taskyard.doors.cli import output

    found = [(id, result) for id, result in taken.inputs.items() if result is not None]
    lines = [f"{ids.short(id)}: {output.cut(encode(result), _INPUT_MOST)}" for id, result in found[:_INPUTS_SHOWN]]
    more = len(found) - len(lines) + taken.inputs.left_out
    return "\n".join([*lines, f"and {more} more"] if more else lines) or None


def _next(taken: Claim) -> str:
    return f"When it is finished:  taskyard done {taken.handle}\nIf it cannot be:      taskyard fail {taken.handle} --reason TEXT"


COMMANDS = {
    "claim": Command(
        claim,
        "Take one task: the most urgent, then the oldest that serves, or the one that is named. The handle that it prints names this claim in "
        "note, heartbeat, done, fail and release. The task is yours until the lease ends; heartbeat and note renew it. A task that comes after others shows their results as inputs. What you put into its workdir stays with this attempt; make the folder when you need it. Nothing ready: exit 3.",
        (
            ("taskyard claim", "take the next task, whatever its kind"),
            (
                "taskyard claim --kind build --kind test --wait 60 --json",
                "wait up to a minute for a task of these kinds, and answer as JSON",
            ),
            ("taskyard claim 0-kf12 --lease 2h", "take this very task, for two hours"),
            ("claim=$(taskyard claim --handle)", "in a script: the handle alone, for 'taskyard done $claim'"),
            ("taskyard claim --keep $$", "take the next task, and have it kept mine while this shell lives"),
        ),
        words="[ID]",
        most=1,
        options=(
            Option("--kind", "KIND", "only tasks of this kind", many=True),
            Option("--mission", "TEXT", "only tasks of this mission"),
            Option("--wait", "S", "wait so long for a task to be ready (30, 10m, 2h)"),
            Option("--lease", "S", "how long the task is mine without a heartbeat (default: the task's own, else 30m)"),
            Option("--handle", None, "print the handle and nothing else"),
            Option("--keep", "PID", "have the lease renewed as long as this process lives"),
        ),
    ),
    "resume": Command(
        resume,
        "Take every claim that a worker of my name holds again, under a new fence: for a worker that was started anew and remembers nothing. "
        "The process that held them is shut out, so do this only when it is gone. It needs a name: --worker, $TASKYARD_WORKER or $AGENT_ID. "
        "Nothing held: exit 0, and no claims.",
        (
            ("taskyard resume --worker ada", "go on with what ada was doing"),
            ("TASKYARD_WORKER=ada taskyard resume --json", '{"claims": [...]}, each as claim gives it'),
        ),
    ),
}
