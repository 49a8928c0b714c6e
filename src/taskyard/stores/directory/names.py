"""File names: the state of a task is where its file is and what it is called. PROTOCOL.md has the grammar.

    <id>.<N>.e<E>.c<C>[.x|.b<B>][.m<M>][.t<T>][.u|.v|.w]          in todo/<lane>/<segment>/
    ....<lane>                                           in failed/, cancelled/
    ....<lane>[.d<due>]                                  in blocked/<segment>/
    ....<lane>.d<due>                                    in waiting/<bucket>/<segment>/
    ....<lane>.l<lease>[.L].<worker>-<nonce>             in processing/, and kept in failed/
    ....<lane>.l<lease>[.L].<worker>-<nonce>[.r]         in done/; r: the claim brought a result

N is the fence; E and C count errors and crashes. x marks a file that came through the drop box; B selects the body in
edits/ that has replaced the file's own. M is the task's own limit of attempts and T its own lease, if it has them. u marks a
task that uses a resource, v one that is done only if a check passes, w both. L marks a claim that is backed by a lock in
workers/. Times are in milliseconds. All names end in `.json`, and no part holds a dot.
"""

from __future__ import annotations

import errno
import re
import time

from taskyard.core import ids
from taskyard.core.task import Standing, State
from taskyard.core.words import ENCODED_MOST, decoded, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Terms

SUFFIX = ".json"
RESULT = "r"
DROPPED = "x"
VOUCHED = "L"
VOUCHED_MARK = f".{VOUCHED}."  # no other part of a name can be this
USES = "u"
VERIFIED = "v"
BOTH = "w"  # one letter for the two, so that the longest name still fits
# Errors for what can be no task's file: a folder, a link, a pipe, a socket, too large, or not readable.
NO_FILE = frozenset((errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EAGAIN, errno.EFBIG))
UNREADABLE = NO_FILE | {errno.ENOENT, errno.ENOTDIR}  # the same, or nothing at all
CLOSED = frozenset((errno.EACCES, errno.EPERM, errno.ENAMETOOLONG))  # what the system refuses to this user, or to all
BODY = 8  # characters that distinguish the edits of a task
_FENCE = 9  # digits of a fence, the most that a handle takes; in todo/ one less, so that a claim and its ending fit
_DIGITS = 13  # of a number in a name: the milliseconds of a far-away day
ASSIGNED = "@"  # stands for the worker where the lane names an assignee: only that worker can be it

_USES_ALONE, _USES_TOO = f".{USES}.", f".{BOTH}."
_WANTS = frozenset((USES, VERIFIED, BOTH))
_MINUTE, _HOUR, _DAY = "%Y-%m-%dT%H-%M", "%Y-%m-%dT%H", "%Y-%m-%d"


class Lane:
    """What a claim chooses by: priority, kind and assignee; one directory in todo/ for each."""

    __slots__ = ("assignee", "kind", "priority", "text")

    def __init__(self, priority: int, kind: str, assignee: str | None) -> None:
        self.priority = priority
        self.kind = kind
        self.assignee = assignee
        self.text = f"{priority}-{encoded(kind)}" + (f"@{encoded(assignee)}" if assignee is not None else "")

    @classmethod
    def of(cls, priority: int, kind: str, assignee: str | None) -> Lane:
        """Return the lane of such tasks."""
        key = (priority, kind, assignee)
        lane = _LANE_OF.get(key)
        if lane is None:
            if len(_LANE_OF) > 10_000:
                _LANE_OF.clear()
            lane = _LANE_OF[key] = cls(priority, kind, assignee)
        return lane

    @classmethod
    def parse(cls, text: str) -> Lane | None:
        """Parse a lane's name; None if it is none."""
        known = _LANES.get(text)
        if known is not None:
            return known
        if not is_lane(text):
            return None
        kind, at, assignee = text[2:].partition("@")
        if max(len(kind), len(assignee)) > ENCODED_MOST:
            return None  # no claim would fit: its name would be too long
        try:
            lane = cls(int(text[0]), decoded(kind), decoded(assignee) if at else None)
        except ValueError:
            return None
        if lane.text != text:
            return None
        if len(_LANES) > 10_000:
            _LANES.clear()
        _LANES[text] = lane
        return lane

    @classmethod
    def of_folder(cls, text: str) -> Lane | None:
        """Return the lane of this folder in todo/, also of one whose tasks wait for something in use."""
        known = _LANES.get(text)
        if known is not None:
            return known
        plain, plus, digest = text.partition(_BUSY)
        return cls.parse(plain) if not plus or _is_digest(digest) else None


