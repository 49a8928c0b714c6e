"""`janitor`: take in dropped files, give back the tasks of dead workers, and make waiting tasks ready when due."""

from __future__ import annotations

from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.cli.alert import ReaperAlert
    from taskyard.port import YardPort
    from taskyard.worker.alive_file import AliveFile
    from taskyard.yard.janitor import Swept

_LEAST_PAUSE = 0.05
_LEFT = (
    "taskyard: warning: this janitor lacks the library for schedules, and leaves their tasks to others\n"
    "  install it with: pip install 'taskyard[schedules]'"
)


def janitor(call: Call) -> Reply | None:
    """Sweep once, or every `--every` seconds until a signal."""
    every = call.given.seconds("every", least=_LEAST_PAUSE)
    alert = _alert(call)
    if every is None and call.given.text("alive") is not None:
        raise Invalid("--alive is for a janitor that goes on", hint="say --every S as well")
    if every is not None:
        _sweep_until_told(call, every, alert)
        return None
    swept = call.yard.sweep()
    if swept.ticks_left:
        replies.remark(_LEFT)
    facts = None if alert is None else alert.look()
    if alert is not None:
        alert.wait()
    return _reply(swept, call.yard.outside().others, facts, call.yard.full())


def _alert(call: Call) -> ReaperAlert | None:
    above, command = call.given.integer("alert-above"), call.given.words
    if above is None and not command:
        return None
    if above is None or not command:
        raise Invalid(
            "an alert needs a number and a command", hint="taskyard janitor --every 5 --alert-above 10 -- ./page-me"
        )
    from taskyard.doors.cli.alert import ReaperAlert

    return ReaperAlert(call.yard, above, command)


def _reply(
    swept: Swept, others: list[dict[str, str | None]], facts: dict[str, Any] | None, full: list[dict[str, Any]]
) -> Reply:
    data = {**swept.as_dict(), "not_tasks": others, "full": full, **({} if facts is None else {"alert": facts})}
    return Reply(data, lambda: _page(swept, others, facts, full))


def _page(
    swept: Swept, others: list[dict[str, str | None]], facts: dict[str, Any] | None, full: list[dict[str, Any]]
) -> str:
    from taskyard.core import reasons
    from taskyard.doors.cli.verbs import stats

    did = f"taken in {swept.taken}, reaped {swept.reaped}, woken {swept.woken}, expired {swept.expired}, mended {swept.mended}"
    did += f", added {swept.ticked} for schedules" if swept.ticked else ""
    alerted = facts is not None and facts["alerted"]
    alert = f"alert: {facts['reaped']} tasks reaped in the last minute" if alerted and facts else ""
    return "\n".join(filter(None, (did, alert, reasons.full(full), stats.not_tasks(others))))


class _Stopped:
    """Whether a signal came. No `threading.Event`: a handler that sets one waits for ever for a lock that its own thread holds."""

    def __init__(self) -> None:
        self._came = False

    def set(self) -> None:
        """Note that a signal came."""
        self._came = True

    def is_set(self) -> bool:
        """Whether a signal came."""
        return self._came

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until a signal comes."""
        import time

        end = time.monotonic() + seconds
        while not self._came and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))


def _sweep_until_told(call: Call, every: float, alert: ReaperAlert | None) -> None:
    from taskyard.core.signals import Stopping

    stopped, alive = _Stopped(), _alive(call)
    with Stopping(lambda _: stopped.set()):  # a running sweep is finished: the signal only ends the pause after it
        _rounds(call.yard, call.as_json, every, stopped, alert, alive)
    if alive is not None:
        alive.close()
    if alert is not None:
        alert.wait()


def _alive(call: Call) -> AliveFile | None:
    path = call.given.text("alive")
    if path is None:
        return None
    from taskyard.worker.alive_file import AliveFile

    return AliveFile(path)


def _rounds(
    yard: YardPort,
    as_json: bool,
    every: float,
    stopped: _Stopped,
    alert: ReaperAlert | None,
    alive: AliveFile | None,
) -> None:
    warned = False
    while not stopped.is_set():
        try:
            swept = yard.sweep()
            if swept.ticks_left and not warned:
                warned = True
                replies.remark(_LEFT)
            facts = None if alert is None else alert.look()
        except Unavailable as error:  # a disk may come back, and a janitor runs unattended
            replies.remark(f"taskyard: warning: {error.message}; trying again in {every:.10g} s")
        else:
            if alive is not None:
                alive.sign()
            if swept or as_json or (facts is not None and facts["alerted"]):
                replies.answer(_reply(swept, yard.outside().others, facts, yard.full()), as_json)
        stopped.wait(every)


COMMANDS = {
    "janitor": Command(
        janitor,
        "Take in files from the drop box, give back the tasks of workers whose lease is over, wake the tasks that are due, add those of schedules, and put right what killed processes have left, now. Every command that adds, claims, lists or ends a task does a share of this by itself; "
        "a janitor of its own only makes it prompter. With --every it goes on until SIGTERM or Ctrl-C, and prints a line when it did something; with --json a line for each sweep. "
        "With --alert-above it runs CMD when more than N tasks were reaped in the last minute, by any process: once a minute at most, with the facts as JSON on its standard input. "
        "CMD is run as it is, by no shell; if it fails, that is a warning.",
        (
            ("taskyard janitor", "one sweep, now"),
            ("taskyard janitor --every 5", "a sweep every five seconds, until it is stopped"),
            (
                "taskyard janitor --every 5 --alert-above 10 -- ./page-me",
                "run ./page-me when more than ten tasks were given back within a minute",
            ),
        ),
        words="[-- CMD...]",
        most=None,
        options=(
            Option("--every", "S", "sweep again and again, with so long between"),
            Option("--alive", "FILE", "with --every: touch this file after each sweep, for 'taskyard alive'"),
            Option("--alert-above", "N", "run CMD when more than so many tasks were reaped in the last minute"),
        ),
        lasts=True,
    ),
}
