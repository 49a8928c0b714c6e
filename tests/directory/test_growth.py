"""What a verb asks of the disk does not grow with what it has no business with: calls are counted, never time."""

from __future__ import annotations

import errno
import itertools
import os
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import moves
from taskyard.stores.directory.dropbox import json_text
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.log import lines as log_lines
from taskyard.stores.directory.tasks import ready_cache
from taskyard.yard import janitor
from tests.conftest import taken, wait_until
from tests.directory.staging import Step, drop, yard_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from taskyard import Yard


class Calls(Counter[str]):
    """How often each call was made, in all and with each path."""

    def __call__(self, name: str, paths: str, made: bool) -> None:
        if not made:
            self[name] += 1
            self[f"{name} {paths}"] += 1

    def of(self, work: Callable[[], object]) -> Counter[str]:
        """The calls of this work alone."""
        self.clear()
        work()
        return Counter(self)


def many(yard: Yard, number: int, **options: object) -> list[str]:
    return list(yard.add_many({"kind": "job", **options} for _ in range(number)))


def pages(url: str, limit: int, **wanted: str) -> list[tuple[list[str], Counter[str]]]:
    """All pages of a list, each asked for by a process of its own, with the calls that it took."""
    answers: list[tuple[list[str], Counter[str]]] = []
    cursor = None
    while cursor is not None or not answers:
        calls = Calls()
        with yard_on(url, calls) as yard:
            calls.clear()
            page = yard.find(limit=limit, cursor=cursor, **wanted)
            answers.append(([task.id for task in page], Counter(calls)))
            cursor = page.next
    return answers


def test_a_page_of_a_list_does_not_list_what_came_on_the_pages_before(url: str) -> None:
    with yard_on(url) as yard:
        made = many(yard, 6000)
    answers = pages(url, 500)
    assert [id for page, _ in answers for id in page] == made
    first = f"listdir {url}/todo/5-job/0000"
    # 1,024 tasks are in the first segment: it is listed for the tasks and for their short names.
    assert [calls[first] for _, calls in answers] == [2, 2, 2] + [0] * 9


def test_pages_tell_every_task_once_whatever_lanes_its_neighbours_are_in(url: str) -> None:
    with yard_on(url) as yard:
        made = []
        for number in range(5):
            made += many(yard, 700)
            made += [yard.add(f"kind{number % 2}").id, yard.add("later", delay=3600).id]
        claim = yard.claim(made[10])
        assert claim is not None
        claim.done()
    assert [id for page, _ in pages(url, 64) for id in page] == made
    assert [id for page, _ in pages(url, 200, state="todo") for id in page] == [
        id for number, id in enumerate(made) if number != 10 and number % 702 != 701
    ]


def test_a_cursor_of_another_question_leaves_nothing_out(url: str) -> None:
    with yard_on(url) as yard:
        made = many(yard, 2500)
        for id in made[:100] + made[1100:1200]:
            yard.cancel(id)
        page = yard.find(limit=2200, state="todo")
        assert page.next is not None
        assert page.next != page[-1].id, "the cursor says nothing of segments, so this tries nothing"
        earlier = f"{made[50]}.{page.next.split('.', 1)[1]}"
        assert [task.id for task in yard.find(state="cancelled", cursor=earlier, limit=500)] == [
            *made[51:100],
            *made[1100:1200],
        ]


def test_a_task_that_is_added_while_pages_are_asked_for_comes_on_the_last_one(url: str) -> None:
    with yard_on(url) as yard:
        made = many(yard, 1500)
        page = yard.find(limit=1400)
        late = yard.add("job").id
        assert [task.id for task in yard.find(cursor=page.next, limit=200)] == [*made[1400:], late]


def test_of_the_log_only_the_lines_of_the_task_are_decoded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with yard_on(url) as yard:
        made = many(yard, 300)
        claim = yard.claim(made[7])
        assert claim is not None
        claim.done()
        decoded: list[bytes] = []
        read = json_text.read

        def watched(line: bytes) -> object:
            decoded.append(line)
            return read(line)

        monkeypatch.setattr(json_text, "read", watched)
        events = yard.events(task=made[7])
        assert [event["event"] for event in events] == ["added", "claimed", "done"]
        assert len(decoded) == 3
        assert yard.events(task=made[7], cursor=events.cursor) == []
        yard.cancel(made[8])
        assert [event["event"] for event in yard.events(cursor=events.cursor)] == ["cancelled"]


