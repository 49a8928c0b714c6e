"""`prime --install CLIENT` and `--uninstall CLIENT`: which files, what goes in, and taking it out byte for byte."""

from __future__ import annotations

import json
import os

from taskyard.core.errors import Conflict, Invalid, Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.confirm import confirmed
from taskyard.doors.cli.replies import Call, Reply
from taskyard.doors.cli.verbs.prime import json_edit
from taskyard.doors.cli.verbs.prime.json_edit import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SECTION = """\
## Tasks

Tasks of this project are handed out by Taskyard, each to one worker. Run `taskyard prime` to see the loop, what you hold and what is
ready; or use the MCP tools of `taskyard`: claim, do the work, done. Put work that you find on the way in with `add`."""
_TOML = """\
[mcp_servers.taskyard]
command = "taskyard"
args = ["mcp"]"""
_MCP = Entry(("mcpServers",), "taskyard", {"command": "taskyard", "args": ["mcp"]})
_HOOK = Entry(("hooks", "SessionStart"), None, {"hooks": [{"type": "command", "command": "taskyard prime --hook"}]})
_MARKDOWN = ("<!-- taskyard:begin -->", "<!-- taskyard:end -->")
_COMMENTS = ("# taskyard:begin", "# taskyard:end")

# By client: each file with what goes into it, a section of Markdown or TOML, or entries of JSON.
CLIENTS: dict[str, dict[str, tuple[Entry, ...]]] = {
    "claude": {"CLAUDE.md": (), ".mcp.json": (_MCP,), ".claude/settings.json": (_HOOK,)},
    "codex": {"AGENTS.md": (), ".codex/config.toml": (), ".codex/hooks.json": (_HOOK,)},
    "gemini": {"GEMINI.md": (), ".gemini/settings.json": (_MCP, _HOOK)},
    "agents-md": {"AGENTS.md": ()},
}


def run(call: Call, client: str, *, remove: bool) -> Reply:
    """Show what would change, ask, and change it; files that are as they should be are left alone."""
    files = CLIENTS.get(client)
    if files is None:
        raise Invalid(f"no client is called {ascii(client)[:40]}", hint=f"choose one of {', '.join(CLIENTS)}")
    changes = [(path, before, after) for path in files for before, after in [_planned(path, files[path], remove)]]
    changes = [change for change in changes if change[1] != change[2]]
    diff = "".join(_diff(*change) for change in changes)
    if diff:
        replies.remark(diff.rstrip("\n"))
    names = ", ".join(path for path, _, _ in changes)
    confirmed(call, len(changes), f"change {names}")
    for path, _, after in changes:
        _write(path, after)
    text = f"changed {names}" if changes else "nothing to change: all is as it should be"
    return Reply({"changed": [path for path, _, _ in changes], "diff": diff}, lambda: text)


def _planned(path: str, entries: tuple[Entry, ...], remove: bool) -> tuple[str | None, str | None]:
    """Return the text of a file before and after; None is a file that is not there."""
    before = _read(path)
    if entries:
        edit: Callable[[str | None], str | None] = lambda text: _json(path, text, entries, remove)  # noqa: E731
    elif path.endswith(".toml"):
        edit = lambda text: _toml(path, text, remove)  # noqa: E731
    else:
        edit = lambda text: _section(text, _MARKDOWN, _SECTION, remove)  # noqa: E731
    return before, edit(before)


def _json(path: str, text: str | None, entries: tuple[Entry, ...], remove: bool) -> str | None:
    whole = json.dumps({name: value for entry in entries for name, value in entry.nested().items()}, indent=2) + "\n"
    if text is None:
        return None if remove else whole
    if remove and text == whole:
        return None
    try:
        for entry in reversed(entries) if remove else entries:  # what went in last stands first
            text = json_edit.removed(text, entry) if remove else json_edit.inserted(text, entry)
    except (json_edit.Unreadable, IndexError) as error:
        raise Conflict(
            f"{path} cannot be changed: {str(error) if isinstance(error, json_edit.Unreadable) else 'it is not JSON'}; nothing was changed",
            hint=f"put it right, or write this into it by hand: {json.dumps(json.loads(whole))}",
        ) from None
    return text


def _toml(path: str, text: str | None, remove: bool) -> str | None:
    import tomllib

    after = _section(text, _COMMENTS, _TOML, remove)
    if remove:
        return after
    try:
        own = tomllib.loads(_section(text, _COMMENTS, _TOML, True) or "").get("mcp_servers", {})
        if "taskyard" in own:
            return text  # an entry that was written by hand
        tomllib.loads(after or "")
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise Conflict(
            f"{path} cannot be changed: {error}; nothing was changed",
            hint=f"put it right, or write this into it by hand: {' '.join(_TOML.split())}",
        ) from None
    return after


def _section(text: str | None, marks: tuple[str, str], content: str, remove: bool) -> str | None:
    """Return the text with the marked section at its end, or renewed where it stands, or taken out.

    A text without a newline at its end gets none after the section either: so the way back is known.
    """
    newline = "\r\n" if text is not None and "\r\n" in text else "\n"
    block = newline.join((marks[0], *content.split("\n"), marks[1]))
    if text is None:
        return None if remove else block + newline
    begin, last = text.find(marks[0]), text.find(marks[1])
    if 0 <= begin < last:
        end = last + len(marks[1])
        return _without(text[:begin], text[end:], newline) if remove else text[:begin] + block + text[end:]
    if remove:
        return text
    ended = text.endswith(newline) or not text
    return f"{text}{newline}{block}{newline}" if ended else f"{text}{newline}{newline}{block}"


def _without(before: str, after: str, newline: str) -> str | None:
    """Return what is left around a section; None if that was the whole file, which was made for it."""
    if before == "" and after == newline:
        return None
    if not after:
        return before.removesuffix(newline * 2)
    return before.removesuffix(newline) + after.removeprefix(newline)


def _diff(path: str, before: str | None, after: str | None) -> str:
    import difflib

    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), *names, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}", hint="nothing was changed") from None


def _write(path: str, text: str | None) -> None:
    """Write a file in place, so that a link stays one; or remove one that was made here, with its folder if that is empty."""
    folder = os.path.dirname(path)
    try:
        if text is None:
            os.unlink(path)
            if folder and not os.listdir(folder):
                os.rmdir(folder)
            return
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror or error}", hint="the files before it were written"
        ) from None
