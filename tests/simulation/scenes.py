"""The scenes: few processes, each with little to do, at the places where others have gone wrong."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from .hands import REAP
from .stage import LEASE, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .hands import Hand
    from .stage import Script

Context = dict[str, Any]


def one_task(hand: Hand) -> Context:
    return {"id": hand.add("build", {"n": 1})}


def task_that_expires(hand: Hand) -> Context:
    """Before a lease could be over."""
    return {"id": hand.add("build", {"n": 1}, expires=LEASE / 2)}


def two_tasks(hand: Hand) -> Context:
    return {"ids": [hand.add("build", {"n": n}) for n in (1, 2)]}


def queued_long_ago(hand: Hand) -> Context:
    context = one_task(hand)
    hand.world.advance(10 * LEASE)
    return context


def held_task(hand: Hand) -> Context:
    id = hand.add("build", {"n": 1})
    return {"id": id, "handle": hand.claim().handle}


def claimed_before(hand: Hand) -> Context:
    """One task, which the first to get ready will hold, and folders that a second task has left."""
    other = hand.add("build", {"n": 0})
    hand.done(hand.claim(), {"n": 0})
    return {"id": hand.add("build", {"n": 1}), "other": other}


def known_lane(hand: Hand) -> Context:
    hand.add("build", {"n": 1}, key="other")
    return {}


def known_and_empty_lane(hand: Hand) -> Context:
    """So that whoever claims gets what is only just added."""
    hand.add("build", {"n": 1})
    hand.done(hand.claim(), {"n": 1})
    return {}


def known_folder(hand: Hand) -> Context:
    """Of keys: this one lies beside that of `add_with_key`, so that nobody has to make the folder first."""
    hand.add("build", {"n": 1}, key="like18")
    return {}


def submitted_before(hand: Hand) -> Context:
    """One task that waits for review; whoever does it once more need not submit it again, so that it ends."""
    id = hand.add("build", {"n": 1})
    claim = hand.claim(id)
    hand.submit(claim, {"n": 1})
    return {"id": id, "nonce": claim.handle.split(".")[2]}


def two_that_use_one(hand: Hand) -> Context:
    """Two tasks of two kinds, each of which needs the same to itself."""
    return {"ids": [hand.add(kind, {}, uses=["the printer"]) for kind in ("build", "test")]}


def folder_and_file_in_it(hand: Hand) -> Context:
    """Two tasks of two kinds: one needs a folder to itself, the other a file in it."""
    return {"ids": [hand.add(kind, {}, uses=[name]) for kind, name in (("build", "src/"), ("test", "src/a.py"))]}


def three_that_use_something(hand: Hand) -> Context:
    """The first needs what nobody else does, the others the same."""
    used = (("build", "the lamp"), ("test", "the printer"), ("build", "the printer"))
    return {"ids": [hand.add(kind, {}, uses=[name]) for kind, name in used]}


def after_two(hand: Hand) -> Context:
    """A task that comes after two others, each of which is about to be done by somebody."""
    ids = [hand.add("build", {"n": n}) for n in (1, 2)]
    return {"id": hand.add("test", {"n": 3}, after=ids)}


def after_two_in_a_sheet(hand: Hand) -> Context:
    """The same, with both edges in a sheet, as a larger graph has them."""
    files = hand.module("stores.directory.tasks.edge_files")
    few, files._FEW = files._FEW, 1
    try:
        return after_two(hand)
    finally:
        files._FEW = few


def after_one(hand: Hand) -> Context:
    """A task that comes after another one, both in one segment."""
    first = hand.add("build", {"n": 1})
    return {"id": first, "follower": hand.add("build", {"n": 2}, after=[first])}


def cancelled_with_one(hand: Hand) -> Context:
    """A task that is cancelled with another one, if that fails."""
    first = hand.add("build", {"n": 1})
    return {"id": first, "follower": hand.add("build", {"n": 2}, after=[f"{first}:cancel"])}


def ended_long_ago(hand: Hand) -> Context:
    """One that was called off, and was edited before."""
    context: Context = {"id": hand.add("build", {"n": 1}, key="same")}
    hand.edit(context["id"], data={"n": 9})
    hand.cancel(context["id"])
    hand.world.advance(10 * LEASE)
    return context


# Scripts: up to its `yield` an actor gets ready; from there on the others may go between any two of its calls.


def work(hand: Hand, _: Context) -> Iterator[None]:
    yield
    claim = hand.claim()
    if claim is not None:
        hand.done(claim, {"by": hand.name})


def take(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.claim()


def take_until_there_is_one(hand: Hand, _: Context) -> Iterator[None]:
    """With what it remembers of the first time when it asks again."""
    yield
    if hand.claim() is None:
        hand.claim_if_any()


def grabbing(number: int) -> Script:
    """A process that wants one of the tasks and no other."""

    def script(hand: Hand, context: Context) -> Iterator[None]:
        yield
        hand.grab(context["ids"][number])

    return script


def done(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.done(claim, {"by": "the holder"})


def take_after_a_done(hand: Hand, context: Context) -> Iterator[None]:
    """With what it has seen of others when it claimed the first of its tasks."""
    hand.done(hand.grab(context["ids"][0]), {"by": "the holder"})
    yield
    hand.claim(kinds=["build"])


def done_in_two_threads(hand: Hand, _: Context) -> Iterator[None]:
    claims = [hand.claim(), hand.claim()]
    yield
    hand.in_two_threads(*(lambda claim=claim: hand.done(claim, {"by": "the holder"}) for claim in claims))


def take_in_two_threads(hand: Hand, context: Context) -> Iterator[None]:
    """Each one of two tasks; others want them too."""
    yield
    hand.in_two_threads(*(lambda id=id: hand.grab(id) for id in context["ids"]))


def holding(hand: Hand, _: Context) -> Iterator[None]:
    """A process that holds what others want, and does nothing meanwhile."""
    hand.claim()
    yield


def done_twice(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.done(claim, {"by": "the holder"})
    hand.done(claim, {"by": "the holder"})


def beat_and_done(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    if hand.beat(claim):
        hand.done(claim, {"by": "the holder"})


def vouched_done(hand: Hand, _: Context) -> Iterator[None]:
    """As a worker does it, whose lock tells others that it lives."""
    hand.vouch(LEASE)
    claim = hand.claim()
    yield
    hand.done(claim, {"by": "the holder"})


def vouched_and_gone(hand: Hand, _: Context) -> Iterator[None]:
    """Its lock goes with it, and its claim stays: others may have the handle."""
    hand.vouch(LEASE)
    hand.claim()
    yield
    hand.yard.close()


def prune(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.prune(age=LEASE)


def retry(hand: Hand, context: Context) -> Iterator[None]:
    standing = hand.stand(context["id"])
    yield
    hand.retry(context["id"], standing)


def fail(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.fail(claim, "it broke")


def fail_for_good(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.fail(claim, "it broke", retry=False)


def take_and_release(hand: Hand, context: Context) -> Iterator[None]:
    """What is claimed and handed back all the time slips past those who look for it."""
    standing = hand.claim(context["id"]).ref
    yield
    hand.hand_back(standing)
    again = hand.grab(context["id"])
    if again is not None:
        hand.hand_back(again.ref)


def looking_before(*duties: str) -> Script:
    """A process that has looked for the task before it sweeps, and looks once more after it: it remembers what was missing."""

    def script(hand: Hand, context: Context) -> Iterator[None]:
        hand.stand(context["id"])
        yield
        hand.sweep_in(*duties)
        hand.stood(context["id"])

    return script


def release(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.release(claim)


def wait_and_reap(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.pause(LEASE + 1)
    hand.reap()


def wait_and_expire(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.pause(LEASE / 2 + 1)
    hand.expire()


def take_after_the_crash(hand: Hand, context: Context) -> Iterator[None]:
    """The first crash: the task is back at once, and in other hands while the first holder still goes on."""
    hand.pause(LEASE + 1)
    hand.reap()
    yield
    hand.claim(context["id"])


def reap(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.reap()


DUTIES = {
    "finish": ("_finish_adds",),
    "bury": ("_clear_dead_folder",),
    "log": ("_log_for_dead_writers", "_log_for_shells"),
    "untangle": ("_edge_recovery.walk", "_child_recovery.walk"),
    "patrol": ("_segment_recovery.walk",),
    "forget": ("_forget_dead_workers", "_pruner.by_retention"),
    "reap": (REAP,),
}
"""What a sweep does, in its order."""


def sweeping(*duties: str) -> Script:
    """A process that does a part of the janitor's work, or all of it."""

    def script(hand: Hand, _: Context) -> Iterator[None]:
        yield
        hand.sweep_in(*duties)

    return script