def busy_folder(lane: Lane, resource: str) -> str:
    """Return the folder of todo/ for tasks of a lane that were passed over because this resource was in use."""
    return f"{lane.text}{_BUSY}{resource_digest(resource)}"


def resource_digest(resource: str) -> str:
    """Return a digest of a resource's name that is safe in file names."""
    from hashlib import sha256

    return sha256(resource.encode("utf-8", "surrogatepass")).hexdigest()[:_RESOURCE]


def waits_for(folder: str) -> str | None:
    """Return the digest of the resource that the tasks in this folder of todo/ wait for; None if there is none."""
    return folder.rpartition(_BUSY)[2] if _BUSY in folder else None


_BUSY = "+"
_RESOURCE = 16  # characters of a resource's SHA-256
_is_digest = re.compile(rf"[0-9a-f]{{{_RESOURCE}}}").fullmatch
_LANES: dict[str, Lane] = {}
_LANE_OF: dict[tuple[int, str, str | None], Lane] = {}


def is_lane(part: str) -> bool:
    """Whether this part of a name is its lane."""
    return len(part) > 2 and part[1] == "-" and part[0] in "0123456789"


def uses_something(name: str) -> bool:
    """Whether the task of this name uses a resource: no word in a name holds a dot."""
    return _USES_ALONE in name or _USES_TOO in name


class Token:
    """A parsed name."""

    __slots__ = (
        "body",
        "crashes",
        "dropped",
        "due",
        "errors",
        "fence",
        "has_result",
        "id",
        "lane",
        "lease",
        "max_attempts",
        "nonce",
        "own_lease",
        "uses",
        "verified",
        "vouched",
        "worker",
    )

    def __init__(self, id: str, fence: int, errors: int, crashes: int, lane: Lane) -> None:
        self.id = id
        self.fence = fence
        self.errors = errors
        self.crashes = crashes
        self.lane = lane
        self.dropped = False
        self.body: str | None = None
        self.max_attempts: int | None = None
        self.own_lease: int | None = None
        self.uses = False
        self.verified = False
        self.due: int | None = None
        self.lease: int | None = None
        self.worker: str | None = None
        self.nonce: str | None = None
        self.has_result = False
        self.vouched = False

    @classmethod
    def parse(cls, name: str, lane: Lane | None = None) -> Token | None:
        """Parse a name; None if it is no task's. Names in todo/ get their lane from their directory."""
        parts = name[: -len(SUFFIX)].split(".")
        if not name.endswith(SUFFIX) or len(parts) < 4 or not ids.is_id(parts[0]) or len(parts[1]) > _FENCE:
            return None
        try:
            token = cls(parts[0], _tagged(f"n{parts[1]}", "n"), _tagged(parts[2], "e"), _tagged(parts[3], "c"), lane)  # type: ignore[arg-type]
            rest = parts[4:]
            token._read_own(rest)
            if rest and is_lane(rest[0]):
                token.lane = Lane.parse(rest.pop(0))  # type: ignore[assignment]
            if rest and rest[0][0] == "d":
                token.due = _tagged(rest.pop(0), "d")
            if rest:
                token._read_claim(rest)
        except (ValueError, IndexError, AttributeError):
            return None
        return None if token.lane is None else token  # type: ignore[redundant-expr]

    def _read_own(self, rest: list[str]) -> None:
        """Take the task's own options from the beginning of these parts."""
        if rest and rest[0] == DROPPED:
            self.dropped = bool(rest.pop(0))
        if rest and is_body(rest[0]):
            self.body = rest.pop(0)[1:]
        if rest and rest[0][0] == "m":
            self.max_attempts = _tagged(rest.pop(0), "m")
        if rest and rest[0][0] == "t":
            self.own_lease = _tagged(rest.pop(0), "t")
        if rest and rest[0] in _WANTS:
            wants = rest.pop(0)
            self.uses, self.verified = wants != VERIFIED, wants != USES

    def _read_claim(self, parts: list[str]) -> None:
        """Parse the lease, worker and nonce of a claim; raise `ValueError` if these parts are none."""
        if parts[-1] == RESULT:
            self.has_result = True
            parts = parts[:-1]
        if len(parts) > 2 and parts[1] == VOUCHED:
            self.vouched = True
            parts = [parts[0], *parts[2:]]
        lease, holder = parts
        self.lease = _tagged(lease, "l")
        worker, dash, self.nonce = holder.rpartition("-")
        if not dash:
            raise ValueError(holder)
        self.worker = self.lane.assignee if worker == ASSIGNED else decoded(worker)

    def standing(self, state: State, place: tuple[str, str], policy: Policy) -> Standing:
        """Return the task as moves see it."""
        lease = self.lease if self.lease is not None else self.own_lease
        standing = Standing(
            self.id,
            self.lane.kind,
            self.lane.priority,
            self.lane.assignee,
            state,
            self.fence,
            self.errors,
            self.crashes,
            policy.max_attempts if self.max_attempts is None else self.max_attempts,
            policy.lease if lease is None else lease / 1000,
            self.worker,
            self.nonce,
            place,
        )
        standing.verified = self.verified
        return standing


