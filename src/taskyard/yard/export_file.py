"""A file of exported lines as the source of a copy: checked from its first to its last line before anything is written."""

from __future__ import annotations

import json
import os
from base64 import b64decode

from taskyard.core import ids, needs, resources, times, words
from taskyard.core.draft import Draft
from taskyard.core.errors import Invalid, NotFound
from taskyard.core.task import Handle, State
from taskyard.core.transfer import MISSION_FIELDS, SCHEDULE_FIELDS, Entry, Facts, TaskCopy, plain
from taskyard.yard.export_lines import ENTRY, FACTS, FORMAT, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

_LINE_MOST = 64 << 20  # bytes: a task with its data, its result and all that came too late
_FOLDERS = ("attempts", "failed", "archive")
_OPTIONAL_TEXT = (
    "assignee", "title", "mission", "key", "added", "verify", "worker", "nonce", "dropped_as", "cancel_reason", "parent",
    "discovered_from",
)  # fmt: skip
_NUMBERS = ("priority", "fence", "errors", "crashes")
_OPTIONAL_NUMBERS = (
    "max_attempts", "lease", "due", "not_before", "held_for", "progress", "expires", "timeout", "ended_at", "claim_lease",
)  # fmt: skip
_OPTIONS = ("title", "priority", "assignee", "mission", "key", "verify", "max_attempts", "parent", "discovered_from")


