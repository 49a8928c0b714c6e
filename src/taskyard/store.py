"""The Store seam: what every store must do, and the parts that some stores offer beside it.

Policy is decided above it, in `core.moves`; a store only makes one decided move atomic, and durable as its settings say.
Time is the store's own. A store is right when it passes the contract suite. Nothing here is loaded at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.activity import Activity
    from taskyard.core.draft import Draft
    from taskyard.core.limits import Reached
    from taskyard.core.mission import Cancelled, Mission, Tally
    from taskyard.core.moves import Move
    from taskyard.core.retry import Policy
    from taskyard.core.schedule import Schedule
    from taskyard.core.store_records import Counts, Grant, Heard, Lead, Outside, Query, Report, Trail, Want
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.core.teams import Quotas


class Parts(Protocol):
    """What a store has beside its verbs: its names, and its parts, each with a protocol below."""

    url: str
    """Opens this yard again, in other processes too; it may hold a password."""
    label: str
    """The same for people: no secret is in it."""
    policy: Policy
    batch: int
    """How many claims or endings at a time cost less than one by one; 1 where each is a move of its own."""
    one_process: bool
    """Whether only this process can open the yard."""

    # What not every store has: None where it has not.

    @property
    def dropbox(self) -> DropBox | None:
        """Folders that files are dropped into."""

    @property
    def files(self) -> Files | None:
        """A folder for each attempt, and syncs."""

    @property
    def liveness(self) -> Liveness | None:
        """Deaths that the kernel knows of."""

    @property
    def transactions(self) -> Transactions | None:
        """Moves as a part of the caller's own transaction."""

    @property
    def resends(self) -> Resends | None:
        """Adds that are made once only, however often they come out of a spool."""

    @property
    def hints(self) -> Hints | None:
        """Hints of what is ready, in a server beside the store."""

    # What every store has, but for `teams`.

    @property
    def log(self) -> Log:
        """What happened."""

    @property
    def settings(self) -> Settings:
        """What its people have set for the whole yard."""

    @property
    def teams(self) -> Teams | None:
        """Teams that own several yards in one place."""

    @property
    def missions(self) -> Missions:
        """What was said about missions, and their tasks in numbers."""

    @property
    def schedules(self) -> Schedules:
        """Which tasks are added again and again, and when."""

    @property
    def leadership(self) -> Leadership:
        """Which one of several orchestrators leads."""

    @property
    def upkeep(self) -> Upkeep:
        """The store's side of the janitor's work."""

    @property
    def wakeup(self) -> Wakeup:
        """How a waiter sleeps until something changes."""

    @property
    def reasons(self) -> Reasons:
        """What explains why nothing is ready, beside the tasks themselves."""


