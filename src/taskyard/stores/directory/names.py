"""File names: the state of a task is where its file is and what it is called. PROTOCOL.md has the grammar.

    <id>.<N>.e<E>.c<C>[.x|.b<B>][.m<M>][.t<T>][.<mark>]           in todo/<lane>/<segment>/
    ....<lane>                                           in failed/, cancelled/
    ....<lane>[.d<due>]                                  in blocked/<segment>/
    ....<lane>.d<due>                                    in waiting/<bucket>/<segment>/
    ....<lane>.l<lease>[.L].<worker>-<nonce>             in processing/, and kept in failed/
    ....<lane>.l<lease>[.L].<worker>-<nonce>[.r]         in done/; r: the claim brought a result

N is the fence; E and C count errors and crashes. x marks a file that came through the drop box; B selects the body in
edits/ that has replaced the file's own. M is the task's own limit of attempts and T its own lease, if it has them. The mark u is
for a task that uses a resource, v for one that is done only if a check passes, w for both. A capital (U, V, W, and Y for neither)
says that the task has a deadline, which its file names and which still applies. L marks a claim that is backed by a lock in
workers/. A lane is `<priority>-<kind>[@<assignee>][~<digest of the mission>]`. Times are in milliseconds. All names end in `.json`, and no part holds a dot.
"""

from __future__ import annotations

import errno
import functools
import time

from taskyard.core import ids
from taskyard.core.task import Standing, State
from taskyard.core.words import ENCODED_MOST, decoded, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Terms
    from taskyard.core.task import Handle

SUFFIX = ".json"
RESULT = "r"
NAME_MOST = 255  # bytes that filesystems allow
DROPPED = "x"
VOUCHED = "L"
VOUCHED_MARK = f".{VOUCHED}."  # no other part of a name can be this
USES = "u"
VERIFIED = "v"
BOTH = "w"  # one letter for the two, so that the longest name still fits
DEADLINE = "Y"  # with one of the others, that one's capital
# Errors for what can be no task's file: a folder, a link, a pipe, a socket, too large, or not readable.
NO_FILE = frozenset((errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EAGAIN, errno.EFBIG))
UNREADABLE = NO_FILE | {errno.ENOENT, errno.ENOTDIR}  # the same, or nothing at all
CLOSED = frozenset((errno.EACCES, errno.EPERM, errno.ENAMETOOLONG))  # what the system refuses to this user, or to all
BODY = 8  # characters that distinguish the edits of a task
_FENCE = 9  # digits of a fence, the most that a handle takes; in todo/ one less, so that a claim and its ending fit
_DIGITS = 13  # of a number in a name: the milliseconds of a far-away day
ASSIGNED = "@"  # stands for the worker where the lane names an assignee: only that worker can be it

_WANTS = frozenset("uvwUVWY")
_DUE_MARKS = frozenset("UVWY")
_MINUTE, _HOUR, _DAY = "%Y-%m-%dT%H-%M", "%Y-%m-%dT%H", "%Y-%m-%d"


class Lane:
    """What a claim chooses by: priority, kind, assignee and mission; one directory in todo/ for each."""

    __slots__ = ("assignee", "kind", "mission", "plain", "priority", "text")

    def __init__(self, priority: int, kind: str, assignee: str | None, mission: str | None = None) -> None:
        self.priority = priority
        self.kind = kind
        self.assignee = assignee
        self.mission = mission
        """The digest of the mission's name; None for tasks without a mission."""
        self.plain = f"{priority}-{encoded(kind)}" + (f"@{encoded(assignee)}" if assignee is not None else "")
        """The lane without the mission: lanes that differ by it alone share their segments, as most missions are small."""
        self.text = self.plain if mission is None else f"{self.plain}{_MISSION}{mission}"

    @classmethod
    def of(cls, priority: int, kind: str, assignee: str | None, mission: str | None = None) -> Lane:
        """Return the lane of such tasks, of the mission of this name."""
        return cls._known(priority, kind, assignee, None if mission is None else mission_digest(mission))

    @classmethod
    def at(cls, standing: Standing) -> Lane:
        """Return the lane of a task that stands there."""
        return cls._known(standing.priority, standing.kind, standing.assignee, _mission_at(*standing.place))

    @classmethod
    def _known(cls, priority: int, kind: str, assignee: str | None, digest: str | None) -> Lane:
        key = (priority, kind, assignee, digest)
        lane = _LANE_OF.get(key)
        if lane is None:
            if len(_LANE_OF) > 10_000:
                _LANE_OF.clear()
            lane = _LANE_OF[key] = cls(priority, kind, assignee, digest)
        return lane

    @classmethod
    def parse(cls, text: str) -> Lane | None:
        """Parse a lane's name; None if it is none."""
        known = _LANES.get(text)
        if known is not None:
            return known
        if not is_lane(text):
            return None
        plain, tilde, mission = text.partition(_MISSION)
        kind, at, assignee = plain[2:].partition("@")
        if not kind or max(len(kind), len(assignee)) > ENCODED_MOST or (tilde and not _is_mission(mission)):
            return None  # no claim would fit: its name would be too long; or what follows is no mission's digest
        try:
            lane = cls(int(text[0]), decoded(kind), decoded(assignee) if at else None, mission or None)
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
        is_digest = len(digest) == _RESOURCE and _HEX.issuperset(digest)
        return cls.parse(plain) if not plus or is_digest else None


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


