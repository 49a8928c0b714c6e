"""`log` and `watch`: past events in order, and events from now on."""

from __future__ import annotations

import time

from taskyard.core import ids, times
from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.task import SUBMITTED
from taskyard.doors.cli import output, replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event
    from typing import Any

    from taskyard.port import YardPort
    from taskyard.yard.arguments import Events

LIMIT = 1000


def log(call: Call) -> Reply | None:
    """Print past events, or follow new ones."""
    filters = {**_filters(call), "since": _since(call.given.text("since"))}
    limit = call.given.integer("limit")
    cursor = _cursor(call)
    if call.given.flag("follow"):
        _follow_until_told(call, filters, cursor or "", limit)
        return None
    events = call.yard.events(**filters, cursor=cursor, limit=LIMIT if limit is None else limit)
    return Reply({"events": list(events), "cursor": events.cursor}, lambda: _page(events, limit))


def watch(call: Call) -> Reply | None:
    """Wait for the first event that matches, or follow all that do."""
    filters = {**_filters(call), "timeout": call.given.seconds("timeout")}
    cursor = _cursor(call)
    if call.given.flag("follow"):
        _follow_until_told(call, filters, cursor, None)
        return None
    events = call.yard.watch(**filters, cursor=cursor)
    return Reply({"events": list(events), "cursor": events.cursor}, lambda: _page(events, None))


def _cursor(call: Call) -> str | None:
    """Return the given cursor; refuse an empty one, a script's mistake, which must not mean "from the beginning"."""
    cursor = call.given.text("cursor")
    if cursor == "":
        raise Invalid("the cursor is empty", hint="give the 'cursor' of the answer before, or none")
    return cursor


def _filters(call: Call) -> dict[str, Any]:
    given = call.given
    return {
        "task": given.text("task"),
        "worker": given.text("worker"),
        "kind": given.text("kind"),
        "event": given.texts("event"),
        "mission": given.text("mission"),
    }


def _since(text: str | None) -> str | None:
    """Return the given moment; for a duration, the moment that long before now."""
    if text is None:
        return None
    try:
        back = times.seconds(text, "--since")
    except Invalid:
        try:
            times.moment(text, "--since")
        except Invalid as error:
            hint = "write a moment such as 2026-01-31T12:00:00Z, or how long ago: 90, 10m, 2h, 1d"
            raise Invalid(error.message, hint=hint) from None
        return text
    return times.rfc3339(max(0, int((time.time() - back) * 1000)))


def _page(events: Events, limit: int | None) -> str:
    if not events:
        remark("nothing happened")
        return ""
    lines = Lines()
    for event in events:
        lines.measure(event)
    text = "\n".join(lines.line(event) for event in events)
    return f"{text}\nmore: --cursor {events.cursor}" if len(events) == (limit or LIMIT) else text


class Lines:
    """Formats events as lines, with columns as wide as their widest cell so far."""

    def __init__(self) -> None:
        self._widths = [20, 9, 6, 2, 0, 0]  # wide enough for nearly every line

    def measure(self, event: dict[str, Any]) -> None:
        """Widen the columns for this event."""
        self._widths = [max(known, output.width(cell)) for known, cell in zip(self._widths, _cells(event), strict=True)]

    def line(self, event: dict[str, Any]) -> str:
        """Return the event as one line; its name is coloured if stdout shows colours."""
        self.measure(event)
        cells = [
            cell + " " * (wide - output.width(cell)) for cell, wide in zip(_cells(event), self._widths, strict=True)
        ]
        cells[1] = output.paint(cells[1], event["event"])
        return output.GAP.join((*cells, _details(event))).rstrip()


def _cells(event: dict[str, Any]) -> list[str]:
    texts = (
        f"{event['at'][:19]}Z",
        event["event"],
        event.get("short") or event["task"] or "-",
        str(event["fence"] or "-"),
        event["kind"] or "-",
        event["worker"] or "-",
    )
    return [_one_line(text) for text in texts]