def test_the_log_of_one_task_goes_on_from_page_to_page(url: str) -> None:
    with yard_on(url) as yard:
        id = yard.add("job").id
        many(yard, 20)
        for _ in range(6):
            claim = yard.claim(id)
            assert claim is not None
            claim.release()
        seen, cursor = [], ""
        while page := yard.events(task=id, cursor=cursor or None, limit=2):
            seen += [event["event"] for event in page]
            cursor = page.cursor
        assert seen == ["added", *["claimed", "released"] * 6]


def test_a_search_in_a_page_finds_lines_across_the_pieces_that_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page"
    lines = [b"%04d word " % number + b"x" * (number % 50) for number in range(400)]
    lines[::3] = [line.replace(b"word", b"none") for line in lines[::3]]
    page.write_bytes(b"\n".join(lines) + b"\nword, and no end")
    for size in (1, 7, 64, 1 << 16):
        *found, last = log_lines.holding(Disk(), str(page), size, b"word")
        assert [line for _, line, _ in found] == [line for line in lines if b"word" in line]
        assert all(page.read_bytes()[begin:end] == line + b"\n" for begin, line, end in found)
        assert last == (len(b"\n".join(lines)) + 1, b"", len(b"\n".join(lines)) + 1)


def test_a_race_that_is_lost_over_a_task_that_is_due_syncs_nothing(tmp_path: Path) -> None:
    url = str(tmp_path / "yard")
    taskyard.init(url, durability="durable").close()
    calls = Calls()
    with yard_on(url, worker="bob") as bob, yard_on(url, calls) as ada:
        many(bob, 40, delay=0.001)
        wait_until(lambda: len(ada._store.upkeep.overdue(100)) == 40)
        due = ada._store.upkeep.overdue(100)
        assert bob.sweep().woken == 40
        made = calls.of(lambda: ada._store.shift([(standing, moves.woken(standing)) for standing in due], "ada"))
        assert made["rename"] >= 40, "no race was tried"
        assert made["sync"] == made["mkdir"] == 0


def dropped(url: str, number: int) -> None:
    for each in range(number):
        drop(url, f"order-{each}.json", {"n": each})


def in_the_box(url: str) -> int:
    return sum(name.endswith(".json") for name in os.listdir(f"{url}/todo"))


def test_a_list_takes_in_a_share_of_a_full_drop_box_and_a_claim_all_that_it_takes(url: str) -> None:
    dropped(url, janitor.INTAKE + 100)
    with yard_on(url) as yard:
        yard.find()
        assert in_the_box(url) == 100
        yard.find()
        assert in_the_box(url) == 0
        dropped(url, janitor.INTAKE + 100)
        drop(url, "zz-wanted.json", {"kind": "wanted"})
        assert yard.claim(kinds="wanted") is not None


def test_what_has_to_wait_in_the_drop_box_keeps_nothing_else_out(url: str) -> None:
    for each in range(janitor.INTAKE + 10):
        drop(url, f"half-{each}.json", "{")
    drop(url, "zz.json", {"n": 1})
    with yard_on(url) as yard:
        assert [task.data for task in map(yard.get, (task.id for task in yard.find()))] == [{"n": 1}]


def test_many_dropped_files_share_their_syncs(tmp_path: Path) -> None:
    url = str(tmp_path / "yard")
    taskyard.init(url, durability="durable").close()
    calls = Calls()
    with yard_on(url, calls) as yard:
        yard.add("default")
        dropped(url, 100)
        made = calls.of(yard.find)
        assert in_the_box(url) == 0
        assert made["sync"] + made["sync_all"] <= 4


def keyed(number: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"kind": "job", "data": each, "key": f"key-{each}"} for each in range(first, first + number)]


def test_tasks_with_keys_share_their_syncs_as_others_do(tmp_path: Path) -> None:
    url = str(tmp_path / "yard")
    taskyard.init(url, durability="durable").close()
    calls = Calls()
    with yard_on(url, calls) as yard:
        yard.add_many(keyed(300))  # makes the folders
        made = calls.of(lambda: yard.add_many(keyed(300, 300)))
        assert made["sync_all"] == 3
        assert made["sync"] == 0
        assert made["create"] == 300