class Store(Parts, Protocol):
    """One yard's tasks, kept: these verbs, and its parts."""

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Add these tasks in this order, all or none; they are stored when this returns. For a known key, return the task that has it.

        A need with a `position` names an earlier draft of this call; any other is a pattern of an id.
        Raise `Full` where `core.backlog` refuses them; adders at the same moment may each take the last place.
        A task with unmet needs is blocked, and is cancelled at once if `needs.verdict` says so.
        """

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the most urgent, oldest tasks that fit: one for each nonce, or fewer if there are fewer.

        A task whose deadline has passed by the store's time is not claimed, but cancelled as `moves.expired` says.
        Raise `Conflict` where the very task that is named cannot be had. Each nonce is used for one claim at most. Which
        kinds are asked for is noted for `Reasons.asked`, about once a minute.
        """

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Make each move if its task still has exactly this standing; return which were made.

        The store records a claim's outcome before its move, so that a move that came too late leaves a stale result. If the
        claim has recorded another outcome already, that one ends it, and this move counts as not made. See `Move` for its guards.

        When a task ends, the store frees or cancels each task that needs it, as `needs.verdict` says (`moves.unblocked`,
        `moves.cancelled_with`). A cancelled one is then such a task itself. A task's deadline applies after a
        move only if it did before and `moves.keeps_deadline`, or if an edit sets it. An edit with `unmet` makes the task
        wait for these needs and for no other; those that were met since the decision count no more.
        """

    def renew(
        self, standing: Standing, progress: float | None = None, note: str | None = None, by: str | None = None
    ) -> int | None:
        """Begin the lease anew and return its end, or None if the claim is over. A note is by the holder, unless another asks."""

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks; a look only, which renews nothing and is not logged."""

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output, if any, for a person to read."""

    def stand(self, name: str | Handle) -> Standing:
        """Where the one task that fits this pattern (`ids.pattern`) stands now, or the task of this claim."""

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds; `dead` is set where the kernel knows that its process is gone."""

    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern."""

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks and the cursor of the next; only the compact fields are filled in, unless they are asked for."""

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each whole id its short name, as long as it must be to fit no other task of its segment."""

    def counts(self, *, exact: bool = True) -> Counts:
        """Tasks by kind and state; unless `exact`, a very large number may be an estimate. A look only, which writes nothing."""

    def close(self) -> None:
        """Let go of what the store holds open."""


class Log(Protocol):
    """A store's log: one event for each move, and some about the yard."""

    def read(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""

    def write(self, event: str, by: str, kind: str = "", more: dict[str, Any] | None = None) -> None:
        """Log an event about the yard (`core.yard_events`), after what it records was done."""

    def activity(self) -> Activity:
        """What was logged in the last hour, or as much of it as can be read in a moment; writes nothing."""


class Settings(Protocol):
    """A store's settings and pauses."""

    @property
    def checks(self) -> dict[str, list[str]]:
        """The command of each check, by its name."""

    def read(self) -> dict[str, Any]:
        """The settings, as they are written."""

    def change(self, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the settings, as one step, by what `changed` makes of them, and return them.

        `changed` is called again if another process was quicker. Other processes heed the change with their next `Upkeep.turn`.
        """

    def pause(self, kind: str | None, on: bool) -> None:
        """Hand out no more tasks of this kind, or of any; or do so again."""

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole yard is paused, and which kinds are."""


class Missions(Protocol):
    """A store's missions. Tasks belong to one by its name alone, whether or not it was made."""

    def put(self, mission: Mission) -> Mission | None:
        """Keep what is said about a mission, at the store's time; if something was said before, return that and keep it."""

    def get(self, name: str) -> Mission | None:
        """What was said about this mission; None if nothing was."""

    def all(self) -> list[Mission]:
        """What was said about every mission."""

    def cancel(self, name: str, mark: Cancelled) -> None:
        """Mark the mission as cancelled, at the store's time; a later mark takes the place of an earlier one."""

    def tally(self, name: str | None = None) -> dict[str, Tally]:
        """The tasks of this mission, or of each, in numbers; a mission without tasks is left out."""


class Schedules(Protocol):
    """A store's schedules. Each move is a compare-and-swap on the schedule's identity and number."""

    def put(self, schedule: Schedule) -> Schedule | None:
        """Keep a new schedule; if there is one of this name, return that and keep it."""

    def get(self, name: str) -> Schedule | None:
        """The schedule of this name; None if there is none."""

    def all(self, *, mend: bool = False) -> list[Schedule]:
        """Every schedule; one that moves at this moment may be missed. With `mend`, finish what killed processes have begun."""

    def move(self, at: Schedule, to: Schedule) -> bool:
        """Whether the schedule was moved: only if it still stands exactly there."""

    def tick(self, at: Schedule, to: Schedule, draft: Draft, by: str) -> Task | None:
        """Add this task and move the schedule, both or neither; None if the schedule no longer stands there.

        At the return the new standing has the task's id as `last_task`. If another task has the draft's key, that one counts.
        """

    def remove(self, at: Schedule) -> bool:
        """Whether the schedule was removed: only if it has this identity, whatever its number."""


class Leadership(Protocol):
    """One leader for each yard, by a lease on the store's time. Nothing but promptness hangs on it."""

    def lead(self, worker: str, incarnation: str, seconds: float) -> Lead:
        """Lead if this incarnation leads already, or no other has renewed the leadership for `seconds`; who leads now."""

    def resign(self, incarnation: str) -> bool:
        """Whether this incarnation led; from now on another one can."""


class Teams(Protocol):
    """Teams that own projects of one database. The quotas hold over all of a team's projects, and no claim ever exceeds them."""

    def make(self, name: str, quotas: Quotas, by: str) -> bool:
        """Make a team, and return whether it is new; projects that are called TEAM/NAME and are no team's become its own."""

    def all(self) -> list[dict[str, Any]]:
        """Every team: its `name`, its quotas, `made_at` in milliseconds since 1970, and the names of its `projects`."""

    def own(self) -> dict[str, Any] | None:
        """The team of this project in the same form; None if it has none."""

    def fill(self, name: str) -> dict[str, Any]:
        """How full a team is: `todo`, `running`, `claimed` in the last minute, and the first two `by_project`."""

    def change(self, name: str, changes: Quotas, by: str) -> None:
        """Change these quotas of a team."""

    def give(self, name: str, project: str, by: str) -> None:
        """Make a project the team's; raise `Conflict` if another team has it."""

    def take(self, name: str, project: str, by: str) -> None:
        """Take a project from the team; raise `Conflict` if it is not the team's, or is so by its name."""

    def tokens(self, name: str, changed: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> dict[str, Any]:
        """A team's tokens, in the form that `core.tokens` has; replaced first, as one step, by what `changed` makes of them."""

    def own_tokens(self) -> tuple[str, dict[str, Any]] | None:
        """The name and the tokens of this project's team; None if it has none."""

    def tell(self, name: str, event: str, by: str, more: dict[str, Any]) -> None:
        """Log an event about a team in this project and in all of the team's."""

    def reached(self) -> list[Reached]:
        """The quotas of this project's team that hold claims back now."""


class Upkeep(Protocol):
    """What a store does for the janitor, and for verbs over many tasks."""

    def stand_all(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Where those of these whole ids that are tasks stand now, by id."""

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""

    def expire(self, by: str, limit: int) -> int:
        """Cancel at most `limit` open tasks whose deadline has passed (`moves.expired`); return how many that were."""

    def alarm(self) -> float | None:
        """Seconds until the next lease ends, the next task is due, or the next deadline, as far as the last `overdue` saw; None if nothing is."""

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep: one caller in `every` seconds, over the whole yard.

        Settings that another process has changed count from then on.
        """

    def mend(self, by: str) -> int:
        """Put right a bounded share of what processes that died in mid-move have left; how many things that were."""

    def prune(
        self, age: float | None, count: int | None, by: str, *, apply: bool, only: Query | None = None
    ) -> dict[str, Any]:
        """Remove tasks that ended more than `age` seconds ago, or are more than `count`; without `apply` only count them.

        With `only`: of the tasks with these states, kinds, mission, worker and ids, and no page of the log.
        """

    def audit(
        self,
        by: str,
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state, beside live traffic: `verdict`, what was `checked`, and `findings`.

        With a `sweep` to call, repair first what can be, by safe moves that remove nothing.
        """


class Reasons(Protocol):
    """What a store knows for `why`; reading it writes nothing."""

    def now(self) -> int:
        """The store's time, in milliseconds since 1970."""

    def asked(self) -> dict[str | None, int]:
        """When a claim last asked for each kind, and under None for any kind: to the minute, in milliseconds since 1970."""

    def using(self, resources: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """For each of these resources that is not free: the id of the running task in its way, its worker, and what that uses."""

    def backlog(self) -> dict[str | None, tuple[int, int]]:
        """For each bound (`core.backlog.Bounds`), how many tasks wait for a worker, and how many may."""

    def reached(self) -> list[Reached]:
        """The limits of kinds that are reached now, each kind at most once."""

    def next_due(self, kinds: frozenset[str] | None) -> int | None:
        """When the first of the waiting tasks of these kinds is due, in milliseconds since 1970; None if none waits."""


class Wakeup(Protocol):
    """Sleeps until something in the yard may have changed."""

    def floor(self) -> float:
        """Seconds after which a look is worth it, though nothing was reported."""

    def is_hinted(self) -> bool:
        """Whether the last wait was ended by a hint of a task that wakes no other process: then the look comes at once."""

    def listen(self, want: Want | None = None) -> Heard:
        """What was seen so far: listen, look, and then wait with this, and no change is ever missed.

        With a `want`: no change is missed that lets such a claim be served; a store may keep others from its waiter.
        """

    def wait(self, seconds: float, heard: Heard, want: Want | None = None) -> Heard:
        """Return when something may have changed since `heard`, or after `seconds`; then it is the same again."""

    def wake(self) -> None:
        """End every wait of this process on this store now; a signal handler may call this too."""


class Hints(Protocol):
    """Lists of what is ready, from which those who wait are woken one by one; losing them costs time only."""

    def refill(self, pages: int = 1) -> int:
        """Put what is ready and in no list into the lists, `pages` pages of it at most; return how many tasks are ready."""


class DropBox(Protocol):
    """A store whose folders people and other programs put files into."""

    def intake(self, by: str, limit: int | None = None) -> int:
        """Make tasks of what was dropped, of at most `limit` files; how many tasks that made."""

    def dropped(self) -> int:
        """How many dropped files no sweep has taken in yet."""

    def set_aside(self) -> list[dict[str, str | None]]:
        """Dropped files that can be no tasks: name, reason and time of each."""

    def give_back(self, name: str) -> None:
        """Put the file that was set aside under this name back into the drop box."""

    def outside(self) -> Outside:
        """What other programs hold or have done in this store's folders, and what was dropped there and is no task."""


class Files(Protocol):
    """A store on a filesystem."""

    def workdir(self, handle: Handle) -> str:
        """The folder for what this claim alone leaves behind; it is not there before `make_workdir`."""

    def make_workdir(self, handle: Handle) -> str:
        """The same, made."""

    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if nothing was put there."""

    def confirm(self, standing: Standing) -> None:
        """Sync the move that led to this standing, before an answer about it is repeated."""

    def logs(self, handle: Handle, most: int) -> list[tuple[str, int, bytes]]:
        """The name, the size and the last `most` bytes of each log in the claim's folder."""

    def unusable(self) -> list[str]:
        """What the last claims, or looks at what is ready, passed over because the system refuses it, each with the reason."""


class Liveness(Protocol):
    """A store that knows at once when a process on the same kernel is dead."""

    def vouch(self, worker: str, incarnation: str) -> int | None:
        """Take a lock that the kernel drops when this process dies; its descriptor, or None where others could not see it.

        A process that is to outlive this one, and to be done before the claims are free, inherits the descriptor.
        """


class Transactions(Protocol):
    """A store in a database that its users have too."""

    def within(self, connection: Any) -> Store:
        """The same yard, whose moves are part of the transaction that the caller has open on this connection."""


class Resends(Protocol):
    """A store on a server that may be away, so that adds are kept in a spool until it is back."""

    def under(self, token: str, sent: dict[str, Any] | None) -> Store:
        """The same yard, whose adds happen once only for this token, and give each draft the `id` that it has.

        `sent` is what `Away` reported of an attempt before, which may have been executed; `ago` in it is for how many milliseconds.
        """
