"""Short names: `0-kf12`, from a task's segment and the end of its id, for people to say and to give wherever an id is due."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from taskyard import Ambiguous, Conflict, Invalid, NotFound, State
from taskyard.core import ids
from tests.conftest import retried, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

FORM = re.compile(r"([1-9a-z][0-9a-z]{0,3}|0)-[0-9a-z]{4}")


@pytest.fixture
def alike(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[str, str]]:
    """Adds two tasks of one segment whose ids have the same last four characters, the older one first."""
    chance = ids.chance

    def same_end(bits: int) -> int:
        """Chance that leaves the last 20 bits alone, where an id is drawn (40 bits) and where it goes up within a tick (16)."""
        return {40: chance(40) & ~0xFFFFF | 0xBEEF, 16: (1 << 20) - 1}.get(bits, chance(bits))

    def add() -> tuple[str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(ids, "chance", same_end)
            one, two = yard.add("build").id, yard.add("build").id
            while one[: ids.SEGMENT] != two[: ids.SEGMENT]:  # the first was the last one of its segment
                one, two = two, yard.add("build").id
            assert one[-4:] == two[-4:]
            return one, two

    return add


def test_a_task_has_its_short_name_wherever_it_is_given(yard: Yard) -> None:
    added = yard.add("build")
    whole, compact = [added, yard.get(added.id)], [*yard.find(), *yard.ready()]
    whole.append(taken(yard.claim()).task)
    assert [task.short for task in (*whole, *compact)] == [added.short] * 5
    assert [task.as_dict()["short"] for task in whole] == [added.short] * 3
    assert [task.as_line()["short"] for task in compact] == [added.short] * 2
    assert FORM.fullmatch(added.short)
    segment, _, end = added.short.partition("-")
    assert (segment.rjust(ids.SEGMENT, "0"), end) == (added.id[: ids.SEGMENT], added.id[-ids.SHORT :])


def test_events_have_the_short_name_of_their_task(yard: Yard) -> None:
    task = yard.add("build")
    taken(yard.claim()).done()
    assert [event["short"] for event in yard.events()] == [task.short] * 3


def test_a_short_name_is_taken_wherever_an_id_is(yard: Yard) -> None:
    task = yard.add("build")
    assert yard.get(task.short).id == yard.report(task.short).task.id == task.id
    assert yard.edit(task.short, title="New").id == task.id
    follower = yard.add("test", after=task.short)
    assert follower.after == [task.id]
    [batched] = yard.add_many([{"kind": "test", "after": [follower.short, task.short]}])
    assert sorted(yard.get(batched).after) == sorted([follower.id, task.id])
    taken(yard.claim(task.short)).fail("broken", retry=False)
    assert {event["task"] for event in yard.events(task=task.short)} == {task.id}
    assert retried(yard, task.short).id == task.id
    assert yard.cancel(task.short).id == task.id
    assert [one.id for one in yard.wait(task.short, timeout=0)] == [task.id]
    assert yard.shorten([task.short, task.id]) == [task.short] * 2


def test_a_short_name_finds_a_task_in_every_state(yard: Yard) -> None:
    name = yard.add("build", delay=1000).short
    assert yard.get(name).state is State.WAITING
    yard.retry(name)
    assert yard.get(name).state is State.TODO
    claim = taken(yard.claim(name))
    assert yard.get(name).state is State.PROCESSING
    claim.fail("broken", retry=False)
    assert yard.get(name).state is State.FAILED
    yard.retry(name)
    assert yard.get(yard.add("test", after=name).short).state is State.BLOCKED
    taken(yard.claim(name)).done()
    assert yard.get(name).state is State.DONE
    assert yard.cancel(yard.add("build").short).state is State.CANCELLED


def test_case_zeros_and_more_of_the_end_make_no_difference(yard: Yard) -> None:
    id = yard.add("build").id
    short = yard.get(id).short
    for name in (short.upper(), f"{id[: ids.SEGMENT]}-{id[-4:]}", ids.short(id, 5), ids.short(id, 17)):
        assert yard.get(name).id == id


NONE = (
    "0-", "-kf12", "0-kf1", "0-kfl2", "00000-kf12", "0-kf12-", "0--kf12", "0-kf12.json", "0-kf12\n", " 0-kf12", "0_kf12",
    "0\N{EN DASH}kf12", "0-\N{KELVIN SIGN}f12", "\N{ARABIC-INDIC DIGIT ZERO}-kf12", "0-kf12\0", "0-" + "k" * 18, "0-" + "k" * 10**6,
    "../0-kf12", "%-____", "0-%%%%", "0-____",
)  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_what_has_another_form_names_no_task(yard: Yard, name: str) -> None:
    yard.add("build")
    with pytest.raises(NotFound) as caught:
        yard.get(name)
    assert caught.value.code == "not_found"
    assert caught.value.hint
    assert len(caught.value.message) < 200


def test_a_short_name_that_no_task_has_is_not_found(yard: Yard) -> None:
    task = yard.add("build")
    other = "zzzz" if task.id[-4:] != "zzzz" else "yyyy"
    for name in (ids.short(task.id[:-4] + other), f"zzzz-{task.id[-4:]}"):
        for look in (yard.get, yard.claim, yard.cancel, yard.retry, lambda name: yard.add("test", after=name)):
            with pytest.raises(NotFound) as caught:
                look(name)
            assert (type(caught.value), name in caught.value.message) == (NotFound, True)


def test_a_name_that_two_tasks_share_is_refused_with_the_longer_ones(
    yard: Yard, alike: Callable[[], tuple[str, str]]
) -> None:
    one, two = alike()
    for look in (yard.get, yard.claim, yard.cancel, lambda name: yard.add("test", after=name)):
        with pytest.raises(Ambiguous) as caught:
            look(ids.short(one))
        assert ids.short(one) in caught.value.message
        assert "2 tasks by now" in caught.value.message
        longer = re.findall(r"[0-9a-z]+-[0-9a-z]{5,}", caught.value.message)
        assert [yard.get(name).id for name in longer] == [one, two], "the older one comes first"
    assert yard.counts()["todo"] >= 2


def test_where_two_end_alike_a_look_gives_both_a_longer_name(yard: Yard, alike: Callable[[], tuple[str, str]]) -> None:
    one, two = alike()
    third = yard.add("build").id
    names = {task.id: task.short for task in yard.find()}
    for id in (one, two):
        assert len(names[id]) > len(ids.short(id))
        assert yard.get(names[id]).id == id
        assert yard.get(id).short == names[id]
        with pytest.raises(Ambiguous):
            yard.get(names[id][: names[id].index("-") + 1] + names[id][names[id].index("-") + 2 :])
    assert names[third] == ids.short(third), "only those that end alike are longer"
    assert yard.shorten([one, two]) == [names[one], names[two]]


def test_the_end_of_one_task_alone_is_its_name_again_when_the_other_is_gone(
    yard: Yard, alike: Callable[[], tuple[str, str]]
) -> None:
    one, two = alike()
    yard.cancel(one)
    yard.prune(count=0, apply=True)
    assert yard.get(ids.short(two)).short == ids.short(two)


def test_tasks_that_end_alike_in_different_states_are_told_apart(
    yard: Yard, alike: Callable[[], tuple[str, str]]
) -> None:
    one, two = alike()
    taken(yard.claim(one)).done()
    assert len(yard.get(two).short) > len(ids.short(two))
    assert {task.short for task in yard.find(state="todo") if task.id == two} == {yard.get(two).short}
    yard.edit(two, delay=1000)
    with pytest.raises(Ambiguous):
        yard.get(ids.short(one))


def test_a_short_name_is_no_handle_and_the_refusal_says_what_is_due(yard: Yard) -> None:
    with pytest.raises(Invalid) as caught:
        yard.held(yard.add("build").short)
    assert caught.value.hint is not None
    assert "handle" in caught.value.hint


def test_refusals_name_the_task_as_people_do(yard: Yard) -> None:
    task = yard.add("build")
    yard.cancel(task.id)
    with pytest.raises(Conflict) as caught:
        yard.cancel(task.id)
    assert f"task {task.short} " in caught.value.message


def test_a_file_that_is_set_aside_under_a_short_name_is_not_taken_for_the_task(yard: Yard) -> None:
    if not os.path.isabs(yard.url):
        return  # there is no drop box
    task = yard.cancel(yard.add("build").id)
    for name in (task.short, "2024-0001"):
        with open(f"{yard.url}/todo/{name}.json", "w") as file:
            file.write('{"kind": "no good"}')
    yard.sweep()
    assert sorted(str(entry["name"]) for entry in yard.set_aside()) == sorted((task.short, "2024-0001"))
    with pytest.raises(Ambiguous):
        yard.retry(task.short)
    with pytest.raises(Conflict):
        yard.retry("2024-0001")  # the file's, which is still wrong: no task is named so
    assert retried(yard, task.id).state is State.TODO
    assert yard.get(task.short).id == task.id, "what only reads, reads tasks"


def test_a_file_never_stands_in_for_tasks_that_share_its_name(yard: Yard, alike: Callable[[], tuple[str, str]]) -> None:
    if not os.path.isabs(yard.url):
        return
    one, _ = alike()
    with open(f"{yard.url}/todo/{ids.short(one)}.json", "w") as file:
        file.write('{"kind": "no good"}')
    yard.sweep()
    with pytest.raises(Ambiguous):
        yard.retry(ids.short(one))
