"""One yard, shell and Python side by side: what one of them does, the other sees as its own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import times
from tests.conftest import damage, taken, wait_until
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places
from tests.processes import tools

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell

KINDS = ("build", "docs.html", "ci:lint", "漢字", "a" * 60)
DATA: dict[str, object] = {
    "text": 'quoted "words", a \\ and a\ttab',
    "list": [1, -2.5e3, True, None, {}, []],
    "é": "漢",
}


def is_now(moment: str | None) -> bool:
    return moment is not None and abs(times.moment(moment, "moment") - time.time() * 1000) < 60_000


# The shell adds


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_shell_adds_python_claims(sh: Shell, yard: Yard, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps(DATA, indent=1, ensure_ascii=False), encoding="utf-8")
    id = sh.run("add_task", "-p", "3", kind, str(file), env={"AGENT_ID": "bob"}).line
    claim = taken(yard.claim())
    assert (claim.task.id, claim.task.kind, claim.task.data, claim.task.priority) == (id, kind, DATA, 3)
    assert is_now(claim.task.created_at)
    claim.done()
    added = yard.events(task=id)[0]
    assert (added["event"], added["by"], added["fence"], added["kind"]) == ("added", "bob", 0, kind)
    check_log(yard)


def test_data_may_come_on_standard_input_or_not_at_all(sh: Shell, yard: Yard) -> None:
    for text in ("1e308", '"\\ud83d\\ude00"', '"\\\\ud800"', '"1e999"'):
        assert yard.get(sh.run("add_task", "odd", "-", stdin=text).line).data == json.loads(text)
        taken(yard.claim()).done()
    first = sh.run("add_task", "build", "-", stdin=' "one"\n').line
    second = sh.run("add_task", "build").line
    assert (yard.get(first).data, yard.get(second).data) == ("one", None)
    assert [taken(yard.claim()).task.id for _ in range(2)] == [first, second]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "{'a':1}",
        "01",
        '"\n"',
        "NaN",
        '{"a": 1e999}',
        "-1E+400",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        "[" * 300 + "]" * 300,
    ],
)
def test_data_that_is_no_json_is_refused(sh: Shell, yard: Yard, text: str) -> None:
    refused = sh.run("add_task", "build", "-", stdin=text)
    assert (refused.code, refused.out) == (2, "")
    assert yard.counts()["todo"] == 0
    assert not [name for name in (Path(yard.url) / "tmp").iterdir() if name.name != "clock"]


@pytest.mark.parametrize("kind", ["", " ", ".x", "-x", "a b", "a/b", "a%b", "a@b", 'a"b', "a\tb", "b" * 61, "漢" * 7])
def test_a_kind_that_python_refuses_is_refused(sh: Shell, yard: Yard, kind: str) -> None:
    with pytest.raises(taskyard.Invalid):
        yard.add(kind)
    assert sh.run("add_task", kind).code == 2
    assert sh.run("claim_task", kind).code == 2


def test_the_folder_that_it_is_called_in_has_no_say(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()  # four letters, as a segment has
    said = sh.script('cd "$1" && add_task build', str(tmp_path))
    assert said.line.startswith("0000")
    assert yard.get(said.line).state == "todo"


def test_both_add_to_the_same_segments(sh: Shell, yard: Yard) -> None:
    ids = [yard.add("build").id, sh.run("add_task", "build").line, yard.add("build").id]
    with taskyard.open(yard.url) as other:
        ids.append(other.add("build").id)
    assert {id[:4] for id in ids} == {"0000"}
    marker = Path(yard.url, "segments", "0000").read_text()
    assert marker.split("\n")[1] == "...."
    Path(yard.url, "segments", "0000").write_text(marker + "." * 1020)  # full
    assert sh.run("add_task", "build").line.startswith("0001")
    assert sh.run("add_task", "build").line.startswith("0001")
    assert yard.add("build").id.startswith("0001")
    assert sh.run("add_task", "other").line.startswith("0002")


# Python adds, the shell works


@pytest.mark.parametrize("kind", KINDS)
def test_what_python_adds_the_shell_claims_and_completes(sh: Shell, yard: Yard, tmp_path: Path, kind: str) -> None:
    task = yard.add(kind, DATA)
    handle, file = sh.claim(env={"TASKYARD_WORKER": "Ada L"})
    assert json.loads(file.read_text(encoding="utf-8"))["data"] == DATA
    held = yard.get(task.id)
    assert (held.state, held.worker, held.fence) == ("processing", "Ada L", 1)
    assert held.lease_until is not None
    assert abs(times.moment(held.lease_until, "lease") - (time.time() + 1800) * 1000) < 60_000
    result = tmp_path / "result.json"
    result.write_text(json.dumps(DATA), encoding="utf-8")
    assert sh.run("complete_task", handle, str(result), env={"TASKYARD_WORKER": "Ada L"}).line == ""
    report = yard.report(task.id)
    assert (report.task.state, report.task.result, report.task.fence) == ("done", DATA, 1)
    (entry,) = report.history
    assert (entry["claim"], entry["worker"], entry["outcome"]) == (handle, "Ada L", "done")
    assert is_now(entry["at"])
    events = yard.events(task=task.id)
    assert [(event["event"], event["fence"], event["worker"]) for event in events] == [
        ("added", 0, None),
        ("claimed", 1, "Ada L"),
        ("done", 1, "Ada L"),
    ]
    assert all(is_now(event["at"]) and event["kind"] == kind for event in events)
    check_log(yard)


def test_a_done_without_a_result_leaves_no_record(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    handle, _ = sh.claim()
    sh.run("complete_task", handle)
    report = yard.report(task.id)
    assert (report.task.state, report.task.result, report.history[0]["outcome"]) == ("done", None, "done")
    assert not list(Path(yard.url, "results").rglob("*.json"))


def test_priorities_then_age_decide(sh: Shell, yard: Yard) -> None:
    order = [yard.add("b", priority=5), yard.add("a", priority=5), yard.add("c", priority=5), yard.add("z", priority=1)]
    assert [sh.claim()[0].split(".")[0] for _ in order] == [order[index].id for index in (3, 0, 1, 2)]
    order = [yard.add("b", priority=5), yard.add("a", priority=5), yard.add("c", priority=5)]
    said = sh.script("for n in 1 2 3; do claim_task >/dev/null; printf '%s ' \"${TASK_HANDLE%%.*}\"; done").line
    assert said.split() == [task.id for task in order]


def test_of_many_lanes_none_starves(sh: Shell, yard: Yard) -> None:
    last = yard.add("zz")  # the oldest, in the lane that is listed last
    yard.add_many([{"kind": f"kind{n % 9}"} for n in range(180)])
    for _ in range(60):
        if sh.claim()[0].startswith(last.id):
            return
    pytest.fail("the last of ten lanes was never looked at")


def test_a_new_yard_has_nothing_ready_and_that_is_all_it_says(sh: Shell) -> None:
    said = sh.run("claim_task")
    assert (said.code, said.out, said.err) == (3, "", "taskyard.sh: nothing is ready; 'taskyard why' says why\n")
    assert sh.run("reap_stale").line == ""


def test_something_more_urgent_is_seen_at_once(sh: Shell, yard: Yard) -> None:
    for _ in range(3):
        yard.add("slow", priority=7)
    said = sh.script("claim_task >/dev/null; add_task -p 1 quick >/dev/null; claim_task").line
    assert "1-quick" in said


def test_kinds_assignees_and_pauses_are_kept_to(sh: Shell, yard: Yard) -> None:
    mine = yard.add("build", assignee="Ada L")
    yard.add("docs.html")
    assert sh.run("claim_task", "build").code == 3
    assert sh.run("claim_task", "build", env={"AGENT_ID": "bob"}).code == 3
    yard.pause("docs.html")
    assert sh.run("claim_task").code == 3
    yard.unpause("docs.html")
    assert "docs%2Ehtml" in sh.claim("build", "docs.html")[1].name
    handle, file = sh.claim(env={"TASKYARD_WORKER": "Ada L"})
    assert handle.startswith(mine.id)
    assert ".@-" in file.name
    assert yard.get(mine.id).worker == "Ada L"
    sh.run("release_task", handle)
    yard.pause()
    assert sh.run("claim_task", env={"TASKYARD_WORKER": "Ada L"}).code == 3
    yard.unpause()
    sh.run("fail_task", sh.claim(env={"TASKYARD_WORKER": "Ada L"})[0], "no")
    assert [entry["worker"] for entry in yard.report(mine.id).history] == ["Ada L", "Ada L"]
    check_log(yard)


def test_an_edited_task_is_handed_over_as_it_is_now(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", "before", key="k", max_attempts=1, lease=7200)
    yard.edit(task.id, data="after")
    handle, file = sh.claim()
    assert json.loads(file.read_text(encoding="utf-8"))["data"] == "after"
    assert file.parent.parent.name == "edits"
    held = yard.get(task.id)
    assert held.lease_until is not None
    assert abs(times.moment(held.lease_until, "lease") - (time.time() + 7200) * 1000) < 60_000
    sh.run("fail_task", handle, "once is enough")
    assert (yard.get(task.id).state, yard.get(task.id).error) == ("failed", "once is enough")
    assert yard.add("build", "before", key="k", max_attempts=1, lease=7200).id == task.id
    yard.retry(task.id)
    assert taken(yard.claim()).task.data == "after"
    check_log(yard)


def test_a_dropped_file_that_python_took_in_is_handed_over_as_it_came(sh: Shell, yard: Yard) -> None:
    Path(yard.url, "todo", "order.json").write_text('{"kind": "sharpen", "n": 1}')
    yard.sweep()
    handle, file = sh.claim()
    assert file.read_text() == '{"kind": "sharpen", "n": 1}'
    sh.run("complete_task", handle)
    assert yard.get(handle.split(".")[0]).state == "done"


# Endings


def test_errors_are_counted_and_the_last_one_is_final(sh: Shell, yard: Yard) -> None:
    tools.settle(yard.url, backoff=0.01)
    reason = 'it said "no"\nand \\ a\ttab, 漢字'
    task = yard.add("build", max_attempts=2)
    handle, _ = sh.claim(env={"AGENT_ID": "bob"})
    sh.run("fail_task", handle, reason, env={"AGENT_ID": "bob"})
    waiting = yard.get(task.id)
    assert (waiting.attempts, waiting.fence, waiting.error) == (1, 2, reason)
    again = wait_until(yard.claim)
    again.release()
    handle, _ = sh.claim(env={"AGENT_ID": "eve"})
    sh.run("fail_task", handle, "x" * 3000, env={"AGENT_ID": "eve"})
    report = yard.report(task.id)
    assert (report.task.state, report.task.error, report.task.attempts) == ("failed", "x" * 3000, 2)
    assert [(entry["worker"], entry["outcome"]) for entry in report.history] == [
        ("bob", "error"),
        ("ada", "released"),
        ("eve", "error"),
    ]
    failed = [event for event in yard.events(task=task.id) if event["event"] == "failed"]
    assert [(event["final"], event["reason"]) for event in failed] == [(False, reason), (True, "x" * 1000)]
    assert "due" in failed[0]
    check_log(yard)


def test_the_yards_own_limits_count(sh: Shell, place: str) -> None:
    tools.settle(place, max_attempts=1, lease=90)
    with taskyard.open(place) as yard:
        task = yard.add("build")
        handle, file = sh.claim()
        assert ".l90000." in file.name
        sh.run("fail_task", handle, "no")
        assert yard.get(task.id).state == "failed"


def test_a_backoff_is_that_of_the_settings(sh: Shell, place: str) -> None:
    tools.settle(place, backoff=1000, backoff_cap=100_000)
    with taskyard.open(place) as yard:
        task = yard.add("build")
        sh.run("fail_task", sh.claim()[0], "no")
        not_before = yard.get(task.id).not_before or next(
            event["due"] for event in yard.events(task=task.id) if event["event"] == "failed"
        )
        ahead = times.moment(not_before, "due") / 1000 - time.time()
        assert 700 < ahead < 1260
        assert yard.counts()["waiting"] == 1


def test_a_release_gives_it_back_for_anybody(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    handle, _ = sh.claim()
    assert sh.run("release_task", handle).line == ""
    assert sh.run("release_task", handle).line == "", "said again it is the same answer"
    claim = taken(yard.claim())
    assert (claim.task.id, claim.fence, claim.task.attempts) == (task.id, 3, 0)
    assert claim.history[0]["outcome"] == "released"
    claim.release()
    assert sh.claim()[0].startswith(f"{task.id}.5.")
    check_log(yard)


def test_handles_go_from_one_to_the_other(sh: Shell, yard: Yard) -> None:
    first, second = yard.add("build"), yard.add("build")
    handle, _ = sh.claim()
    assert tools.taskyard(yard.url, "heartbeat", handle).code == 0
    assert tools.taskyard(yard.url, "note", handle, "by hand").code == 0
    assert tools.taskyard(yard.url, "done", handle, "--result", "1").code == 0
    claim = taken(yard.claim())
    assert sh.run("verify_ownership", claim.handle).line == ""
    assert sh.run("heartbeat", claim.handle).line == ""
    assert sh.run("complete_task", claim.handle).line == ""
    assert (yard.get(first.id).state, yard.get(second.id).state) == ("done", "done")
    assert yard.report(second.id).history[0]["worker"] == "ada"
    check_log(yard)


def test_the_same_ending_gets_the_same_answer_and_another_one_does_not(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    result, other = tmp_path / "result.json", tmp_path / "other.json"
    result.write_text("1")
    other.write_text("2")
    task = yard.add("build")
    handle, _ = sh.claim()
    for _ in range(2):
        assert sh.run("complete_task", handle, str(result)).line == ""
    assert yard.report(task.id).stale_results == []
    yard.add("build")
    now, _ = sh.claim(env={"AGENT_ID": "bob"})
    refused = sh.run("complete_task", handle, str(other), env={"AGENT_ID": "bob"})
    assert (refused.code, task.id in refused.err, now in refused.err) == (7, True, True)
    assert sh.run("fail_task", handle, "after all").code == 7
    report = yard.report(task.id)
    assert report.task.result == 1
    assert [(entry["outcome"], entry.get("result")) for entry in report.stale_results] == [("done", 2), ("error", None)]
    assert sh.run("complete_task", handle).code == 7, "without its result it is another ending"
    assert sh.run("heartbeat", handle).code == sh.run("release_task", handle).code == 4
    assert tools.taskyard(yard.url, "done", handle, "--result", "1").code == 0


def test_a_second_word_ends_the_task_with_the_first_and_is_refused(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("2")
    for result, code in (("1", 7), ("2", 0)):
        task = yard.add("build")
        handle, _ = sh.claim()
        record = Path(yard.url) / "results" / task.id[:4] / f"{handle}.done.json"
        text = f'"worker": "ada", "outcome": "done", "reason": null, "at": "2026-01-31T12:00:00.000Z", "by": "ada", "result": {result}'
        record.parent.mkdir(exist_ok=True)
        record.write_text(
            f'{{"claim": "{handle}", "fence": 1, {text}, "errors": 0, "crashes": 0}}'
        )  # and was killed then
        assert sh.run("complete_task", handle, str(other)).code == code
        assert (yard.get(task.id).state, yard.get(task.id).result) == ("done", int(result))


def test_a_fail_with_another_reason_is_another_ending(sh: Shell, yard: Yard) -> None:
    yard.add("build", max_attempts=1)
    handle, _ = sh.claim()
    for _ in range(2):
        assert sh.run("fail_task", handle, "broken").line == ""
    assert sh.run("fail_task", handle, "out of paper").code == 7
    yard.add("build")
    handle, _ = sh.claim()
    for _ in range(2):
        assert sh.run("fail_task", handle, "broken").line == ""
    assert sh.run("fail_task", handle, "out of paper").code == 4


def test_a_mistyped_handle_is_told_from_a_late_one(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    handle, _ = sh.claim()
    head, _, nonce = handle.rpartition(".")
    other = "0" if nonce[0] != "0" else "1"
    log = list(yard.events())
    for slip in (other + nonce[1:], other + other + nonce[2:], nonce + other):
        for verb, *more in (("complete_task",), ("fail_task", "no"), ("heartbeat",), ("release_task",)):
            refused = sh.run(verb, f"{head}.{slip}", *more)
            assert (refused.code, "mistyped" in refused.err) == (2, True), (verb, slip)
    assert list(yard.events()) == log
    assert yard.report(task.id).stale_results == []
    assert sh.run("complete_task", f"{head}.zzzzzzzz9").code == 4
    assert sh.run("complete_task", handle).line == ""


def test_a_late_verb_changes_nothing_and_what_it_brought_is_kept(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    result.write_text('"late"')
    task = yard.add("build")
    handle, _ = sh.claim(env={"AGENT_ID": "bob", "TASKYARD_LEASE": "1"})
    wait_until(lambda: (yard.sweep(), yard.get(task.id).state == "todo")[1])
    claim = taken(yard.claim())
    for words in (["heartbeat"], ["verify_ownership"], ["release_task"], ["complete_task"], ["fail_task"]):
        more = {"complete_task": [str(result)], "fail_task": ["no"]}.get(words[0], [])
        refused = sh.run(*words, handle, *more, env={"AGENT_ID": "bob"})
        assert (refused.code, refused.out) == (4, ""), words
    claim.done("mine")
    report = yard.report(task.id)
    assert report.task.result == "mine"
    assert {(entry["outcome"], entry.get("result"), entry["worker"]) for entry in report.stale_results} == {
        ("done", "late", "bob"),
        ("error", None, "bob"),
    }
    refused_verbs = [event["verb"] for event in yard.events(task=task.id) if event["event"] == "refused"]
    assert refused_verbs == ["heartbeat", "release", "done", "fail"]
    check_log(yard)


def test_exit_codes_are_those_of_the_command_line(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    nobody = "0000" + "0" * 17 + ".1.b979d98y1"
    assert sh.run("claim_task").code == 3
    assert sh.run().code == sh.run("sing").code == sh.run("add_task").code == sh.run("fail_task", nobody).code == 2
    assert sh.run("complete_task", "nonsense").code == sh.run("heartbeat").code == 2
    for verb in ("complete_task", "heartbeat", "verify_ownership", "release_task"):
        assert sh.run(verb, nobody).code == 6, verb
    assert sh.run("fail_task", nobody, "no").code == 6
    assert sh.run("claim_task", env={"TASKYARD": str(tmp_path / "nowhere")}).code == 8
    assert sh.run("claim_task", env={"TASKYARD": "postgresql://x/y"}).code == 2
    assert sh.run("claim_task", env={"TASKYARD_WORKER": "x" * 61}).code == 2


def test_the_nearest_yard_upward_is_meant(sh: Shell, tmp_path: Path) -> None:
    home = tmp_path / "a [b] c"
    (home / "deep" / "down").mkdir(parents=True)
    taskyard.init(str(home / ".taskyard")).close()
    said = sh.script(f"unset TASKYARD; cd '{home}/deep/down'; add_task build; claim_task; cd /; claim_task || echo $?")
    assert said.code == 0
    id, claim, none = said.out.splitlines()
    assert claim.startswith(f"{id}.1.")
    assert none == "2"


# What follows from a done


def test_a_done_lets_those_go_that_come_after_it(sh: Shell, yard: Yard) -> None:
    first, second = yard.add("build"), yard.add("build")
    both = yard.add("test", after=[first.id, second.id])
    later = yard.add("late", after=[first.id], delay=3600)
    sh.run("complete_task", sh.claim()[0])
    assert (yard.get(both.id).state, yard.get(later.id).state) == ("blocked", "waiting")
    sh.run("complete_task", sh.claim()[0])
    assert yard.get(both.id).state == "todo"
    freed = next(event for event in yard.events(task=both.id) if event["event"] == "unblocked")
    assert (freed["freed_by"], freed["fence"]) == (second.id, 1)
    check_nothing_is_stuck(yard)
    check_log(yard)
    assert sh.claim()[0].startswith(f"{both.id}.2.")


def test_a_done_lets_those_of_a_graph_go_whose_edges_are_in_a_sheet(sh: Shell, yard: Yard) -> None:
    ids = yard.add_many(
        [
            {"kind": "build", "ref": "a"},
            {"kind": "build", "ref": "b"},
            *({"kind": "test", "ref": f"t{n}", "after": ["a", "b"]} for n in range(2)),
            {"kind": "late", "after": ["a", "t0"], "delay": 3600},
        ]
    )
    assert os.listdir(f"{yard.url}/sheets") != []
    assert os.listdir(f"{yard.url}/needs") == []
    sh.run("complete_task", sh.claim("build")[0])
    assert [str(yard.get(id).state) for id in ids] == ["done", "todo", "blocked", "blocked", "blocked"]
    taken(yard.claim(kinds="build")).done()
    assert [str(yard.get(id).state) for id in ids[2:]] == ["todo", "todo", "blocked"]
    for _ in range(2):
        sh.run("complete_task", sh.claim("test")[0])
    assert yard.get(ids[4]).state == "waiting"
    freed = {event["task"]: event["freed_by"] for event in yard.events(event="unblocked")}
    assert freed == {ids[2]: ids[1], ids[3]: ids[1], ids[4]: ids[2]}
    check_nothing_is_stuck(yard)
    check_log(yard)
    yard.sweep()
    assert damage(yard) == []


def test_what_uses_something_is_left_to_those_who_can_tell(sh: Shell, yard: Yard) -> None:
    task = yard.add("build", uses=["db"])
    assert sh.run("claim_task").code == 3
    plain = yard.add("build")
    assert sh.claim()[0].startswith(plain.id)
    assert taken(yard.claim()).task.id == task.id


# The sweep


def test_reap_stale_gives_back_what_leases_have_ended_of_and_nothing_else(sh: Shell, yard: Yard) -> None:
    lapsed, held = yard.add("build"), yard.add("build")
    claim = taken(yard.claim(lapsed.id, lease=0.05))
    taken(yard.claim(held.id, lease=600))
    said = wait_until(lambda: sh.run("reap_stale", env={"AGENT_ID": "bob"}).line)
    assert said == f"reaped {lapsed.id}"
    report = yard.report(lapsed.id)
    assert (report.task.state, report.task.attempts, yard.get(held.id).state) == ("todo", 1, "processing")
    (entry,) = report.history
    assert (entry["claim"], entry["worker"], entry["outcome"]) == (claim.handle, "ada", "crash")
    assert entry["reason"] == "the lease of 0.05 s ended without a heartbeat from ada"
    reaped = next(event for event in yard.events(task=lapsed.id) if event["event"] == "reaped")
    assert (reaped["by"], reaped["final"], reaped["fence"]) == ("bob", False, 2)
    with pytest.raises(taskyard.ClaimLost):
        claim.done()
    check_log(yard)


def test_crashes_are_counted_up_to_the_cap(sh: Shell, place: str) -> None:
    tools.settle(place, backoff=0.01, sweep_every=1e8)
    with taskyard.open(place) as yard:
        task = yard.add("build")
        for crash in (1, 2, 3):
            wait_until(lambda: sh.run("claim_task", env={"TASKYARD_LEASE": "1"}).code == 0)
            wait_until(lambda: f"reaped {task.id}" in sh.run("reap_stale").out)
            assert check_places(place)[task.id][1].crashes == crash
        assert yard.get(task.id).state == "failed"
        assert [entry["outcome"] for entry in yard.report(task.id).history] == ["crash"] * 3
        check_log(yard)


def test_a_claim_wakes_what_is_due_before_it_says_that_nothing_is_ready(sh: Shell, place: str) -> None:
    tools.settle(place, sweep_every=1e8)
    with taskyard.open(place) as yard:
        task = yard.add("build", delay=0.05)
        yard.add("build", delay=3600)
        handle = wait_until(lambda: sh.run("claim_task").out).split("\t")[0]
        assert handle.startswith(f"{task.id}.2.")
        assert sh.run("claim_task").code == 3
        check_log(yard)


def test_fsck_knows_the_files_that_a_shell_leaves_for_the_next(sh: Shell, yard: Yard, place: str) -> None:
    sh.run("add_task", "build")
    sh.run("complete_task", sh.claim()[0])
    left = {path.name for path in (Path(place) / "writers").iterdir() if path.suffix in (".sh", ".look")}
    assert any(name.endswith(".sh") for name in left)
    assert any(name.endswith(".look") for name in left)
    told = yard.audit(repair=True)
    assert (told["verdict"], told["findings"]) == ("clean", [])
    assert left <= {path.name for path in (Path(place) / "writers").iterdir()}
    assert yard.set_aside() == []
