"""`sync`: a TASKS.md in two-way sync with the yard."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.sync import Options
    from taskyard.port import YardPort

_PATIENCE = 30.0  # seconds for a sync that is under way


def sync(call: Call) -> Reply | None:
    """Sync a file, or the folders of missions; once, or again and again; or print what a sync would do."""
    path, look = call.given.words[0], call.given.flag("status")
    if call.given.flag("watch"):
        if look:
            raise Invalid("--status looks once, and --watch does not end", hint="give one of them")
        _watch(call, path)
        return None
    if os.path.isdir(path):
        return _folder(call, path, look)
    from taskyard.doors.tasksmd import sync as syncing

    report = (syncing.status if look else syncing.sync)(call.yard, path, _options(call))
    return Reply(report.as_dict(), lambda: _text(report, look), code=int(look and bool(report.conflicts)))


def _folder(call: Call, path: str, look: bool) -> Reply:
    from taskyard.doors.tasksmd.folder import Folder

    folder = Folder(call.yard, path, _options(call))
    reports = folder.status() if look else folder.sync()
    failed = any(notice["code"] == "error" for report in reports for notice in report.notices)
    return Reply(
        {"missions": [report.as_dict() for report in reports]},
        lambda: "\n".join(_text(report, look) for report in reports) or f"{path}: no missions",
        code=int(failed or (look and any(report.conflicts for report in reports))),
    )


def _watch(call: Call, path: str) -> None:
    """Sync until a signal; print what each sync has done."""
    from taskyard.core.signals import Stopping
    from taskyard.doors.tasksmd.watch import Watch, watched

    sync, paths = watched(call.yard, path, _options(call))

    def say(report: Report) -> None:
        replies.say(replies.encoded(report.as_dict()) if call.as_json else _text(report, False))

    watch = Watch(call.yard, sync, paths, say, lambda text: replies.remark(f"taskyard: {text}"))
    with Stopping(lambda _: watch.stop()):
        watch.run()


class SyncedBeside:
    """Keeps a directory or a file in sync with a yard while a block runs, in a thread of its own."""

    def __init__(self, yard: YardPort, path: str | None) -> None:
        if path is not None and not os.path.exists(path):
            raise Invalid(f"there is no {path} to sync", hint="make the directory first")
        self._yard = yard
        self._path = path

    def __enter__(self) -> None:
        if self._path is None:
            return
        from threading import Thread

        from taskyard.doors.tasksmd.sync import Options
        from taskyard.doors.tasksmd.watch import Watch, watched

        sync, paths = watched(self._yard, self._path, Options(self._yard.worker))
        self._watch = Watch(self._yard, sync, paths, self._say, self._warn)
        self._thread = Thread(target=self._watch.run, name="sync", daemon=True)
        self._thread.start()

    def _say(self, report: Report) -> None:
        for notice in report.notices:
            self._warn(notice["message"])

    def _warn(self, text: str) -> None:
        replies.remark(f"sync of {self._path}: {text}")

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._watch.stop()
            self._thread.join(_PATIENCE)


def _options(call: Call) -> Options:
    from taskyard.doors.tasksmd.sync import Options

    given = call.given
    return Options(
        call.worker or call.yard.named or _person(),
        given.text("mission"),
        given.text("kind") or "task",
        given.text("dialect"),
        given.flag("removals"),
    )


def _person() -> str:
    """Return the name of the person at this machine, under which a checked box is done."""
    from taskyard.core import words

    for variable in ("LOGNAME", "USER"):
        try:
            return words.worker(os.environ.get(variable))
        except Invalid:
            continue
    return "sync"


def _text(report: Report, look: bool) -> str:
    parts = [
        f"{len(some)} {what}"
        for some, what in (
            (report.added, "new from the file"),
            (report.edited, "edited in the file"),
            (report.ended, "with a status from the file"),
            (report.removed, "deleted in the file"),
            (report.shown, "changed by the yard"),
        )
        if some
    ]
    made = "a new file, " if report.made else ""
    first = f"{report.path}: {made}{report.rows} task{'' if report.rows == 1 else 's'}, {', '.join(parts) or 'in sync'}"
    lines = [f"  {notice['message']}" for notice in report.notices]
    lines += [
        f"  conflict in line {one['line']}, {one['row']}: the {one['field']} is {one['file']!a} in the file, {one['yard']!a} in the yard"
        for one in report.conflicts
    ]
    return "\n".join([f"{first} (nothing was changed)" if look else first, *lines])


COMMANDS = {
    "sync": Command(
        sync,
        "FILE is Markdown that people plan in: tables with the columns id, status and description; check-lists; or sections named Todo, In Progress and Done. New lines become tasks, and get their "
        "ids written behind them; edited words are edited in the yard; a checked box is done, in the name of --worker. What workers do shows in the file. Whatever neither side has changed stays byte for byte. "
        "If both sides have edited the same field, a remark says so in the file until either is edited again. A file without --mission has the tasks that have none. Conflict markers of a merge, a file that was cut off, or "
        "one that has lost most of its tasks: exit 7, and nothing is changed. DIR is a mission's folder, with mission.json, TASKS.md and the brief in PRD.md; or it has such a folder for each mission. See docs/tasksmd.md.",
        (
            ("taskyard sync TASKS.md", "both ways, once"),
            ("taskyard sync TASKS.md --mission launch", "the plan of one mission"),
            ("taskyard sync TASKS.md --watch", "again and again, as either side changes, until Ctrl-C"),
            ("taskyard sync missions/", "a folder for each mission, made if there is none"),
            ("taskyard sync TASKS.md --status", "what differs, and what is in conflict; exit 1 if something is"),
        ),
        words="FILE|DIR",
        least=1,
        most=1,
        options=(
            Option(
                "--watch",
                None,
                "go on, whenever the file is saved or something happens in the yard; with --json one report a line",
            ),
            Option("--status", None, "print what a sync would do, and change nothing"),
            Option("--mission", "NAME", "the mission whose tasks the file has; needed once, then it is known"),
            Option("--kind", "KIND", "the kind of tasks that new lines become; without it: task"),
            Option("--dialect", "NAME", "for a file without any task: mosaic (a table), tasks.md, checklist or board"),
            Option(
                "--removals",
                None,
                "take the file as it is: end the tasks of deleted lines, however many, also if it looks like an older version",
            ),
        ),
        lasts=True,
    ),
}
