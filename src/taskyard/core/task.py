"""The records that all modules share: State, Task, Handle, Standing. No I/O, and no dataclasses (they cost 4 ms)."""

from __future__ import annotations

from enum import StrEnum

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.times import rfc3339
from taskyard.core.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class State(StrEnum):
    """The state of a task; always exactly one of these."""

    WAITING = "waiting"
    BLOCKED = "blocked"
    TODO = "todo"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether the task stays in this state unless a caller moves it."""
        return self in _ENDED


REVIEW = "review+"
SUBMITTED = "waits for review"  # the reason of a claim that ended with a result for review
_NEVER = "2100"  # what is submitted waits for a century, so that nothing hands it out
_ENDED = frozenset((State.DONE, State.FAILED, State.CANCELLED))


class Task:
    """A task as users see it; its fields are the same in JSON."""

    FIELDS = (
        "id", "short", "kind", "title", "state", "priority", "data", "created_at", "not_before", "after", "key", "mission",
        "assignee", "uses", "parent", "discovered_from", "attempts", "max_attempts", "fence", "worker", "lease_until", "progress",
        "result", "error",
    )  # fmt: skip
    COMPACT = ("id", "short", "kind", "title", "state", "priority", "worker", "mission")

    id: str
    kind: str
    state: State
    fence: int
    max_attempts: int = 0
    """How many errors the task may have; 0 if a list left this out."""
    title: str | None = None
    priority: int = 5
    data: Any = None
    not_before: str | None = None
    key: str | None = None
    mission: str | None = None
    assignee: str | None = None
    parent: str | None = None
    """The id of the task that this one is a part of."""
    discovered_from: str | None = None
    """The id of the task whose worker added this one."""
    expires: str | None = None
    """When the task is cancelled unless a worker has started it; in the JSON only if it is set."""
    timeout: float | None = None
    """How many seconds one attempt may take; in the JSON only if it is set."""
    attempts: int = 0
    worker: str | None = None
    lease_ends: int | None = None
    """When the lease of the claim that holds the task ends, in milliseconds since 1970."""
    progress: float | None = None
    result: Any = None
    error: str | None = None
    dropped_as: str | None = None
    """The name under which the task's file was dropped, without its suffix; in the JSON only if it is set."""
    created: bool = True
    """False if `add` found the task already there; not part of the JSON."""
    spooled: bool = False
    """Whether `add` has kept the task in the spool, because the yard's server is away; not part of the JSON."""

    def __init__(self, **fields: Any) -> None:
        # Defaults stand in the class, so that a claim pays only for the fields that are set.
        self.__dict__ = fields

    @property
    def short(self) -> str:
        """A name for people: `0-kf12`. It is longer if a lookup found another task of the segment with the same end."""
        return self.__dict__.get("short") or ids.short(self.id)

    @short.setter
    def short(self, name: str) -> None:
        self.__dict__["short"] = name

    @property
    def after(self) -> list[str]:
        """The ids of the tasks that must be done before this one; `needs.on_failure` tells what each failure means."""
        return list(self.__dict__.get("after", ()))

    @property
    def uses(self) -> list[str]:
        """The resources that no other running task may use while this one runs."""
        return list(self.__dict__.get("uses", ()))

    # What must be true before the task is done is kept as one text: `tests`, `review+`, `review+tests`. A client that
    # does not know of reviews takes it for a check that it does not know, and leaves the task alone.

    @property
    def verify(self) -> str | None:
        """The name of the check that must pass before the task is done; in the JSON only if it is set."""
        return (self.__dict__.get("verify") or "").removeprefix(REVIEW) or None

    @property
    def needs_review(self) -> bool:
        """Whether another one must accept the result before the task is done."""
        return (self.__dict__.get("verify") or "").startswith(REVIEW)

    @property
    def review(self) -> str | None:
        """`wanted`, `pending` (submitted) or `accepted`, for a task that needs a review; in the JSON only then."""
        said: str | None = self.__dict__.get("review")  # by a gateway, whose lists have no more fields
        if said is not None or not self.needs_review:
            return said
        if self.state is State.WAITING and self.fence and (self.not_before or "") >= _NEVER:
            return "pending"
        return "accepted" if self.state is State.DONE else "wanted"

    @property
    def evidence(self) -> str | None:
        """Of a done task: `verified` by its check or accepted by another one, or only `reported` by its worker."""
        said: str | None = self.__dict__.get("evidence")
        if said is not None or self.state is not State.DONE:
            return said
        return "verified" if self.verify is not None or self.needs_review else "reported"

    # Times are kept as numbers and formatted on access: a claim seldom needs either text.

    @property
    def lease_until(self) -> str | None:
        """When the lease of the claim that holds the task ends."""
        return None if self.lease_ends is None else rfc3339(self.lease_ends)

    @property
    def created_at(self) -> str:
        """When the task was added."""
        return rfc3339(ids.created(self.id))

    def as_dict(self) -> dict[str, Any]:
        """Return every field, as the JSON shows it."""
        fields = {name: getattr(self, name) for name in self.FIELDS}
        if fields["after"]:
            from taskyard.core import needs

            fields["after"] = needs.encode(fields["after"])
        more = {
            name: getattr(self, name) for name in ("verify", "review", "evidence", "expires", "timeout", "dropped_as")
        }
        return fields | {name: value for name, value in more.items() if value is not None}

    def as_line(self) -> dict[str, Any]:
        """Return the few fields that a list shows; `review` and `evidence` only where there is one."""
        line = {name: getattr(self, name) for name in self.COMPACT}
        if self.__dict__.get("verify") is not None or self.state is State.DONE:
            line |= {name: value for name in ("review", "evidence") if (value := getattr(self, name)) is not None}
        return line

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.kind} {self.state} fence={self.fence}>"


