"""`schedule`: tasks that are added again and again, at the times of a cron expression."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli import values
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark
from taskyard.doors.cli.verbs import add

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOT_FOR_TICKS = frozenset(("--key", "--after", "--parent", "--not-before", "--from", "--wait"))
_TASK_OPTIONS = tuple(option for option in add.OPTIONS if option.name not in _NOT_FOR_TICKS)
_OWN_OPTIONS = (
    Option("--tz", "ZONE", "add: the time zone of the expression (Europe/Berlin; default UTC)"),
    Option("--missed", "one|skip", "add: ticks that no process added in time become one task (default), or none"),
)


def schedule(call: Call) -> Reply:
    """Do what the first word says to the schedule that the second one names."""
    act, number = call.given.words[0], len(call.given.words)
    if act not in _ACTS:
        raise Invalid(f"schedule has no {ascii(act)[:40]}", hint=f"what can be done is {', '.join(_ACTS)}")
    run, words = _ACTS[act]
    wanted = len(words.split())
    if number - 1 != wanted:
        which = "needs" if wanted else "takes no words after it:"
        raise Invalid(
            f"schedule {act} {which} {words or call.given.words[1]}",
            hint=f"taskyard schedule {act} {words}".rstrip()
            + (' (quote the expression: "30 2 * * *")' if act == "add" else ""),
        )
    for option in (*_OWN_OPTIONS, *_TASK_OPTIONS):
        if option.name in call.given.values and act != "add":
            raise Invalid(f"schedule {act} has no option {option.name}", hint="schedule add has it")
    return run(call)


def _add(call: Call) -> Reply:
    given = call.given
    _, name, cron, kind = given.words
    own = {"tz": given.text("tz"), "missed": given.text("missed")}
    made = call.yard.new_schedule(
        name,
        cron,
        kind,
        values.json_option(given, "data"),
        **{option: value for option, value in own.items() if value is not None},
        **add.task_options(given),
    )
    created = made.pop("created")

    def text() -> str:
        when = (
            f"next at {made['next_at']}" if made["next_at"] else "it is paused" if made["paused"] else "it never comes"
        )
        return f"{name} {'is a schedule now' if created else 'is a schedule already'}; {when}"

    return Reply({"schedule": made, "created": created}, text)


def _list(call: Call) -> Reply:
    schedules = call.yard.schedules()

    def text() -> str:
        from taskyard.doors.cli import output

        if not schedules:
            remark("no schedules")
            return ""
        rows = [
            (each["name"], each["cron"], each["tz"], each["task"]["kind"], _coming(each), each["last_at"] or "never")
            for each in schedules
        ]
        return output.table(("SCHEDULE", "CRON", "ZONE", "KIND", "NEXT", "LAST"), rows)

    return Reply({"schedules": schedules}, text)


def _coming(found: dict[str, Any]) -> str:
    return "paused" if found["paused"] else found["next_at"] or "never"


def _show(call: Call) -> Reply:
    found = call.yard.schedule(call.given.words[1])

    def text() -> str:
        from taskyard.doors.cli import output

        options = {name: value for name, value in found["task"].items() if name not in ("kind", "data")}
        return output.fields(
            (
                ("schedule", found["name"]),
                ("cron", f"{found['cron']}  {found['tz']}"),
                ("missed", found["missed"]),
                ("kind", found["task"]["kind"]),
                ("data", output.json_text(found["task"].get("data"))),
                ("options", output.json_text(options) if options else None),
                ("next", "\n".join(found["upcoming"]) or _coming(found)),
                ("last", None if found["last_at"] is None else f"{found['last_at']}  {found['last_task']}"),
                ("created", found["created_at"]),
            )
        )

    return Reply({"schedule": found}, text)


def _pause(call: Call) -> Reply:
    found = call.yard.pause_schedule(call.given.words[1])
    return Reply({"schedule": found}, lambda: f"{found['name']} is paused; its tasks stay")


def _unpause(call: Call) -> Reply:
    found = call.yard.unpause_schedule(call.given.words[1])
    return Reply({"schedule": found}, lambda: f"{found['name']} goes on, next at {found['next_at']}")


def _remove(call: Call) -> Reply:
    found = call.yard.remove_schedule(call.given.words[1])
    return Reply({"schedule": found}, lambda: f"{found['name']} is removed; its tasks stay")


_ACTS = {
    "add": (_add, "NAME CRON KIND"),
    "list": (_list, ""),
    "show": (_show, "NAME"),
    "pause": (_pause, "NAME"),
    "unpause": (_unpause, "NAME"),
    "remove": (_remove, "NAME"),
}

COMMANDS = {
    "schedule": Command(
        schedule,
        "A schedule adds a task at the times of a cron expression: minute, hour, day of month, month, day of week; with six fields the first is the second. @hourly, @daily, @weekly, @monthly and @yearly are short for one. "
        "Every command and worker adds what is due on its way, each tick exactly once; so does 'janitor --every'. Time is the yard's. Ticks that no process came by for are one task, or none with --missed skip once they are a minute late. A paused yard delays them. "
        "The same words about a NAME change nothing, others are exit 7. 'unpause' goes on with the next tick. The task's key names its schedule and its tick. Needs: pip install 'taskyard[schedules]'.",
        (
            (
                "taskyard schedule add nightly '30 2 * * *' build --tz Europe/Berlin",
                "a build every night, also when the clocks change",
            ),
            ("taskyard schedule list", "one line each: when it comes next, and when it came last"),
            ("taskyard schedule pause nightly", "add no more of them until 'schedule unpause nightly'"),
            ("taskyard schedule remove nightly", "forget it; the tasks that it has added stay"),
        ),
        words="add|list|show|pause|unpause|remove [NAME] [CRON KIND]",
        least=1,
        most=4,
        options=(*_OWN_OPTIONS, *_TASK_OPTIONS),
        spare='quote the expression: "30 2 * * *"',
    ),
}