class ExportFile:
    """An exported yard, to be copied into another one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.label = os.path.abspath(path)
        self.identity: object = ("export", self.label)
        self._segments: dict[str, tuple[int, int]] = {}
        """Where the tasks of each segment begin, and how many there are."""
        self._events: tuple[int, int] | None = None
        self._files: dict[str, int] = {}
        self._warnings: list[str] = []
        self.counts = {"tasks": 0, "events": 0, "files": 0}
        self._number = 0
        with self._opened() as stream:
            self._head = self._checked_head(stream)
            self._check(stream)

    # Checking

    def _refuse(self, message: str, column: int = 1, hint: str | None = None) -> Invalid:
        place = f"{ascii(self.path)[1:-1]}, line {self._number} column {column}"
        return Invalid(f"{place}: {message}", hint=hint or "take the file as 'taskyard export' wrote it")

    def _opened(self) -> BinaryIO:
        if self.path == "-":
            raise Invalid("an exported yard is read more than once, and stdin cannot be", hint="name the file")
        try:
            return open(self.path, "rb")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Invalid(f"cannot read {ascii(self.path)[1:-1]}: {reason}", hint="name an exported file") from None

    def _line(self, stream: BinaryIO) -> dict[str, Any]:
        self._number += 1
        try:
            content = stream.readline(_LINE_MOST + 1)
        except OSError as error:
            raise self._refuse(f"cannot be read: {error.strerror}") from None
        if len(content) > _LINE_MOST:
            raise self._refuse(f"the line has more than {_LINE_MOST >> 20} MiB")
        if not content:
            raise self._refuse("the file ends here, before its last line", hint="it was cut off: export it again")
        try:
            value = json.loads(content)
        except json.JSONDecodeError as error:
            raise self._refuse(f"not JSON: {error.msg}", error.colno) from None
        except UnicodeDecodeError as error:
            raise self._refuse(f"byte 0x{content[error.start]:02x} is not UTF-8", error.start + 1) from None
        except (ValueError, RecursionError) as error:
            raise self._refuse(f"not JSON: {error}") from None
        if not isinstance(value, dict):
            raise self._refuse("a line must be a JSON object")
        return value

    def _checked_head(self, stream: BinaryIO) -> dict[str, Any]:
        head = self._line(stream)
        if head.get("taskyard") != FORMAT:
            raise self._refuse("this is no exported yard", hint="'taskyard add --from FILE' adds a task for each line")
        if head.get("version") != VERSION:
            raise self._refuse(
                f"the format has the version {words.shown(head.get('version'))}, and {VERSION} is known here",
                hint="import it with the version of Taskyard that has exported it",
            )
        if head.get("whole") is not True:
            raise self._refuse("this is a part of a yard", hint="export it again without --state, --kind and --mission")
        facts = head.get("facts")
        if not isinstance(facts, dict) or facts.keys() != set(FACTS):
            raise self._refuse("the facts of the yard are not whole")
        self._check_facts(facts)
        return head

    def _check_facts(self, facts: dict[str, Any]) -> None:
        try:
            highest, kinds = facts["highest"], facts["kinds"]
            if type(highest) is not int or not -1 <= highest < 1 << 20 or not isinstance(facts["settings"], dict):
                raise Invalid("the settings or the highest segment are none")
            for kind in kinds:
                words.kind(kind)
            for fields, known in ((facts["missions"], MISSION_FIELDS), (facts["schedules"], SCHEDULE_FIELDS)):
                for one in fields:
                    if one.keys() != set(known):
                        raise Invalid("a mission or a schedule is not whole")
                    words.text(one["name"], "name")
        except (Invalid, TypeError, AttributeError) as error:
            raise self._refuse(f"the facts of the yard are wrong: {error}") from None

    def _check(self, stream: BinaryIO) -> None:
        """Read all lines, check each, and note where the parts begin."""
        last = ""
        while True:
            at = stream.tell()
            line = self._line(stream)
            if "task" in line:
                task = self._task(line["task"])
                segment = task.id[: ids.SEGMENT]
                if self._events or self._files or task.id <= last:
                    raise self._refuse("the tasks are not in the order of their ids")
                last = task.id
                first, count = self._segments.get(segment, (at, 0))
                self._segments[segment] = (first, count + 1)
                self.counts["tasks"] += 1
            elif "event" in line:
                self._check_event(line["event"])
                first, count = self._events or (at, 0)
                self._events = (first, count + 1)
                self.counts["events"] += 1
            elif "file" in line:
                self._check_file(line)
                self._files.setdefault(line["file"], at)
            elif "end" in line:
                self._check_end(line["end"])
                return
            else:
                raise self._refuse("neither a task, an event, a file nor the end")

    def _check_event(self, event: object) -> None:
        known = isinstance(event, dict) and times.is_moment(event.get("at")) and isinstance(event.get("event"), str)
        if not known or not isinstance(event, dict) or type(event.get("fence")) is not int:
            raise self._refuse("this is no event of a log")
        texts = (
            event.get(name) for name in ("task", "kind", "worker", "by")
        )  # `task` may be the name of a dropped file
        if not all(text is None or isinstance(text, str) for text in texts):
            raise self._refuse("this is no event of a log")

    def _check_file(self, line: dict[str, Any]) -> None:
        path, data = line.get("file"), line.get("data")
        parts = path.split("/") if isinstance(path, str) else []
        if len(parts) < 2 or parts[0] not in _FOLDERS or not all(map(_is_name, parts)):
            raise self._refuse(f"{words.shown(path)} is no file of a yard")
        try:
            b64decode(data if isinstance(data, str) else "?", validate=True)
        except ValueError:
            raise self._refuse("the file is not in base64") from None

    def _check_end(self, end: object) -> None:
        self.counts["files"] = len(self._files)
        if not isinstance(end, dict) or {name: end.get(name) for name in self.counts} != self.counts:
            raise self._refuse("the file does not have as many lines as were written", hint="export it again")
        if end.get("exact") is not True:
            raise self._refuse(
                "workers were at work while this was exported, and it may have half of what they did",
                hint="'taskyard pause', wait until nothing is processing, and export it again",
            )

    def _task(self, fields: object) -> TaskCopy:
        """Return the task of a line; raise `Invalid` for any field that no yard could have written."""
        if not isinstance(fields, dict):
            raise self._refuse("a task must be a JSON object")
        try:
            return _task_copy(fields)
        except (Invalid, NotFound) as error:
            raise self._refuse(f"the task {words.shown(fields.get('id'))} is wrong: {error.message}") from None
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise self._refuse(f"the task {words.shown(fields.get('id'))} is not whole: {error}") from None

    # What a copy asks of its source

    def facts(self) -> Facts:
        """Return what was true of the whole yard; the copy is paused, so that never both yards hand out work."""
        given = self._head["facts"]
        settings = dict(given["settings"])
        facts = Facts(True, given["kinds"], settings)
        if settings.get("checks") and not self._is_trusted():
            facts.settings.pop("checks")
            facts.warnings.append(
                "its checks are commands, and others may write to the file: they are not imported; set them by 'taskyard settings'"
            )
        facts.highest, facts.missions, facts.schedules = given["highest"], given["missions"], given["schedules"]
        facts.is_empty = not self.counts["tasks"]
        return facts

    def _is_trusted(self) -> bool:
        status = os.stat(self.path)
        return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022

    def segments(self) -> list[str]:
        """List the segments that have tasks, in order."""
        return sorted(self._segments)

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """Read the tasks of one segment, in the order of their ids."""
        if segment in self._segments:
            for line in self._lines(*self._segments[segment]):
                yield self._task(line["task"])

    def events(self) -> Iterator[dict[str, Any]]:
        """Read the log."""
        if self._events is not None:
            for line in self._lines(*self._events):
                yield line["event"]

    def _lines(self, at: int, count: int) -> Iterator[dict[str, Any]]:
        with self._opened() as stream:
            stream.seek(at)
            for _ in range(count):
                yield self._line(stream)

    def files(self, with_progress: bool) -> Iterator[str]:  # noqa: ARG002  all that was exported
        """List the files."""
        return iter(self._files)

    def chunks(self, path: str) -> Iterator[bytes]:
        """Read a file in pieces."""
        with self._opened() as stream:
            stream.seek(self._files[path])
            while (line := self._line(stream)).get("file") == path:
                yield b64decode(line["data"])

    def warnings(self) -> list[str]:
        """Return nothing: an exported file is whole."""
        return []

    def close(self) -> None:
        """Do nothing: no file stays open."""


def _is_name(part: str) -> bool:
    """Return whether this can be the name of a file, which stays in its folder."""
    try:
        return part not in ("", ".", "..") and "\0" not in part and len(os.fsencode(part)) <= 255
    except UnicodeEncodeError:
        return False


def _task_copy(fields: dict[str, Any]) -> TaskCopy:
    given = {"result": None, **fields}
    _check_types(given)
    id, after = given["id"], [needs.parse(need) for need in given["after"]]
    options = {name: given[name] for name in _OPTIONS if given[name] is not None}
    draft = Draft(given["kind"], given["data"], options)  # as `add` checks them
    State(given["state"])
    for name in given["uses"]:
        resources.legal(name)
    for other in (*map(str, after), *given["needs"], *filter(None, (given["parent"], given["discovered_from"]))):
        if not ids.is_id(other):
            raise Invalid(f"{words.shown(other)} is no id")
    if given["worker"] is not None:
        words.worker(given["worker"])
    if given["nonce"] is not None:
        Handle.parse(f"{id}.{given['fence']}.{given['nonce']}")  # it becomes a part of a file's name
    if given["dropped_as"] is not None and "/" in given["dropped_as"]:
        raise Invalid("dropped_as is no file's name")
    given["data"] = draft.payload
    given["result"] = plain(fields["result"]) if "result" in fields else None
    for name in ("history", "notes", "stale"):
        given[name] = [_entry(id, entry) for entry in given[name]]
    return TaskCopy(**given)


def _check_types(given: dict[str, Any]) -> None:
    missing = set(TaskCopy.__slots__) ^ given.keys()
    if missing:
        raise Invalid(f"these fields are missing, or are too many: {', '.join(sorted(map(str, missing)))[:200]}")
    if not isinstance(given["id"], str) or not ids.is_id(given["id"]):
        raise Invalid(f"{words.shown(given['id'])} is no id")
    for name in _OPTIONAL_TEXT:
        if given[name] is not None and not isinstance(given[name], str):
            raise Invalid(f"{name} must be a text")
    for name in (*_NUMBERS, *_OPTIONAL_NUMBERS):
        if given[name] is not None or name in _NUMBERS:
            _check_number(name, given[name])
    if not isinstance(given["bound"], bool):
        raise Invalid("bound must be true or false")
    for name in ("uses", "after", "needs", "history", "notes", "stale"):
        if not isinstance(given[name], list):
            raise Invalid(f"{name} must be a list")


def _check_number(name: str, value: object) -> None:
    whole = name not in ("progress", "timeout")
    sorts = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, sorts) or not 0 <= value < 1e16:
        raise Invalid(f"{name} must be a {'whole ' * whole}number")


def _entry(id: str, fields: dict[str, Any]) -> Entry:
    given = {"result": None, **fields}
    if given.keys() != set(ENTRY):
        raise Invalid("an entry of its history is not whole")
    Handle.parse(f"{id}.{given['fence']}.{given['nonce']}")
    if type(given["at"]) is not int or given["at"] < 0:
        raise Invalid("an entry of its history has no time")
    for name in ("worker", "outcome", "text"):
        if given[name] is not None and not isinstance(given[name], str):
            raise Invalid(f"{name} of an entry must be a text")
    if given["outcome"] is not None and not (given["outcome"].isascii() and given["outcome"].isalpha()):
        raise Invalid("outcome of an entry must be a word")
    result = plain(fields["result"]) if "result" in fields else None
    return Entry(given["fence"], given["nonce"], given["worker"], given["at"], given["outcome"], given["text"], result)
