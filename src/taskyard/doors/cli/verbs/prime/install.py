"""`prime --install CLIENT` and `--uninstall CLIENT`: which files, what goes in, and taking it out byte for byte."""

from __future__ import annotations

import contextlib
import errno
import json
import os

from taskyard.core import ids
from taskyard.core.errors import Conflict, Invalid, Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.confirm import confirmed
from taskyard.doors.cli.replies import Call, Reply
from taskyard.doors.cli.verbs.prime import json_edit, section
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
    _write([(path, after) for path, _, after in changes])
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
        edit = lambda text: _section(text, remove)  # noqa: E731
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


def _section(text: str | None, remove: bool) -> str | None:
    return section.taken_out(text, _MARKDOWN) if remove else section.put_in(text, _MARKDOWN, _SECTION)


def _toml(path: str, text: str | None, remove: bool) -> str | None:
    import tomllib

    bare = section.taken_out(text, _COMMENTS)
    if remove:
        return text if _is_changed(text, bare) else bare
    after = section.put_in(text, _COMMENTS, _TOML)
    try:
        own = tomllib.loads(bare or "").get("mcp_servers", {})
        if "taskyard" in own or _is_changed(text, bare):
            return text  # an entry that was written, or has been changed, by hand
        tomllib.loads(after)
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise Conflict(
            f"{path} cannot be changed: {error}; nothing was changed",
            hint=f"put it right, or write this into it by hand: {' '.join(_TOML.split())}",
        ) from None
    return after


def _is_changed(text: str | None, bare: str | None) -> bool:
    """Whether the marked section has another entry than ours, which is a person's own then."""
    import tomllib

    try:
        tables = [tomllib.loads(toml or "").get("mcp_servers", {}) for toml in (text, bare, _TOML)]
        there, without, ours = (table.get("taskyard") for table in tables)
    except (tomllib.TOMLDecodeError, AttributeError):
        return False
    return there not in (None, without, ours)


def _diff(path: str, before: str | None, after: str | None) -> str:
    import difflib

    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), *names, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _read(path: str) -> str | None:
    if os.path.exists(path) and not os.path.isfile(path):  # a link to /dev/null, say, which is not to be replaced
        raise Unavailable(f"{path} is no regular file", hint="nothing was changed")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}", hint="nothing was changed") from None


def _write(changes: list[tuple[str, str | None]]) -> None:
    """Put new texts in place: each at once, and none before all of them are on the disk. A link stays one."""
    drafts: list[tuple[str, str]] = []
    path = ""
    try:
        for path, text in changes:
            if text is not None:
                drafts.append(_drafted(path, text))
        for draft, path in drafts:
            os.replace(draft, path)
        for path, text in changes:
            if text is None:
                _remove(path)
    except OSError as error:
        for draft, _ in drafts:
            with contextlib.suppress(OSError):
                os.unlink(draft)
        raise Unavailable(
            f"{path} cannot be written: {error.strerror or error}", hint="make it writable, and say it again"
        ) from None


def _drafted(path: str, text: str) -> tuple[str, str]:
    """Write the text beside the file whose place it will take, with that file's mode and owner; return both paths."""
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), exist_ok=True)
    there = os.stat(real) if os.path.exists(real) else None
    # Root may write to a read-only file, and gets the same answer as its owner.
    if there is not None and not (there.st_mode & 0o222 and os.access(real, os.W_OK)):
        raise PermissionError(errno.EACCES, "it is read-only")
    draft = f"{real}.{ids.base32(ids.chance(40), 8)}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            if there is not None:
                with contextlib.suppress(PermissionError):  # another one's file: the mode counts, and is set after it
                    os.fchown(descriptor, there.st_uid, there.st_gid)
                os.fchmod(descriptor, there.st_mode & 0o7777)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        os.unlink(draft)
        raise
    return draft, real


def _remove(path: str) -> None:
    """Remove a file that was made here, with its folder if that is empty; a link to it stays, as it was before."""
    real = os.path.realpath(path)
    os.unlink(real)
    folder = os.path.dirname(path)
    if folder and not os.path.islink(folder) and not os.listdir(folder):
        os.rmdir(folder)