def _details(event: dict[str, Any]) -> str:
    """Return the event's other fields as text."""
    parts = []
    if "final" in event:
        parts.append("for good" if event["final"] else "this attempt")
    if event.get("resumed"):
        parts.append("resumed")
    if event.get("verb"):
        parts.append(f"{event['verb']} came too late")
    if event.get("due") and event.get("reason") != SUBMITTED:  # else no time ends its wait
        parts.append(f"due again {event['due'][:19]}Z")
    if event.get("after"):
        more = f" and {len(event['after']) - 3} more" if len(event["after"]) > 3 else ""
        parts.append(f"waits for {', '.join(map(ids.short, event['after'][:3]))}{more}")
    if event.get("freed_by"):
        parts.append(f"{ids.short(event['freed_by'])} is done")
    parts += [str(event[name]) for name in ("team", "project") if event.get(name)]
    if isinstance(event.get("changes"), dict):
        parts += [f"{name} = {output.json_text(value) or 'none'}" for name, value in event["changes"].items()]
    parts += [str(event[name]) for name in ("token", "mission", "schedule", "reason", "text") if event.get(name)]
    if event["by"] != event["worker"]:
        parts.append(f"(by {event['by']})")
    return _one_line("  ".join(parts))


def _one_line(text: str) -> str:
    return output.plain(text).replace("\n", " ")


def _follow_until_told(call: Call, filters: dict[str, Any], cursor: str | None, limit: int | None) -> None:
    from threading import Event

    from taskyard.core.signals import Stopping

    stop, yard = Event(), call.yard

    def tell(_: int) -> None:
        stop.set()
        yard.wake()

    with Stopping(tell):
        _follow(yard, call.as_json, filters, cursor, limit, stop)


def _follow(
    yard: YardPort, as_json: bool, filters: dict[str, Any], cursor: str | None, limit: int | None, stop: Event
) -> None:
    """Print past and then new events, until `stop` is set or `limit` events were printed."""
    lines = Lines()
    left, away = limit, False
    while not stop.is_set():
        try:
            for events in yard.follow(**filters, cursor=cursor, limit=left, until=stop.is_set):
                away, cursor = False, events.cursor
                replies.say("\n".join(replies.encoded(event) if as_json else lines.line(event) for event in events))
                left = None if left is None else left - len(events)
            return
        except Unavailable as error:  # the yard was opened before, so its disk may come back
            if not away:
                remark(f"taskyard: warning: {error.message}; trying again")
            away = True
            stop.wait(1.0)


_FILTERS = (
    Option("--task", "ID", "only what happens to this task"),
    Option("--worker", "NAME", "only what this worker does, or what is done to its claims"),
    Option("--kind", "KIND", "only tasks of this kind"),
    Option("--mission", "TEXT", "only tasks of this mission"),
    Option("--event", "EVENT", "only such events: added, claimed, done, failed, ...", many=True),
)

COMMANDS = {
    "log": Command(
        log,
        "Tell what happened, oldest first: one line for each thing that was done to a task, by whom, and under which fence. The cursor of the "
        "answer is where the next call goes on; --since leads to the newest at once. --follow goes on by itself until Ctrl-C or SIGTERM; with --json it prints one event a line.",
        (
            ("taskyard log --task 0-kf12", "the story of one task"),
            ("taskyard log --since 10m --kind build", "what happened to the builds in the last ten minutes"),
            (
                "taskyard log --follow --json > events.jsonl",
                "all events from the first on, as they come, one JSON object a line",
            ),
        ),
        options=(
            *_FILTERS,
            Option(
                "--since", "TIME|S", "only from this moment on (2026-01-31T12:00:00Z), or from so long ago (10m, 2h)"
            ),
            Option("--limit", "N", f"at most so many (default {LIMIT}; with --follow no end)"),
            Option("--cursor", "CURSOR", "go on after the answer that gave this cursor"),
            Option("--follow", None, "print what happens as it happens"),
        ),
    ),
    "watch": Command(
        watch,
        "Wait for the next thing that happens and matches, print it, and end: exit 0, or 5 if the time is over first. The cursor of the answer is "
        "where the next call goes on without missing anything. Every attempt that fails is an event 'failed'; its field 'final' is true when the task has failed for good. To wait for the end of a task: 'taskyard wait'. --follow goes on by itself until Ctrl-C or SIGTERM; with --json it prints one event a line.",
        (
            (
                "taskyard watch --event done --event failed",
                "until a task is done or an attempt has failed: 'final' tells whether for good",
            ),
            ("taskyard watch --task 0-kf12 --timeout 10m --json", "the next change of this task, within ten minutes"),
            ("taskyard watch --follow --kind build", "what happens to builds from now on, as it happens"),
        ),
        options=(
            *_FILTERS,
            Option("--timeout", "S", "give up when nothing has matched for so long (30, 10m, 2h)"),
            Option("--cursor", "CURSOR", "go on after the answer that gave this cursor (default: from now on)"),
            Option("--follow", None, "go on printing what happens"),
        ),
    ),
}
