"""`team`: teams own projects of a database, and their quotas hold over all of these."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPTIONS = (
    Option(
        "--max-todo", "N", "add, set: how many tasks may wait for a worker in all its projects; 'none' is without limit"
    ),
    Option("--max-running", "N", "add, set: how many may be in workers' hands at a time; 'none' is without limit"),
    Option("--rate", "N/min", "add, set: how many may be claimed in any minute; 'none' is without limit"),
)


def team(call: Call) -> Reply:
    """Do what the first word says to the team that the second one names."""
    act, number = call.given.words[0], len(call.given.words) - 1
    if act not in _ACTS:
        raise Invalid(f"team has no {ascii(act)[:40]}", hint=f"what can be done is {', '.join(_ACTS)}")
    run, words = _ACTS[act]
    wanted = len(words.split())
    if number != wanted and not (act == "show" and number == 0):
        which = f"needs {words}" if wanted else f"takes no words after it: {call.given.words[1]}"
        raise Invalid(f"team {act} {which}", hint=f"taskyard team {act} {words}".rstrip())
    for option in _OPTIONS:
        if option.name in call.given.values and act not in ("add", "set"):
            raise Invalid(f"team {act} has no option {option.name}", hint="team set has it")
    return run(call)


def _quotas(call: Call) -> dict[str, int | None]:
    """Return the quotas that were given."""
    found: dict[str, int | None] = {}
    for option in _OPTIONS:
        text = call.given.text(option.name[2:])
        if text is None:
            continue
        number = text.removesuffix("/min") if option.name == "--rate" else text
        if text != "none" and not (number.isascii() and number.isdigit() and len(number) < 19):
            raise Invalid(
                f"{option.name} is no number: {ascii(text)[:20]}", hint=f"a whole number, as {option.value}, or none"
            )
        found[option.name[2:].replace("-", "_")] = None if text == "none" else int(number)
    return found


def _add(call: Call) -> Reply:
    made = call.yard.new_team(call.given.words[1], **_quotas(call))
    created = made.pop("created")
    text = f"{made['name']} {'is a team now' if created else 'is a team already'}: {_limits(made)}"
    return Reply({"team": made, "created": created}, lambda: text)


def _list(call: Call) -> Reply:
    found = call.yard.teams()

    def text() -> str:
        from taskyard.doors.cli import output

        if not found:
            remark("no teams")
            return ""
        rows = [(each["name"], *map(_shown, _numbers(each)), ", ".join(each["projects"])) for each in found]
        return output.table(("TEAM", "MAX TODO", "MAX RUNNING", "RATE", "PROJECTS"), rows)

    return Reply({"teams": found}, text)


def _show(call: Call) -> Reply:
    found = _named(call)

    def text() -> str:
        from taskyard.doors.cli import output

        fill = found["fill"]
        shares = fill["by_project"]
        wide = max(map(output.width, shares), default=0)
        return output.fields(
            (
                ("team", found["name"]),
                ("todo", _of(fill["todo"], found["max_todo"])),
                ("running", _of(fill["running"], found["max_running"])),
                ("last minute", None if found["rate"] is None else f"{_of(fill['claimed'], found['rate'])} claimed"),
                (
                    "projects",
                    "\n".join(
                        f"{name}{' ' * (wide - output.width(name))}  {n['todo']} todo, {n['running']} running"
                        for name, n in shares.items()
                    ),
                ),
                ("made", found["made_at"]),
            )
        )

    return Reply({"team": found}, text)


def _named(call: Call) -> dict[str, Any]:
    """Return the team that is named, else the yard's own, with how full it is."""
    own = call.yard.team()
    if len(call.given.words) == 1:
        if own is None:
            raise Invalid(
                "this yard belongs to no team",
                hint="name a team, in PostgreSQL: 'taskyard team list' has all of them; a directory has no teams",
            )
        return own
    name = call.given.words[1]
    if own is not None and own["name"] == name:
        return own
    for each in call.yard.teams(fill=True):
        if each["name"] == name:
            return each
    from taskyard.core import teams

    raise teams.unknown(name)


def _set(call: Call) -> Reply:
    changes = _quotas(call)
    if not changes:
        raise Invalid(
            "team set changes a quota", hint="say --max-todo N, --max-running N or --rate N/min; 'none' takes it away"
        )
    found = call.yard.set_team(call.given.words[1], changes)
    return Reply({"team": found}, lambda: f"{found['name']}: {_limits(found)}")


def _give(call: Call) -> Reply:
    _, name, project = call.given.words
    found = call.yard.give_team(name, project)
    return Reply({"team": found}, lambda: f"{project} belongs to {name}, which has {_projects(found)}")


def _take(call: Call) -> Reply:
    _, name, project = call.given.words
    found = call.yard.take_team(name, project)
    return Reply({"team": found}, lambda: f"{project} belongs to no team; {name} has {_projects(found)}")


def _numbers(found: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    return found["max_todo"], found["max_running"], found["rate"]


def _limits(found: dict[str, Any]) -> str:
    todo, running, rate = map(_shown, _numbers(found))
    return f"max_todo {todo}, max_running {running}, rate {rate}"


def _shown(number: int | None) -> str:
    return "none" if number is None else str(number)


def _of(number: int, most: int | None) -> str:
    return str(number) if most is None else f"{number} of {most}"


def _projects(found: dict[str, Any]) -> str:
    count = len(found["projects"])
    return f"{count} {'project' if count == 1 else 'projects'}"


_ACTS = {
    "add": (_add, "NAME"),
    "list": (_list, ""),
    "show": (_show, "NAME"),
    "set": (_set, "NAME"),
    "give": (_give, "NAME PROJECT"),
    "take": (_take, "NAME PROJECT"),
}

COMMANDS = {
    "team": Command(
        team,
        "A team owns projects of one database, and its quotas hold over all of them together: --max-todo refuses adds (exit 7), --max-running and --rate hold claims back until there is room. "
        "A project called TEAM/NAME is the team's from the start; any other is given with 'give', and taken back with 'take'. What runs goes on, and what waits stays. 'show' without NAME is about the yard's own team. "
        "The same words about a NAME change nothing, others are exit 7: 'set' changes quotas. Only a yard in PostgreSQL has teams, and only the role that owns its schema changes them; through a gateway that needs a token with the scope 'teams'.",
        (
            ("taskyard team add web --max-running 20 --rate 600/min", "a team, with two quotas"),
            ("taskyard team give web site", "the project 'site' is the team's from now on"),
            ("taskyard team show web", "its projects, its quotas, and how full they are"),
            ("taskyard team set web --max-todo 10000 --rate none", "change one quota, and take one away"),
        ),
        words="add|list|show|set|give|take [NAME [PROJECT]]",
        least=1,
        most=3,
        options=_OPTIONS,
    ),
}
