"""Teams: what is legal in one, what its quotas are called, and the errors about them. Pure functions."""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Conflict, Full, Invalid, NotFound
from taskyard.core.limits import MAX_RUNNING, RATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Quotas = dict[str, int | None]

MAX_TODO = "max_todo"
QUOTAS = {MAX_TODO: (0, 10**12), MAX_RUNNING: (1, 10**9), RATE: (1, 10**9)}
"""The least and the most of each quota: tasks that wait for a worker, tasks that are held, and claims in any minute."""


def name(value: object) -> str:
    """Return a legal name of a team: a project called TEAM/NAME is that team's, so it has no slash."""
    word = words.worker(value, "team")
    if "/" in word:
        raise Invalid(f"team {words.shown(word)} has a slash", hint="a project of the team can be called TEAM/NAME")
    return word


def quotas(given: Mapping[str, object]) -> Quotas:
    """Return these quotas if all are legal; None is without limit."""
    found: Quotas = {}
    for quota, value in given.items():
        if quota not in QUOTAS:
            raise Invalid(f"a team has no quota {words.shown(quota)}", hint=f"its quotas are {', '.join(QUOTAS)}")
        least, most = QUOTAS[quota]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most):
            raise Invalid(f"{quota} must be a whole number from {least} to {most}, not {words.shown(value)}")
        found[quota] = value
    return found


def unknown(team: str) -> NotFound:
    """Make the error for a team that is not there."""
    return NotFound(f"there is no team {words.shown(team)}", hint="'taskyard team list' has their names")


def different(team: str) -> Conflict:
    """Make the error for a team that is made again with other quotas."""
    return Conflict(
        f"there is a team {words.shown(team)} already, with other quotas", hint="'taskyard team set' changes them"
    )


def unknown_project(project: str) -> NotFound:
    """Make the error for a project that is not there."""
    return NotFound(
        f"there is no project {words.shown(project)} in this database", hint="make it first, with: taskyard init URL"
    )


def owned(project: str, owner: str) -> Conflict:
    """Make the error for a project that another team has."""
    return Conflict(
        f"the project {words.shown(project)} belongs to the team {words.shown(owner)}",
        hint="'taskyard team take TEAM PROJECT' ends that first",
    )


def not_owned(project: str, team: str) -> Conflict:
    """Make the error for a project that is not this team's."""
    return Conflict(
        f"the project {words.shown(project)} does not belong to the team {words.shown(team)}",
        hint="'taskyard team list' has the projects of every team",
    )


def named_for(project: str, team: str) -> Conflict:
    """Make the error for a project whose name keeps it in its team."""
    return Conflict(
        f"the project {words.shown(project)} belongs to the team {words.shown(team)} by its name",
        hint="'taskyard copy' makes the same project under another name",
    )


def full(team: str, count: int, most: int, number: int) -> Full:
    """Make the error for an add of `number` tasks beside `count` of `most` in the projects of a team."""
    more = f", and {number} more do not fit" if number > 1 else ""
    message = f"the team {team} is full: {count} of {most} tasks wait for a worker in its projects{more}"
    hint = "wait for room with --wait S (wait= in Python), start more workers, or have the team's max_todo raised: taskyard team set"
    if number > most:
        message = f"{number} tasks at once can never fit: the team {team} takes {most} (max_todo)"
        hint = "add them in smaller batches"
    return Full(message, hint=hint, team=team, count=count, most=most, wanted=number)
