"""`mission`: make, list, show and cancel the goals that group tasks."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BAR = 24  # characters of a progress bar


def mission(call: Call) -> Reply:
    """Do what the first word says to the mission that the second one names."""
    act = call.given.words[0]
    if act not in _ACTS:
        raise Invalid(f"mission has no {ascii(act)[:40]}", hint=f"what can be done is {', '.join(_ACTS)}")
    if act != "list" and len(call.given.words) < 2:
        raise Invalid(f"mission {act} needs a NAME", hint=f"taskyard mission {act} NAME")
    if act == "list" and len(call.given.words) > 1:
        raise Invalid("mission list takes no name", hint=f"taskyard mission show {call.given.words[1]}")
    _only_with(call, act)
    return _ACTS[act](call)


_OWN_OPTIONS = {"brief": "new", "owner": "new", "reason": "cancel", "yes": "cancel"}


def _only_with(call: Call, act: str) -> None:
    """Refuse an option of another act: ignoring it would hide a mistake."""
    for option, belongs in _OWN_OPTIONS.items():
        if call.given.flag(option) and act != belongs:
            raise Invalid(f"mission {act} has no option --{option}", hint=f"mission {belongs} has it")


def _new(call: Call) -> Reply:
    from taskyard.doors.cli import values

    made = call.yard.new_mission(call.given.words[1], values.text_option(call.given, "brief"), call.given.text("owner"))
    created = made.pop("created")
    return Reply(
        {"mission": made, "created": created},
        lambda: f"{made['name']} is {'a mission now' if created else 'a mission already'}",
    )


def _list(call: Call) -> Reply:
    missions = call.yard.missions()

    def text() -> str:
        from taskyard.doors.cli import output

        if not missions:
            remark("no missions")
            return ""
        rows = [(each["name"], each["state"], _share(each), _bar(each), each["owner"] or "") for each in missions]
        return output.table(("MISSION", "STATE", "DONE", "", "OWNER"), rows)

    return Reply({"missions": missions}, text)


def _show(call: Call) -> Reply:
    found = call.yard.mission(call.given.words[1])
    return Reply({"mission": found}, lambda: _page(found))


def _cancel(call: Call) -> Reply:
    from taskyard.doors.cli.confirm import confirmed

    name = call.given.words[1]
    counts = call.yard.mission(name)["counts"]
    number = sum(counts[state] for state in ("waiting", "blocked", "todo", "processing"))
    running = f", {counts['processing']} of them running" if counts["processing"] else ""
    confirmed(call, number, f"cancel {_tasks(number)} of {name!a}{running}")
    ended = call.yard.cancel_mission(name, call.given.text("reason"))
    cancelled, ran = ended.pop("cancelled"), ended.pop("ran")

    def text() -> str:
        return f"{name} is {ended['state']}: {_tasks(cancelled)} cancelled" + (
            f", {ran} of them running" if ran else ""
        )

    return Reply({"mission": ended, "cancelled": cancelled, "ran": ran}, text)


_ACTS = {"new": _new, "list": _list, "show": _show, "cancel": _cancel}


def _tasks(number: int) -> str:
    return f"{number} task{'' if number == 1 else 's'}"


def _share(found: dict[str, Any]) -> str:
    counts = found["counts"]
    return f"{counts['done']} of {found['total'] - counts['cancelled']}"


def _bar(found: dict[str, Any]) -> str:
    """Return done, failed and running tasks as a bar; each that there are any of has a mark at least."""
    counts, of = found["counts"], found["total"] - found["counts"]["cancelled"]
    if not of:
        return ""
    bar = ""
    for state, mark in (("done", "#"), ("failed", "x"), ("processing", ">")):
        wide = -(-counts[state] * _BAR // of) if state != "done" else counts[state] * _BAR // of
        bar += mark * wide
    return f"[{bar[:_BAR]:.<{_BAR}}]"


def _page(found: dict[str, Any]) -> str:
    from taskyard.doors.cli import ages, output

    def lines(tasks: list[dict[str, Any]], *more: str) -> str | None:
        texts = [
            "  ".join(
                output.plain(str(part))
                for part in (task["short"], task["kind"], task["title"], *map(task.get, more))
                if part
            )
            for task in tasks
        ]
        return "\n".join(texts) or None

    def moment(name: str) -> str | None:
        return None if found[name] is None else f"{ages.moment(found[name])}"

    counts = ", ".join(f"{number} {state}" for state, number in found["counts"].items() if number)
    return output.fields(
        (
            ("mission", found["name"]),
            ("state", found["state"] + (f": {found['reason']}" if found["reason"] else "")),
            ("progress", f"{_share(found)} {_bar(found)}".rstrip()),
            ("tasks", counts or "none"),
            ("owner", found["owner"]),
            ("brief", found["brief"]),
            ("created", moment("created_at")),
            ("started", moment("started_at")),
            ("ended", moment("ended_at")),
            ("running", lines(found["running"], "worker")),
            ("failed", lines(found["failed"], "reason")),
            ("next", lines(found["next"])),
        )
    )


COMMANDS = {
    "mission": Command(
        mission,
        "A mission is a named goal that groups tasks: 'add --mission NAME' puts a task into it, and needs no 'mission new'. Its state follows from its tasks: "
        "empty, open (nothing has begun), running, done, failed (nothing is open and something failed), cancelled; cancelled tasks do not count. It starts when its first task is added, and ends "
        "with its last. 'new' notes a brief and an owner: the same words again change nothing, others are exit 7. 'cancel' cancels every task that has not ended; "
        "workers lose their claims. It asks first, and wants --yes where there is no terminal. An unknown mission: exit 6.",
        (
            ('taskyard mission new launch --brief "Ship 1.0 by Friday" --owner ada', "say what it is about"),
            ("taskyard mission list", "one line each: state, and how many of how many are done"),
            ("taskyard mission show launch --json", "what runs, has failed and comes next: the status, for a program"),
            (
                "taskyard mission cancel launch --reason 'not needed' --yes",
                "cancel all of its tasks that have not ended",
            ),
        ),
        words="new|list|show|cancel [NAME]",
        least=1,
        most=2,
        options=(
            Option("--brief", "TEXT|@FILE|-", "new: what is to be reached; @FILE reads a file, - reads stdin"),
            Option("--owner", "NAME", "new: who answers for it"),
            Option("--reason", "TEXT", "cancel: why; goes into the log of every task"),
            Option("--yes", None, "cancel: without asking"),
        ),
    ),
}
