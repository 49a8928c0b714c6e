"""The Yard port through a gateway: every verb is one request, and nothing is decided on this side."""

from __future__ import annotations

from _thread import allocate_lock

from taskyard.core import draft_fields, ids, times, words
from taskyard.core.errors import Away, Full, Invalid, Unavailable
from taskyard.core.task import Handle, State
from taskyard.remote import wire
from taskyard.remote.reading import RemoteReading, several
from taskyard.remote.request import Requests, opened
from taskyard.remote.waiter import Bell
from taskyard.yard import arguments, own_name
from taskyard.yard.claim import Claim, ClaimBlock
from taskyard.yard.claim_verbs import handle_of
from taskyard.yard.spool_verbs import Unspooled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.task import Task
    from taskyard.port import ClaimRef
    from taskyard.yard.janitor import Swept


class Granted:
    """A task as it was when a claim was granted, and when the lease ends."""

    __slots__ = ("lease_until", "task")

    def __init__(self, task: Task, lease_until: int) -> None:
        self.task = task
        self.lease_until = lease_until


class Unanswered:
    """The keys of requests for claims that got no answer, by what they asked for; each of several threads may have lost one."""

    def __init__(self) -> None:
        self._keys: dict[str, list[str]] = {}
        self._lock = allocate_lock()

    def keep(self, sort: str, key: str) -> None:
        """Keep the key of such a request."""
        with self._lock:
            self._keys.setdefault(sort, []).append(key)

    def take(self, sort: str) -> str | None:
        """Return a key that was kept, for this caller alone; None if there is none."""
        with self._lock:
            keys = self._keys.pop(sort, [])
            key = keys.pop() if keys else None
            if keys:
                self._keys[sort] = keys
            return key


