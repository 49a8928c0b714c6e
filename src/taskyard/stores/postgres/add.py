"""Adding tasks: one by a single statement, many by COPY through a temporary table; all of them or none."""

from __future__ import annotations

from copy import copy

from taskyard.core import backlog, ids, needs, task_names, teams
from taskyard.core import draft as drafts_module
from taskyard.core.errors import Away, Conflict
from taskyard.core.needs import Need
from taskyard.core.task import State, Task
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.context import only, patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.errors import Full
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.read import Reader

    Made = tuple[str, str, int | None, int | None]
    """Of an added task: its id, its state, when it is due, and its deadline."""

COLUMNS = (
    "place", "tick", "chance", "kind", "priority", "assignee", "max_attempts", "own_lease", "uses", "title", "mission",
    "key", "digest", "after", "unmet", "verify", "not_before", "delay", "data", "minted", "followed", "policies", "on_failure",
    "parent", "discovered_from", "expires", "expires_in", "timeout",
)  # fmt: skip
_FEW = 50  # up to this many tasks, arrays are faster than a temporary table
_TICKFUL = 100_000  # tasks per tick: their random parts rise in steps and must not overflow
TRIES = 5
# Milliseconds that the token of an add is kept. A retry looks for it, and retries follow at once.
_FIRST_KEPT = 600_000
_AGAIN_KEPT = 86_400_000  # The same for the token of a retry: a frozen pooler may still deliver the first attempt.
_RESENT_KEPT = 90 * 86_400_000  # The same for what comes out of a spool: it may be replayed again long after.


class Raced(Exception):
    """Another process took one of the keys, or ended one of the `after` tasks, during this add."""


class Crowded(Raced):
    """The team is nearly full, or has changed: the add has to come again, and alone, so that it sees what others add."""


