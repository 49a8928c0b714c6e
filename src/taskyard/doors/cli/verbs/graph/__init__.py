"""`graph`: the picture of which task comes after which."""

from __future__ import annotations

import os

from taskyard.core import graph as graphs
from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.cli import filters
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMATS = ("text", "svg", "mermaid", "dot", "json")
_SUFFIXES = {
    "": "text",
    ".txt": "text",
    ".svg": "svg",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".json": "json",
}


def graph(call: Call) -> Reply:
    """Draw the tasks that are named or match, with what they come after."""
    given = call.given
    output, form = given.text("output"), _format(given.text("format"), given.text("output"))
    fold = given.text("fold")
    if fold is None and (form == "json" or (call.as_json and form == "text")):
        fold = "none"  # a program has no use for a picture that it can read
    wanted = filters.states(given)
    drawn = call.yard.graph(
        given.words or None,
        mission=given.text("mission"),
        kind=given.texts("kind"),
        state=None if wanted is None else sorted(wanted),
        fold=fold,
    )
    picture = None if call.as_json and form in ("text", "json") and output is None else _picture(drawn, form)
    if output is not None and picture is not None:
        _write(output, picture)
        count = len(drawn["nodes"])
        line = f"{count} {'group' if drawn['folded'] else 'task'}{'s'[: count != 1]} drawn into {output}"
        return Reply({**drawn, "output": output}, lambda: line)
    return Reply(drawn if picture is None else {**drawn, "picture": picture}, lambda: _shown(drawn, picture or ""))


def _shown(drawn: dict[str, Any], picture: str) -> str:
    if not drawn["nodes"]:
        remark("no such tasks")
    return picture


def _format(wanted: str | None, output: str | None) -> str:
    """Return the format that was asked for, else the one that the file's name ends in."""
    if wanted is None:
        suffix = os.path.splitext(output or "")[1].lower()
        if suffix not in _SUFFIXES:
            raise Invalid(
                f"no format has files that end in {ascii(suffix)[:40]}",
                hint=f"end the name in {', '.join(suffix for suffix in _SUFFIXES if suffix)}, or give --format",
            )
        return _SUFFIXES[suffix]
    if wanted not in FORMATS:
        raise Invalid(f"not a format: {ascii(wanted)[:40]}", hint=f"formats are {', '.join(FORMATS)}")
    return wanted


def _picture(drawn: dict[str, Any], form: str) -> str:
    """Return the picture in this format."""
    if form == "json":
        import json

        return json.dumps(drawn, ensure_ascii=False, indent=2)
    from taskyard.doors.cli.verbs.graph import dot, mermaid, svg, text

    pictures = {"text": text.picture, "svg": svg.picture, "mermaid": mermaid.picture, "dot": dot.picture}
    return pictures[form](drawn)


def _write(path: str, picture: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture + "\n")
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror or error}", hint="name a file in a folder that you can write"
        ) from None


COMMANDS = {
    "graph": Command(
        graph,
        "Draw which task comes after which: with states in colour and the critical path marked, which is the longest chain of tasks that have "
        "not ended. With IDs: these tasks, all that they come after, and all that comes after them. With filters: the tasks that match and those "
        f"that they come after. Without either: all that have not ended. More than {graphs.FOLD_FROM} tasks are folded into groups.",
        (
            ("taskyard graph", "all that is still to be done, in the terminal"),
            ("taskyard graph 0-kf12", "all that one task needs, and all that waits for it"),
            ("taskyard graph --mission login --output login.svg", "a picture for a browser or a page"),
            ("taskyard graph --format mermaid", "for Markdown; 'dot' is for Graphviz"),
        ),
        words="[ID...]",
        most=None,
        options=(
            *filters.OPTIONS,
            Option(
                "--format", "FORMAT", "text, svg, mermaid, dot or json (default: as the file's name ends, else text)"
            ),
            Option("--output", "FILE", "write the picture into this file"),
            Option(
                "--fold",
                "BY",
                f"one box for each mission or kind, or none (default: none up to {graphs.FOLD_FROM} tasks)",
            ),
        ),
    ),
}