def mission_digest(mission: str) -> str:
    """Return a digest of a mission's name that is safe in file names."""
    digest = _DIGESTS.get(mission)
    if digest is None:
        from hashlib import sha256

        if len(_DIGESTS) > 10_000:
            _DIGESTS.clear()
        digest = sha256(mission.encode("utf-8", "surrogatepass")).hexdigest()[:MISSION_DIGEST]
        _DIGESTS[mission] = digest
    return digest


def _mission_at(folder: str, name: str) -> str | None:
    """Return the digest of the mission of a task in this place: in its name, or in todo/ in its lane's."""
    digest = _mission_in(name)
    if digest is None and _MISSION in folder and is_ready(name):
        lane = Lane.of_folder(folder.rsplit("/", 2)[1])
        return None if lane is None else lane.mission
    return digest


_BUSY = "+"
_MISSION = "~"  # encoded words have none
MISSION_DIGEST = 12  # characters of the SHA-256 of a mission's name
_DIGESTS: dict[str, str] = {}
_RESOURCE = 16  # characters of a resource's SHA-256
_HEX = frozenset("0123456789abcdef")
_LANES: dict[str, Lane] = {}
_LANE_OF: dict[tuple[int, str, str | None, str | None], Lane] = {}

# No regular expressions for what a claim looks at: to load and compile them takes 1.5 ms of its 25.


def _is_mission(digest: str) -> bool:
    return len(digest) == MISSION_DIGEST and _HEX.issuperset(digest)


def _mission_in(name: str) -> str | None:
    """Return the digest of the mission in the lane that stands in this name; None if there is none."""
    for part in name.split(".")[1:-1] if _MISSION in name else ():
        plain, _, digest = part.partition(_MISSION)
        if is_lane(plain) and _is_mission(digest):
            return digest
    return None


def is_lane(part: str) -> bool:
    """Whether this part of a name is its lane."""
    return len(part) > 2 and part[1] == "-" and part[0] in "0123456789"


def uses_something(name: str) -> bool:
    """Whether the task of this name uses a resource: no word in a name holds a dot."""
    return ".u." in name or ".w." in name or ".U." in name or ".W." in name


def has_deadline(name: str) -> bool:
    """Whether the name says that the task has a deadline which applies."""
    return not _DUE_MARKS.isdisjoint(name[: -len(SUFFIX)].split(".")[4:8])


class Token:
    """A parsed name."""

    __slots__ = (
        "body",
        "crashes",
        "deadline",
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
        self.deadline = False
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
            self.deadline = wants in _DUE_MARKS
            self.uses, self.verified = wants in "uwUW", wants in "vwVW"

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

    __slots__ = (
        "body",
        "crashes",
        "deadline",
        "dropped",
        "errors",
        "lease",
        "max_attempts",
        "text",
        "uses",
        "verified",
    )

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
        self.deadline = token.deadline

    @classmethod
    def parse(cls, rest: str) -> Counters | None:
        """Parse the rest of a name in todo/, `e0.c0.m5.t60000.json`; None if it is no such rest."""
        token = Token.parse(f"{'0' * ids.LENGTH}.0.{rest}", _ANY_LANE)
        if token is None or token.lane is not _ANY_LANE or token.due is not None or token.nonce is not None:
            return None
        return cls(rest[: -len(SUFFIX)], token)

    @staticmethod
    def limits(draft: Draft, deadline: bool = True) -> str:
        """Return the `.m` and `.t` parts for a draft's own limits, and its mark; without `deadline`, its own does not apply."""
        attempts = "" if draft.max_attempts is None else f".m{draft.max_attempts}"
        lease = "" if draft.lease is None else f".t{round(draft.lease * 1000)}"
        mark = VERIFIED if draft.verify is not None else ""
        if draft.uses:
            mark = BOTH if mark else USES
        if deadline and draft.expires is not None:
            mark = mark.upper() or DEADLINE
        return f"{attempts}{lease}.{mark}" if mark else attempts + lease


_ANY_LANE = Lane(0, "any", None)


def own_parts(name: str, deadline: bool = True) -> str:
    """Return the `.b`, `.m`, `.t` parts and the mark of a name, for its next one; without `deadline`, that applies no more."""
    kept = ""
    for part in name[: -len(SUFFIX)].split(".")[4:8]:
        if (
            part != DROPPED
            and part not in _WANTS
            and not is_body(part)
            and not (part[0] in "mt" and part[1:].isdigit())
        ):
            break
        if deadline or part not in _DUE_MARKS:
            kept += f".{part}"
        elif part != DEADLINE:
            kept += f".{part.lower()}"
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
    r"(?:\.[uvwUVWY])?"
)
_ID = r"[0-9a-hjkmnp-tv-z]{21}"