def test_a_batch_with_keys_answers_each_draft_in_its_turn(url: str) -> None:
    with yard_on(url) as yard:
        known = yard.add("job", 3, key="key-3").id
        tasks = [*keyed(8), {"kind": "plain"}, *keyed(10), {"kind": "job", "data": 5, "key": "key-5"}]
        made = yard.add_many(tasks)
        assert made.created == 7 + 1 + 2
        assert made[3] == known
        assert made[9:17] == made[:8]
        assert made[-1] == made[5]
        assert [yard.get(id).data for id in made[:8]] == list(range(8))
        assert yard.counts()["todo"] == 11
        assert yard.add_many(tasks) == [*made[:8], yard.find(kind="plain")[1].id, *made[9:]]


def test_a_key_that_another_takes_in_the_midst_of_a_batch_is_the_others(url: str) -> None:
    with yard_on(url, worker="bob") as bob:
        others: list[str] = []
        step = Step("before", "link", "", lambda: others.append(bob.add("job", 7, key="key-7").id))
        with yard_on(url, step) as ada:
            made = ada.add_many(keyed(10))
        assert step.taken
        assert made[7] == others[0]
        assert made.created == 9
        assert bob.counts()["todo"] == 10
        assert not [name for name in os.listdir(f"{url}/tmp") if name.endswith(".json")]


def test_a_batch_with_keys_that_fails_frees_the_keys_of_what_was_not_added(url: str) -> None:
    renames = itertools.count(1)

    def fail(name: str, paths: str, made: bool) -> None:
        if name == "rename" and "/todo/" in paths and not made and next(renames) == 4:
            raise OSError(errno.ENOSPC, "the disk is full")

    with yard_on(url, fail) as ada, pytest.raises(taskyard.Unavailable) as refused:
        ada.add_many(keyed(10))
    with yard_on(url) as yard:
        kept = [task.id for task in yard.find()]
        assert len(kept) == 3
        assert all(id in refused.value.message + (refused.value.hint or "") for id in kept)
        assert [event["task"] for event in yard.events()] == kept
        assert yard.add_many(keyed(10)).created == 7
        assert not [name for name in os.listdir(f"{url}/tmp") if name.endswith(".json")]


def test_the_end_of_a_task_with_many_followers_leaves_their_empty_folders_to_the_sweep(url: str) -> None:
    calls = Calls()
    with yard_on(url, calls) as yard:
        first, other = yard.add("first").id, yard.add("other").id
        for _ in range(300):
            yard.add("second", after=[first])
        both = yard.add("both", after=[first, other]).id
        claim = taken(yard.claim(first))
        made = calls.of(claim.done)
        assert made["rmdir"] <= 2, "of the followers' own folder, and the claim's"
        assert yard.counts()["todo"] == 301
        assert yard.get(both).state == "blocked"
        assert yard.audit()["findings"] == []
        walk = yard._store.upkeep._crashes._edge_recovery.walk  # type: ignore[attr-defined]
        for now in range(0, 600_000, 5_000):
            walk(now, "ada")
        assert [id for _, _, files in os.walk(f"{url}/needs") for id in files] == [other]
        assert sum(len(folders) for _, folders, _ in os.walk(f"{url}/needs")) == 2
        taken(yard.claim(other)).done()
        assert yard.get(both).state == "todo"


def test_a_busy_resource_makes_one_claim_pass_its_backlog_and_no_other(url: str) -> None:
    with yard_on(url) as yard:
        many(yard, 60, uses=["gpu"])
        many(yard, 6)
        holder = taken(yard.claim())
        assert taken(yard.claim()).task.uses == []
    for _ in range(3):
        calls = Calls()
        with yard_on(url, calls, worker="bob") as bob:
            made = calls.of(lambda bob=bob: taken(bob.claim()))  # type: ignore[misc]
            assert made["read"] <= 3, "what the running one uses, and its own"
    with yard_on(url) as yard:
        assert yard.counts()["todo"] == 61
        assert [task.uses for task in yard.ready()] == [[]] * 2
        waiting = [task.id for task in yard.find(state="todo", limit=100) if task.uses]
        assert len(waiting) == 59
        assert yard.audit()["findings"] == []
        yard.held(holder.handle).done()
        assert len(yard.ready()) == 61
        assert taken(yard.claim()).task.id == waiting[0]


