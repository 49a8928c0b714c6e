"""Damage to tasks: where they are, what they are called and what they say."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import wait_until
from tests.fsck.proving import Yardful, moved

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def yard(tmp_path: Path) -> Yardful:
    return Yardful(str(tmp_path / "yard"))


def test_a_yard_made_by_verbs_alone_is_clean(yard: Yardful) -> None:
    told = yard.audit()
    assert told["verdict"] == "clean"
    assert told["checked"]["tasks"] == len(yard.ids)
    assert told["checked"]["keys"] == 1
    assert yard.audit(repair=True)["verdict"] == "clean"


def test_one_task_as_two_files_keeps_the_one_with_the_higher_fence_and_sets_the_copy_aside(yard: Yardful) -> None:
    file = yard.file("done")
    lane = yard.root / "todo" / "5-done" / file.name[:4]
    lane.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, lane / f"{yard.ids['done']}.0.e0.c0.json")
    (entry,) = yard.heals("two_files")
    assert entry["task"] == yard.ids["done"]
    assert yard.task("done").state == "done"
    assert any("a copy of task" in reason for reason in yard.aside().values())


def test_one_file_under_two_names_is_left_to_the_sweep_which_takes_the_older_name_away(yard: Yardful) -> None:
    file = yard.file("plain")
    os.link(file, file.with_name(file.name.replace(".0.", ".1.", 1)))
    (entry,) = yard.finds("two_names")
    assert entry["class"] == "pending"
    assert yard.audit()["verdict"] == "clean"
    assert yard.audit(repair=True)["verdict"] == "repaired"
    assert yard.codes() == []
    yard.does("plain")


@pytest.mark.parametrize(
    "folder",
    [
        "todo/5-build/0000", "waiting/2030-01-01/0000", "waiting", "blocked/0000", "processing", "done/0000", "failed/0000",
        "cancelled/0000", "results/0000", "edits/0000", "needs/0000", "followers/0000", "keys", "keys/00", "segments",
        "events", "workers", "writers", "turns", "archive", "attempts/0000",
    ],
)  # fmt: skip
def test_a_name_that_no_rule_knows_is_set_aside_wherever_it_is(yard: Yardful, folder: str) -> None:
    (yard.root / folder).mkdir(parents=True, exist_ok=True)
    (yard.root / folder / "what is this?").write_text("nobody knows")
    (entry,) = yard.heals("stray")
    assert entry["where"] == f"{folder}/what is this?"
    assert list(yard.aside()) == ["what is this?"]
    yard.does("plain")


def test_a_task_whose_name_was_mangled_is_set_aside_and_the_log_knows_it(yard: Yardful) -> None:
    file = yard.file("plain")
    file.rename(file.with_name("mangled.json"))
    (entry,) = yard.heals("stray")
    assert entry["task"] == yard.ids["plain"]
    assert "mangled" in yard.aside()


@pytest.mark.parametrize("content", [b"", b'{"taskyard":1,"id":"0', b"\0" * 300, b"[1, 2, 3]\n", b'{"kind": "build"}'])
def test_a_task_whose_file_is_not_whole_is_failed_with_the_reason(yard: Yardful, content: bytes) -> None:
    yard.file("plain").write_bytes(content)
    (entry,) = yard.heals("broken")
    assert entry["task"] == yard.ids["plain"]
    task = yard.task("plain")
    assert task.state == "failed"
    assert "its file is broken" in str(task.error)


def test_a_broken_file_of_a_held_waiting_or_cancelled_task_is_failed_as_well(yard: Yardful) -> None:
    for name in ("held", "waiting", "cancelled", "blocked"):
        yard.file(name).write_bytes(b"?")
    yard.finds("broken")
    assert yard.repairs()["verdict"] == "repaired"
    assert {yard.task(name).state for name in ("held", "waiting", "cancelled", "blocked")} == {"failed"}
    with taskyard.open(yard.place, worker="grace") as opened:
        again = opened.retry(yard.ids["blocked"])
        assert again is not None
        assert again.state == "blocked", "what it comes after is not done yet"


def test_a_broken_file_of_a_done_task_is_left_to_a_person(yard: Yardful) -> None:
    yard.file("answered").write_bytes(b"?")
    yard.leaves("broken")
    assert yard.task("answered").result == {"answer": 42}


def test_a_broken_file_from_the_drop_box_goes_back_there_and_is_set_aside(yard: Yardful) -> None:
    (yard.root / "yard.json").write_text(
        '{"taskyard": 1, "features": [], "settings": {"durability": "fast", "settle": 0}}'
    )
    (yard.root / "todo" / "order.json").write_text('{"kind": "dropped"}')
    with taskyard.open(yard.place) as opened:
        opened.sweep()
        (task,) = opened.find(kind="dropped")
    yard.ids["dropped"] = task.id
    yard.file("dropped").write_text("{")
    wait_until(lambda: yard.codes() == ["broken"])
    yard.heals("broken")
    with taskyard.open(yard.place, worker="grace") as opened:
        wait_until(lambda: (opened.sweep(), task.id in yard.aside())[1])


def test_a_file_that_says_it_is_another_task_is_set_aside(yard: Yardful) -> None:
    one, other = yard.file("plain"), yard.file("second")
    one.write_bytes(other.read_bytes())
    (entry,) = yard.heals("id_differs")
    assert entry["task"] == yard.ids["plain"]
    yard.does("second")


@pytest.mark.parametrize("name", ["plain", "waiting", "blocked", "done", "failed", "cancelled"])
def test_a_task_in_the_folder_of_another_segment_is_moved_home(yard: Yardful, name: str) -> None:
    file = yard.file(name)
    state = yard.found(name).state
    wrong = file.parent.parent / "zzzz"
    wrong.mkdir()
    file.rename(wrong / file.name)
    (entry,) = yard.heals("misplaced")
    assert entry["task"] == yard.ids[name]
    assert yard.found(name).state is state
    assert yard.found(name).token.fence == int(file.name.split(".")[1]) + (not state.ended)
    if name == "plain":
        yard.does(name)


def test_a_task_in_the_wrong_lane_is_moved_to_the_one_that_it_names(yard: Yardful) -> None:
    file = yard.file("plain")
    wrong = yard.root / "todo" / "0-deploy" / file.parent.name
    wrong.mkdir(parents=True)
    file.rename(wrong / file.name)
    yard.heals("lane_differs")
    assert (yard.task("plain").kind, yard.task("plain").priority) == ("build", 5)
    yard.does("plain")


def test_a_waiting_and_a_blocked_name_with_a_wrong_lane_are_put_right(yard: Yardful) -> None:
    for name in ("waiting", "blocked"):
        file = yard.file(name)
        kind = f"5-{'late' if name == 'waiting' else 'blocked'}"
        file.rename(file.with_name(file.name.replace(kind, "1-other")))
    before = yard.found("waiting").token.due
    yard.heals("lane_differs")
    assert (yard.task("waiting").kind, yard.task("blocked").kind) == ("late", "blocked")
    assert yard.found("waiting").token.due == before


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("plain", (".json", ".5-build.json")),
        ("plain", (".e0.", ".e007.")),
        ("waiting", (".0.e0", ".00.e0")),
        ("held", (".l1800000.", ".l9999999999999.")),
        ("held", ("ada-", "a%zzda-")),
        ("held", ("ada-", "%41da-")),
        ("held", (".1.e0", ".0.e0")),
    ],
)
def test_a_name_that_is_not_legal_where_it_is_gets_a_legal_one(
    yard: Yardful, name: str, change: tuple[str, str]
) -> None:
    file = yard.file(name)
    file.rename(file.with_name(file.name.replace(*change)))
    told = yard.audit()
    assert told["verdict"] == "damaged"
    assert {entry["code"] for entry in told["findings"]} & {"name_illegal", "stray"}
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.codes() == []
    if name == "held" and "%zz" not in change[1]:
        assert yard.task("held").state == "todo"
        yard.does("held")


@pytest.mark.parametrize("what", ["symlink", "folder", "pipe"])
def test_what_is_no_file_in_the_place_of_a_task_is_set_aside_and_never_followed(
    yard: Yardful, what: str, tmp_path: Path
) -> None:
    file = yard.file("plain")
    outside = tmp_path / "outside.json"
    file.rename(outside)
    if what == "symlink":
        file.symlink_to(outside)
    elif what == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    (entry,) = yard.heals("symlink" if what == "symlink" else "not_a_file")
    assert entry["task"] == yard.ids["plain"]
    assert outside.exists()
    assert yard.ids["plain"] in next(iter(yard.aside()))


def test_a_missing_edit_fails_the_task_as_it_was_before_and_a_retry_does_it(yard: Yardful) -> None:
    next(yard.root.glob("edits/*/*")).unlink()
    yard.heals("body_missing")
    assert yard.task("edited").state == "failed"
    with taskyard.open(yard.place, worker="grace") as opened:
        opened.retry(yard.ids["edited"])
    yard.does("edited")


@pytest.mark.parametrize("content", [b"", b'{"taskyard":1,', b"{}"])
def test_a_broken_edit_is_set_aside_and_its_task_failed(yard: Yardful, content: bytes) -> None:
    next(yard.root.glob("edits/*/*")).write_bytes(content)
    yard.heals("body_broken")
    assert yard.task("edited").state == "failed"
    assert any("a broken edit of task" in reason for reason in yard.aside().values())


def test_a_waiting_task_in_a_bucket_that_begins_too_late_is_moved_to_its_own(yard: Yardful) -> None:
    file = yard.file("waiting")
    wrong = yard.root / "waiting" / "2040-01-01" / file.parent.name
    wrong.mkdir(parents=True)
    file.rename(wrong / file.name)
    yard.heals("bucket_late")
    assert yard.found("waiting").token.due == int(file.name.split(".d")[1].split(".")[0])


def test_a_waiting_task_in_a_bucket_that_has_begun_is_the_next_sweeps(yard: Yardful) -> None:
    file = yard.file("waiting")
    wrong = yard.root / "waiting" / "2020-01-01" / file.parent.name
    wrong.mkdir(parents=True)
    file.rename(wrong / file.name)
    (entry,) = yard.finds("bucket_early")
    assert entry["class"] == "pending"
    assert yard.audit(repair=True)["verdict"] == "repaired"
    assert yard.codes() == []


def test_what_the_sweep_of_a_repair_uncovers_is_healed_by_the_same_repair(yard: Yardful) -> None:
    """Without any log nothing can be missing in it; the sweep begins a new one, in the hour of the endings."""
    waiting = yard.file("waiting")
    begun = yard.root / "waiting" / "2026-01-01T00-00" / waiting.parent.name
    begun.mkdir(parents=True)
    waiting.rename(begun / f"{waiting.name.split('.d')[0]}.d1767225600000.json")
    for page in (yard.root / "events").iterdir():
        page.unlink()
    yard.finds("overdue")
    told = yard.repairs()
    assert told["verdict"] == "repaired", told["findings"]
    assert "damage" not in {entry["class"] for entry in yard.audit()["findings"]}


def test_what_is_long_overdue_is_pending_and_a_repair_sweeps(yard: Yardful) -> None:
    held, waiting = yard.file("held"), yard.file("waiting")
    stem = waiting.name.split(".d")[0]
    begun = yard.root / "waiting" / "2026-01-01T00-00" / waiting.parent.name
    begun.mkdir(parents=True)
    waiting.rename(begun / f"{stem}.d1767225600000.json")
    assert held.exists()
    (entry,) = yard.finds("overdue")
    assert entry["class"] == "pending"
    assert yard.audit(repair=True)["verdict"] == "repaired"
    assert yard.task("waiting").state == "todo"


def test_a_claim_whose_lock_is_gone_is_worth_a_word_and_no_more(yard: Yardful) -> None:
    file = yard.file("held")
    file.rename(file.with_name(file.name.replace(".l1800000.", ".l1800000.L.")))
    (entry,) = yard.finds("unlocked_claim")
    assert entry["class"] == "notice"
    assert yard.audit()["verdict"] == "clean"


def test_a_raised_number_never_comes_twice_although_the_name_says_less(yard: Yardful) -> None:
    """An old copy of a released task is put back: its fence goes above all that the log knows."""
    file = moved(yard.file("released"), fence="0")
    assert file.exists()
    yard.heals("state_behind", "record_ahead")
    assert yard.found("released").token.fence > 2
    yard.does("released")