_FENCE_DIGITS, _NONCE_LEAST, _NONCE_MOST = 9, 8, 24


class Handle:
    """The name of one claim of one task: `id.fence.nonce`. A power cut can make a fence come again, but never a nonce."""

    __slots__ = ("fence", "id", "nonce")

    def __init__(self, id: str, fence: int, nonce: str) -> None:
        self.id = id
        self.fence = fence
        self.nonce = nonce

    @classmethod
    def parse(cls, text: object) -> Handle:
        """Return the handle in this text; raise `Invalid` for any other, with its own hint for a task id, the common mix-up."""
        id, _, rest = text.partition(".") if isinstance(text, str) else ("", "", "")
        fence, _, nonce = rest.partition(".")
        # No regular expression: compiling one takes 0.2 ms of every command.
        numbered = fence.isascii() and fence.isdigit() and fence[0] != "0" and len(fence) <= _FENCE_DIGITS
        if ids.is_id(id) and numbered and _NONCE_LEAST <= len(nonce) <= _NONCE_MOST and ids.is_word(nonce):
            return cls(id, int(fence), nonce)
        if isinstance(text, str) and ids.pattern(text):
            raise Invalid(
                f"{text} is a task id, and this needs the handle of a claim",
                hint="use the handle that 'taskyard claim' printed (id.fence.nonce), or set TASKYARD_CLAIM to it",
            )
        raise Invalid(
            f"not a claim's handle: {shown(text, 80)}",
            hint="a handle looks like id.fence.nonce, as 'taskyard claim' prints it",
        )

    def __str__(self) -> str:
        return f"{self.id}.{self.fence}.{self.nonce}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Standing:
    """Where a task stands at one moment: a move is decided on it, and is a compare-and-swap against it.

    `place` is the store's own reference to exactly this standing (a file's path, a row's version); only that store reads it.
    `nonce` and `worker` are set while a claim holds the task, or if that claim ended it.
    """

    __slots__ = (
        "assignee", "crashes", "dead", "errors", "expires", "fence", "id", "kind", "lease", "max_attempts", "nonce", "place",
        "priority", "returned", "state", "unmet", "verified", "worker",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        kind: str,
        priority: int,
        assignee: str | None,
        state: State,
        fence: int,
        errors: int,
        crashes: int,
        max_attempts: int,
        lease: float,
        worker: str | None = None,
        nonce: str | None = None,
        place: Any = None,
        unmet: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self.kind = kind
        self.priority = priority
        self.assignee = assignee
        self.state = state
        self.fence = fence
        self.errors = errors
        self.crashes = crashes
        self.max_attempts = max_attempts
        self.lease = lease
        self.worker = worker
        self.nonce = nonce
        self.place = place
        self.dead = False
        """Whether the process that holds the task is known to be dead."""
        self.verified: bool | None = None
        """Whether the task is done only if a check passes; None if only the task itself knows."""
        self.expires: int | None = None
        """When an open task is cancelled unless a worker starts it; None if no deadline applies. `Store.stand` fills it in."""
        self.returned = False
        """Whether another program gave the claim back before its lease was over."""
        self.unmet = unmet
        """The tasks that must be done before this one and are not; only filled in for a blocked or cancelled task."""

    @property
    def short(self) -> str:
        """The task's name in messages for people."""
        return ids.short(self.id)

    def copy(self) -> Standing:
        """Return the same standing as a new object, which the caller may change."""
        twin = Standing.__new__(Standing)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    def is_under(self, handle: Handle) -> bool:
        """Whether the claim of this handle holds the task, or has ended it."""
        return self.nonce == handle.nonce and self.fence == handle.fence and self.id == handle.id