def test_what_was_passed_over_is_handed_out_oldest_first_once_it_can_be(url: str) -> None:
    with yard_on(url) as yard:
        ids = [yard.add("job", uses=["gpu"]).id for _ in range(5)]
        for id in ids[:-1]:
            claim = taken(yard.claim())
            assert claim.task.id == id
            assert yard.claim() is None
            with yard_on(url, worker="bob") as bob:
                assert bob.claim() is None
            claim.done()


def test_a_task_that_waits_for_one_thing_and_then_for_another_is_found(url: str) -> None:
    with yard_on(url) as yard:
        first, second = (yard.add("job", uses=[name]).id for name in ("disk", "gpu"))
        both = yard.add("job", uses=["disk", "gpu"]).id
        disk = taken(yard.claim(first))
        assert taken(yard.claim()).task.id == second
        gpu = yard.resume("ada")
        assert yard.claim() is None
        by_id = {claim.task.id: claim for claim in gpu}
        by_id[first].done()
        assert yard.claim() is None
        by_id[second].done()
        assert taken(yard.claim()).task.id == both
        assert disk.task.id == first


def test_an_empty_folder_of_tasks_that_waited_is_gone_at_the_next_look(url: str) -> None:
    with yard_on(url) as yard:
        many(yard, 2, uses=["gpu"])
        claim = taken(yard.claim())
        assert yard.claim() is None
        assert [name for name in os.listdir(f"{url}/todo") if "+" in name]
        claim.done()
        taken(yard.claim()).done()
        assert yard.claim() is None
        assert yard.claim() is None
        assert not [name for name in os.listdir(f"{url}/todo") if "+" in name]


def test_a_lane_that_has_been_empty_for_a_while_costs_nothing_more(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with yard_on(url) as yard:
        yard.add_many({"kind": f"kind{number}"} for number in range(30))
        while claim := yard.claim():
            claim.done()
    assert len(os.listdir(f"{url}/todo")) == 30, "a lane that was just drained stays: the next add may be near"
    monkeypatch.setattr(ready_cache, "_DRAINED", -1)
    with yard_on(url) as yard:
        assert yard.claim() is None
    assert os.listdir(f"{url}/todo") == []
    with yard_on(url) as yard:
        yard.add("kind7")
        assert taken(yard.claim()).task.kind == "kind7"


def test_a_new_process_lists_every_lane_once_before_and_once_after_its_sweep(url: str) -> None:
    with yard_on(url) as yard:
        yard.add_many({"kind": f"kind{number}"} for number in range(30))
        while claim := yard.claim():
            claim.done()
    calls = Calls()
    with yard_on(url, calls) as yard:
        made = calls.of(yard.claim)
    assert made[f"listdir {url}/todo/5-kind3"] == 2


def test_two_who_find_the_same_tasks_due_begin_at_different_ones(url: str) -> None:
    with yard_on(url) as ada:
        many(ada, 200, delay=0.001)
        wait_until(lambda: len(ada._store.upkeep.overdue(1000)) == 200)
        firsts = {ada._store.upkeep.overdue(1)[0].id for _ in range(20)}
        assert len(firsts) > 1


@pytest.mark.parametrize("kinds", [1, 40])
def test_a_verb_by_handle_looks_for_its_claim_where_claims_are_and_in_no_lane(tmp_path: Path, kinds: int) -> None:
    path = str(tmp_path / "yard")
    with taskyard.init(path, worker="ada") as ada:
        ada.add_many({"kind": f"kind{number}"} for number in range(kinds + 1))
        handles = [taken(ada.claim()).handle for _ in range(2)]
    calls = Calls()
    with yard_on(path, calls) as yard:
        yard.tends = False
        yard.heartbeat(handles[1])  # the first look also reads what all later ones know
        for verb in (yard.heartbeat, yard.done):
            asked = calls.of(partial(verb, handles[1]))
            listed = {
                call.removeprefix(f"listdir {path}/").partition("/")[0] for call in asked if call.startswith("listdir ")
            }
            assert listed <= {"processing", "attempts", "events"}, listed
            assert asked[f"listdir {path}/processing"] == 1
