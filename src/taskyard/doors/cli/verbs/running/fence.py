"""`fence`, `guard` and `publish`: keep what a late worker does out of everything that its work writes to."""

from __future__ import annotations

from taskyard.core.errors import ClaimLost, Invalid
from taskyard.core.task import Handle
from taskyard.doors.cli.parser import Command, Given, Option
from taskyard.doors.cli.replies import Call, Reply
from taskyard.doors.cli.verbs.done import held_claim

GRACE = 10.0  # seconds between TERM and KILL
HANDLE_HINT = "HANDLE is what 'taskyard claim' printed; without it $TASKYARD_CLAIM is used."


def fence(call: Call) -> Reply:
    """Print the fence of a claim that holds its task."""
    held = held_claim(call, call.given.word(0))
    if not held.holds():
        held.settled()  # which raises `Invalid` for a mistyped handle
        task = call.yard.get(held.id)
        raise ClaimLost(f"the claim {held.handle} is over: the task is {task.state} under fence {task.fence} now")
    quiet = call.given.flag("check")
    return Reply({"claim": held.handle, "fence": held.fence}, lambda: "" if quiet else str(held.fence))


def guard(call: Call) -> Reply:
    """Run a command while the claim holds."""
    handle, argv = _command_after(call.given)
    held = held_claim(call, handle)
    if call.yard.one_process:
        raise Invalid(
            "a command is another process, and a memory: yard is for one", hint="name a directory with --yard"
        )
    from taskyard.doors.cli.verbs.running.work import must_be_there
    from taskyard.worker import guarded

    must_be_there(argv[0])
    grace = call.given.seconds("grace")
    # With --json stdout holds one value of ours, so the command writes to stderr.
    code = guarded.run(held, argv, GRACE if grace is None else grace, stdout=2 if call.as_json else None)
    return Reply({"claim": held.handle, "fence": held.fence, "exit": code}, lambda: "", code)


def publish(call: Call) -> Reply:
    """Put a file in place under the claim's fence."""
    *first, source, destination = call.given.words
    if not first and _is_handle(source):
        raise Invalid("publish needs SRC and DST after the handle", hint="usage: taskyard publish [HANDLE] SRC DST")
    handle = first[0] if first else None
    held = held_claim(call, handle)
    path = held.publish(source, destination)
    data = {"claim": held.handle, "fence": held.fence, "path": path}
    return Reply(data, lambda: f"{path} is published under fence {held.fence}")


def _command_after(given: Given) -> tuple[str | None, list[str]]:
    """Split the handle from the command: a word before `--` is one; without `--` the first word is, if it looks so."""
    words, usage = given.words, "usage: taskyard guard [HANDLE] -- CMD..."
    handles = given.before_dashes
    if handles is None:
        handles = 1 if _is_handle(words[0]) else 0
    if handles > 1:
        raise Invalid(f"guard got a word too many before --: {ascii(words[1])[:60]}", hint=usage)
    if len(words) == handles:
        raise Invalid("guard needs a command after the handle", hint=usage)
    return (words[0] if handles else None), words[handles:]


def _is_handle(text: str) -> bool:
    try:
        Handle.parse(text)
    except Invalid:
        return False
    return True


COMMANDS = {
    "fence": Command(
        fence,
        f"Print the fence of a claim: a number that only rises from claim to claim of a task. {HANDLE_HINT} A claim that is over: exit 4.",
        (
            ("taskyard fence", "inside a worker's command: the number to hand to what the work writes to"),
            ("taskyard fence HANDLE --check || exit", "stop a script whose claim was lost"),
        ),
        words="[HANDLE]",
        most=1,
        options=(Option("--check", None, "print nothing: the exit code is the answer"),),
    ),
    "guard": Command(
        guard,
        "Run a command only while a claim holds. The lease is renewed beside it. When the claim is lost, every process of the command is "
        f"stopped, and the exit code is 4; else it is the command's own. {HANDLE_HINT}",
        (
            ("taskyard guard HANDLE -- make deploy", "the deployment stops if somebody else holds the task"),
            ("taskyard guard --grace 30 -- ./migrate.sh", "with time to end in good order, under $TASKYARD_CLAIM"),
        ),
        words="[HANDLE] -- CMD...",
        least=1,
        most=None,
        options=(Option("--grace", "S", f"time between TERM and KILL (default {GRACE:g})"),),
        lasts=True,
    ),
    "publish": Command(
        publish,
        "Put a copy of the file SRC at DST in one step, unless a later claim of the same task has published there: then exit 4, and nothing "
        f"is changed. What was published under which fence is kept beside DST, in a hidden file. {HANDLE_HINT}",
        (
            ("taskyard publish build/site.tar site.tar", "inside a worker's command"),
            ("taskyard publish HANDLE report.pdf /srv/reports/today.pdf", "under a claim that this shell holds"),
        ),
        words="[HANDLE] SRC DST",
        least=2,
        most=3,
    ),
}
