"""Which task comes after which: names looked up, cycles refused, and results handed on to the tasks that come after."""

from __future__ import annotations

from taskyard.core import draft, ids, needs, plan, task_names
from taskyard.core.errors import Ambiguous, Conflict, Invalid, NotFound
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.yard.arguments import Inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.needs import Need
    from taskyard.core.task import Standing, Task
    from taskyard.store import Store

INPUTS_MOST = 4 << 20  # bytes of results, as JSON, that one task is handed
_TOGETHER = 100  # whole tasks that are read at a time: each may have 2 MiB of data and result


def add(store: Store, drafts: list[Draft], by: str) -> list[Task]:
    """Add drafts that come after one another or after tasks of the yard, and return their tasks in the given order."""
    order = plan.ordered(drafts, lambda keys: _ids_by_key(store, keys))
    if len(drafts) > 1:
        _look_up(store, drafts)
    added = store.add([drafts[position] for position in order], by)
    tasks = dict(zip(order, added, strict=True))
    return [tasks[position] for position in range(len(drafts))]


def relate(store: Store, drafts: Sequence[Draft]) -> None:
    """Put whole ids into `parent` and `discovered_from`; raise `NotFound` for a name of no task."""
    found: dict[str, str] = {}
    for number, new in enumerate(drafts, 1):
        for field in ("parent", "discovered_from"):
            name = getattr(new, field)
            if name is None:
                continue
            if name not in found:
                try:
                    found[name] = store.stand(task_names.task_id(name)).id
                except (Ambiguous, NotFound) as error:
                    task = f"task {number}: " if len(drafts) > 1 else ""
                    raise type(error)(f"{task}{field}: {error.message}", hint=error.hint) from None
            setattr(new, field, found[name])


def replaced(store: Store, id: str, after: Sequence[str]) -> tuple[tuple[Need, ...], tuple[Need, ...]]:
    """Return the needs of task `id` by whole ids, and those of them that are unmet.

    Raise `NotFound` for an unknown name, and `Invalid` with the path if the task would come after itself.
    """
    named = plan.named(after, lambda keys: _ids_by_key(store, keys))
    whole = needs.unique(need if ids.is_id(need) else need.named(store.stand(need).id) for need in named)
    states: dict[str, State] = {}
    _refuse_cycle(store, id, whole, states)
    for need in whole:
        if need not in states:
            raise task_names.unknown(need)
    unmet = tuple(need for need in whole if needs.verdict(need.on_failure, states[need]) != needs.MET)
    return whole, unmet


def _refuse_cycle(store: Store, id: str, after: Sequence[str], states: dict[str, State]) -> None:
    def find_after(some: Sequence[str]) -> dict[str, list[str]]:
        found = {}
        for task in whole_tasks(store, some):
            states[task.id] = task.state
            found[task.id] = task.after
        return found

    path = plan.path(id, after, find_after)
    if path is not None:
        raise plan.cycle(store.shorten(path))


def standing_cycle(store: Store, id: str, after: Sequence[str]) -> Conflict | None:
    """Return the error if the task comes after itself now, because another edit was made at the same time."""
    try:
        _refuse_cycle(store, id, after, {})
    except Invalid as error:
        return Conflict(
            f"another edit at the same time crossed this one: {error.message}",
            hint="this edit was taken back; look at both tasks with 'taskyard show', then edit one of them",
        )
    return None


def refuse_doomed(store: Store, standing: Standing) -> None:
    """Raise `Conflict` if a retry would be in vain: what the task comes after has ended, and it is cancelled with that."""
    cancelling = {
        str(need) for need in store.get(standing.id).task.after if needs.on_failure(need) == needs.CANCEL
    } & set(standing.unmet)
    for other in store.find(Query(ids=sorted(cancelling)))[0] if cancelling else ():
        if needs.verdict(needs.CANCEL, other.state) == needs.CANCEL:
            raise Conflict(
                f"task {standing.short} comes after task {other.short}, which is {other.state}, and is cancelled with it",
                hint=f"retry {other.short} first, or add a task that does not come after it",
            )


def inputs(store: Store, after: Sequence[str]) -> Inputs:
    """Return the results of those of these tasks that are done, by id, in the given order, up to `INPUTS_MOST` bytes."""
    found, room = Inputs(), INPUTS_MOST
    for start in range(0, len(after), _TOGETHER):
        chunk = after[start : start + _TOGETHER]
        there = {task.id: task for task in store.find(Query(ids=chunk, whole=True))[0]}
        for at, id in enumerate(chunk, start):
            task = there.get(id)
            if task is None or task.state is not State.DONE:
                continue
            room -= len(draft.compact(task.result).encode("utf-8", "surrogatepass"))
            if room < 0:
                found.left_out = len(after) - at
                return found
            found[task.id] = task.result
    return found


def dependencies(store: Store, after: Sequence[str]) -> list[dict[str, Any]]:
    """Return the state of each of these tasks, with what its failure means; the state is None if it was pruned."""
    there = {task.id: task for task in store.find(Query(ids=after))[0]} if after else {}
    known = [id for id in map(str, after) if id in there]
    names = dict(zip(known, store.shorten(known), strict=True))
    return [
        {
            "id": str(need),
            "short": names.get(need, ids.short(need)),
            "state": str(there[need].state) if need in there else None,
            "on_failure": needs.on_failure(need),
        }
        for need in after
    ]


def whole_tasks(store: Store, some: Sequence[str]) -> Iterator[Task]:
    """Yield every field of those of these tasks that are there; bounded in what is read at a time."""
    for start in range(0, len(some), _TOGETHER):
        yield from store.find(Query(ids=some[start : start + _TOGETHER], whole=True))[0]


def _ids_by_key(store: Store, keys: Iterable[str]) -> dict[str, str]:
    return {str(task.key): task.id for task in store.find(Query(keys=list(keys)))[0]}


def _look_up(store: Store, drafts: Sequence[Draft]) -> None:
    """Put whole ids into the needs of a batch, so that an unknown one is refused with the number of its task."""
    patterns = {need for new in drafts for need in new.after if needs.parse(need).position is None}
    whole = [pattern for pattern in patterns if ids.is_id(pattern)]
    there = {task.id for task in store.find(Query(ids=whole))[0]} if whole else set()
    found: dict[str, str] = {id: id for id in there}
    for number, new in enumerate(drafts, 1):
        try:
            new.after = needs.unique(_whole(store, needs.parse(need), found) for need in new.after)
        except (Ambiguous, Invalid, NotFound) as error:
            if _is_known(store, new):
                continue
            raise type(error)(f"task {number}: {error.message}", hint=error.hint) from None


def _whole(store: Store, need: Need, found: dict[str, str]) -> Need:
    if need.position is not None:
        return need
    if need not in found:
        if ids.is_id(need):
            raise task_names.unknown(need)
        found[need] = store.stand(need).id
    return need.named(found[need])


def _is_known(store: Store, new: Draft) -> bool:
    """Whether the draft's key is known: then its task is there, and what it came after may be gone."""
    return new.key is not None and bool(_ids_by_key(store, [new.key]))
