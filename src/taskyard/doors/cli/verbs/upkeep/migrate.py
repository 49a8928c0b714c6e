"""`migrate`: bring a yard's schema up to date."""

from __future__ import annotations

from taskyard import opening
from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def migrate(call: Call) -> Reply:
    """Run the pending migrations, or only list them."""
    check = call.given.flag("check")
    new_epoch = call.given.flag("new-epoch")
    if check and new_epoch:
        raise Invalid("--check changes nothing, and --new-epoch does", hint="give one of them")
    report = opening.migrate(call.given.text("yard"), check=check, new_epoch=new_epoch)
    return Reply(report, lambda: _page(report), 1 if report.get("pending") else 0)


def _page(report: dict[str, Any]) -> str:
    if report.get("pending"):
        return f"pending: {', '.join(report['pending'])} ('taskyard migrate' runs them)"
    done = report.get("applied")
    schema = f"the schema is number {report['version']}"
    if report.get("new_epoch"):
        schema += (
            "; a new epoch has begun: what was held is handed out anew, and no handle from before is good any more"
        )
    elif not done:
        return f"nothing to do: {schema}"
    return f"applied {', '.join(done)}: {schema}" if done else schema


COMMANDS = {
    "migrate": Command(
        migrate,
        "Bring the schema of a yard in PostgreSQL up to date, in one transaction; any number may try at once, and clients of the schema "
        "before go on meanwhile. A yard in a directory needs none of it.",
        (
            ("taskyard migrate --yard postgresql://db/work --check", "what is pending; 1 if anything is"),
            ("taskyard migrate --yard postgresql://db/work", "run it"),
        ),
        options=(
            Option("--check", None, "only tell: 0 up to date, 1 something is pending"),
            Option(
                "--new-epoch",
                None,
                "the database was set back to an earlier moment (a restore): every claim from before is over, in all its projects, "
                "and what was held is handed out anew",
            ),
        ),
    ),
}
