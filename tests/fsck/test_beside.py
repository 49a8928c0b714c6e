"""Damage beside tasks: records, the log, keys, edges, segments, archives, and the place itself."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import times
from taskyard.stores.directory import names
from taskyard.stores.directory.filesystem import safety
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.fsck import audit
from tests.conftest import crash, retried, taken
from tests.fsck.proving import PASSING, Yardful, moved
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def yard(tmp_path: Path) -> Yardful:
    return Yardful(str(tmp_path / "yard"))


# Records


def test_a_done_without_its_result_is_left_to_a_person(yard: Yardful) -> None:
    yard.record("answered", "done").unlink()
    (entry,) = yard.leaves("record_missing")
    assert entry["task"] == yard.ids["answered"]
    assert "backup" in entry["hint"]


@pytest.mark.parametrize("content", [b"", b'{"claim": "00', b"[]", b'{"claim": "another", "outcome": "done"}'])
def test_a_done_with_a_broken_result_is_left_to_a_person(yard: Yardful, content: bytes) -> None:
    yard.record("answered", "done").write_bytes(content)
    yard.leaves("record_broken")


def test_a_failed_task_without_its_reason_gets_a_record_that_says_so(yard: Yardful) -> None:
    yard.record("failed", "error").unlink()
    yard.heals("reason_missing")
    assert yard.task("failed").error == "fsck: the record of why it failed was missing"
    with taskyard.open(yard.place, worker="grace") as opened:
        retried(opened, yard.ids["failed"])
    yard.does("failed")


def test_a_task_that_failed_by_crashes_without_a_record_is_failed_anew_with_a_reason(yard: Yardful) -> None:
    tools.settle(yard.place, max_crashes=1)
    with taskyard.open(yard.place, worker="grace") as opened:
        crash(opened, yard.ids["plain"])
        assert opened.get(yard.ids["plain"]).state == "failed"
    yard.record("plain", "crash").unlink()
    yard.heals("reason_missing")
    assert "missing" in str(yard.task("plain").error)


def test_a_broken_record_that_counts_for_nothing_any_more_is_set_aside(yard: Yardful) -> None:
    yard.record("released", "released").write_bytes(b"{")
    yard.heals("record_broken")
    assert yard.record_names_aside()
    yard.does("released")


def test_a_broken_reason_is_set_aside_and_a_new_one_is_written(yard: Yardful) -> None:
    yard.record("failed", "error").write_bytes(b"")
    told = yard.finds("record_broken")
    assert told[0]["task"] == yard.ids["failed"]
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.codes() == []
    assert "missing" in str(yard.task("failed").error)


def test_a_record_of_a_claim_that_never_was_raises_the_fence_above_it(yard: Yardful) -> None:
    record = yard.record("released", "released")
    id, _, nonce, outcome, end = record.name.split(".")
    claim = f"{yard.ids['plain']}.7.{nonce}"
    planted = yard.root / "results" / yard.ids["plain"][:4] / f"{claim}.error.json"
    planted.parent.mkdir(exist_ok=True)
    content = json.loads(record.read_bytes()) | {"claim": claim, "fence": 7, "outcome": "error"}
    planted.write_text(json.dumps(content))
    assert (id, outcome, end) == (yard.ids["released"], "released", "json")
    yard.finds("record_ahead")
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.found("plain").token.fence == 8
    with taskyard.open(yard.place, worker="grace") as opened:
        assert taken(opened.claim(yard.ids["plain"])).fence == 9


def test_a_record_of_a_claim_that_the_log_does_not_know_is_worth_a_word(yard: Yardful) -> None:
    page = yard.page()
    lines = page.read_bytes().splitlines(keepends=True)
    own = [line for line in lines if yard.ids["released"].encode() in line and b'"claimed"' in line]
    page.write_bytes(b"".join(line for line in lines if line not in own))
    (entry,) = yard.finds("record_unknown")
    assert entry["class"] == "notice"


def test_two_claims_with_one_fence_are_worth_a_word(yard: Yardful) -> None:
    record = yard.record("released", "released")
    name = record.name.replace(".1.", ".1.z", 1)
    claim = name.removesuffix(".released.json")
    (record.parent / name).write_text(json.dumps(json.loads(record.read_bytes()) | {"claim": claim}))
    (entry,) = yard.finds("fence_twice")
    assert entry["class"] == "notice"


# The log and the states


def test_a_done_that_was_put_back_into_todo_is_failed_and_does_not_run_by_itself(yard: Yardful) -> None:
    file = yard.file("answered")
    lane = yard.root / "todo" / "5-answered" / file.parent.name
    lane.mkdir(parents=True, exist_ok=True)
    file.rename(lane / f"{yard.ids['answered']}.0.e0.c0.json")
    told = yard.finds("state_behind", "record_ahead")
    assert any("'done'" in entry["what"] for entry in told)
    assert yard.repairs()["verdict"] == "repaired"
    task = yard.task("answered")
    assert (task.state, task.fence) == ("failed", 2)
    assert "'done'" in str(task.error)
    with taskyard.open(yard.place, worker="grace") as opened:
        retried(opened, yard.ids["answered"])
    yard.does("answered")


def test_a_done_that_was_put_back_into_processing_does_not_agree_with_the_log(yard: Yardful) -> None:
    file = yard.file("done")
    file.rename(yard.root / "processing" / file.name)
    yard.heals("log_differs")
    assert yard.task("done").state == "failed"


def test_a_task_that_is_done_without_a_claim_in_the_log_is_logged(yard: Yardful) -> None:
    file = yard.file("plain")
    done = yard.root / "done" / file.parent.name
    done.mkdir(exist_ok=True)
    file.rename(done / f"{yard.ids['plain']}.1.e0.c0.5-build.l1800000.eve-000000001.json")
    yard.heals("unlogged_ending")
    with taskyard.open(yard.place, worker="grace") as opened:
        events = [(event["event"], event["fence"]) for event in opened.events(task=yard.ids["plain"])]
    assert events == [("added", 0), ("claimed", 1), ("done", 1)]


def test_one_lost_event_is_worth_a_word_and_no_damage(yard: Yardful) -> None:
    page = yard.page()
    lines = page.read_bytes().splitlines(keepends=True)
    own = [line for line in lines if yard.ids["done"].encode() in line and b'"done"' in line]
    page.write_bytes(b"".join(line for line in lines if line != own[-1]))
    (entry,) = yard.finds("unlogged")
    assert entry["class"] == "notice"
    assert yard.audit()["verdict"] == "clean"


def test_a_task_that_was_removed_is_told_as_lost(yard: Yardful) -> None:
    yard.file("plain").unlink()
    (entry,) = yard.leaves("task_lost")
    assert entry["task"] == yard.ids["plain"]


def test_an_ended_task_that_was_removed_is_told_unless_it_is_in_the_archive(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="grace") as opened:
        assert opened.prune(count=3, apply=True)["tasks"] == 1
    assert yard.codes() == [], "what was pruned is in the archive"
    left = next(
        name for name in ("answered", "failed", "cancelled") if list(yard.root.glob(f"*/*/{yard.ids[name]}.*.c*"))
    )
    yard.file(left).unlink()
    told = yard.audit()
    assert "ending_lost" in {entry["code"] for entry in told["findings"]}


@pytest.mark.parametrize(
    "line", [b"\0\0\0\0\0\0\n", b"garbage\n", b'{"at":1,"event":"done"}\n', b'{"event":"x"}\n', b"[]\n"]
)
def test_a_line_of_the_log_that_is_no_event_is_damage_that_readers_pass_over(yard: Yardful, line: bytes) -> None:
    page = yard.page()
    content = page.read_bytes()
    end = content.index(b"\n") + 1
    page.write_bytes(content[:end] + line + content[end:])
    code = "event_torn" if line.startswith(b'{"at":"') else "event_garbage"
    (entry,) = yard.finds(code)
    assert f"at byte {end}" in entry["what"]
    assert yard.repairs()["verdict"] == "damaged"


def test_a_line_that_a_full_disk_has_torn_is_worth_a_word_and_no_damage(yard: Yardful) -> None:
    with yard.page().open("ab") as page:
        page.write(b'{"at":"2026-01-31T12:00:00.123Z","event":"do')
    (entry,) = yard.finds("event_torn")
    assert entry["class"] == "notice"


def test_a_page_that_is_missing_between_others_is_worth_a_word(yard: Yardful) -> None:
    page = yard.page()
    shutil.copy(page, page.with_name(page.name.replace(".jsonl", ".2.jsonl")))
    (entry,) = yard.finds("page_missing")
    assert entry["where"].endswith(".1.jsonl")
    assert entry["class"] == "notice"


# Keys


def test_a_task_whose_key_is_gone_is_linked_again(yard: Yardful) -> None:
    (key,) = yard.root.glob("keys/*/*")
    key.unlink()
    yard.heals("key_missing")
    with taskyard.open(yard.place, worker="grace") as opened:
        again = opened.add("keyed", {"n": 3}, key="the key")
        assert (again.id, again.created) == (yard.ids["keyed"], False)
    yard.does("keyed")


def test_a_key_that_is_a_copy_is_set_aside_and_linked_again(yard: Yardful) -> None:
    (key,) = yard.root.glob("keys/*/*")
    content = key.read_bytes()
    key.unlink()
    key.write_bytes(content)
    yard.heals("key_copied")
    assert os.path.samefile(key, yard.file("keyed"))


def test_a_removed_task_comes_back_from_its_key(yard: Yardful) -> None:
    yard.file("keyed").unlink()
    told = yard.finds("key_without_task", "task_lost")
    assert {entry["task"] for entry in told} == {yard.ids["keyed"]}
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.found("keyed").token.fence > 0, "its first name is not used again"
    yard.does("keyed")


def test_a_key_of_an_ended_task_that_is_gone_is_set_aside_and_free_again(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="grace") as opened:
        taken(opened.claim(yard.ids["keyed"])).done()
    yard.file("keyed").unlink()
    yard.finds("key_without_task", "ending_lost")
    told = yard.repairs()
    assert [entry["code"] for entry in told["findings"] if not entry["repaired"]] == ["ending_lost"]
    with taskyard.open(yard.place, worker="grace") as opened:
        assert opened.add("keyed", {"n": 99}, key="the key").created


@pytest.mark.parametrize("content", [b"", b"?", b'{"taskyard":1,"id":"x","kind":"build","priority":5,"data":1}\n'])
def test_a_key_whose_file_is_broken_is_set_aside_and_the_task_linked_again(yard: Yardful, content: bytes) -> None:
    (key,) = yard.root.glob("keys/*/*")
    key.unlink()
    key.write_bytes(content)
    assert "key_broken" in yard.codes()
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.codes() == []
    assert os.path.samefile(key, yard.file("keyed"))


def test_two_tasks_with_one_key_are_left_to_a_person(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="grace") as opened:
        yard.ids["twin"] = opened.add("keyed", {"n": 4}, key="another").id
    file = yard.file("twin")
    (second,) = (key for key in yard.root.glob("keys/*/*") if os.path.samefile(key, file))
    second.unlink()
    file.write_bytes(file.read_bytes().replace(b'"another"', b'"the key"'))
    (entry,) = yard.leaves("key_taken")
    assert entry["task"] == yard.ids["twin"]


# The place


def test_a_yard_that_is_reached_through_a_link_is_as_clean_and_as_damaged_as_it_is(yard: Yardful) -> None:
    link = yard.root.with_name("link")
    link.symlink_to(yard.root)
    lost = yard.file("plain")
    yard.place = str(link)
    assert yard.audit()["findings"] == []
    lost.unlink()
    (entry,) = yard.leaves("task_lost")
    assert entry["task"] == yard.ids["plain"]


# What waits for what


def test_a_need_of_a_done_task_is_met_by_the_repair(yard: Yardful) -> None:
    (follower,) = yard.root.glob("followers/*/*/*")
    follower.unlink()
    yard.does_at_all("needed")
    assert [*yard.root.glob("needs/*/*/*")] != []
    age(yard.file("blocked"))
    told = yard.audit()
    assert "need_met" in {entry["code"] for entry in told["findings"]}
    yard.audit(repair=True)
    assert yard.task("blocked").state == "todo"
    assert "need_met" not in yard.codes()
    yard.does_at_all("blocked")


def test_a_task_that_is_blocked_by_nothing_is_let_go(yard: Yardful) -> None:
    (need,) = yard.root.glob("needs/*/*/*")
    (follower,) = yard.root.glob("followers/*/*/*")
    follower.unlink()
    yard.does_at_all("needed")
    need.unlink()
    need.parent.rmdir()
    age(yard.file("blocked"))
    (entry,) = yard.finds("need_met")
    assert entry["class"] == "pending"
    assert yard.audit(repair=True)["verdict"] == "repaired"
    yard.does("blocked")


@pytest.mark.parametrize("edge", ["both halves", "the need alone", "one need of two"])
def test_a_need_that_was_lost_is_noted_again_and_its_task_does_not_run_early(yard: Yardful, edge: str) -> None:
    if edge == "one need of two":
        with taskyard.open(yard.place) as opened:
            yard.ids["blocked"] = opened.add("both", after=[yard.ids["needed"], yard.ids["second"]]).id
    (need,) = yard.root.glob(f"needs/*/{yard.ids['blocked']}/{yard.ids['needed']}")
    need.unlink()
    if edge != "one need of two":
        need.parent.rmdir()
    if edge == "both halves":
        next(yard.root.glob(f"followers/*/*/{yard.ids['blocked']}")).unlink()
    age(yard.file("blocked"))
    (entry,) = yard.heals("need_missing")
    assert entry["task"] == yard.ids["blocked"]
    if edge == "one need of two":
        yard.does("second")
        assert yard.task("blocked").state == "blocked"
    yard.does("needed")
    yard.does("blocked")


def test_sweeps_do_not_let_a_task_go_that_has_lost_its_needs(yard: Yardful) -> None:
    (need,) = yard.root.glob("needs/*/*/*")
    need.unlink()
    need.parent.rmdir()
    for place in ("blocked", "needs", "followers"):  # so that there is but one segment whose turn it can be
        for segment in (yard.root / place).iterdir():
            if segment.name != yard.file("blocked").parent.name:
                shutil.rmtree(segment)
    with taskyard.open(yard.place) as opened:
        opened.sweep()
    assert yard.task("blocked").state == "blocked"
    yard.heals("need_missing")


def test_tasks_that_come_after_one_another_are_named_and_an_edit_frees_them(yard: Yardful) -> None:
    with taskyard.open(yard.place) as opened:
        yard.ids["last"] = opened.add("last", after=yard.ids["blocked"]).id
    first, old, last = (yard.ids[name] for name in ("blocked", "needed", "last"))
    content = yard.file("blocked").read_bytes()
    yard.file("blocked").write_bytes(content.replace(old.encode(), last.encode()))
    (need,) = yard.root.glob(f"needs/*/{first}/{old}")
    need.rename(need.with_name(last))
    (follower,) = yard.root.glob(f"followers/*/{old}/{first}")
    follower.unlink()
    (yard.root / "followers" / last[:4] / last).mkdir(parents=True)
    (yard.root / "followers" / last[:4] / last / first).touch()
    (entry,) = yard.leaves("cycle")
    assert entry["what"] in (f"{first} after {last} after {first}", f"{last} after {first} after {last}")
    with taskyard.open(yard.place) as opened:
        assert "it comes after itself" in opened.why(first)["message"]
        with pytest.raises(taskyard.TaskyardError, match="it comes after itself"):
            opened.wait(last, timeout=60)
        assert opened.edit(first, after=[]).state == "todo"
    yard.does("blocked")
    yard.does("last")


def test_a_need_without_its_other_half_gets_it(yard: Yardful) -> None:
    (follower,) = yard.root.glob("followers/*/*/*")
    follower.unlink()
    yard.heals("edge_half")
    assert follower.exists()
    yard.does("needed")
    yard.does("blocked")


def test_a_task_that_was_let_go_too_early_is_blocked_again(yard: Yardful) -> None:
    file = yard.file("blocked")
    lane = yard.root / "todo" / "5-blocked" / file.parent.name
    lane.mkdir(parents=True, exist_ok=True)
    file.rename(lane / f"{yard.ids['blocked']}.1.e0.c0.json")
    yard.heals("need_open")
    assert yard.task("blocked").state == "blocked"
    yard.does("needed")
    yard.does("blocked")


def test_a_waiting_task_that_was_let_go_too_early_is_blocked_again_and_waits_after_that(yard: Yardful) -> None:
    file, now = yard.file("blocked"), time.time_ns() // 1_000_000
    due = now + 3_600_000
    bucket = yard.root / "waiting" / names.bucket(due, now) / file.parent.name
    bucket.mkdir(parents=True, exist_ok=True)
    file.rename(bucket / f"{yard.ids['blocked']}.1.e0.c0.5-blocked.d{due}.json")
    yard.heals("need_open")
    assert yard.task("blocked").state == "blocked"
    yard.does("needed")
    freed = yard.task("blocked")
    assert (freed.state, freed.not_before) == ("waiting", times.rfc3339(due))


def test_a_follower_without_a_need_is_left_to_the_sweeps(yard: Yardful) -> None:
    edge = yard.root / "followers" / yard.ids["plain"][:4] / yard.ids["plain"] / yard.ids["second"]
    edge.parent.mkdir(parents=True)
    edge.touch()
    assert yard.codes() == [], "it may be only just being made"


# Segments, archives, and the rest


def test_a_missing_marker_is_made_as_that_of_a_full_segment(yard: Yardful) -> None:
    segment = yard.ids["plain"][:4]
    (yard.root / "segments" / segment).unlink()
    yard.heals("marker_missing")
    with taskyard.open(yard.place, worker="grace") as opened:
        assert opened.add("build").id[:4] != segment
    yard.does("plain")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "marker_broken"),
        (b"\0\0", "marker_broken"),
        (b"1 no-lane\n", "marker_broken"),
        (b"1 5-other\n.", "marker_lane"),
    ],
)
def test_a_marker_that_tells_no_lane_or_a_wrong_one_is_made_anew(yard: Yardful, content: bytes, code: str) -> None:
    (yard.root / "segments" / yard.ids["plain"][:4]).write_bytes(content)
    yard.heals(code)
    yard.does("plain")


def test_an_archive_that_cannot_be_unpacked_is_left_to_a_person(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="grace") as opened:
        opened.prune(count=0, apply=True)
    (archive,) = yard.root.glob("archive/*")
    archive.write_bytes(archive.read_bytes()[:-9])
    assert "archive_broken" in yard.codes()
    archive.write_bytes(gzip.compress(b"")[:5] + b"?" * 50)
    assert "archive_broken" in yard.codes()


def test_a_stray_among_the_slots_of_a_rate_is_named_and_the_slots_are_known(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="grace") as opened:
        opened.set_settings({"kinds": {"paced": {"rate": 100}}})
        opened.add("paced")
        taken(opened.claim(kinds="paced")).done()
    assert yard.audit()["checked"]["slots"] == 128
    before = yard.codes()
    strays = ["pace/readme", "pace/paced/readme", "pace/paced/0/0", "pace/paced/1/64.0.0.what"]
    for stray in strays:
        (yard.root / stray).write_text("")
    (yard.root / "pace" / "readme").rename(yard.root / "pace" / "not a kind")
    strays[0] = "pace/not a kind"
    found = [(entry["code"], entry["where"]) for entry in yard.audit()["findings"]]
    assert {where for code, where in found if code == "stray"} >= set(strays)
    yard.audit(repair=True)
    assert yard.codes() == before


@pytest.mark.parametrize(
    "folder", ["paused", "archive", "waiting", "needs", "workers", "tmp", "dead", "events", "processing"]
)
def test_a_missing_folder_is_made_again(yard: Yardful, folder: str) -> None:
    shutil.rmtree(yard.root / folder)
    told = yard.audit()
    assert ("folder_missing", folder) in [(entry["code"], entry["where"]) for entry in told["findings"]]
    assert told["verdict"] == "damaged"
    yard.audit(repair=True)
    assert (yard.root / folder).is_dir()
    assert "folder_missing" not in yard.codes()


def test_a_folder_that_is_a_link_is_told_and_not_entered(yard: Yardful, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (yard.root / "archive").rename(outside)
    (outside / "secret").write_text("not the yard's")
    (yard.root / "archive").symlink_to(outside)
    (entry,) = yard.leaves("folder_odd")
    assert entry["where"] == "archive"
    assert (outside / "secret").exists()


def test_a_planted_link_is_set_aside_and_what_it_leads_to_is_not_touched(yard: Yardful, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not the yard's")
    (yard.root / "results" / yard.ids["answered"][:4] / "planted").symlink_to(outside)
    yard.heals("symlink")
    assert outside.read_text() == "not the yard's"


@pytest.mark.parametrize(
    "place",
    [
        "needs/*/*/*",
        "followers/*/*/*",
        "edits/*/*",
        "attempts/*/*/*",
        "keys/*/*",
        "segments/*",
        "turns/*",
        "results/*/*",
    ],
)
def test_a_link_in_the_place_of_anything_is_told(yard: Yardful, tmp_path: Path, place: str) -> None:
    one = sorted(yard.root.glob(place))[0]
    outside = tmp_path / "outside"
    one.rename(outside)
    one.symlink_to(outside)
    assert ("symlink", str(one.relative_to(yard.root))) in {
        (entry["code"], entry["where"]) for entry in yard.audit()["findings"]
    }
    yard.repairs()
    assert "symlink" not in yard.codes()
    assert outside.exists()


def test_a_yard_of_more_segments_than_one_round_takes_is_proven_all_the_same(
    yard: Yardful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ROUND", 2)
    assert yard.codes() == []
    file = yard.file("answered")
    lane = yard.root / "todo" / "5-answered" / file.parent.name
    file.rename(lane / f"{yard.ids['answered']}.0.e0.c0.json")
    yard.file("keyed").unlink()
    yard.record("failed", "error").unlink()
    yard.finds("state_behind", "record_ahead", "key_without_task", "task_lost", "reason_missing")
    assert yard.repairs()["verdict"] == "repaired"
    assert yard.codes() == []
    yard.does("keyed")


def test_several_findings_of_one_task_are_told_one_by_one(yard: Yardful) -> None:
    file = yard.file("done")
    for lane in ("5-one", "5-two"):
        folder = yard.root / "todo" / lane / file.parent.name
        folder.mkdir(parents=True)
        shutil.copy(file, folder / f"{yard.ids['done']}.0.e0.c0.json")
    assert yard.codes() == ["two_files", "two_files"]
    told = yard.repairs()
    assert told["counts"] == {"two_files": 2}
    assert told["verdict"] == "repaired"


def test_a_finding_says_what_to_do_next(yard: Yardful) -> None:
    yard.file("plain").write_bytes(b"")
    yard.record("answered", "done").unlink()
    hints = {entry["code"]: entry["hint"] for entry in yard.audit()["findings"]}
    assert hints["broken"].startswith("'taskyard fsck --repair': ")
    assert hints["record_missing"].startswith("restore the record from a backup")


def test_a_folder_that_may_not_be_read_is_a_finding_and_no_crash(yard: Yardful) -> None:
    closed = yard.file("plain").parent
    closed.chmod(0)
    try:
        answer = tools.taskyard(yard.place, "fsck", prefix=tools.powerless())
        assert answer.code == 1
        findings = answer.envelope["data"]["findings"]
        assert {entry["code"] for entry in findings} == {"unreadable"}
        assert yard.root / findings[0]["where"] == closed
    finally:
        closed.chmod(0o777)
    assert yard.codes() == []


@pytest.mark.parametrize("part", ["lane", "segment"])
@pytest.mark.parametrize("mode", [0o000, 0o077, 0o500])
def test_a_lane_whose_owner_cannot_use_it_is_named_also_to_root(yard: Yardful, part: str, mode: int) -> None:
    segment = yard.file("plain").parent
    closed = segment if part == "segment" else segment.parent
    closed.chmod(mode)
    try:
        code = "folder_closed" if os.geteuid() == 0 or mode == 0o500 else "unreadable"
        (entry,) = yard.leaves(code)
        assert yard.root / entry["where"] == closed
    finally:
        closed.chmod(0o755)
    assert yard.codes() == []


def test_a_lane_of_another_user_is_named_unless_its_mode_lets_others_in(yard: Yardful) -> None:
    if os.geteuid() != 0:
        tools.lacking("only root can give a folder away")
    lane = yard.file("plain").parent.parent
    for folder, folders, _ in os.walk(yard.place):
        for path in (folder, *(f"{folder}/{name}" for name in folders)):
            os.chown(path, 12_001, 12_001)
    assert yard.codes() == []
    os.chown(lane, 0, 0)
    lane.chmod(0o755)
    (entry,) = yard.finds("folder_closed")
    assert entry["what"] == "of mode 0755 and of user 0, and the yard is of user 12001"
    for open_mode in (0o775, 0o757):  # the yard's owner may be in the lane's group
        lane.chmod(open_mode)
        assert yard.codes() == []


def test_a_lane_that_a_shared_yard_keeps_from_its_group_is_named(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    with taskyard.init(str(place), shared=True) as opened:
        opened.add("build")
        (lane,) = (place / "todo").iterdir()
        assert opened.audit()["findings"] == []
        lane.chmod(0o2755)
        (entry,) = opened.audit()["findings"]
    assert (entry["code"], entry["where"]) == ("folder_closed", f"todo/{lane.name}")


def test_a_file_that_the_disk_refuses_to_read_is_a_finding_and_no_crash(
    yard: Yardful, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, read = str(yard.file("plain")), Disk.inspect

    def inspect(self: Disk, path: str, most: int) -> tuple[os.stat_result, bytes]:
        if path == bad:
            raise OSError(5, "Input/output error", path)
        return read(self, path, most)

    monkeypatch.setattr(Disk, "inspect", inspect)
    monkeypatch.setattr(Disk, "read", lambda self, path: inspect(self, path, 1 << 20)[1])
    (entry,) = yard.leaves("unreadable")
    assert entry["task"] == yard.ids["plain"]
    assert "Input/output error" in entry["what"]


def test_another_mount_in_the_yard_is_told(yard: Yardful, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, status = f"{yard.place}/archive", Disk.status

    def mounted(self: Disk, path: str) -> os.stat_result:
        there = status(self, path)
        return there if path != elsewhere else os.stat_result((*there[:2], there.st_dev + 1, *there[3:]))

    monkeypatch.setattr(Disk, "status", mounted)
    (entry,) = yard.leaves("folder_odd")
    assert "another mount" in entry["what"]


@pytest.mark.parametrize("content", ['{"taskyard": 2}', '{"taskyard": 1, "features": ["holes"]}'])
def test_a_yard_of_another_format_is_refused_with_a_hint(yard: Yardful, content: str) -> None:
    (yard.root / "yard.json").write_text(content)
    answer = tools.taskyard(yard.place, "fsck", "--repair")
    assert answer.code == 8
    assert answer.error["code"] == "unavailable"
    assert answer.error["hint"]


def in_its_place(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replaced(path: Path) -> None:
        path.rename(path.parent / "moved.json")
        make(path)

    return replaced


BROKEN_SETTINGS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_text(""),
    "cut off": lambda path: path.write_text('{"taskyard": 1, "sett'),
    "zeros": lambda path: path.write_bytes(bytes(100)),
    "a list": lambda path: path.write_text("[]"),
    "without a format": lambda path: path.write_text("{}"),
    "an odd format": lambda path: path.write_text('{"taskyard": NaN}'),
    "no UTF-8": lambda path: path.write_bytes(b'{"taskyard": 1, "x": "\xff"}'),
    "an odd setting": lambda path: path.write_text('{"taskyard": 1, "settings": {"lease": "long"}}'),
    "deep": lambda path: path.write_text("[" * 100_000),
    "many digits": lambda path: path.write_text('{"taskyard": 1, "settings": {"lease": ' + "9" * 100_000 + "}}"),
    "huge": lambda path: os.truncate(path, 1 << 33),
    "gone": Path.unlink,
    "a folder": in_its_place(Path.mkdir),
    "a pipe": in_its_place(os.mkfifo),
    "a link": in_its_place(lambda path: path.symlink_to("moved.json")),
}


@pytest.mark.parametrize("how", BROKEN_SETTINGS)
def test_settings_that_are_broken_are_a_finding_and_nothing_is_healed_by_guesses(yard: Yardful, how: str) -> None:
    (yard.root / "README").write_text("mine")
    Path(yard.found("second").path).write_bytes(b"")  # damage that a repair would see to
    BROKEN_SETTINGS[how](yard.root / "yard.json")
    before = sorted(str(path) for path in yard.root.rglob("*") if path.parent.name not in PASSING)
    for words in (["fsck"], ["fsck", "--repair"]):
        answer = tools.taskyard(yard.place, *words)
        assert (answer.code, answer.envelope["ok"]) == (1, True), answer.out
        told = answer.envelope["data"]
        assert told["verdict"] == "damaged"
        assert told["checked"]["tasks"] == len(yard.ids)
        by_code = {entry["code"]: entry for entry in told["findings"]}
        assert {"settings_broken", "broken"} <= by_code.keys()
        assert by_code["settings_broken"]["where"] == "yard.json"
        assert "taskyard init" in by_code["settings_broken"]["hint"]
        assert not any(entry["repaired"] for entry in told["findings"])
    assert sorted(str(path) for path in yard.root.rglob("*") if path.parent.name not in PASSING) == before
    if how not in ("huge", "deep", "many digits"):
        said = subprocess.run(
            [*tools.COMMAND, "--yard", yard.place, "fsck"], capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (1, "")
        assert "settings_broken" in said.stdout


def test_the_way_out_of_broken_settings_leaves_all_tasks_as_they_are(yard: Yardful, tmp_path: Path) -> None:
    (yard.root / "yard.json").write_text("{")
    assert tools.taskyard(yard.place, "list").code == 8
    (yard.root / "yard.json").rename(tmp_path / "broken.json")
    assert tools.taskyard(None, "init", yard.place).code == 0
    assert yard.audit()["findings"] == []
    with taskyard.open(yard.place) as opened:
        assert sum(opened.counts().values()) == len(yard.ids)


def test_things_beside_the_folders_are_worth_a_word(yard: Yardful) -> None:
    (yard.root / "README").write_text("mine")
    (entry,) = yard.finds("root_stray")
    assert entry["class"] == "notice"
    assert yard.audit(repair=True)["verdict"] == "clean"
    assert (yard.root / "README").exists()


def test_a_workers_file_that_tells_nothing_is_worth_a_word(yard: Yardful) -> None:
    (yard.root / "workers" / "ada-00000000").write_text("?")
    (entry,) = yard.finds("worker_broken")
    assert entry["class"] == "notice"


def test_the_note_of_a_dead_process_is_pending_and_the_repair_logs_for_it(yard: Yardful) -> None:
    (yard.root / "writers" / "1-00000000").write_bytes(b"\n" + bytes(100))
    (entry,) = yard.finds("dead_writer")
    assert entry["class"] == "pending"
    assert yard.audit(repair=True)["verdict"] == "repaired"
    assert not (yard.root / "writers" / "1-00000000").exists()


def test_a_client_of_a_file_server_leaves_hidden_files_that_are_no_damage(yard: Yardful) -> None:
    (yard.root / "done" / ".nfs0000001").write_text("removed while it was open")
    assert yard.codes() == []


def test_a_shared_yard_is_proven_in_the_same_way(yard: Yardful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "is_local", lambda _: False)
    assert yard.codes() == []
    moved(yard.file("second"), fence="007")
    assert yard.codes() == ["name_illegal"]
    assert yard.repairs()["verdict"] == "repaired"


def age(path: Path) -> None:
    """Wait until whoever moved the file is taken to be through with it."""
    end = time.time() + 10
    while time.time() * 1000 - path.stat().st_ctime_ns // 1_000_000 < 2_100:
        assert time.time() < end
        time.sleep(0.05)


# Why a task was cancelled


def test_the_reason_of_a_cancelled_task_that_nobody_held_is_legal_and_a_broken_one_is_set_aside(yard: Yardful) -> None:
    with taskyard.open(yard.place, worker="ada") as opened:
        opened.cancel(yard.ids["plain"], "not needed")
    assert yard.codes() == []
    (record,) = (yard.root / "results").rglob("*.1.cancelled.json")
    record.write_bytes(b"{")
    yard.heals("record_broken")
    assert yard.task("plain").error is None
