"""Which task of a batch comes after which: local names and keys looked up, cycles refused, and an order to add them in."""

from __future__ import annotations

from taskyard.core import ids, needs, task_names, words
from taskyard.core.errors import Ambiguous, Invalid, NotFound
from taskyard.core.needs import Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from taskyard.core.draft import Draft

    FindKeys = Callable[[Sequence[str]], dict[str, str]]
    """Returns the ids of the tasks that were added under these keys, by key."""

    FindAfter = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
    """Returns what these tasks come after, by id; those that are gone are left out."""

_SHOWN = 8  # tasks of a cycle that a message names


def ordered(drafts: Sequence[Draft], find_keys: FindKeys) -> list[int]:
    """Look up the needs of a batch, and return the order to add it in: each draft behind those that it comes after.

    Afterwards every need has a `position`, which counts in the returned order, or is a pattern of an id. Raise `Invalid`
    with the path if tasks of the batch come after one another.
    """
    local = _local_names(drafts)
    after = _looked_up(drafts, local, find_keys)
    order = _sorted(drafts, after)
    place = {position: turn for turn, position in enumerate(order)}
    for draft, some in zip(drafts, after, strict=True):
        if some:
            draft.after = tuple(
                Need(need, need.on_failure, need.by, place[need.position]) if need.position is not None else need
                for need in some
            )
    return order


def named(after: Sequence[str], find_keys: FindKeys) -> tuple[Need, ...]:
    """Look up the needs of one task that is there already: each is a pattern of an id afterwards."""
    given = [needs.parse(need) for need in after]
    outside = {str(need) for need in given if _may_be_key(need)}
    keys = find_keys(sorted(outside)) if outside else {}
    return needs.unique(_place(need, {}, keys) for need in given)


def path(id: str, after: Sequence[str], find_after: FindAfter) -> list[str] | None:
    """Return the cycle that would arise if task `id` came after these tasks: ids from `id` back to `id`; None without one."""
    from_whom: dict[str, str] = dict.fromkeys(map(str, after), id)
    level = list(from_whom)
    while level:
        if id in from_whom:
            back = [id]
            while len(back) == 1 or back[-1] != id:
                back.append(from_whom[back[-1]])
            return back[::-1]
        following: list[str] = []
        for younger, some in find_after(level).items():
            for older in map(str, some):
                if older not in from_whom:
                    from_whom[older] = younger
                    following.append(older)
        level = following
    return None


def cycles(starts: Iterable[str], comes_after: Callable[[str], Sequence[str]]) -> Iterator[list[str]]:
    """Yield the cycles that these tasks lead to, ids from one task back to itself; each task is asked for its needs once."""
    clear: set[str] = set()  # leads to no cycle that was not yielded
    for start in starts:
        way = {start: iter(comes_after(start))} if start not in clear else {}
        while way:
            last = next(reversed(way))
            other = next(way[last], None)
            if other is None:
                clear.add(last)
                del way[last]
            elif other in way:
                names = list(way)
                yield [*names[names.index(other) :], other]
            elif other not in clear:
                way[other] = iter(comes_after(other))


def shown(path: Sequence[str]) -> str:
    """Return a way from one task to the next as people read it; a long one is cut."""
    return " after ".join([*path[:_SHOWN], "...", path[-1]] if len(path) > _SHOWN + 1 else path)


def _local_names(drafts: Sequence[Draft]) -> dict[tuple[str, str], int]:
    """Return the drafts by ref and by key; raise `Invalid` for a ref that two of them have."""
    found: dict[tuple[str, str], int] = {}
    for position, draft in enumerate(drafts):
        if draft.ref is not None and found.setdefault(("ref", draft.ref), position) != position:
            first = found["ref", draft.ref] + 1
            raise Invalid(
                f"task {position + 1}: the ref {words.shown(draft.ref)} is that of task {first} too",
                hint="a ref names one task of the file",
            )
        if draft.key is not None:
            found.setdefault(("key", draft.key), position)
    return found