def _tagged(part: str, tag: str) -> int:
    if part[:1] != tag or len(part) > 1 + _DIGITS or not part[1:].isascii() or not part[1:].isdigit():
        raise ValueError(part)
    return int(part[1:])


def is_body(part: str) -> bool:
    """Whether this part of a name selects a body in edits/."""
    return len(part) == 1 + BODY and part[0] == "b" and ids.is_word(part[1:])


class Counters:
    """The parts between the fence and the lane."""

    __slots__ = ("body", "crashes", "dropped", "errors", "lease", "max_attempts", "text", "uses", "verified")

    def __init__(self, text: str, token: Token) -> None:
        self.text = text
        self.dropped = token.dropped
        self.body = token.body
        self.errors = token.errors
        self.crashes = token.crashes
        self.max_attempts = token.max_attempts
        self.lease = None if token.own_lease is None else token.own_lease / 1000
        self.uses = token.uses
        self.verified = token.verified

    @classmethod
    def parse(cls, rest: str) -> Counters | None:
        """Parse the rest of a name in todo/, `e0.c0.m5.t60000.json`; None if it is no such rest."""
        token = Token.parse(f"{'0' * ids.LENGTH}.0.{rest}", _ANY_LANE)
        if token is None or token.lane is not _ANY_LANE or token.due is not None or token.nonce is not None:
            return None
        return cls(rest[: -len(SUFFIX)], token)

    @staticmethod
    def limits(draft: Draft) -> str:
        """Return the `.m` and `.t` parts for a draft's own limits, and its `.u`, `.v` or `.w` part."""
        attempts = "" if draft.max_attempts is None else f".m{draft.max_attempts}"
        lease = "" if draft.lease is None else f".t{round(draft.lease * 1000)}"
        if draft.verify is None:
            return attempts + lease + (f".{USES}" if draft.uses else "")
        return f"{attempts}{lease}.{BOTH if draft.uses else VERIFIED}"


_ANY_LANE = Lane(0, "any", None)


def own_parts(name: str) -> str:
    """Return the `.b`, `.m`, `.t`, `.u` and `.v` parts of a name as they stand, for its next name."""
    kept = ""
    for part in name[: -len(SUFFIX)].split(".")[4:8]:
        if (
            part != DROPPED
            and part not in _WANTS
            and not is_body(part)
            and not (part[0] in "mt" and part[1:].isdigit())
        ):
            break
        kept += f".{part}"
    return kept


def claim_parts(name: str) -> str:
    """Return the `.l<lease>[.L].<worker>-<nonce>` of a claimed name."""
    parts = name[: -len(SUFFIX)].split(".")
    return "." + ".".join(parts[-3 if parts[-2] == VOUCHED else -2 :])


def due(name: str) -> int | None:
    """Return when the task of this name in waiting/ or blocked/ is due; None if the name has no time."""
    last = name[: -len(SUFFIX)].rpartition(".")[2]
    return int(last[1:]) if last[0] == "d" and last[1:].isdigit() else None