def sweep(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.sweep()


def add(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.add("build", {"n": 4})


def add_with_key(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.add("build", {"n": 2}, key="same")


def add_with_key_twice(hand: Hand, _: Context) -> Iterator[None]:
    """The second time it is known, whatever happens to the key in between."""
    yield
    hand.add("build", {"n": 2}, key="same")
    hand.add("build", {"n": 2}, key="same")


def resume_and_done(hand: Hand, _: Context) -> Iterator[None]:
    yield
    for claim in hand.resume():
        hand.done(claim, {"by": "who came back"})


def cancel(hand: Hand, context: Context) -> Iterator[None]:
    standing = hand.stand(context["id"])
    yield
    hand.cancel(context["id"], standing)


def edit(hand: Hand, context: Context) -> Iterator[None]:
    standing = hand.stand(context["id"])
    yield
    hand.edit(context["id"], standing, data={"n": 9}, priority=1)


def accept(hand: Hand, context: Context) -> Iterator[None]:
    yield
    hand.accept(context["id"], context["nonce"], {"n": 1})


def reject(hand: Hand, context: Context) -> Iterator[None]:
    yield
    hand.reject(context["id"], context["nonce"], f"{hand.worker} does not like it")


def editing(**changes: object) -> Script:
    """A process that changes just this."""

    def script(hand: Hand, context: Context) -> Iterator[None]:
        standing = hand.stand(context["id"])
        yield
        hand.edit(context["id"], standing, **changes)

    return script


def add_after(hand: Hand, context: Context) -> Iterator[None]:
    yield
    hand.add("test", {"n": 3}, after=[context["id"]])


def adding_after(policy: str) -> Script:
    """A process that adds a task behind the one that is about to end, with what its failure means.

    It begins where the task has its place, and nothing of it is written: a whole add has too many orders.
    """

    def script(hand: Hand, context: Context) -> Iterator[None]:
        new = hand.placed("test", {"n": 3}, after=[f"{context['id']}:{policy}"])
        yield
        hand.publish(new)

    return script


def put_behind(hand: Hand, context: Context) -> Iterator[None]:
    """Put the second task behind the first one, which is about to be done."""
    first, second = context["ids"]
    decided = hand.decide_after(second, first)
    yield
    hand.put_behind(second, first, decided)


def drop(hand: Hand, _: Context) -> Iterator[None]:
    yield
    hand.drop("order", {"kind": "build", "n": 5}, pieces=2)


def drop_again(hand: Hand, _: Context) -> Iterator[None]:
    """The same file once more under another name, with the taskId that it had."""
    yield
    hand.drop("order-again", {"kind": "build", "n": 5, "taskId": "same"}, pieces=2)


def say_done_too(hand: Hand, context: Context) -> Iterator[None]:
    """Another process of the same worker, which was told the handle."""
    claim = hand.held(hand.granted(context["id"]))
    claim.ref = hand.stand(context["id"])
    yield
    hand.done(claim, {"by": "its other hand"})


def release_and_take(hand: Hand, _: Context) -> Iterator[None]:
    claim = hand.claim()
    yield
    hand.release(claim)
    again = hand.claim()
    if again is not None:
        hand.release(again)


def dropped_before(hand: Hand) -> Context:
    hand.add("build", {"n": 1})
    hand.drop("order", {"kind": "build", "n": 5, "taskId": "same"})
    return {}


def broken_drop(hand: Hand) -> Context:
    """A file that is whole, and can be no task."""
    hand.add("build", {"n": 1})
    hand.drop("order", {"kind": "build", "n": 5, "priority": "high"})
    return {}


def twin_of_a_held_task(hand: Hand) -> Context:
    """As a power cut may leave it: a claimed task whose first name has come back."""
    context = held_task(hand)
    files, root = hand.world.files, hand.world.root
    [path] = list(hand.world.watch.places[context["id"]])  # type: ignore[union-attr]
    files.linked(path, f"{root}/tmp/{context['id']}.json")
    return context


def look(hand: Hand, context: Context) -> Iterator[None]:
    yield
    hand.stood(context["id"])


SCENES = {
    scene.name: scene
    for scene in (
        Scene("two-claimers", one_task, [("ada", work), ("ada", work)]),
        Scene("two-takers", one_task, [("ada", take), ("ada", take)]),
        Scene("claimer-reaper", held_task, [("bob", take), ("eve", wait_and_reap)]),
        Scene("done-reap", claimed_before, [("ada", done), ("eve", wait_and_reap)]),
        Scene("beat-reap", claimed_before, [("ada", beat_and_done), ("eve", wait_and_reap)]),
        Scene("add-claim", known_lane, [("bob", add), ("ada", work)]),
        Scene("two-keys", known_lane, [("ada", add_with_key), ("bob", add_with_key)]),
        Scene("key-janitor", known_lane, [("ada", add_with_key), ("eve", sweep)]),
        Scene(
            "keys-janitor",
            known_folder,
            [("ada", add_with_key), ("bob", add_with_key), ("eve", sweeping(*chain(*DUTIES.values())))],
        ),
        *(
            Scene(
                f"keys-{duty}", known_lane, [("ada", add_with_key), ("bob", add_with_key), ("eve", sweeping(*duties))]
            )
            for duty, duties in DUTIES.items()
        ),
        Scene("resume-zombie", claimed_before, [("ada", done), ("ada", resume_and_done)]),
        Scene("cancel-done", claimed_before, [("ada", done), ("bob", cancel)]),
        Scene("accept-reject", submitted_before, [("bob", accept), ("eve", reject)]),
        Scene("accept-accept", submitted_before, [("bob", accept), ("eve", accept)]),
        Scene("reject-reject", submitted_before, [("bob", reject), ("eve", reject)]),
        Scene("cancel-claim", one_task, [("ada", take), ("bob", cancel)]),
        Scene("expire-claim", task_that_expires, [("ada", work), ("eve", wait_and_expire)]),
        Scene("edit-claim", one_task, [("ada", take), ("bob", edit)]),
        Scene("edit-edit", one_task, [("ada", edit), ("bob", edit)]),
        Scene("drop-ingest", known_lane, [("user", drop), ("ada", reap)]),
        Scene("drop-ingest-ingest", dropped_before, [("ada", reap), ("bob", reap)]),
        Scene("threads-done", two_tasks, [("ada", done_in_two_threads), ("eve", sweeping(*DUTIES["log"]))]),
        Scene("threads-take", two_tasks, [("ada", take_in_two_threads), ("bob", grabbing(1))]),
        Scene("first-crash", claimed_before, [("ada", done), ("eve", take_after_the_crash)]),
        Scene("fail-reap", claimed_before, [("ada", fail), ("eve", wait_and_reap)]),
        Scene("release-reap", claimed_before, [("ada", release), ("eve", wait_and_reap)]),
        Scene("add-after-done", claimed_before, [("ada", done), ("bob", add_after)]),
        Scene("add-after-fail-cancel", claimed_before, [("ada", fail_for_good), ("bob", adding_after("cancel"))]),
        Scene("add-after-fail-run", claimed_before, [("ada", fail_for_good), ("bob", adding_after("run"))]),
        Scene("edit-after-done", two_tasks, [("ada", done), ("bob", put_behind)]),
        Scene("add-after-cancel", one_task, [("ada", cancel), ("bob", adding_after("cancel"))]),
        Scene(
            "fail-untangle-cancel",
            cancelled_with_one,
            [("ada", fail_for_good), ("eve", sweeping("_edge_recovery.walk"))],
        ),
        Scene("done-done", claimed_before, [("ada", done), ("ada", say_done_too)]),
        Scene("claim-sweep", queued_long_ago, [("ada", work), ("eve", reap)]),
        Scene("sweep-done", claimed_before, [("ada", done), ("eve", sweep)]),
        Scene("release-twice", claimed_before, [("ada", release_and_take), ("bob", take)]),
        Scene("twin-sweep-claim", twin_of_a_held_task, [("eve", sweep), ("bob", take)]),
        Scene("edit-sweep", one_task, [("ada", edit), ("eve", sweeping("_segment_recovery.walk"))]),
        Scene("edit-apart", one_task, [("ada", editing(data={"n": 9})), ("bob", editing(priority=1))]),
        Scene("two-drops", dropped_before, [("user", drop_again), ("ada", reap)]),
        Scene("broken-drop", broken_drop, [("ada", reap), ("bob", reap)]),
        Scene("use-use", two_that_use_one, [("ada", grabbing(0)), ("bob", grabbing(1))]),
        Scene("nest-nest", folder_and_file_in_it, [("ada", grabbing(0)), ("bob", grabbing(1))]),
        Scene(
            "limit-limit", two_tasks, [("ada", grabbing(0)), ("bob", grabbing(1))], kinds={"build": {"concurrency": 1}}
        ),
        Scene("use-again", three_that_use_something, [("ada", take_after_a_done), ("bob", grabbing(1))]),
        Scene("use-pass", two_that_use_one, [("ada", done), ("bob", take)]),
        Scene("use-pass-pass", two_that_use_one, [("ada", holding), ("bob", take), ("cyd", take)]),
        Scene("after-two", after_two, [("ada", done), ("bob", done)]),
        Scene("sheet-two", after_two_in_a_sheet, [("ada", done), ("bob", done)]),
        Scene("sheet-untangle", after_two_in_a_sheet, [("ada", done), ("eve", sweeping("_edge_recovery.walk"))]),
        Scene("vouched-reap", claimed_before, [("ada", vouched_done), ("eve", reap)]),
        Scene("vouched-gone", claimed_before, [("ada", vouched_and_gone), ("eve", reap)]),
        Scene("add-take", known_and_empty_lane, [("bob", add), ("ada", take_until_there_is_one)]),
        Scene("add-work", known_and_empty_lane, [("bob", add), ("ada", work)]),
        Scene("prune-retry", ended_long_ago, [("ada", retry), ("eve", prune)]),
        Scene("prune-key", ended_long_ago, [("ada", add_with_key), ("eve", prune)]),
        Scene("prune-key-again", ended_long_ago, [("ada", add_with_key_twice), ("eve", prune)]),
        Scene("fail-untangle", after_one, [("ada", fail_for_good), ("eve", looking_before("_edge_recovery.walk"))]),
        Scene("churned-need", after_one, [("ada", take_and_release), ("eve", sweeping("_edge_recovery.walk"))]),
        Scene("done-patrol", one_task, [("ada", done), ("eve", looking_before("_segment_recovery.walk"))]),
        Scene("look-move", claimed_before, [("ada", release), ("bob", look), ("cyd", take)]),
    )
}
