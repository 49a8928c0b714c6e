"""What a task uses it has to itself: no two tasks that use the same thing run at the same time, on any store."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict, Invalid
from taskyard.core import ids
from tests.conftest import outlast, taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_two_tasks_that_use_the_same_thing_do_not_run_at_once(yard: Yard) -> None:
    first = yard.add("build", uses=["port 80"])
    second = yard.add("build", uses=["port 80"])
    assert (first.uses, yard.get(second.id).uses) == (["port 80"], ["port 80"])
    claim = taken(yard.claim())
    assert (claim.task.id, claim.task.uses) == (first.id, ["port 80"])
    assert yard.claim() is None
    claim.done()
    assert taken(yard.claim()).task.id == second.id


NESTED = [
    ("src/auth/", "src/auth/login.py"),
    ("src/auth/", "src/auth/x/"),
    ("src/auth/", "src/auth/x/y/z.py"),
    ("src/auth", "src/auth/"),
    ("src/auth/", "src/auth/"),
    ("src//auth/", "./src/auth/a"),
    ("gpu", "./gpu"),
    ("src/./a", "src/a"),
    ("/srv/", "/srv/x"),
    ("src", "src/"),
]
APART = [
    ("src/auth", "src/authors"),
    ("src/auth/", "src/authors"),
    ("src/auth/", "src/authors/a"),
    ("src/auth", "src/auth/login.py"),
    ("src/a", "src/b"),
    ("src/a/", "src/b/"),
    ("/src/", "src/a"),
    ("src/0", "src/"[:-1]),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "together"), [(*pair, False) for pair in NESTED] + [(*pair, True) for pair in APART]
)
def test_a_folder_conflicts_with_all_below_it(yard: Yard, one: str, other: str, together: bool, turned: bool) -> None:
    names = (other, one) if turned else (one, other)
    first, second = yard.add("a", uses=[names[0]]).id, yard.add("b", uses=["other", names[1]]).id
    assert yard.get(second).uses == ["other", names[1]]
    claim = taken(yard.claim())
    assert claim.task.id == first
    assert [task.id for task in yard.ready()] == ([second] if together else [])
    if not together:
        with pytest.raises(Conflict, match="uses"):
            yard.claim(second)
        assert yard.claim() is None
        [reason] = yard.why(second)["reasons"][:1]
        assert (reason["code"], reason["resource"], reason["task"]) == ("in_use", names[1], first)
        assert yard.why()["in_use"][0]["by"] == yard.worker
        claim.done()
    assert taken(yard.claim()).task.id == second


@pytest.mark.parametrize("name", ["..", "../x", "src/../x", "a/..", "/", "./", "//", "."])
def test_a_path_that_leads_up_or_nowhere_is_refused(yard: Yard, name: str) -> None:
    with pytest.raises(Invalid, match="uses"):
        yard.add("a", uses=name)


def test_a_folder_is_handed_out_when_the_last_thing_in_it_is_free(yard: Yard) -> None:
    inside = [yard.add("a", uses=[f"src/{name}"]).id for name in ("a", "b/", "c/d")]
    claims = [taken(yard.claim(id)) for id in inside]
    whole = yard.add("b", uses=["src/"]).id
    for claim in claims:
        assert yard.claim(kinds="b") is None
        claim.done()
    assert taken(yard.claim(kinds="b")).task.id == whole


def test_many_claims_at_once_take_no_two_that_conflict(yard: Yard) -> None:
    yard.add_many([{"kind": "a", "uses": [name]} for name in ("src/", "src/a", "lib/a", "lib/", "x/a", "x/b", "x/a/")])
    held = [claim.task.uses[0] for claim in yard.claim_many(10)]
    assert held == ["src/", "lib/a", "x/a", "x/b"]


def test_that_a_task_asks_for_a_check_as_well_changes_nothing(yard: Yard, near: Yard) -> None:
    near.checks["tests"] = ["true"]
    first = yard.add("build", uses=["port 80"], verify="tests")
    second = yard.add("build", uses=["port 80"])
    third = yard.add("build", uses=["port 80"], verify="tests")
    for task in (first, second, third):
        claim = taken(yard.claim())
        assert (claim.task.id, claim.task.verify) == (task.id, task.verify)
        assert yard.claim() is None
        claim.release()
        taken(yard.claim(task.id)).done()


@pytest.mark.parametrize("ending", ["done", "fail", "release", "cancel"])
def test_whatever_ends_a_claim_frees_what_it_used(yard: Yard, ending: str) -> None:
    first, second = yard.add("a", uses="x").id, yard.add("b", uses="x").id
    claim = taken(yard.claim(first))
    assert yard.claim(kinds="b") is None
    if ending == "cancel":
        yard.cancel(first)
    elif ending == "fail":
        claim.fail("broken")
    else:
        getattr(claim, ending)()
    assert taken(yard.claim(kinds="b")).task.id == second


def test_a_holder_that_lapses_frees_what_it_used(yard: Yard) -> None:
    first, second = yard.add("a", uses="x").id, yard.add("b", uses="x").id
    outlast(taken(yard.claim(first, lease=0.05)))
    assert taken(yard.claim(kinds="b")).task.id == second
    assert yard.claim(kinds="a") is None


def test_a_resumed_claim_keeps_what_it_used(yard: Yard) -> None:
    yard.add("a", uses="x")
    yard.add("b", uses="x")
    taken(yard.claim(kinds="a"))
    [again] = yard.resume()
    assert yard.claim(kinds="b") is None
    again.done()
    taken(yard.claim(kinds="b"))


def test_one_thing_in_common_is_enough(yard: Yard) -> None:
    both = yard.add("a", uses=["x", "y"]).id
    one = yard.add("b", uses=["z", "y"]).id
    other = yard.add("c", uses=["w"]).id
    claim = taken(yard.claim())
    assert claim.task.id == both
    assert taken(yard.claim()).task.id == other
    assert yard.claim() is None
    claim.done()
    assert taken(yard.claim()).task.id == one


def test_what_is_in_use_holds_nothing_else_up(yard: Yard) -> None:
    taken(yard.claim(yard.add("build", uses="x").id))
    stuck = [yard.add("build", uses="x").id for _ in range(5)]
    free = [yard.add("build", uses="y").id, yard.add("build").id]
    assert {taken(yard.claim()).task.id, taken(yard.claim()).task.id} == set(free)
    assert yard.claim() is None
    assert yard.counts()["todo"] == len(stuck)


def test_the_oldest_comes_first_when_it_is_free_again(yard: Yard) -> None:
    ids = [yard.add("build", uses="x").id for _ in range(4)]
    order = []
    for _ in ids:
        claim = taken(yard.claim())
        assert yard.claim() is None
        order.append(claim.task.id)
        claim.done()
    assert order == ids


def test_ready_hides_what_is_in_use(yard: Yard) -> None:
    first, second = yard.add("build", uses="x").id, yard.add("build", uses="x").id
    assert [task.id for task in yard.ready()] == [first, second]
    claim = taken(yard.claim())
    assert list(yard.ready()) == []
    claim.release()
    assert len(yard.ready()) == 2


def test_a_claim_of_this_very_task_is_told_what_is_in_use_and_by_whom(yard: Yard, yard_url: str) -> None:
    first, second = yard.add("build", uses=["w", "x"]).id, yard.add("build", uses=["x", "y"]).id
    with taskyard.open(yard_url, worker="bob") as bob:
        claim = taken(bob.claim(first))
        with pytest.raises(Conflict, match="'x'") as refusal:
            yard.claim(second)
        assert ids.short(first) in refusal.value.message
        assert "bob" in str(refusal.value.hint)
        claim.done()
    assert taken(yard.claim(second)).task.id == second


@pytest.mark.parametrize(("held", "wanted"), [("src/auth/", "src/auth/login.py"), ("src/auth/login.py", "src/auth/")])
def test_a_claim_of_this_very_task_names_what_the_holder_uses(
    yard: Yard, yard_url: str, held: str, wanted: str
) -> None:
    first, second = yard.add("build", uses=held).id, yard.add("build", uses=wanted).id
    with taskyard.open(yard_url, worker="bob") as bob:
        taken(bob.claim(first))
        with pytest.raises(Conflict) as refusal:
            yard.claim(second)
    assert f"uses {wanted!r}, and {held!r} is used by task {ids.short(first)}" in refusal.value.message
    assert f"bob has {held!r} until" in str(refusal.value.hint)


def test_whoever_waits_gets_it_soon_after_it_is_free(yard: Yard, yard_url: str) -> None:
    yard.add("build", uses="x")
    last = yard.add("build", uses="x").id
    claim = taken(yard.claim())
    freed: list[float] = []

    def free() -> None:
        with taskyard.open(yard_url, worker="ada") as again:
            again.held(claim.handle).done()
        freed.append(time.monotonic())

    with taskyard.open(yard_url, worker="bob") as bob:
        timer = threading.Timer(0.2, free)
        timer.start()
        assert taken(bob.claim(wait=10)).task.id == last
        timer.join()
        assert time.monotonic() - freed[0] < 1


def test_nothing_is_counted_for_a_claim_that_was_in_the_way(yard: Yard) -> None:
    yard.add("build", uses="x")
    last = yard.add("build", uses="x").id
    claim = taken(yard.claim())
    for _ in range(3):
        assert yard.claim() is None
    claim.done()
    task = taken(yard.claim()).task
    assert (task.id, task.attempts) == (last, 0)
    assert [event["event"] for event in yard.events(task=last)] == ["added", "claimed"]


def test_names_come_back_as_they_were_given_each_once(yard: Yard) -> None:
    names = ["x", "ein Port: 80/tcp", "漢字", "a.b", "x"]
    task = yard.add("build", uses=names)
    assert task.uses == names[:-1]
    assert yard.get(task.id).uses == names[:-1]
    assert yard.add("build", uses="x" * 256).uses == ["x" * 256]
    assert yard.add("build", uses=[]).uses == []


@pytest.mark.parametrize("bad", ["", ["x", ""], "x" * 257, "a\nb", 7, [7], {"x": 1}, [str(n) for n in range(17)]])
def test_bad_names_are_refused(yard: Yard, bad: object) -> None:
    with pytest.raises(Invalid):
        yard.add("build", uses=bad)  # type: ignore[arg-type]
    assert sum(yard.counts().values()) == 0


def test_threads_that_claim_at_once_never_hold_the_same_thing(yard: Yard, yard_url: str) -> None:
    yard.add_many([{"kind": "build", "uses": ["x"] if n % 2 else ["y"]} for n in range(40)])
    busy: dict[str, str] = {}
    wrong: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        with taskyard.open(yard_url, worker=name) as mine:
            while (claim := mine.claim(wait=1)) is not None:
                [used] = claim.task.uses
                with lock:
                    if used in busy:
                        wrong.append(f"{used}: {busy[used]} and {claim.handle}")
                    busy[used] = claim.handle
                time.sleep(0.002)
                with lock:
                    busy.pop(used, None)
                claim.done()

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert yard.counts()["done"] == 40
