"""`orchestrate`: one loop that keeps a yard going; several may run, and one leads."""

from __future__ import annotations

import threading

from taskyard.core.errors import Invalid
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from taskyard.orchestrator.loop import Orchestrator
    from taskyard.port import YardPort

_LEAST_PAUSE = 0.05
_PATIENCE = 5.0  # seconds that a last round may take
_LOAD_MOST = 1000


def orchestrate(call: Call) -> Reply | None:
    """Do one round, or one every second until a signal."""
    from taskyard.orchestrator import loop

    given = call.given
    every = given.seconds("every", least=_LEAST_PAUSE)
    if every is not None and every > loop.EVERY_MOST:
        raise Invalid(
            f"--every is at most {loop.EVERY_MOST:g} s: a leader that is silent for longer loses its place",
            hint="leave it out: a round that finds nothing to do costs next to nothing",
        )
    load = given.integer("load")
    if load is not None and not 1 <= load <= _LOAD_MOST:
        raise Invalid(f"--load must be between 1 and {_LOAD_MOST}, not {load}")
    accept = given.seconds("accept", least=_LEAST_PAUSE)
    if (load is not None or accept is not None) and not given.flag("assign"):
        raise Invalid("--load and --accept are for --assign", hint="say --assign as well")
    orchestrator = loop.Orchestrator(
        call.yard,
        assign=given.flag("assign"),
        accept=loop.ACCEPT if accept is None else accept,
        load=load or loop.LOAD,
    )
    if given.flag("once"):
        report = orchestrator.round()
        orchestrator.resign()
        return Reply(report, lambda: line(report))
    _until_stopped(orchestrator, loop.EVERY if every is None else every, call.as_json)
    return None


def _until_stopped(orchestrator: Orchestrator, every: float, as_json: bool) -> None:
    from taskyard.core.signals import Stopping

    over = threading.Event()

    def tell(report: dict[str, Any]) -> None:
        replies.say(replies.encoded(report) if as_json else line(report))

    with Stopping(lambda _: _set(over)):
        orchestrator.run(every, over.wait, tell, lambda text: replies.remark(f"taskyard: warning: {text}"))


def _set(event: threading.Event) -> None:
    """Set an event from a signal's handler: in a thread, because the main one may hold its lock."""
    threading.Thread(target=event.set, daemon=True).start()


class Beside:
    """Keeps yards going while a block runs, each in a thread of its own."""

    def __init__(self, yards: Mapping[str, YardPort]) -> None:
        self._yards = yards
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> None:
        for project, yard in self._yards.items():
            thread = threading.Thread(
                target=self._run, args=(project, yard), name=f"orchestrator {project}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run(self, project: str, yard: YardPort) -> None:
        from taskyard.orchestrator.loop import EVERY, Orchestrator

        Orchestrator(yard).run(
            EVERY,
            self._over.wait,
            lambda report: replies.remark(f"{project}: {line(report)}"),
            lambda text: replies.remark(f"{project}: warning: {text}"),
        )

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(_PATIENCE)


def line(report: dict[str, Any]) -> str:
    """Return what a round did, for people to read."""
    if not report["leads"]:
        return f"standing by: {report['leader'] or 'another one'} leads"
    did = [f"{name} {number}" for name, number in report["swept"].items() if number]
    did += [f"{report['refilled']} in hand-out lists"] if report["refilled"] else []
    did += [f"{one['agent']} has lost {one['task']}" for one in report["lapsed"]]
    did += [f"{one['task']} assigned to {one['agent']}" for one in report["assigned"]]
    did += [f"{one['task']} back from {one['agent']}" for one in report["returned"]]
    return f"leading (term {report['term']}, {report['agents']} agents): {', '.join(did) or 'nothing to do'}"


COMMANDS = {
    "orchestrate": Command(
        orchestrate,
        "Keep a yard going, in one loop: give back what dead workers left, wake what is due, add what schedules ask for, and watch the agents. With --assign, also assign ready tasks "
        "to agents that are at work, by kind, load and how much comes after each. Several may run on one yard: one leads, and the next one takes over within five seconds. "
        "Everything also works without it: every command does a share. With --json it prints one line for each round that did something.",
        (
            ("taskyard orchestrate", "until Ctrl-C"),
            ("taskyard orchestrate --once --json", "one round, if no other process leads"),
            (
                "taskyard orchestrate --assign --accept 1m",
                "assign tasks; what an agent does not take in a minute goes back",
            ),
        ),
        options=(
            Option("--once", None, "do one round, and end"),
            Option("--every", "S", "seconds between two rounds (default 1)"),
            Option("--assign", None, "assign ready tasks to agents that are at work"),
            Option("--accept", "S", "how long an assigned task waits for its agent (default 30)"),
            Option("--load", "N", "tasks of one agent, held and assigned (default 2)"),
        ),
        lasts=True,
    ),
}
