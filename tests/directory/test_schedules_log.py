"""The eighth and the ninth schedule that break the obvious version: events that nobody logged, and the writers' locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken, wait_until
from tests.directory.staging import Step, dead, die, drop, yard_on
from tests.directory.stories import check_log, check_places, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


# 8. Events that their writer could not log any more

VERBS: dict[str, Callable[[Yard, str], object]] = {
    "add": lambda yard, id: yard.add("other"),
    "add many": lambda yard, id: yard.add_many([{"kind": "other"}] * 20),
    "claim": lambda yard, id: yard.claim(),
    "done": lambda yard, id: taken(yard.claim()).done("r"),
    "fail": lambda yard, id: taken(yard.claim()).fail("why"),
    "release": lambda yard, id: taken(yard.claim()).release(),
    "cancel": lambda yard, id: yard.cancel(id),
    "edit": lambda yard, id: yard.edit(id, title="t"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_8_an_event_lost_between_move_and_append_is_put_back_by_the_next_sweep(url: str, verb: str) -> None:
    last = verb in ("done", "fail", "release")  # the claim's own event comes first
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        writes = iter([lambda: None, die] if last else [die])

        def cue(name: str, paths: str, made: bool) -> None:
            if name == "write" and not made:
                next(writes)()

        dead(lambda: VERBS[verb](yard_on(url, cue), id))
        before = told(other)
        other.sweep()
        assert len(told(other)) == len(before) + (20 if verb == "add many" else 1)
        check_log(other)
        other.sweep()
        assert len(told(other)) == len(before) + (20 if verb == "add many" else 1), "once is enough"


def with_a_long_log(url: str) -> None:
    """Hours of events that are none of ours, and a yard full of ended tasks."""
    line = '{"at":"2024-01-01T00:00:00.000Z","event":"done","task":"%s","fence":1,"kind":"k","worker":null,"by":"b"}\n'
    for hour in range(24):
        text = "".join(line % f"{number:021d}" for number in range(500))
        Path(url, "events", f"2024-01-01T{hour:02d}.0000.jsonl").write_text(text)


@pytest.mark.parametrize("verb", ["claim", "add", "add many"])
def test_8_putting_an_event_back_does_not_scan_everything(url: str, verb: str) -> None:
    with_a_long_log(url)
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        others = other.add_many([{"kind": "filler"}] * 50)
        dead(lambda: VERBS[verb](yard_on(url, Step("before", "write", "", die)), id))
        reads: Counter[str] = Counter()

        def cue(name: str, paths: str, made: bool) -> None:
            if not made and name in ("read_at", "read", "stamp"):
                reads[os.path.relpath(paths, url)] += 1

        with yard_on(url, cue) as janitor:
            janitor.sweep()
        old = [path for path in reads if path.startswith("events/2024")]
        log = sum(number for path, number in reads.items() if path.startswith("events/"))
        tasks = [path for path in reads if any(id in path for id in others)]
        assert (old, tasks) == ([], []), "read for nothing"
        assert log <= 10, f"the log was read {log} times for one dead writer"
        check_log(other)


def test_8_two_janitors_put_an_event_back_once(url: str) -> None:
    dead(lambda: yard_on(url, Step("before", "write", "", die)).add("build"))

    with yard_on(url, worker="other") as other:
        step = Step("before", "write", "", other.sweep)
        with yard_on(url, step) as janitor:
            janitor.sweep()
        assert told(other) == [("added", 0)]


MOVES: dict[str, Callable[[Yard, str], object]] = {
    "edit": lambda yard, id: yard.edit(id, title="t"),
    "cancel": lambda yard, id: yard.cancel(id),
    "claim": lambda yard, id: yard.claim(),
}


@pytest.mark.parametrize("rival", MOVES)
@pytest.mark.parametrize("verb", MOVES)
def test_8_a_move_that_was_intended_but_lost_its_race_is_not_told(url: str, verb: str, rival: str) -> None:
    """The rival's move has the same number; the loser is killed before it intends anything else."""
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        lost = False

        def cue(name: str, paths: str, made: bool) -> None:
            nonlocal lost
            if name == "rename" and f"/todo/5-build/{id[:4]}/{id}.0" in paths and not made:
                with yard_on(url, worker="rival") as winner:
                    MOVES[rival](winner, id)
                lost = True
            elif lost:
                die()

        def lose() -> None:
            with contextlib.suppress(taskyard.Conflict):
                MOVES[verb](yard_on(url, cue), id)
            die()

        dead(lose)
        other.sweep()
        check_log(other)
        if rival == "edit":
            taken(other.claim(id))
            other.sweep()
            check_log(other)