def is_ready(name: str) -> bool:
    """Whether this is a task's name in todo/."""
    return not name[: ids.LENGTH].strip(ids.ALPHABET) and (name[ids.LENGTH :] in _ENDS or _is_end(name[ids.LENGTH :]))


def _is_end(end: str) -> bool:
    """Whether a name in todo/ may go on so after its id; few ends are common, and remembered."""
    dot, _, rest = end.partition(".")
    fence, _, rest = rest.partition(".")
    if dot or not (fence.isdigit() and fence.isascii() and len(fence) < _FENCE) or Counters.parse(rest) is None:
        return False
    if len(_ENDS) > 1000:
        _ENDS.clear()
    _ENDS.add(end)
    return True


_ENDS: set[str] = set()


def is_turn(name: str) -> bool:
    """Whether this is a number as used in turns/."""
    return name.isascii() and name.isdigit() and len(name) <= _TURN and (name[0] != "0" or name == "0")


_TURN = 18  # digits


@functools.cache
def _task() -> Pattern[str]:
    """Return the pattern of a task's name, compiled at its first use: that takes 0.7 ms, and no claim counts tasks."""
    import re

    claimed = r"\.l[0-9]{1,13}(?:\.L)?\.[^.]+-[0-9a-hjkmnp-tv-z]+(?:\.r)?"
    return re.compile(rf"{_ID}\.[0-9]{{1,9}}{_HEAD}(?:\.([0-9]-[^.]+))?(?:\.d[0-9]{{1,13}}|{claimed})?\.json")


def counted_lane(name: str) -> str | None:
    """Return the lane in a task's name, "" in todo/; None if it is no task's name. Counting calls this for every name."""
    match = _task().fullmatch(name)
    return None if match is None else match[1] or ""


class Plan:
    """How a claim names a task: what the claims of like tasks by one worker have in common."""

    __slots__ = ("counters", "lease", "lease_ms", "max_attempts", "middle")

    def __init__(self, counters: Counters, lane: Lane, worker: str, terms: Terms, policy: Policy) -> None:
        holder = ASSIGNED if lane.assignee is not None else encoded(worker)  # only its assignee claims such a task
        self.counters = counters
        self.lease = terms.lease(counters.lease, policy.lease)
        self.lease_ms = round(self.lease * 1000)
        self.max_attempts = counters.max_attempts or policy.max_attempts
        lock = f".{VOUCHED}" if terms.vouched else ""
        self.middle = f"{counters.text}.{lane.text}.l{self.lease_ms}{lock}.{holder}-"


def reviewed_name(old: str, standing: Standing, worker: str, nonce: str) -> str:
    """Return the name in done/ of a task that this worker has accepted, from its name while it waited."""
    lane = Lane.at(standing)
    stem = f"{standing.id}.{standing.fence}.e{standing.errors}.c{standing.crashes}{own_parts(old)}.{lane.text}"
    return f"{held_by(f'{stem}.l{round(standing.lease * 1000)}', lane.assignee, worker, nonce)}.{RESULT}{SUFFIX}"


def held_by(stem: str, assignee: str | None, worker: str, nonce: str) -> str:
    """Return the stem with the holder of a claim behind it, who may be another one than the assignee.

    Kind, assignee and holder of the greatest length are too much for one name: then it has the assignee.
    """
    own = f"{stem}.{encoded(worker)}-{nonce}"
    fits = len(own) + len(RESULT) + 1 + len(SUFFIX) <= NAME_MOST
    return own if assignee is None or (worker != assignee and fits) else f"{stem}.{ASSIGNED}-{nonce}"


def attempt_folder(root: str, handle: Handle) -> str:
    """Return the path of a claim's own folder, whether it exists or not."""
    return f"{root}/attempts/{handle.id[: ids.SEGMENT]}/{handle.id}/{handle}"


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


def is_minute(bucket: str) -> bool:
    """Whether all tasks of this bucket are due within one minute."""
    return len(bucket) == len(time.strftime(_MINUTE, time.gmtime(0)))


def due_of(name: str) -> int | None:
    """Return when the waiting task of this name is due, by the end of the name alone; None if that is no time."""
    part = name.removesuffix(SUFFIX).rpartition(".")[2]
    return int(part[1:]) if part[:1] == "d" and part[1:].isascii() and part[1:].isdigit() else None


def begun(bucket: str, now: int) -> bool:
    """Whether the bucket's time has come; names of buckets sort by their beginning, coarse before fine."""
    return bucket <= time.strftime(_MINUTE, time.gmtime(now // 1000))
