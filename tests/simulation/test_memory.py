"""Where a process rests it is what it remembers: whoever remembers the same there goes on alike."""

from __future__ import annotations

import random
import threading
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

from . import hands
from .explorer import Explorer
from .hands import REAP, Hand
from .memory import picture
from .package import Package
from .program import Run
from .scenes import DUTIES, add_with_key, known_lane, sweeping
from .search import staged
from .stage import Scene, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .program import Node
    from .scenes import Context
    from .stage import Script

WALKS = 3  # from each rest


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("one", "other")

    def __init__(self, one: Any) -> None:
        self.one = one


@pytest.mark.parametrize(
    "make", [Slotted, lambda part: Thing(part=part), lambda part: {1: [part]}, lambda part: lambda: part]
)
def test_two_that_differ_anywhere_within_are_told_apart(make: Any) -> None:
    assert picture(make("a"), [1, 2]) == picture(make("a"), [1, 2])
    assert picture(make("a")) != picture(make("b"))
    assert picture(make(1)) != picture(make(True))
    assert picture(make(Thing(x=1))) != picture(make(Thing(x=2)))


def test_one_thing_twice_is_not_two_that_look_alike() -> None:
    one: list[int] = []
    assert picture([one, one]) != picture([[], []])


def test_what_refers_to_itself_has_a_picture() -> None:
    def knot() -> list[Any]:
        loop: list[Any] = [1]
        loop.append(loop)
        return loop

    assert picture(knot()) == picture(knot())


def test_a_lock_that_is_held_is_told_from_a_free_one() -> None:
    lock = threading.Lock()
    free = picture(lock)
    with lock:
        assert picture(lock) != free


def test_what_cannot_be_looked_into_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot look into"):
        picture({"a": iter([1])})


def test_a_sweep_by_its_duties_is_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same duties in the same order, and nothing beside them."""
    stage = staged("keys-janitor", "plain")
    world = stage.play()
    world.alone(50, "eve")
    hand = Hand(stage.package, world.root, "eve")
    mending, done = hand.yard._store.upkeep._crashes, list[str]()
    duties = list(chain(*DUTIES.values()))
    for duty in duties[:-1]:
        within, _, name = duty.rpartition(".")
        owner = attrgetter(within)(mending) if within else mending
        monkeypatch.setattr(owner, name, noted(done, duty, getattr(owner, name)))
    box = hand.yard._store.dropbox
    monkeypatch.setattr(box, "intake", noted(done, REAP, box.intake))
    hand.yard.sweep()
    world.over()
    assert done == duties
    called = set(mending.mend.__code__.co_names) - {"_context", "clock", "exact"}
    assert called == {part for duty in duties[:-1] for part in duty.split(".")}


def noted(done: list[str], duty: str, act: Callable[..., Any]) -> Callable[..., Any]:
    def noting(*args: Any) -> Any:
        done.append(duty)
        return act(*args)

    return noting


def test_ways_that_end_in_the_same_memory_go_on_alike() -> None:
    """On every way to a rest that was taken for another, the real code asks the same as long as it is answered alike."""
    compare(sweeping("_log_for_dead_writers", "_segment_recovery.walk", "_edge_recovery.walk", REAP))


def test_a_memory_that_was_not_looked_into_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "picture", lambda *_: ())
    with pytest.raises(AssertionError, match="remembers more"):
        compare(look_and_look_there)


def look_and_look_there(hand: Hand, _: Context) -> Iterator[None]:
    """What it finds before it rests decides where it looks afterwards."""
    disk = hand.yard._store._context.disk
    yield
    names = disk.listdir(f"{hand.root}/writers")
    hand._rest()
    disk.exists(f"{hand.root}/writers/{len(names)}")


def compare(script: Script) -> None:
    """Whether one who does this beside an adder has come to rest in the same memory on ways that differ later."""
    explorer = Explorer(Stage(Package(), Scene("few", known_lane, [("ada", add_with_key), ("eve", script)])))
    explorer.all()
    rests = [node for root in explorer.roots for node in reachable(root) if len(node.parents) > 1]
    assert rests
    chance = random.Random(1)
    for node in rests:
        for parent in node.parents[1:]:
            for _ in range(WALKS):
                walk_beside(node, parent, chance)


def reachable(root: Node) -> list[Node]:
    found, ahead = {root: None}, [root]
    while ahead:
        for after in ahead.pop().after.values():
            if after not in found:
                found[after] = None
                ahead.append(after)
    return list(found)


def walk_beside(node: Node, parent: Node, chance: random.Random) -> None:
    """Run the code on the way through this parent, and on from there as another way went."""
    answers = [node.answer]
    at = parent
    while at.parents:
        answers.append(at.answer)
        at = at.parents[0]
    run = Run(node.program)
    call = run.go(None)
    for answer in reversed(answers):
        call = run.go(answer)
    while True:
        assert (call and call[:2]) == (node.call and node.call[:2]), "it remembers more than was looked at"
        if not node.after:
            break
        node = chance.choice(list(node.after.values()))
        call = run.go(node.answer)
    run.close()
