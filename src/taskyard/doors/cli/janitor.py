"""`janitor`: take in dropped files, give back the tasks of dead workers, and make waiting tasks ready when due."""

from __future__ import annotations

from taskyard.core.errors import Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event

    from taskyard.port import YardPort
    from taskyard.yard.janitor import Swept

_LEAST_PAUSE = 0.05


def janitor(call: Call) -> Reply | None:
    """Sweep once, or every `--every` seconds until a signal."""
    every = call.given.seconds("every", least=_LEAST_PAUSE)
    if every is not None:
        _sweep_until_told(call, every)
        return None
    swept = call.yard.sweep()
    return _reply(swept, call.yard.outside().others)


def _reply(swept: Swept, others: list[dict[str, str | None]]) -> Reply:
    return Reply({**swept.as_dict(), "not_tasks": others}, lambda: _page(swept, others))


def _page(swept: Swept, others: list[dict[str, str | None]]) -> str:
    from taskyard.doors.cli import stats

    did = f"taken in {swept.taken}, reaped {swept.reaped}, woken {swept.woken}, mended {swept.mended}"
    return "\n".join(filter(None, (did, stats.not_tasks(others))))


def _sweep_until_told(call: Call, every: float) -> None:
    from threading import Event

    from taskyard.core.signals import Stopping

    told = Event()
    with Stopping(lambda _: told.set()):  # a running sweep is finished: the signal only ends the pause after it
        _rounds(call.yard, call.as_json, every, told)


def _rounds(yard: YardPort, as_json: bool, every: float, told: Event) -> None:
    while not told.is_set():
        try:
            swept = yard.sweep()
        except Unavailable as error:  # a disk may come back, and a janitor runs unattended
            replies.remark(f"taskyard: warning: {error.message}; trying again in {every:g} s")
        else:
            if swept or as_json:
                replies.answer(_reply(swept, yard.outside().others), as_json)
        told.wait(every)


COMMANDS = {
    "janitor": Command(
        janitor,
        "Take in files from the drop box, give back the tasks of workers whose lease is over, wake the tasks that are due, and put right what killed processes have left, now. Every command that adds, claims, lists or ends a task does a share of this by itself; "
        "a janitor of its own only makes it prompter. With --every it goes on until SIGTERM or Ctrl-C, and prints a line when it did something; with --json a line for each sweep.",
        (
            ("taskyard janitor", "one sweep, now"),
            ("taskyard janitor --every 5", "a sweep every five seconds, until it is told to stop"),
        ),
        options=(Option("--every", "S", "sweep again and again, with so long between"),),
    ),
}
