"""`init`: make a yard."""

from __future__ import annotations

from taskyard import opening
from taskyard.core.errors import TaskyardError
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.yard import Yard


def init(call: Call) -> Reply:
    """Make a yard, unless it exists already."""
    given = call.given
    place = given.word(0)
    url = given.text("yard") if place is None else place
    yard = call.make_yard(url, given.text("durability"), given.flag("shared"), given.text("group"))
    for warning in yard.warnings:
        remark(f"taskyard: warning: {warning}")
    return Reply({"yard": yard.label, "created": yard.created, "warnings": yard.warnings}, lambda: _page(yard))


def _page(yard: Yard) -> str:
    first = f"{'Made a yard' if yard.created else 'The yard was there already'}: {yard.label}"
    next_lines = [
        "taskyard add hello --title 'The first task'",
        "taskyard claim",
        "taskyard done HANDLE        (the handle that claim printed)",
    ]
    if not _is_found_from_here(yard):
        from shlex import quote

        next_lines.insert(0, f"export TASKYARD={quote(yard.label)}")
    return "\n".join((first, "", "Next:", *(f"  {line}" for line in next_lines)))


def _is_found_from_here(yard: Yard) -> bool:
    try:
        return opening.locate() in (yard.url, yard.url.removeprefix("file://"))
    except TaskyardError:
        return False


COMMANDS = {
    "init": Command(
        init,
        "Make a yard: at PATH, else where --yard or $TASKYARD says, else in ./.taskyard. A quick check tells whether the place is safe for it. "
        "A yard that is there already is left as it is. In a directory that a group shares (setgid and writable for the group) the yard is the group's too.",
        (
            ("taskyard init", "a yard for this directory and all below it, in ./.taskyard"),
            (
                "taskyard init /shared/crew --durability fast",
                "a yard elsewhere, that survives a killed process but not a power cut",
            ),
            ("taskyard init /srv/yard --group crew", "a yard that every member of the group crew can work in"),
        ),
        words="[PATH]",
        most=1,
        options=(
            Option(
                "--durability",
                "fast|durable|strict",
                "what a power cut may undo: anything recent; claims, but no add or ending (default); no claim either",
            ),
            Option("--shared", None, "let the directory's group work here too, whatever anybody's umask is"),
            Option("--group", "NAME", "the same, with this group"),
        ),
    ),
}