class Adder:
    """Adds for one store."""

    def __init__(self, context: Context, reader: Reader) -> None:
        self._context = context
        self._reader = reader

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Store new tasks, in this order; for a draft whose key is known, return the task that has the key."""
        if not drafts:
            return []
        alone = False
        for _ in range(TRIES):
            try:
                return self._try(Batch(drafts, alone=alone), by)
            except Raced as raced:
                alone = alone or isinstance(raced, Crowded)
        raise Conflict("the tasks that are named here keep moving under other hands", hint="try again")

    def add_on(self, connection: Statements, drafts: Sequence[Draft], by: str) -> list[Task]:
        """The same within a transaction that is open on this connection; raise `Conflict` if others take a key meanwhile."""
        try:
            return self._once(connection, Batch(drafts, alone=True), by)
        except Crowded:
            raise Conflict("the quotas of the team change at this moment", hint="try again") from None
        except Raced:
            raise Conflict("another task is being added under the same key", hint="try again") from None

    def _try(self, batch: Batch, by: str) -> list[Task]:
        since = self._since()
        try:
            tasks: list[Task] = self._context.pool.attempt(
                lambda connection: self._once_only(connection, batch, by),
                lambda connection: self._lost(connection, batch),
            )
        except Away as away:
            if away.sent is not None:
                away.sent = {**away.sent, "since": since, "token": batch.token, "chances": batch.chances}
            raise
        return tasks

    def _lost(self, connection: Statements, batch: Batch) -> list[Task] | None:
        """Return the tasks if they were stored and only the answer was lost; else keep the next attempt's token longer."""
        batch.kept = _AGAIN_KEPT
        return self._found(connection, batch)

    def _once_only(self, connection: Statements, batch: Batch, by: str) -> list[Task]:
        """Add, unless an attempt on a lost connection was executed after all: then return its tasks."""
        try:
            return self._once(connection, batch, by)
        except driver.errors() as error:
            found = self._found(connection, batch) if driver.is_repeated(error) else None
            if found is None:
                raise
            return found

    def _once(self, connection: Statements, batch: Batch, by: str) -> list[Task]:
        if (
            batch.is_plain and not self._context.bounds and self._context.team_todo is None
        ):  # one statement is a transaction by itself, and one round trip
            return self._tasks(connection, batch, self._insert(connection, batch, by))
        with connection.transaction():
            self._know_keys(connection, batch)
            refusal = self._take_places(connection, batch)
            if refusal is None:
                batch.resolve(self._states(connection, batch), self._minted(connection, batch))
                tasks = self._tasks(connection, batch, self._insert(connection, batch, by))
                return self._cancelled(connection, batch, tasks, by)
        raise refusal  # after the commit: the next add need not count anew

    def _insert(self, connection: Statements, batch: Batch, by: str) -> dict[int, Made]:
        new = batch.new()
        token = batch.token if batch.is_resent or not connection.is_traceable else None
        values: dict[str, Any] = {"project": self._context.project, "by": by, "token": token, "kept": batch.kept}
        text = queries.load("add")
        if len(new) <= _FEW:
            rows = list(zip(*map(batch.row, new), strict=True)) or [()] * len(COLUMNS)
            values |= {name: list(column) for name, column in zip(COLUMNS, rows, strict=True)}
            given = text["given_arrays"]
        else:
            connection.rows(text["make_incoming"], {})
            connection.copy(text["copy_incoming"], map(batch.row, new))
            given = text["given_table"]
        found = connection.rows(f"WITH {given},\n{text['add']}", values)
        made = {place: (id, state, due, deadline) for place, id, state, due, deadline in found}
        if len(new) > _FEW:
            connection.rows(text["drop_incoming"], {})  # the caller's transaction may go on
        if len(made) < len(new):
            raise Raced
        if made and not batch.is_resent:  # whose ids have the time of another clock
            self._context.now = ids.created(made[new[-1]][0])
        return made

    def _know_keys(self, connection: Statements, batch: Batch) -> None:
        """Find the tasks that have these keys; raise `Conflict` if a key belongs to a different task."""
        keys = batch.check_keys()
        if not keys:
            return
        for key, id, kind, digest in self._context.on(connection, "add", "known_keys", {"keys": keys}):
            for place in batch.with_key(key):
                batch.compare(place, ids.short(id), kind, digest)
                batch.known[place] = id

    def _take_places(self, connection: Statements, batch: Batch) -> Full | Crowded | None:
        """Take places for the new tasks; return the error if the team, or a bound of the settings, leaves too few."""
        # All who add for a team take its lock before any other.
        refusal = None if self._context.team_todo is None else self._take_team_places(connection, batch)
        if refusal is not None:
            return refusal
        full = self._take_own_places(connection, batch)
        if full is not None and self._context.team_todo is not None:
            raise full  # so that the places of the team are given back
        return full

    def _take_own_places(self, connection: Statements, batch: Batch) -> Full | None:
        bounds = self._context.bounds
        wanted = backlog.wanted(bounds, (batch.drafts[place] for place in batch.new())) if bounds else {}
        for kind, number in wanted.items():
            if number > bounds[kind]:
                return backlog.full(kind, 0, bounds[kind], number)
        if not wanted:
            return None
        in_order = sorted(wanted, key=lambda kind: kind or "")  # so that no two adds wait for one another's counts
        values = {
            "kinds": [kind or "" for kind in in_order],
            "numbers": [wanted[kind] for kind in in_order],
            "mosts": [bounds[kind] for kind in in_order],
            "brief": not self._context.is_within,
        }
        for kind, count in self._context.on(connection, "add", "take_places", values):
            return backlog.full(kind or None, count, bounds[kind or None], wanted[kind or None])
        return None

    def _take_team_places(self, connection: Statements, batch: Batch) -> Full | Crowded | None:
        number = len(batch.new())
        values = {"number": number, "brief": not self._context.is_within, "alone": batch.alone}
        for team, count, most, again in self._context.on(connection, "add", "take_team_places", values):
            return Crowded() if again and number <= most else teams.full(team, count, most, number)
        return None

    def _states(self, connection: Statements, batch: Batch) -> dict[str, tuple[str, State]]:
        """Return id and state of each task that the new ones come after, by pattern; lock those that are not done."""
        wanted = batch.patterns()
        if not wanted:
            return {}
        found: dict[str, list[str]] = {pattern: [] for pattern in wanted}
        states: dict[str, State] = {}
        for place, id, is_done in self._context.on(connection, "add", "named", patterns(wanted)):
            found[wanted[place - 1]].append(id)
            if is_done:
                states[id] = State.DONE
        whole = {pattern: only(pattern, matches) for pattern, matches in found.items()}
        open_ids = set(whole.values()) - states.keys()
        if open_ids:
            ages = sorted(map(ids.age_key, open_ids))  # locked in order, so that two adds cannot deadlock
            for id, state in self._context.on(connection, "moves", "follow", {"ages": ages}):
                states[id] = State(state)
        if not states.keys() >= open_ids:
            raise Raced
        return {pattern: (id, states[id]) for pattern, id in whole.items()}

    def _minted(self, connection: Statements, batch: Batch) -> dict[int, str]:
        """Return the ids of the new tasks by place, if they have some or tasks of the batch come after one another."""
        if batch.is_resent or not batch.is_graph:
            return batch.given
        new = batch.new()
        ticks, numbers = self._context.on(connection, "add", "mint", {"number": len(new)})[0]
        return {
            place: ids.base32((number >> 10) & 0xFFFFF, 4)
            + ids.base32(ticks + place // _TICKFUL, 9)
            + batch.chances[place]
            for place, number in zip(new, numbers, strict=True)
        }

    def _cancelled(self, connection: Statements, batch: Batch, tasks: list[Task], by: str) -> list[Task]:
        """Cancel new tasks with those that they come after, where the needs say so; return the tasks as they are then."""
        doomed = [tasks[place].id for place in sorted(batch.doomed)]
        if not doomed:
            return tasks
        self._context.on(connection, "moves", "cancel_doomed", {"ids": doomed, "by": by})
        there = self._reader.tasks(connection, [task.id for task in tasks])
        for place, task in enumerate(tasks):
            created, tasks[place] = task.created, there[task.id]
            tasks[place].created = created
        return tasks

    def _since(self) -> str:
        """Return an age key before that of any task that is added from now on."""
        return ids.age_at(self._context.now - 60_000)

    def _found(self, connection: Statements, batch: Batch, since: str | None = None) -> list[Task] | None:
        """Return the tasks of this batch if they were stored and only the answer was lost."""
        values = {
            "since": since or self._since(),
            "chances": [batch.chances[place] for place in batch.new()],
        }
        by_chance = {row[0][-8:]: row[0] for row in self._context.on(connection, "add", "added_before", values)}
        if not by_chance:
            return None
        tasks = []
        there = self._reader.tasks(connection, sorted({*batch.known.values(), *by_chance.values()}))
        for place in range(len(batch.drafts)):
            id = batch.known.get(place) or by_chance.get(batch.chances[batch.first(place)])
            if id not in there:
                raise task_names.unknown(batch.drafts[place].kind)
            tasks.append(copy(there[id]))
            tasks[-1].created = place not in batch.known and batch.first(place) == place
        return tasks

    def _tasks(self, connection: Statements, batch: Batch, made: dict[int, Made]) -> list[Task]:
        tasks = []
        # Use the add's own connection: the pool may have no other.
        known = self._reader.tasks(connection, sorted(set(batch.known.values())))
        for place, draft in enumerate(batch.drafts):
            if place in made:
                tasks.append(self._task(draft, *made[place]))
                continue
            if place not in batch.known:
                tasks.append(self._task(draft, *made[batch.first(place)]))
            elif batch.known[place] in known:
                tasks.append(copy(known[batch.known[place]]))
            else:
                raise Raced  # another process has just pruned the task and its key
            tasks[-1].created = False
        return tasks

    def _task(self, draft: Draft, id: str, state: str, due: int | None, deadline: int | None) -> Task:
        draft.expires = deadline
        begins = due if state == "waiting" or draft.not_before is None else draft.not_before
        return draft.task(id, State(state), begins, self._context.policy.max_attempts)


class Batch:
    """Tasks that are added together: their random id parts, and which of them exist already."""

    def __init__(self, drafts: Sequence[Draft], token: str | None = None, *, alone: bool = False) -> None:
        self.drafts = drafts
        self.alone = alone
        """Whether no other add of the team may be under way."""
        self.is_resent = token is not None
        """Whether the batch comes out of a spool: it has ids, and is added once only for its token."""
        self.given = {place: draft.id for place, draft in enumerate(drafts) if draft.id is not None}
        """The ids that drafts have already, by place."""
        self.known: dict[int, str] = {}
        """Drafts whose key is known: place in the batch, and id of the task that has the key."""
        self.is_graph = any(
            isinstance(need, Need) and need.position is not None for new in drafts for need in new.after
        )
        """Whether tasks of the batch come after one another."""
        self.doomed: set[int] = set()
        """Places of new tasks that are cancelled at once, with one that they come after."""
        self._minted = self.given
        self._followed: set[int] = set()
        self._unmet: dict[int, list[Need]] = {}
        self.chances = _chances(len(drafts))
        self.token = driver.new_token() if token is None else token
        self.kept = _FIRST_KEPT if token is None else _RESENT_KEPT
        self._keyed: dict[str, list[int]] = {}
        for place, draft in enumerate(drafts):
            if draft.key is not None:
                self._keyed.setdefault(draft.key, []).append(place)
        self._digests: dict[int, str] = {}
        self.is_plain = len(drafts) == 1 and not drafts[0].key and not drafts[0].after

    def patterns(self) -> list[str]:
        """Return the patterns of the tasks outside the batch that new ones come after, each once."""
        wanted: dict[str, None] = {}
        for place in self.new():
            for need in self.drafts[place].after:
                position = need.position if isinstance(need, Need) else None
                if position is None or position in self.known:
                    wanted[str(need) if position is None else self.known[position]] = None
        return list(wanted)

    def resolve(self, states: dict[str, tuple[str, State]], minted: dict[int, str]) -> None:
        """Put ids into the needs of the new tasks, and note which of these are unmet."""
        self._minted = minted
        for place in self.new():
            draft = self.drafts[place]
            if draft.after:
                draft.after = needs.unique(self._need(place, needs.parse(need), states) for need in draft.after)
                kept = {str(need): need for need in self._unmet.get(place, ())}
                self._unmet[place] = [kept[id] for id in sorted(kept)]

    def _need(self, place: int, need: Need, states: dict[str, tuple[str, State]]) -> Need:
        verdict: str | None = None
        if need.position is not None and need.position not in self.known:
            first = self.first(need.position)
            self._followed.add(first)
            found = need.named(self._minted[first])
        else:
            id, state = states[self.known[need.position] if need.position is not None else str(need)]
            found, verdict = need.named(id), needs.verdict(need.on_failure, state)
        if verdict == needs.CANCEL:
            self.doomed.add(place)
        if verdict != needs.MET:
            self._unmet.setdefault(place, []).append(found)
        return found

    def new(self) -> list[int]:
        """Return the places of the tasks to create: the first draft of each unknown key, and all drafts without a key."""
        return [place for place in range(len(self.drafts)) if place not in self.known and self.first(place) == place]

    def first(self, place: int) -> int:
        """Return the place of the first draft with the same key, which may be `place` itself."""
        key = self.drafts[place].key
        return place if key is None else self._keyed[key][0]

    def with_key(self, key: str) -> list[int]:
        """Return the places of the drafts with this key."""
        return self._keyed[key]

    def check_keys(self) -> list[str]:
        """Return all keys; raise `Conflict` if two different drafts have the same key."""
        for places in self._keyed.values():
            first = self.drafts[places[0]]
            for place in places[1:]:
                self.compare(place, "that is added with it", first.kind, self.digest(places[0]))
        return list(self._keyed)

    def compare(self, place: int, owner: str, kind: str, digest: str) -> None:
        """Raise `Conflict` if the draft's key belongs to a different task."""
        draft = self.drafts[place]
        if draft.kind != kind or self.digest(place) != digest:
            raise Conflict(
                f"the key {draft.key!r} belongs to task {owner}, which is not the same",
                hint="the same key must come with the same kind and data; use another key for another task",
            )

    def digest(self, place: int) -> str:
        """Return a digest of the draft's data: equal for data that is equal as JSON."""
        if place not in self._digests:
            self._digests[place] = drafts_module.digest(self.drafts[place].payload)
        return self._digests[place]

    def row(self, place: int) -> tuple[Any, ...]:
        """Return the draft's values, in the order of COLUMNS."""
        draft, unmet = self.drafts[place], self._unmet.get(place, [])
        policies = {
            str(need): need.on_failure for need in map(needs.parse, draft.after) if need.on_failure != needs.BLOCK
        }
        is_related = bool(policies) or any(value is not None for value in related(draft))
        counted = isinstance(draft.expires, float)  # from now on
        return (
            place, place // _TICKFUL, self.chances[place], draft.kind, draft.priority, draft.assignee, draft.max_attempts, draft.lease,
            _json(draft.uses), draft.title, draft.mission, draft.key, None if draft.key is None else self.digest(place),
            "[]" if is_related and not draft.after else _json(draft.after), _json(unmet), draft.verify, draft.not_before,
            round(draft.delay * 1000), draft.payload, self._minted.get(place), place in self._followed,
            _json([need.on_failure for need in unmet]) if policies else None, drafts_module.compact(policies) if policies else None,
            draft.parent, draft.discovered_from, None if counted else draft.expires,
            round(draft.expires * 1000) if counted and draft.expires is not None else None, draft.timeout,
        )  # fmt: skip


def related(draft: Draft) -> tuple[object, ...]:
    """Return the values for which a task has a row in `relation`, beside policies."""
    return draft.parent, draft.discovered_from, draft.expires, draft.timeout


def _json(values: Sequence[str]) -> str | None:
    return drafts_module.compact(list(values)) if values else None


def _chances(number: int) -> list[str]:
    """Draw the random part of each id, rising within a tick, so that ids sort in the order of the batch."""
    texts = []
    chance = 0
    for place in range(number):
        if place % _TICKFUL == 0:
            chance = ids.chance(40) % ((1 << 40) - (1 << 34))
        elif number > 1:
            chance += 1 + ids.chance(16)
        texts.append(ids.base32(chance, 8))
    return texts
