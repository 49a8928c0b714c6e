"""The drop box under real hands: files copied, moved and slowly written into todo/ become tasks; what can be none is set aside."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import sized, taken, wait_until
from tests.directory.stories import check_log, check_places
from tests.processes import tools

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Crew = Callable[..., subprocess.Popen[str]]

DROPPERS, CLAIMERS = 8, 8
SETTLE = 0.05


@pytest.fixture
def box(place: str) -> str:
    """A yard in which a file that does not parse is left in peace for a moment only."""
    tools.settle(place, settle=SETTLE)
    return place


def drop(yard: str, name: str, content: Any) -> Path:
    path = Path(yard, "todo", name)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def asides(yard: str) -> list[str]:
    return [name for name in os.listdir(f"{yard}/failed") if name.endswith(".json")]


def aside(yard: taskyard.Yard, name: str) -> str:
    """The reason for which a file of this name is set aside, once it is."""

    def found() -> str | None:
        yard.sweep()
        return next((entry["reason"] for entry in yard.set_aside() if entry["name"] == name), None)

    return wait_until(found)


@sized("each", 225, 625)
def test_eight_droppers_and_eight_claimers_do_every_good_file_once_and_set_every_bad_one_aside(
    place: str, crew: Crew, each: int
) -> None:
    tools.settle(place, settle=2)
    ways = ["slowly", "slowly", "slowly", "rename", "rename", "rename", "cp", "cp"]
    bad = each // 25
    all_good, all_bad = each * DROPPERS, bad * DROPPERS
    droppers = [crew(place, "drop", f"d{n}", str(each), str(bad), how) for n, how in enumerate(ways)]
    claimers = [crew(place, "work_until_told", prefix=tools.powerless()) for _ in range(CLAIMERS)]
    for member in (*droppers, *claimers):
        assert tools.said(member) == "ready"
    for member in (*claimers, *droppers):
        tools.tell(member)
    dropped = tools.told(droppers)
    assert len(set(dropped)) == all_good

    def over() -> bool:
        ended = sum(len(names) for _, _, names in os.walk(f"{place}/done"))
        return ended >= all_good and len(asides(place)) >= all_bad

    wait_until(over, tools.PATIENCE)
    for member in claimers:
        tools.tell(member)
    done = tools.told(claimers)
    assert {n for _, _, n in done} == set(dropped)
    tools.judge(place, drained=True)  # each once
    assert len(asides(place)) == all_bad
    with taskyard.open(place) as yard:
        reasons = {str(entry["name"]): entry["reason"] for entry in yard.set_aside()}
        assert all(reasons.values())
        sorts = Counter(name.split("~")[0].rsplit("-", 1)[1] for name in reasons if name.startswith("bad"))
        assert set(sorts) >= {"no", "json", "truncated", "list", "kind", "priority", "large", "unreadable", "link"} - {
            "no"
        }
        counts = yard.counts()
        assert counts == {**dict.fromkeys(counts, 0), "done": all_good}
        assert yard.stats()["set_aside"] == all_bad
        assert len(yard.events(event="set_aside", limit=100_000)) == all_bad
        assert len(check_places(place)) == all_good
    assert os.listdir(f"{place}/tmp") == ["clock"]
    assert [name for name in os.listdir(f"{place}/todo") if name.endswith(".json")] == []


def test_a_file_of_the_seed_runs_as_its_operation_with_the_whole_object_as_data(box: str) -> None:
    seed = {
        "taskId": "task-0001",
        "inputFile": "/in/a.png",
        "outputFile": "/out/a.png",
        "operation": "sharpen",
        "parameters": {"radius": 2.5},
    }
    drop(box, "task-0001.json", seed)
    claimed = tools.taskyard(box, "claim", "--kind", "sharpen").data
    assert (claimed["task"]["kind"], claimed["task"]["data"], claimed["task"]["key"]) == ("sharpen", seed, "task-0001")
    assert tools.taskyard(box, "done", claimed["claim"], "--result", '{"outputFile": "/out/a.png"}').code == 0
    shown = tools.taskyard(box, "show", claimed["task"]["id"]).data["task"]
    assert (shown["state"], shown["data"], shown["result"]) == ("done", seed, {"outputFile": "/out/a.png"})


def test_ten_thousand_files_dropped_at_once_are_taken_in_by_one_sweep(box: str) -> None:
    for number in range(10_000):
        with open(f"{box}/todo/{number}.json", "w") as file:
            file.write(f'{{"n": {number}}}')
    with taskyard.open(box) as yard:
        assert yard.sweep().taken == 10_000
        assert yard.counts()["todo"] == 10_000
    assert len(check_places(box)) == 10_000
    assert [name for name in os.listdir(f"{box}/todo") if name.endswith(".json")] == []


def test_a_file_that_was_corrected_is_retried_by_its_name(box: str) -> None:
    drop(box, "broken.json", '{"kind": "build", "data": {"n": 1}')
    with taskyard.open(box) as yard:
        assert "not JSON" in aside(yard, "broken")
    shown = tools.taskyard(box, "list")
    assert shown.code == 0
    drop_again = Path(box, "failed", "broken.json")
    drop_again.write_text('{"kind": "build", "data": {"n": 1}}')
    assert tools.taskyard(box, "retry", "broken").code == 0
    claimed = tools.taskyard(box, "claim").data["task"]
    assert (claimed["kind"], claimed["data"]) == ("build", {"n": 1})
    assert os.listdir(f"{box}/failed") == []
    assert tools.taskyard(box, "retry", "broken").code == 7  # the task has the name now, and somebody holds it
    assert tools.taskyard(box, "retry", "never").code == 6


def test_what_is_no_file_of_a_task_is_left_alone_or_set_aside_and_stops_nobody(box: str) -> None:
    todo = Path(box, "todo")
    (todo / "folder.json").mkdir()
    (todo / "folder.json" / "inside.json").write_text("{}")
    for name in (".hidden.json", ".nfs000001.json", "notes.txt", "README", "a.json.part", "a.json~"):
        (todo / name).write_text("{}")
    left = {entry.name for entry in todo.iterdir()}
    os.mkfifo(todo / "pipe.json")
    (todo / "link.json").symlink_to("/etc/hostname")
    (todo / "dangling.json").symlink_to("nowhere")
    (todo / "empty.json").touch()
    drop(box, "good.json", {"n": 1})
    with taskyard.open(box) as yard:
        assert taken(yard.claim()).task.data == {"n": 1}
        for name, why in (
            ("pipe", "not an ordinary file"),
            ("link", "symbolic link"),
            ("dangling", "symbolic link"),
            ("empty", "not JSON"),
        ):
            assert why in aside(yard, name)
        assert yard.counts()["todo"] == 0
    assert {entry.name for entry in todo.iterdir() if entry.name != "5-default"} == left
    assert (todo / "folder.json" / "inside.json").exists()
    assert Path("/etc/hostname").exists()
    assert Path(box, "failed", "link.json").is_symlink()


def test_a_file_with_another_name_outside_the_yard_is_a_task_like_any_other(box: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    for name, content in (("plain", {"n": 1}), ("keyed", {"n": 2, "taskId": "t"}), ("bad", [])):
        outside = tmp_path / f"{name}.json"
        outside.write_text(json.dumps(content))
        os.link(outside, f"{box}/todo/{name}.json")
    with taskyard.open(box) as yard:
        assert "list" in aside(yard, "bad")
        found = []
        while (claim := yard.claim()) is not None:
            found.append(claim.task.data["n"])
            claim.done()
        assert sorted(found) == [1, 2]
        assert yard.sweep().as_dict() == {"taken": 0, "reaped": 0, "woken": 0, "expired": 0, "mended": 0, "ticked": 0}
        check_log(yard)
        assert yard.prune(count=0, apply=True)["tasks"] == 2
    assert json.loads((tmp_path / "plain.json").read_text()) == {"n": 1}


@pytest.mark.parametrize("end", ["whole", "broken", "list", "bad kind"])
def test_a_file_that_is_rewritten_after_it_was_taken_in_goes_back_to_settle_at_the_claim(box: str, end: str) -> None:
    drop(box, "a.json", {"kind": "build", "n": 1})
    with taskyard.open(box) as yard:
        assert yard.sweep().taken == 1
        [path] = [f"{folder}/{name}" for folder, _, names in os.walk(f"{box}/todo") for name in names]
        Path(path).write_text('{"kind": "build", "n": ')  # in somebody's editor
        assert yard.claim() is None
        assert check_places(box) == {}
        [back] = [name for name in os.listdir(f"{box}/todo") if name.endswith(".json")]
        texts = {"whole": '{"kind": "test", "n": 2}', "list": "[1, 2]", "bad kind": '{"kind": "no good"}'}
        if end in texts:
            Path(box, "todo", back).write_text(texts[end])
        if end == "whole":
            claim = taken(yard.claim())
            assert (claim.task.kind, claim.task.data["n"]) == ("test", 2)
            claim.done()
            assert yard.set_aside() == []
        else:
            assert aside(yard, back.removesuffix(".json"))
            assert yard.claim() is None
        check_log(yard)


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "kind beats operation": ({"kind": "build", "operation": "sharpen"}, "build"),
    "an operation is a kind": ({"operation": "sharpen"}, "sharpen"),
    "an illegal operation is none": ({"operation": "no good"}, "default"),
    "an operation that is no text is none": ({"operation": 7}, "default"),
    "nothing at all": ({}, "default"),
    "a kind of any script": ({"kind": "größe.1:a"}, "größe.1:a"),
}


@pytest.mark.parametrize("case", KINDS)
def test_the_kind_of_a_dropped_file(box: str, case: str) -> None:
    content, kind = KINDS[case]
    drop(box, "a.json", content)
    with taskyard.open(box) as yard:
        claim = taken(yard.claim())
        assert (claim.task.kind, claim.task.data) == (kind, content)
        assert yard.get(claim.task.id).kind == kind


@pytest.mark.parametrize("form", ["camelCase", "snake_case"])
def test_the_keys_that_steer_are_respected(box: str, form: str) -> None:
    camel = form == "camelCase"
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    content = {
        "kind": "build",
        "title": "a title",
        "priority": 2,
        "notBefore" if camel else "not_before": soon,
        "maxAttempts" if camel else "max_attempts": 7,
        "lease": 90,
        "assignee": "ada",
        "mission": "m1",
        "data": {"only": "this"},
    }
    drop(box, "a.json", content)
    with taskyard.open(box, worker="bob") as yard, taskyard.open(box, worker="ada") as ada:
        assert yard.sweep().taken == 1
        [task] = yard.find()
        assert task.state == "waiting"
        assert yard.claim() is None
        yard.retry(task.id)
        assert yard.claim() is None, "it is assigned"
        claim = taken(ada.claim())
        assert claim.lease == 90
        held = claim.task
        assert (held.title, held.priority, held.max_attempts, held.assignee, held.mission, held.data) == (
            "a title", 2, 7, "ada", "m1", {"only": "this"},
        )  # fmt: skip
        assert [one.id for one in yard.find(mission="m1")] == [task.id]
        claim.fail("once")
        assert (yard.get(task.id).attempts, yard.get(task.id).max_attempts) == (1, 7)


WRONG = {
    "priority": ({"priority": 10}, "priority"),
    "priority as a text": ({"priority": "high"}, "priority"),
    "kind": ({"kind": "no good"}, "kind"),
    "kind as a number": ({"kind": 7}, "kind"),
    "attempts": ({"maxAttempts": 0}, "max_attempts"),
    "time": ({"notBefore": "tomorrow"}, "not_before"),
    "lease": ({"lease": -1}, "lease"),
    "assignee": ({"assignee": ""}, "assignee"),
    "mission": ({"mission": "a\nb"}, "mission"),
    "task id": ({"taskId": ""}, "key"),
    "another yard's own file": ({"taskyard": 1, "id": "x", "data": 1}, "task's own file"),
    "data": ({"data": "x" * (1 << 20)}, "1048576"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_dropped_file_with_a_wrong_value_is_set_aside_with_the_reason_at_once(box: str, case: str) -> None:
    content, why = WRONG[case]
    drop(box, "a.json", content)
    drop(box, "b.json", {"n": 1})
    with taskyard.open(box) as yard:
        assert taken(yard.claim()).task.data == {"n": 1}
        [entry] = yard.set_aside()
        assert entry["name"] == "a"
        assert why in str(entry["reason"])
    assert Path(box, "failed", "a.json").read_text() == json.dumps(content)
    assert Path(box, "failed", "a.reason").read_text().strip() == entry["reason"]


def test_a_file_that_is_still_being_written_is_left_in_peace(place: str) -> None:
    tools.settle(place, settle=30)
    text = json.dumps({"n": 1, "filler": "x" * 10_000})
    with taskyard.open(place) as yard, open(f"{place}/todo/slow.json", "w") as file:
        for part in range(0, len(text), 1000):
            assert yard.claim() is None
            file.write(text[part : part + 1000])
            file.flush()
        assert taken(yard.claim()).task.data["n"] == 1
        assert yard.set_aside() == []


def test_two_bad_files_of_one_name_are_both_kept_each_with_its_own_reason(box: str) -> None:
    with taskyard.open(box) as yard:
        drop(box, "a.json", "[]")
        aside(yard, "a")
        drop(box, "a.json", '{"kind": "no good"}')
        wait_until(lambda: (yard.sweep(), len(yard.set_aside()) == 2)[1])
        for entry in yard.set_aside():
            text = Path(box, "failed", f"{entry['name']}.json").read_text()
            assert ("list" in str(entry["reason"])) == (text == "[]")