def begins_with_id(name: str) -> bool:
    """Whether this begins as only the names of tasks do."""
    return name[ids.LENGTH : ids.LENGTH + 1] == "." and ids.is_id(name[: ids.LENGTH])


def is_dropped(name: str) -> bool:
    """Whether this is a file in the drop box to be taken in; a hidden file is still being written."""
    return name.endswith(SUFFIX) and not name.startswith(".")


def is_known_in_todo(name: str) -> bool:
    """Whether a name in todo/ is a lane's, a dropped file's, or one that begins with a dot."""
    return is_lane(name) or name.endswith(SUFFIX) or name.startswith(".")


def is_known_in_failed(name: str) -> bool:
    """Whether a name in failed/ is a segment's, or that of a rejected file or of its reason."""
    return ids.is_segment(name) or (name.endswith((SUFFIX, ".reason")) and not begins_with_id(name))


_HEAD = (
    r"\.e[0-9]{1,13}\.c[0-9]{1,13}(?:\.x)?(?:\.b[0-9a-hjkmnp-tv-z]{8})?(?:\.m[0-9]{1,13})?(?:\.t[0-9]{1,13})?"
    r"(?:\.[uvw])?"
)
_ID = r"[0-9a-hjkmnp-tv-z]{21}"
is_ready = re.compile(_ID + r"\.[0-9]{1,8}" + _HEAD + r"\.json").fullmatch  # whether this is a task's name in todo/
is_turn = re.compile(r"0|[1-9][0-9]{0,17}").fullmatch  # whether this is a number as used in turns/
_TASK = re.compile(
    _ID
    + r"\.[0-9]{1,9}"
    + _HEAD
    + r"(?:\.([0-9]-[^.]+))?(?:\.d[0-9]{1,13}|\.l[0-9]{1,13}(?:\.L)?\.[^.]+-[0-9a-hjkmnp-tv-z]+(?:\.r)?)?\.json"
)


def counted_lane(name: str) -> str | None:
    """Return the lane in a task's name, "" in todo/; None if it is no task's name. Counting calls this for every name."""
    match = _TASK.fullmatch(name)
    return None if match is None else match[1] or ""


class Plan:
    """How a claim names a task: what the claims of like tasks by one worker have in common."""

    __slots__ = ("counters", "lease", "lease_ms", "max_attempts", "middle")

    def __init__(self, counters: Counters, lane: Lane, worker: str, terms: Terms, policy: Policy) -> None:
        holder = ASSIGNED if lane.assignee is not None else encoded(worker)
        self.counters = counters
        self.lease = terms.lease(counters.lease, policy.lease)
        self.lease_ms = round(self.lease * 1000)
        self.max_attempts = counters.max_attempts or policy.max_attempts
        lock = f".{VOUCHED}" if terms.vouched else ""
        self.middle = f"{counters.text}.{lane.text}.l{self.lease_ms}{lock}.{holder}-"


PAUSED_ALL = "@"


def paused_name(kind: str | None) -> str:
    """Return the name in paused/ that stands for a kind, or for all."""
    return PAUSED_ALL if kind is None else encoded(kind)


def paused(entries: list[str]) -> tuple[bool, frozenset[str]]:
    """Parse the names in paused/: whether the whole yard is paused, and which kinds are."""
    kinds = set()
    for name in entries:
        try:
            kinds.add(decoded(name))
        except ValueError:
            continue  # not ours
    return PAUSED_ALL in entries, frozenset(kinds - {PAUSED_ALL})


def bucket(due: int, now: int) -> str:
    """Return the directory in waiting/ for a task that is due then: finer if sooner, so that there are never too many."""
    ahead = due - now
    form = _MINUTE if ahead < 2 * 3_600_000 else _HOUR if ahead < 2 * 86_400_000 else _DAY
    return time.strftime(form, time.gmtime(due // 1000))


def begun(bucket: str, now: int) -> bool:
    """Whether the bucket's time has come; names of buckets sort by their beginning, coarse before fine."""
    return bucket <= time.strftime(_MINUTE, time.gmtime(now // 1000))
