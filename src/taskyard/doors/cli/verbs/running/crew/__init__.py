"""`crew`: several workers under one supervisor, as a file names them."""

from __future__ import annotations

import os
import sys
import time

from taskyard.doors.cli import output, replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.cli.verbs.running.crew.config import Config
    from taskyard.doors.cli.verbs.running.crew.supervisor import Display
    from taskyard.port import YardPort

_NAMES_MOST = 12


def crew(call: Call) -> Reply | int:
    """Run the crew of a file, or with --check print whether it could run."""
    from taskyard.doors.cli.verbs.running.crew import check, config

    read = config.read(call.given.words[0])
    named = call.given.text("yard")
    for warning in check.warnings(read):
        replies.remark(f"taskyard: warning: {output.plain(warning)}")
    if call.given.flag("check"):
        return _verdict(read, check.complaints(read, named))
    with check.opened(read, named, call.worker) as yard, check.only_one(read) as alone:
        if not alone:
            replies.remark(
                f"taskyard: warning: a crew of {output.plain(read.path)} runs on this machine already; where both work in one yard, "
                "their workers have the same names, and each crew counts what both have done"
            )
        return _run(call, read, yard)


def _run(call: Call, crew_config: Config, yard: YardPort) -> int:
    from taskyard.doors.cli.verbs.running.crew.activity import Activity, moment
    from taskyard.doors.cli.verbs.running.crew.process import CrewProcess
    from taskyard.doors.cli.verbs.running.crew.supervisor import Supervisor

    began = time.monotonic()
    processes = [CrewProcess(member) for member in crew_config.members]
    kinds = {process.name: process.member.kinds for process in processes}
    activity = Activity(yard, list(kinds), kinds)

    def display() -> Display:
        from taskyard.doors.cli.verbs.running.crew.lines import Lines

        if call.as_json or call.given.flag("plain") or not has_a_screen():
            return Lines(processes, call.as_json)
        from taskyard.doors.cli.verbs.running.crew.screen import Screen
        from taskyard.doors.cli.verbs.running.crew.view import View

        return Screen(View(f"taskyard crew {crew_config.path}", yard.label, processes, activity, began))

    code = Supervisor(yard, processes, activity, drain=call.given.flag("drain")).run(display)
    records = activity.records.values()
    total: dict[str, Any] = {
        "done": sum(record.done for record in records),
        "failed": sum(record.failed for record in records),
        "failed_for_good": sum(record.failed_for_good for record in records),
        "restarts": sum(process.restarts for process in processes),
        "gave_up": [process.name for process in processes if process.failed],
        "seconds": round(time.monotonic() - began, 2),
    }
    why = activity.left() if call.given.flag("drain") else None
    if why is not None:
        total["why"] = why
    over = {"at": moment(), "event": "over", "worker": None, **total}
    replies.say(replies.encoded(over) if call.as_json else _summary(total, len(processes)))
    return 1 if total["failed_for_good"] else code


def has_a_screen() -> bool:
    """Whether stdout is a terminal to draw on, with this process in the foreground: a background job must not draw."""
    if not output.on_terminal() or os.environ.get("TERM") == "dumb":
        return False
    try:
        return os.tcgetpgrp(sys.stdout.fileno()) == os.getpgrp()
    except OSError:
        return True  # no controlling terminal


def _summary(total: dict[str, Any], workers: int) -> str:
    lost = f" ({total['failed_for_good']} for good)" if total["failed_for_good"] else ""
    line = f"{total['done']} done, {total['failed']} failed attempts{lost}, {total['restarts']} restarts: {_workers(workers)} in {total['seconds']:.0f} s"
    left = f"\nleft behind: {output.plain(total['why']['message'])}" if "why" in total else ""
    return line + (f"; gave up: {', '.join(map(output.plain, total['gave_up']))}" if total["gave_up"] else "") + left


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"


def _verdict(crew_config: Config, complaints: list[str]) -> Reply:
    names = [member.name for member in crew_config.members]

    def text() -> str:
        if complaints:
            return "\n".join(map(output.plain, complaints))
        shown = ", ".join(map(output.plain, names[:_NAMES_MOST]))
        more = f" and {len(names) - _NAMES_MOST} more" if len(names) > _NAMES_MOST else ""
        return f"{crew_config.path} is right: {_workers(len(names))} ({shown}{more})"

    return Reply({"ok": not complaints, "workers": names, "complaints": complaints}, text, 2 if complaints else 0)


COMMANDS = {
    "crew": Command(
        crew,
        "Run the workers that FILE names (TOML), each a 'taskyard work' process of its own, and start a worker that dies again, after a pause that doubles while it dies young. On a terminal it is shown who works on what; elsewhere every "
        "event is a line, with --json a line of JSON. SIGTERM or Ctrl-C lets what runs finish, the second time stops at once; when the supervisor is killed, its workers end by themselves. Exit 1 if a worker has given up, or tasks failed for good. "
        "docs/crew.md has every key and ready files for common agents.",
        (
            ("taskyard crew crew.toml", "until Ctrl-C"),
            ("taskyard crew --drain crew.toml", "until nothing is left to do"),
            (
                "taskyard crew --check crew.toml",
                "is the file right, and is everything there that it names? exit 0 or 2",
            ),
            ("taskyard crew --plain crew.toml", "lines rather than a screen, also on a terminal"),
        ),
        words="FILE",
        least=1,
        most=1,
        options=(
            Option(
                "--check",
                None,
                "only tell whether the file is right and its commands, checks and yard are there; exit 2 if not",
            ),
            Option("--drain", None, "end when nothing is left to do for any of them"),
            Option("--plain", None, "one line for each event, also on a terminal"),
        ),
    ),
}
