"""The Yard port: the public use cases, by id and handle. What implements it is a yard.

`Claim`, `Worker`, the crew and every door use this and nothing else, so each works in front of every store, and of a yard
that is reached through a gateway. No argument and no answer needs the store: each verb can be one request, and
all policy stays on the yard's side. Nothing here is loaded at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Unpack

    from taskyard.core.options import EditOptions, NewTask, TaskOptions
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Outside, Report
    from taskyard.core.task import Handle, Standing, State, Task
    from taskyard.yard.arguments import Added, Events, Inputs, Page
    from taskyard.yard.claim import Claim
    from taskyard.yard.janitor import Swept

    ClaimRef = str | Handle | Standing
    """What names a claim: its handle, or the standing that the same yard granted it with, which saves a look."""


class Waiter(Protocol):
    """Waits between looks. Create it before the first look; call `nap` after each look that found nothing."""

    def is_over(self) -> bool:
        """Whether the time is up: ask before a look, which is then the last."""

    def nap(self, most: float | None = None) -> None:
        """Sleep until something may have changed, for `most` seconds, or until the time is up."""


class YardPort(Protocol):
    """A place where work is handed out."""

    worker: str
    """The name under which this process works."""
    tends: bool
    """Whether verbs do their share of the janitor's work on the way."""
    notices: Sequence[str]
    """What became of spooled adds and endings that somebody should know: each for people to read."""

    @property
    def url(self) -> str:
        """Opens this yard again; it may hold a password."""

    @property
    def label(self) -> str:
        """Where it is, for people to read: without a password."""

    @property
    def named(self) -> str | None:
        """The worker's name if it was given one, and not made up for this process."""

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases."""

    @property
    def checks(self) -> dict[str, list[str]]:
        """The yard's own checks, by name: commands that tasks may ask to be verified by."""

    @property
    def batch(self) -> int:
        """How many claims or endings at a time cost less than one by one."""

    @property
    def one_process(self) -> bool:
        """Whether only this process can open the yard."""

    # Put work in

    def add(
        self, kind: str, data: Any = None, *, conn: Any = None, wait: float = 0, **options: Unpack[TaskOptions]
    ) -> Task:
        """Add a new task and return it; it is stored safely when this returns. Raise `Full` if there is no room within `wait` seconds."""

    def add_many(self, tasks: Iterable[NewTask | dict[str, Any]], *, conn: Any = None, wait: float = 0) -> Added:
        """Add many tasks; check all before adding the first. Raise `Full`, and add none, as `add` does."""

    def full(self) -> list[dict[str, Any]]:
        """The bounds (`max_todo`) that are reached: kind (None for the whole yard), count and max_todo of each."""

    def tend_spool(self) -> None:
        """Replay a share of the spool, if there is something in it and the server is there."""

    def is_spooled(self, claim: ClaimRef) -> bool:
        """Whether this yard has put the ending of this claim into its spool, because its server is away."""

    def spool(self) -> dict[str, Any]:
        """The `path` of the spool, None if there is none, and its `entries`, oldest first."""

    def replay_spool(self, *, failed: bool = False) -> dict[str, Any]:
        """Replay the whole spool now; with `failed`, also entries that the yard refused before."""

    # Take it

    def claim(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        wait: float = 0,
        lease: float | None = None,
    ) -> Claim | None:
        """Claim the most urgent, then oldest task that fits; return None if nothing is ready within `wait` seconds."""

    def claim_many(
        self,
        number: int,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        lease: float | None = None,
    ) -> list[Claim]:
        """Claim up to `number` tasks at once."""

    def resume(self, worker: str | None = None) -> list[Claim]:
        """Claim again every task that this worker's name holds, under a new fence."""

    def held(self, handle: str) -> Claim:
        """The claim of this handle, for a process that knows the handle and nothing else."""

    # What its holder does: `Claim` has the same verbs

    def heartbeat(self, claim: ClaimRef, progress: float | None = None, note: str | None = None) -> str:
        """Begin the lease anew, and return its end."""

    def done(self, claim: ClaimRef, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result, once the check that it names has passed."""

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """Which of these claims are done now, with these results; `done` says why another one is not.

        No check is run here: a task that may name one is left to `done`.
        """

    def fail(self, claim: ClaimRef, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error, and return the task's state."""

    def release(self, claim: ClaimRef, after: float = 0.0, reason: str | None = None) -> None:
        """Release the task; this counts as no attempt."""

    def crash(self, claim: ClaimRef, reason: str) -> State:
        """End the claim as if its worker had died, and return the task's state."""

    def holding(self, claims: Sequence[ClaimRef]) -> list[bool]:
        """Which of these claims still hold their tasks."""

    def settled(self, claim: ClaimRef) -> State | None:
        """The state that the claim's own holder has put the task into: done, failed for good, or todo; else None."""

    def lease(self, claim: ClaimRef) -> float:
        """How long the claim lasts without a heartbeat, in seconds."""

    def workdir(self, claim: ClaimRef, *, make: bool = False) -> str | None:
        """The folder for what this attempt alone leaves behind; None where the yard has no files."""

    def tidy(self, claim: ClaimRef) -> None:
        """Remove the claim's folder if nothing was put there."""

    # Look

    def get(self, id: str) -> Task:
        """The whole task of this id, unique beginning of one, or short name."""

    def get_many(self, ids: Iterable[str] = (), *, keys: Iterable[str] = ()) -> list[Task]:
        """The whole tasks of these whole ids, and those that were added under these keys, oldest first; unknown ones are left out."""

    def report(self, id: str) -> Report:
        """The task with its history, notes and stale results."""

    def find(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tasks by state, kind, mission and holder, oldest first; compact fields only."""

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """What this worker could be handed now, in the order in which claims would hand it out."""

    def graph(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        mission: str | None = None,
        kind: str | Iterable[str] | None = None,
        state: str | Iterable[str] | None = None,
        limit: int = ...,
        fold: str | None = "none",
    ) -> dict[str, Any]:
        """Which task comes after which, with the critical path; folded into groups if that is asked for."""

    def output(self, id: str, most: int = ...) -> list[dict[str, Any]]:
        """The end of what the commands of the last attempt have printed: `name`, `fence`, `size`, `text`; [] where none is kept."""

    def inputs(self, task: str | Task) -> Inputs:
        """The results of the tasks that this one comes after and that are done, by id, up to 4 MiB."""

    def dependencies(self, task: str | Task) -> list[dict[str, Any]]:
        """Each task that this one comes after: `id`, `short`, `state` (None if it was pruned) and `on_failure`."""

    def shorten(self, ids: Iterable[str]) -> list[str]:
        """For each id its short name."""

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""

    def stats(self, mission: str | None = None, *, exact: bool = False) -> dict[str, Any]:
        """How many tasks, or those of a mission, are in each state, in all and by kind; ages and rates; what is paused or set aside."""

    def overview(self) -> dict[str, Any]:
        """What waits for a person, in all and by sort, with counts, rates and pauses."""

    def lanes(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        assignee: str | None = None,
        text: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """The tasks of each state that match: some of them with what a card shows, and how many there are."""

    def agents(self) -> dict[str, Any]:
        """Each worker of the last hour: what it holds, since when, its claims, its mishaps and its rates."""

    def series(self) -> dict[str, Any]:
        """The last hour by the minute: throughput, backlog, median wait and run."""

    def paused(self) -> dict[str, Any]:
        """What is paused: the whole `yard` (true or false), and which `kinds`."""

    def why(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> dict[str, Any]:
        """Why nothing is ready for this worker; with an id, why that task is where it is and what would move it."""

    def unusable(self) -> list[str]:
        """What the last claims, or looks at what is ready, passed over because the system refuses it, each with the reason."""

    def outside(self) -> Outside:
        """What other programs hold or have done in the yard's folders, and what lies in the drop box and is no task."""

    def set_aside(self) -> list[dict[str, str | None]]:
        """Files that came in through the drop box and are no tasks."""

    def wait(
        self,
        *ids: str,
        timeout: float | None = None,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> list[Task]:
        """Wait until every one of these tasks, or all that match now, have ended, and return them.

        `TimedOut` if that takes too long, `Stuck` if one of them can never end by itself.
        """

    # Missions

    def new_mission(self, name: str, brief: str | None = None, owner: str | None = None) -> dict[str, Any]:
        """Make a mission; the same words again change nothing, and others raise `Conflict`."""

    def missions(self) -> list[dict[str, Any]]:
        """Every mission that was made, or that a task names, with its state and progress."""

    def mission(self, name: str) -> dict[str, Any]:
        """All about one mission: brief, owner, state, progress, counts, times, and what runs, has failed and comes next."""

    def cancel_mission(self, name: str, reason: str | None = None) -> dict[str, Any]:
        """Cancel every task of a mission that has not ended; how many those were is in the answer."""

    # Schedules

    def new_schedule(
        self,
        name: str,
        cron: str,
        kind: str,
        data: Any = None,
        *,
        tz: str = "UTC",
        missed: str = "one",
        **options: Unpack[TaskOptions],
    ) -> dict[str, Any]:
        """Have a task added at the times of a cron expression; the same words again change nothing."""

    def schedules(self) -> list[dict[str, Any]]:
        """Every schedule, by name."""

    def schedule(self, name: str) -> dict[str, Any]:
        """One schedule, with its next ticks."""

    def pause_schedule(self, name: str) -> dict[str, Any]:
        """Add no more tasks of this schedule."""

    def unpause_schedule(self, name: str) -> dict[str, Any]:
        """Go on with its next tick from now on."""

    def remove_schedule(self, name: str) -> dict[str, Any]:
        """Remove a schedule, and return what it was; its tasks stay."""

    # The log

    def events(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int = 1000,
        event: str | Iterable[str] | None = None,
        mission: str | None = None,
        newest: bool = False,
    ) -> Events:
        """What happened, oldest first, as dicts; the newest ones alone, if asked for."""

    def watch(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
        mission: str | None = None,
    ) -> Events:
        """The first event that matches, as soon as there is one; else `TimedOut`."""

    def follow(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        until: Callable[[], bool] | None = None,
        mission: str | None = None,
    ) -> Iterator[Events]:
        """Events as they come."""

    def log_end(self) -> str:
        """The cursor of the log's end: only what happens from now on comes after it."""

    # Steer

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Cancel a task; a worker that holds it loses its claim."""

    def retry(self, id: str) -> Task | None:
        """Retry a failed or cancelled task, make a waiting one ready now, or put a file that was set aside back into the drop box."""

    def accept(self, id: str) -> Task:
        """Accept what was submitted for review: the task is done with it."""

    def reject(self, id: str, note: str) -> Task:
        """Reject what was submitted for review: the task goes back to todo, and its next worker reads the note."""

    def bulk(
        self,
        verb: str,
        ids: Iterable[str] | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        reason: str | None = None,
        apply: bool = False,
        most: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> dict[str, Any]:
        """Cancel, retry or release the tasks that are named, or all that match; without `apply` only count them."""

    def edit(self, id: str, **changes: Unpack[EditOptions]) -> Task:
        """Change a task that no worker holds."""

    def pause(self, kind: str | None = None) -> None:
        """Pause this kind, or the whole yard: no task of it is claimed; running tasks go on."""

    def unpause(self, kind: str | None = None) -> None:
        """End the pause of this kind, or of the whole yard."""

    def settings(self) -> dict[str, Any]:
        """The yard's settings, each as it was set or by default."""

    def set_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change settings, of `kinds` and `checks` only those that are named; None takes one back. Return all of them."""

    # Tokens for a gateway

    def new_token(
        self, name: str | None = None, *, scope: str = ..., project: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Make a token, and return it with its secret `token`, which is kept nowhere; the same one for the same `key`."""

    def tokens(self) -> list[dict[str, Any]]:
        """Every token by name, without secrets."""

    def revoke_token(self, name: str) -> dict[str, Any]:
        """Revoke a token, and return what it was."""

    def token_digests(self) -> dict[str, dict[str, Any]] | None:
        """Each token with its digest, for a gateway to check; None if none was ever made."""

    # Files in sync with the yard

    def set_file_conflicts(self, file: str, conflicts: list[dict[str, Any]]) -> None:
        """Have `overview` list what this file and the yard disagree about; an empty list takes the file off."""

    # Teams, which own projects of one database

    def new_team(
        self, name: str, *, max_todo: int | None = None, max_running: int | None = None, rate: int | None = None
    ) -> dict[str, Any]:
        """Make a team with these quotas; the same words again change nothing, and others raise `Conflict`."""

    def teams(self, *, fill: bool = False) -> list[dict[str, Any]]:
        """Every team by name, with its quotas and projects; with `fill` also how full it is now."""

    def team(self) -> dict[str, Any] | None:
        """The team of this yard with its quotas, and how full it is now; None if it has none."""

    def set_team(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Change quotas of a team, of which None takes one away; return the team."""

    def give_team(self, name: str, project: str) -> dict[str, Any]:
        """Make a project of this database the team's; return the team."""

    def take_team(self, name: str, project: str) -> dict[str, Any]:
        """Take a project from the team; return the team."""

    def new_team_token(
        self, team: str, name: str | None = None, *, scope: str = ..., key: str | None = None
    ) -> dict[str, Any]:
        """Make a token that is good for every project of a team, now and later, and for no other."""

    def team_tokens(self, team: str) -> list[dict[str, Any]]:
        """Every token of a team by name, without secrets."""

    def revoke_team_token(self, team: str, name: str) -> dict[str, Any]:
        """Revoke a token of a team, and return what it was."""

    # What a worker needs beside its claims

    def vouch(self, lease: float) -> int | None:
        """Have claims end with this process, and last for `lease` seconds where the task has no lease of its own."""

    def give_back_dead(self) -> list[tuple[str, str]]:
        """Give back what dead incarnations of this worker's name held: id and kind of each task."""

    def remains(self, kinds: frozenset[str] | None, mission: str | None = None) -> bool:
        """Whether a task of these kinds, and of this mission, is in todo, in some worker's hands, or comes back after a backoff."""

    def waiter(self, seconds: float | None, stopped: Callable[[], bool] | None = None) -> Waiter:
        """What to wait with, until something may have changed, for at most `seconds`."""

    def claim_waiter(
        self,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
    ) -> Waiter:
        """The same for a caller that waits for nothing but a task to claim: other changes need not wake it."""

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as is known; None if nothing is."""

    def wake(self) -> None:
        """End every wait of this process on this yard now; a signal handler may call this too."""

    def tend(self) -> None:
        """Do a share of the janitor's work, if it is due."""

    # Upkeep

    def sweep(self, limit: int = ...) -> Swept:
        """Take in what was dropped, reap and wake what is overdue, and put right what the dead have left, now."""

    def prune(
        self,
        age: Any = None,
        count: int | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        ids: Iterable[str] | str | None = None,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Let old ended tasks go to the archive; without `apply` only count them."""

    def audit(self, repair: bool = False, progress: Callable[[str], object] | None = None) -> dict[str, Any]:
        """Prove that every task is in one legal state, and with `repair` heal what is not."""

    # For an orchestrator

    def lead(self, seconds: float) -> dict[str, Any]:
        """Lead the yard's orchestrators, if no other has renewed that for `seconds`; who leads."""

    def resign(self) -> bool:
        """Whether this yard led, and does so no more."""

    def refill(self) -> int:
        """Put what is ready into the hand-out lists of a server beside the store; how many tasks."""

    def reassign(self, id: str, assignee: str | None, fence: int) -> int | None:
        """Change the assignee of a task that is in todo under this fence; its new fence, None if it has moved on."""

    # For a door that speaks for many workers

    def acting_for(
        self, worker: str | None, request: str | None = None, usual: float | None = None, by: str | None = None
    ) -> Self:
        """The same yard as another worker uses it; claims under the same name of a `request` are the same claims.

        `by` is the name in the log of who changes something, if not the worker's.
        """

    def granted(self, worker: str | None = None) -> list[Claim]:
        """The claims that this worker was granted under the same request and still holds."""

    def close(self) -> None:
        """Let go of what the yard holds open; claims are not touched."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