def test_8_a_loser_that_is_killed_later_leaves_no_false_event(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def lose_and_die() -> None:
            step = Step("before", "rename", f"/todo/5-build/{id[:4]}/{id}", lambda: yard_on(url, worker="b").claim())
            with contextlib.suppress(taskyard.Conflict):
                yard_on(url, step).edit(id, title="t")
            die()

        dead(lose_and_die)
        other.sweep()
        assert told(other, id) == [("added", 0), ("claimed", 1)]


@pytest.mark.parametrize("ending", ["done", "fail"])
def test_8_an_ending_that_was_never_made_is_not_told_after_its_claim_was_taken_over(url: str, ending: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def die_before_the_ending() -> None:
            place = "done" if ending == "done" else "failed"
            claim = taken(yard_on(url, Step("before", "rename", f"{url}/{place}/", die)).claim(id))
            claim.done({"n": 1}) if ending == "done" else claim.fail("no", retry=False)

        dead(die_before_the_ending)
        [claim] = yard_on(url, worker="ada").resume()  # before any sweep has looked after the dead
        other.sweep()
        check_log(other)
        assert (ending if ending == "done" else "failed") not in [event for event, _ in told(other, id)]
        claim.done()
        check_log(other)


def test_8_a_failure_that_was_tried_again_before_anybody_logged_it_is_told(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def die_after_the_failure() -> None:
            claim = taken(yard_on(url, Step("after", "rename", "/failed/", die)).claim(id))
            claim.fail("no", retry=False)

        dead(die_after_the_failure)
        other.retry(id)
        other.sweep()
        check_log(other)
        assert told(other, id) == [("added", 0), ("claimed", 1), ("failed", 1), ("retried", 2)]


# 9. The writers' locks


def test_9_a_dead_writer_whose_forked_child_lives_is_judged_dead(url: str) -> None:
    """The child has let go of its copy of the lock; what the parent left is put right at once."""
    reading, writing = os.pipe()
    waiting, going = os.pipe()

    def fork_and_die() -> None:
        yard = yard_on(url)
        yard.add("build")
        os.close(going)
        os.close(reading)
        child = os.fork()
        if child == 0:
            os.write(writing, f"{os.getpid()}\n".encode())
            os.read(waiting, 1)
            os._exit(0)
        os.close(writing)
        die()

    dead(fork_and_die)
    with yard_on(url, worker="other") as other:
        os.close(writing)
        os.close(waiting)
        with os.fdopen(reading) as pipe:
            assert int(pipe.readline())
            held = set(os.listdir(f"{url}/writers"))
            draft = f"{url}/tmp/{next(iter(held))}.77"
            Path(draft).touch()
            os.utime(draft, (0, 0))

            def forgotten() -> bool:
                other.sweep()
                return not held & set(os.listdir(f"{url}/writers"))

            wait_until(forgotten)
            assert not os.path.exists(draft)
            check_log(other)
            os.close(going)
            assert pipe.readline() == "", "and the child lived until here"


def test_9_a_forked_child_that_ends_does_not_free_its_parents_lock(url: str) -> None:
    with yard_on(url) as yard, yard_on(url, worker="other") as other:
        yard.add("build")
        [own] = set(os.listdir(f"{url}/writers"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                yard.add("build")
                yard.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        other.sweep()
        assert own in os.listdir(f"{url}/writers")


def test_9_a_writer_is_locked_before_anybody_can_see_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock
    swept = False
    with yard_on(url, worker="other") as other, yard_on(url) as yard:
        other.sweep()

        def flock(descriptor: int, operation: int) -> None:
            nonlocal swept
            if operation & fcntl.LOCK_EX and not swept:
                swept = True
                other.sweep()
            real(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        yard.add("build")
        monkeypatch.undo()
        assert swept
        assert yard._store._context.writer.tag in os.listdir(f"{url}/writers")  # type: ignore[attr-defined]


def test_9_what_a_writer_without_a_lock_file_is_doing_is_judged_by_its_age_only(url: str) -> None:
    """Where memory cannot be shared with files there is no lock; a janitor must not take what it is working on."""
    with yard_on(url, worker="other") as other:
        drop(url, "a.json", {"taskId": "t1"})

        def lockless(name: str, paths: str, made: bool) -> None:
            if name == "share" and not made:
                raise OSError(95, "Operation not supported", paths)
            if name == "rename" and paths.endswith(".drop") and made:
                other.sweep()

        with yard_on(url, lockless) as yard:
            assert yard.sweep().taken == 1
        assert len(check_places(url)) == 1
        assert other.set_aside() == []
        check_log(other)