class RemoteYard(RemoteReading, Unspooled):
    """A yard that is reached through a gateway."""

    created = False
    warnings: Sequence[str] = ()
    tends = False
    one_process = False

    def __init__(self, requests: Requests, worker: str | None = None) -> None:
        self._requests = requests
        self._bell = Bell()
        self._named = None if worker is None else words.worker(worker)
        self.worker = requests.worker = self._named or own_name(ids.base32(ids.chance(40), 8))
        self._usual: float | None = None
        self._unanswered = Unanswered()
        self._facts: dict[str, Any] | None = None

    def _ask(self, verb: str, /, **given: Any) -> dict[str, Any]:
        return self._requests.ask(verb, given)

    @property
    def named(self) -> str | None:
        """The worker's name if the caller gave one."""
        return self._named

    # Adding

    def add(self, kind: str, data: Any = None, *, conn: Any = None, wait: float = 0, **options: Any) -> Task:
        """Add a new task and return it; it is stored safely when this returns. Raise `Full` as a near yard does."""
        _refuse_connection(self.label, conn)
        answer = self._added("add", {"kind": kind, "data": data, **wire.options(options)}, wait)
        task = wire.task(answer["task"])
        task.created = answer["created"]
        return task

    def add_many(self, tasks: Iterable[Any], *, conn: Any = None, wait: float = 0) -> arguments.Added:
        """Add many tasks; all are checked before the first is added."""
        _refuse_connection(self.label, conn)
        given = [
            wire.options(fields) if isinstance(fields, dict) else fields for fields in words.several(tasks, "tasks")
        ]
        answer = self._added("add_many", {"tasks": given}, wait)
        added = arguments.Added(answer["ids"])
        added.created = answer["created"]
        return added

    def _added(self, verb: str, given: dict[str, Any], wait: float) -> dict[str, Any]:
        """Add under one key, however often it is said, and wait for room as long as asked for."""
        end = times.ticks() + (times.seconds(wait, "wait") if wait else 0.0)
        key = self._requests.new_key()
        while True:
            left = max(0.0, min(end - times.ticks(), wire.LONGEST_POLL))
            try:
                return self._requests.ask(verb, {**given, "wait": left or None}, key=key, wait=left)
            except Full as error:
                if times.ticks() >= end or error.wanted > error.most:
                    raise
            except Away as away:
                away.sent = {"verb": verb, "key": key}
                raise

    def add_spooled(self, drafts: list[Draft], token: str, sent: dict[str, Any] | None) -> list[str]:
        """Add what was kept in a spool under the key of its first attempt, so once only, and return the ids."""
        given = [draft_fields.fields(new) for new in drafts]
        if sent is not None and sent["verb"] == "add":
            added = self._requests.ask("add", given[0], key=sent["key"], again=True)
            return [added["task"]["id"]]
        key = token if sent is None else sent["key"]
        return list(self._requests.ask("add_many", {"tasks": given}, key=key, again=True)["ids"])

    # Claiming

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
        given = {"id": id, "kinds": several(kinds, "kinds"), "mission": mission, "worker": worker, "lease": lease}
        end = times.ticks() + (times.seconds(wait, "wait") if wait else 0.0)
        while True:
            left = max(0.0, min(end - times.ticks(), wire.LONGEST_POLL))
            answer = self._granted("claim", {**given, "wait": left}, left)["claim"]
            if answer is not None:
                return self._claim(answer)
            if times.ticks() >= end:
                return None

    def claimed(self, id: str | None = None, **given: Any) -> ClaimBlock:
        """Return a context manager: `with yard.claimed(...) as claim:`. `claim` is None if nothing is ready."""
        return ClaimBlock(self.claim(id, **given))

    def claim_many(
        self,
        number: int,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        lease: float | None = None,
    ) -> list[Claim]:
        """Claim up to `number` tasks, the most urgent and oldest that fit."""
        given = {
            "number": number,
            "kinds": several(kinds, "kinds"),
            "mission": mission,
            "worker": worker,
            "lease": lease,
        }
        return [self._claim(answer) for answer in self._granted("claim_many", given)["claims"]]

    def resume(self, worker: str | None = None) -> list[Claim]:
        """Claim again every task that this worker's name holds, under a new fence."""
        name = arguments.resumed(self._named, worker)
        return [self._claim(answer) for answer in self._granted("resume", {"worker": name})["claims"]]

    def _granted(self, verb: str, given: dict[str, Any], wait: float = 0.0) -> dict[str, Any]:
        """Ask for claims. If no answer comes, the next such call asks under the same key: it gets the claims that were granted."""
        sort = wire.encoded([verb, {**given, "wait": 0}]).decode()
        before = self._unanswered.take(sort)
        key = before or self._requests.new_key()
        try:
            return self._requests.ask(
                verb,
                {**given, "usual": self._usual} if verb != "resume" else given,
                key=key,
                again=before is not None,
                wait=wait,
            )
        except (Unavailable, KeyboardInterrupt):
            self._unanswered.keep(sort, key)
            raise

    def _claim(self, answer: dict[str, Any]) -> Claim:
        granted = Granted(wire.task(answer["task"]), wire.milliseconds(answer["lease_until"]))
        return Claim(self, Handle.parse(answer["claim"]), granted)

    def held(self, handle: str) -> Claim:
        """Return the claim of this handle, for a process that knows only the handle."""
        try:
            return Claim(self, Handle.parse(handle))
        except Invalid:
            if handle:
                self._ask("held", handle=handle)  # which knows whether this worker holds a task of that name
            raise

    def vouch(self, lease: float) -> int | None:
        """Have claims last for `lease` seconds where the task has no lease of its own; no kernel knows of a far worker's death."""
        from taskyard.core import draft

        self._usual = draft.lease(lease)
        return None

    def give_back_dead(self) -> list[tuple[str, str]]:
        """Return nothing: only leases tell of dead workers here."""
        return []

    # The verbs of a claim

    def heartbeat(self, claim: ClaimRef, progress: float | None = None, note: str | None = None) -> str:
        """Start the lease anew, and return its end."""
        return str(self._ask("heartbeat", claim=str(handle_of(claim)), progress=progress, note=note)["lease_until"])

    def done(self, claim: ClaimRef, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result; a repeated call changes nothing."""
        _refuse_connection(self.label, conn)
        self._ask("done", claim=str(handle_of(claim)), result=result, verified=verified or None)

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """End these claims as done with these results; return for each whether it is done now."""
        endings = [{"claim": str(handle_of(claim)), "result": result} for claim, result in ended]
        return list(self._ask("done_many", ended=endings)["done"])

    def fail(self, claim: ClaimRef, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error; the task is retried later if attempts are left and `retry` is set. Return its state."""
        return State(self._ask("fail", claim=str(handle_of(claim)), reason=reason, retry=retry)["state"])

    def release(self, claim: ClaimRef, after: float = 0.0, reason: str | None = None) -> None:
        """Give the task back; it is ready again after `after` seconds, and this counts as no attempt."""
        self._ask("release", claim=str(handle_of(claim)), after=after or None, reason=reason)

    def crash(self, claim: ClaimRef, reason: str) -> State:
        """End the claim as if this worker had died with it. Return the task's state."""
        return State(self._ask("crash", claim=str(handle_of(claim)), reason=reason)["state"])

    def holding(self, claims: Sequence[ClaimRef]) -> list[bool]:
        """Return for each claim whether it still holds its task."""
        return list(self._ask("holding", claims=[str(handle_of(claim)) for claim in claims])["holding"])

    def settled(self, claim: ClaimRef) -> State | None:
        """Return the state that the claim's holder put the task into: done, failed for good, or todo; else None."""
        state = self._ask("settled", claim=str(handle_of(claim)))["state"]
        return None if state is None else State(state)

    def lease(self, claim: ClaimRef) -> float:
        """Return how long the claim lasts without a heartbeat, in seconds."""
        return float(self._ask("lease", claim=str(handle_of(claim)))["lease"])

    def workdir(self, claim: ClaimRef, *, make: bool = False) -> str | None:
        """Return None: a folder of the gateway's machine is no use here."""
        return None

    def tidy(self, claim: ClaimRef) -> None:
        """Do nothing: there is no folder."""

    # Steering

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Cancel a task; a worker that holds it loses its claim."""
        return wire.task(self._steer("cancel", id=id, reason=reason)["task"])

    def retry(self, id: str) -> Task | None:
        """Retry a failed or cancelled task, make a waiting one ready now, or take in a file that was set aside."""
        answer = self._steer("retry", id=id)["task"]
        return None if answer is None else wire.task(answer)

    def accept(self, id: str) -> Task:
        """Accept what was submitted for review: the task is done with it."""
        return wire.task(self._steer("accept", id=id)["task"])

    def reject(self, id: str, note: str) -> Task:
        """Reject what was submitted for review: the task goes back to todo, and its next worker reads the note."""
        return wire.task(self._steer("reject", id=id, note=note)["task"])

    def _steer(self, verb: str, /, **given: Any) -> dict[str, Any]:
        return self._requests.ask(verb, given, key=self._requests.new_key())

    def edit(self, id: str, **changes: Any) -> Task:
        """Change a task that no worker holds."""
        return wire.task(
            self._requests.ask("edit", {"id": id, **wire.options(changes)}, key=self._requests.new_key(), nulls=True)[
                "task"
            ]
        )

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
        filters = {
            "state": several(state, "state"),
            "kind": several(kind, "kind"),
            "mission": mission,
            "worker": worker,
        }
        answer: dict[str, Any] = self._steer(
            "bulk", verb=verb, ids=several(ids, "ids"), **filters, reason=reason, apply=apply, most=most
        )["bulk"]
        if progress is not None and apply:
            progress(answer["count"], answer["count"])
        return answer

    def pause(self, kind: str | None = None) -> None:
        """Stop handing out tasks, of this kind or of any; running tasks go on."""
        self._ask("pause", kind=kind)

    def unpause(self, kind: str | None = None) -> None:
        """End a `pause` with the same arguments."""
        self._ask("unpause", kind=kind)

    def set_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change settings, and return all of them; checks are commands, and are set beside the yard alone."""
        self._facts = None
        return dict(self._ask("set_settings", changes=changes)["settings"])

    def new_token(
        self, name: str | None = None, *, scope: str = "work", project: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Make a token, and return it with its secret `token`, which is kept nowhere; the same one for the same `key`."""
        return self._new_token("new_token", {"name": name, "scope": scope, "project": project}, key)

    def _new_token(self, verb: str, given: dict[str, Any], key: str | None) -> dict[str, Any]:
        from taskyard.core import tokens

        # The keys of other requests are no secrets: the yard keeps them with the tasks.
        request = tokens.chance() if key is None else tokens.digest(words.text(key, "key"))
        return dict(self._requests.ask(verb, given, key=request)["token"])

    def tokens(self) -> list[dict[str, Any]]:
        """Return every token by name, without secrets."""
        return [*self._ask("tokens")["tokens"]]

    def revoke_token(self, name: str) -> dict[str, Any]:
        """Revoke a token, and return what it was."""
        return dict(self._ask("revoke_token", name=name)["token"])

    def set_file_conflicts(self, file: str, conflicts: list[dict[str, Any]]) -> None:
        """Have `overview` list what this file and the yard disagree about; an empty list takes the file off."""
        self._ask("set_file_conflicts", file=file, conflicts=conflicts)

    def token_digests(self) -> None:
        """Return None: digests stay with the gateway that has the yard."""

    def new_team(
        self, name: str, *, max_todo: int | None = None, max_running: int | None = None, rate: int | None = None
    ) -> dict[str, Any]:
        """Make a team with these quotas; the same words again change nothing, and others raise `Conflict`."""
        return dict(self._ask("new_team", name=name, max_todo=max_todo, max_running=max_running, rate=rate)["team"])

    def set_team(self, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Change quotas of a team, of which None takes one away; return the team."""
        return dict(self._ask("set_team", name=name, changes=changes)["team"])

    def give_team(self, name: str, project: str) -> dict[str, Any]:
        """Make a project of the gateway's database the team's; return the team."""
        return dict(self._ask("give_team", name=name, project=project)["team"])

    def take_team(self, name: str, project: str) -> dict[str, Any]:
        """Take a project from the team; return the team."""
        return dict(self._ask("take_team", name=name, project=project)["team"])

    def new_team_token(
        self, team: str, name: str | None = None, *, scope: str = "work", key: str | None = None
    ) -> dict[str, Any]:
        """Make a token that is good for every project of a team, now and later, and for no other."""
        return self._new_token("new_team_token", {"team": team, "name": name, "scope": scope}, key)

    def revoke_team_token(self, team: str, name: str) -> dict[str, Any]:
        """Revoke a token of a team, and return what it was."""
        return dict(self._ask("revoke_team_token", team=team, name=name)["token"])

    def new_mission(self, name: str, brief: str | None = None, owner: str | None = None) -> dict[str, Any]:
        """Make a mission; the same words again change nothing, and others raise `Conflict`."""
        return dict(self._ask("new_mission", name=name, brief=brief, owner=owner)["mission"])

    def cancel_mission(self, name: str, reason: str | None = None) -> dict[str, Any]:
        """Cancel every task of a mission that has not ended."""
        return dict(self._ask("cancel_mission", name=name, reason=reason)["mission"])

    def new_schedule(
        self,
        name: str,
        cron: str,
        kind: str,
        data: Any = None,
        *,
        tz: str = "UTC",
        missed: str = "one",
        **options: Any,
    ) -> dict[str, Any]:
        """Have a task added at the times of a cron expression; the same words again change nothing."""
        given = {"name": name, "cron": cron, "kind": kind, "data": data, "tz": tz, "missed": missed}
        return dict(self._ask("new_schedule", **given, **wire.options(options))["schedule"])

    def pause_schedule(self, name: str) -> dict[str, Any]:
        """Add no more tasks of this schedule."""
        return dict(self._ask("pause_schedule", name=name)["schedule"])

    def unpause_schedule(self, name: str) -> dict[str, Any]:
        """Go on with its next tick from now on."""
        return dict(self._ask("unpause_schedule", name=name)["schedule"])

    def remove_schedule(self, name: str) -> dict[str, Any]:
        """Remove a schedule, and return what it was; its tasks stay."""
        return dict(self._ask("remove_schedule", name=name)["schedule"])

    # Housekeeping

    def sweep(self, limit: int | None = None) -> Swept:
        """Take in dropped files, reap and wake overdue tasks, and repair what dead processes left, now."""
        from taskyard.yard.janitor import Swept

        swept = Swept()
        for name, number in self._ask("sweep", limit=limit)["swept"].items():
            setattr(swept, name, number)
        return swept

    janitor = sweep

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
        """Move ended tasks to the archive; without `apply` only count them."""
        given: dict[str, Any] = {"state": several(state, "state"), "kind": several(kind, "kind"), "mission": mission}
        given |= {"worker": worker, "ids": several(ids, "ids")}
        return dict(self._ask("prune", age=age, count=count, **given, apply=apply)["pruned"])

    def audit(self, repair: bool = False, progress: Callable[[str], object] | None = None) -> dict[str, Any]:
        """Check that every task is in one legal state, and with `repair` heal what can be healed."""
        if progress is not None:
            progress("the gateway audits its yard")
        return dict(self._ask("audit", repair=repair)["audit"])

    fsck = audit

    def tend(self) -> None:
        """Do nothing: the gateway does."""

    def alarm(self) -> float | None:
        """Return None: the gateway wakes its waiters when something is due."""
        return None

    def acting_for(
        self, worker: str | None, request: str | None = None, usual: float | None = None, by: str | None = None
    ) -> Self:
        """Return this yard as another worker uses it; who asked (`by`) is for the gateway to say, which knows the token."""
        requests = Requests(self._requests.address, self._requests.connections, self._requests.token)
        twin: Any = RemoteYard(requests, worker)  # without the spool that this one may have
        twin._usual = usual
        return twin  # type: ignore[no-any-return]

    def lead(self, seconds: float) -> dict[str, Any]:
        """Raise `Invalid`: an orchestrator runs beside the gateway."""
        raise _beside_the_gateway()

    def resign(self) -> bool:
        """Return False: no process leads through a gateway."""
        return False

    def refill(self) -> int:
        """Raise `Invalid`: an orchestrator runs beside the gateway."""
        raise _beside_the_gateway()

    def reassign(self, id: str, assignee: str | None, fence: int) -> int | None:
        """Raise `Invalid`: an orchestrator runs beside the gateway."""
        raise _beside_the_gateway()

    def granted(self, worker: str | None = None) -> list[Claim]:
        """Return nothing: each request names itself to the gateway."""
        return []

    def close(self) -> None:
        """Close the connections; claims stay. A closed yard refuses every verb."""
        self._requests.close()
        self._bell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Yard {self.label} worker={self.worker!r}>"


def open_remote(url: str, worker: str | None) -> RemoteYard:
    """Open the yard behind the gateway of this URL; raise `Unavailable` if there is none."""
    return RemoteYard(opened(url), worker)


def _refuse_connection(label: str, conn: Any) -> None:
    if conn is not None:
        raise Invalid(
            f"the yard {label} is behind a gateway, so there is no transaction to be part of",
            hint="conn= is for yards in PostgreSQL; leave it out here",
        )


def _beside_the_gateway() -> Invalid:
    return Invalid(
        "no process can orchestrate through a gateway",
        hint="run 'taskyard orchestrate' on the URL of the yard that the gateway serves, or 'taskyard serve --orchestrate'",
    )