def _looked_up(
    drafts: Sequence[Draft], local: dict[tuple[str, str], int], find_keys: FindKeys
) -> list[tuple[Need, ...]]:
    """Return the needs of each draft, each with its position in the batch, or as a pattern of an id."""
    given = [[needs.parse(need) for need in draft.after] for draft in drafts]
    outside = {str(need) for some in given for need in some if _may_be_key(need) and not _places(need, local)}
    keys = find_keys(sorted(outside)) if outside else {}
    found = []
    for number, some in enumerate(given, 1):
        try:
            found.append(needs.unique(_place(need, local, keys) for need in some))
        except (Invalid, NotFound) as error:
            if len(drafts) == 1:
                raise
            raise type(error)(f"task {number}: {error.message}", hint=error.hint) from None
    return found


def _may_be_key(need: Need) -> bool:
    """Whether a key of the yard may be meant; a whole id is an id, so that long lists of ids cost no lookups."""
    return need.by == "key" or (need.by is None and not ids.is_id(need.lower()))


def _places(need: Need, local: dict[tuple[str, str], int]) -> set[int]:
    """Return the places in the batch that this need may name."""
    kinds = ("ref", "key") if need.by is None else (need.by,)
    return {local[kind, str(need)] for kind in kinds if (kind, str(need)) in local}


def _place(need: Need, local: dict[tuple[str, str], int], keys: dict[str, str]) -> Need:
    """Return the need resolved: to a draft of the batch, a key of the yard, or a pattern of an id."""
    places = _places(need, local)
    if len(places) > 1:
        raise Ambiguous(
            f"{words.shown(str(need))} is the ref of one task of this batch and the key of another",
            hint='say which one is meant: {"ref": "..."} or {"key": "..."}',
        )
    if places:
        return Need(need, need.on_failure, need.by, places.pop())
    if need.by == "ref":
        raise NotFound(f"no task of this batch has the ref {words.shown(str(need))}", hint="check the ref's spelling")
    known, pattern = keys.get(str(need)), None if need.by == "key" else ids.pattern(str(need))
    if known is not None and pattern is not None and not ids.fits(pattern, known):
        raise Ambiguous(
            f"{words.shown(str(need))} is the key of task {ids.short(known)}, and may be the id of another",
            hint='say which one is meant: {"key": "..."} or {"id": "..."}',
        )
    if known is not None:
        return need.named(known)
    if need.by == "key":
        raise NotFound(
            f"no task has the key {words.shown(str(need))}", hint="'taskyard list' shows the tasks there are"
        )
    name, _, policy = need.rpartition(":")
    if pattern is None and ids.pattern(name) is not None:
        raise Invalid(
            f"after: {words.shown(policy)} is nothing that can follow task {name}",
            hint=f"write {name} alone, or with what its failure means: {', '.join(f':{one}' for one in needs.POLICIES)}",
        )
    return need.named(task_names.task_id(str(need)))


def _sorted(drafts: Sequence[Draft], after: Sequence[Sequence[Need]]) -> list[int]:
    """Return the positions, each behind those that it needs and else in their order; raise `Invalid` for a cycle."""
    waits = [{need.position for need in some if need.position is not None} for some in after]
    if not any(waits):
        return list(range(len(drafts)))
    order: list[int] = []
    state = [0] * len(drafts)  # 0 not seen, 1 on the path, 2 in the order
    for start in range(len(drafts)):
        path = [(start, iter(sorted(waits[start])))] if not state[start] else []
        if path:
            state[start] = 1
        while path:
            position, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[position] = 2
                order.append(position)
                path.pop()
            elif state[following] == 1:
                names = [at for at, _ in path]
                raise cycle([_said(drafts[at], at) for at in [*names[names.index(following) :], following]])
            elif not state[following]:
                state[following] = 1
                path.append((following, iter(sorted(waits[following]))))
    return order


def _said(draft: Draft, position: int) -> str:
    return draft.ref or draft.key or f"task {position + 1}"


def cycle(path: Sequence[str]) -> Invalid:
    """Make the error for tasks that come after one another; `path` begins and ends with the same one."""
    if len(path) == 2:
        return Invalid(f"{path[0]} cannot come after itself", hint="leave that entry out of its after")
    return Invalid(
        f"these tasks come after one another: {shown(path)}",
        hint="take one of these steps out of an after; else none of them could ever start",
    )
