"""Files that are dropped into todo/ become tasks without Python, or are left for it: in no case is one lost or done twice."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.errors import TaskyardError
from taskyard.stores.directory.dropbox import file_format
from tests.conftest import taken
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places
from tests.processes import tools
from tests.sh import shells

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell

FIELDS = (
    "kind",
    "title",
    "state",
    "priority",
    "data",
    "key",
    "assignee",
    "mission",
    "verify",
    "max_attempts",
    "not_before",
)
LEFT = "in the drop box are left to 'taskyard janitor'"


def drop(place: str, name: str, content: str | bytes | dict[str, Any]) -> Path:
    """As `cp` would."""
    path = Path(place, "todo", f"{name}.json")
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def dropped_names(place: str) -> list[str]:
    return sorted(path.name for path in Path(place, "todo").glob("*.json"))


def test_a_dropped_file_is_done_without_python(sh: Shell, place: str) -> None:
    drop(place, "order", {"operation": "sharpen", "file": "a.png"})
    drop(place, "order two", {"taskId": "t-2", "kind": "sharpen", "data": {"file": "b.png"}})
    assert sh.run("process_loop", "--drain", "cat").line == ""
    with taskyard.open(place, worker="ada") as yard:
        tasks = yard.find(state="done")
        assert {json.dumps(yard.get(task.id).data) for task in tasks} == {
            '{"operation": "sharpen", "file": "a.png"}',
            '{"file": "b.png"}',
        }
        assert [task.kind for task in tasks] == ["sharpen"] * 2
        check_log(yard)
        check_nothing_is_stuck(yard)
    assert os.listdir(f"{place}/tmp") == ["clock"]


TAKEN: dict[str, Any] = {
    "the least": {},
    "a kind": {"kind": "build", "n": 1},
    "an operation": {"operation": "ci:lint"},
    "no legal operation": {"operation": "not a kind"},
    "an operation that is no text": {"operation": {"kind": "x"}},
    "a kind in letters": {"kind": "漢字.é"},
    "all at once": {
        "kind": "k", "taskId": "a/b \"c\" \\ é😀", "title": "T \\ \"é\"", "priority": 0, "lease": "1.5h", "assignee": "Ada L",
        "mission": "1.0", "verify": "tests", "maxAttempts": 7, "data": {"x": [1, -2.5e-3, True, None, {}, [], "\\\"\n\u2028"]},
    },
    "without a key": {
        "kind": "k", "title": "x" * 500, "priority": 9, "lease": 0.25, "assignee": "bob", "max_attempts": 999, "verify": "t", "data": None,
    },
    "a number for a key": {"task_id": -17, "b": 1},
    "nulls": {"kind": None, "operation": "op", "taskId": None, "priority": None, "after": None, "uses": []},
    "a second meaning": {"kind": "a", "data": {"kind": "b", "taskId": "no"}},
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("case", TAKEN)
def test_it_means_what_it_means_to_python(sh: Shell, place: str, tmp_path: Path, case: str, indent: int | None) -> None:
    """The same file, taken in by each of them."""
    other = str(tmp_path / "other")
    taskyard.init(other).close()
    content = json.dumps(TAKEN[case], indent=indent, ensure_ascii=indent is None)
    drop(other, "order", content)
    drop(place, "order", content)
    id = sh.run("reap_stale").line.removeprefix("taken in ")
    with taskyard.open(place) as ours, taskyard.open(other) as theirs:
        mine, python = ours.get(id), theirs.get(theirs.find()[0].id)
        for field in FIELDS:
            assert getattr(mine, field) == getattr(python, field), field
    names = [next(iter(check_places(url).values()))[1] for url in (place, other)]
    assert names[0].own_lease == names[1].own_lease
    assert names[0].verified == names[1].verified
    assert dropped_names(place) == []


LEAVES = {
    "after": '{"after": "0000"}', "uses": '{"uses": "db"}', "a time": '{"notBefore": "2030-01-01T00:00:00Z"}',
    "a task's own file": '{"taskyard": 1, "kind": "k"}', "twins": '{"taskId": 1, "task_id": 1}', "a bad kind": '{"kind": "a b"}',
    "a doubtful kind": '{"kind": "a\u2013b"}', "a doubtful operation": '{"operation": "a\u2013b"}', "no text": '{"kind": 5}',
    "a bad priority": '{"priority": 10}', "true": '{"priority": true}', "a float": '{"priority": 5.0}',
    "a bad lease": '{"lease": "soon"}', "a long lease": '{"lease": 1e9}', "no attempts": '{"maxAttempts": 0}',
    "an empty title": '{"title": ""}', "two lines": '{"title": "a\\nb"}', "a long title": json.dumps({"title": "x" * 501}),
    "a long assignee": json.dumps({"assignee": "é" * 30}), "an endless number": '{"a": 1e999}', "half a letter": '{"a": "\\ud800"}',
    "a float for a key": '{"taskId": 1.5}', "a list for a key": '{"taskId": []}', "NUL": '{"title": "a\\u0000"}',
    "too deep": '{"a":' * 201 + "1" + "}" * 201, "too large": json.dumps({"a": "x" * (1 << 20)}),
    "a review": '{"review": true}', "a review under a key": '{"taskId": "t", "review": true, "verify": "tests"}',
    "a queue": '{"tasks": [{"id": 1, "title": "a"}]}', "a queue under a tag": '{"master": {"tasks": [{"id": 1, "title": "a"}]}}',
    "C1": '{"mission": "\\u0085"}', "a separator": '{"verify": "\\u2028"}',
}  # fmt: skip


@pytest.mark.parametrize("case", LEAVES)
def test_what_it_cannot_judge_stays_for_python_and_is_told_of(sh: Shell, place: str, case: str) -> None:
    path = drop(place, "order", LEAVES[case])
    before = path.read_bytes()
    refused = sh.run("claim_task")
    assert refused.code == 3
    assert f"1 files {LEFT}" in refused.err
    assert "order.json: " in refused.err
    assert path.read_bytes() == before
    assert check_places(place) == {}
    assert os.listdir(f"{place}/failed") == []


NOT_WHOLE: tuple[bytes, ...] = (
    b"", b"{", b'{"a": 1', b'{"a": 1}}', b'{"a": 1,}', b"{'a': 1}", b"[]", b'"x"', b"17", b'{"a": 01}', b'{"a" 1}', b'{"a": "\n"}',
    b'{"a": "\\x"}', b'{"a": "\xff"}', b'{"a": NaN}', b'{"a": 1} \x00', b'{"a": "\x00"}', b'{"a": "\x01"}',
    b'{"a": 1 2}', b'{"a": tru}', b'{1: 2}', b'{"a": \x0c1}', b'\\"{}', b'{"a"::1}', b'{"a":1,,"b":2}', b'{"a":[1,]}', b"{} {}",
)  # fmt: skip


def test_what_is_no_object_may_be_on_its_way_in_and_stays(sh: Shell, place: str) -> None:
    tools.settle(place, settle=60)
    for number, content in enumerate(NOT_WHOLE):
        with pytest.raises(file_format.NotWhole):
            file_format.parse(content)
        drop(place, f"{number}", content)
    refused = sh.run("claim_task")
    assert (refused.code, refused.out) == (3, "")
    assert LEFT not in refused.err, "it may still be written"
    assert len(dropped_names(place)) == len(NOT_WHOLE)
    tools.settle(place, settle=0)
    time.sleep(1.1)  # by whole seconds
    assert f"{len(NOT_WHOLE)} files {LEFT}" in sh.run("claim_task").err
    assert len(dropped_names(place)) == len(NOT_WHOLE)
    assert os.listdir(f"{place}/failed") == []


def test_a_file_that_is_written_slowly_is_taken_in_when_it_is_whole(sh: Shell, yard: Yard, place: str) -> None:
    text = json.dumps({"kind": "slow", "text": 'é\\"' * 3}, ensure_ascii=False).encode()
    path = Path(place, "todo", "slow.json")
    with path.open("wb", buffering=0) as file:
        for position in range(0, len(text), 7):
            file.write(text[position : position + 7])
            if position + 7 < len(text):
                assert sh.run("claim_task").code == 3
        handle, _ = sh.claim("slow")
    assert yard.get(handle.split(".")[0]).data == json.loads(text)


def test_odd_things_in_the_box_are_left_alone(sh: Shell, place: str, tmp_path: Path) -> None:
    box = Path(place, "todo")
    (tmp_path / "secret.json").write_text("{}")
    (box / "link.json").symlink_to(tmp_path / "secret.json")
    (box / "dangling.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(box / "pipe.json")
    (box / "folder.json").mkdir()
    drop(place, ".hidden", "{}")
    drop(place, "two\nlines", "{}")
    (box / "notes.txt").write_text("{}")
    drop(place, "n" * 150, '{"taskId": 1}')
    names = [" a  b ", "-n", "a=b", "*", "$(x)`y`'\"\\", "é"]
    for name in names:
        drop(place, name, {"taskId": f"key of {name}"})
        drop(place, f"{name}'", {})
    said = sh.run("reap_stale")
    assert (said.code, said.out.count("taken in ")) == (0, 2 * len(names))
    assert f"5 files {LEFT}" in said.err
    assert len(dropped_names(place)) == 7
    assert (tmp_path / "secret.json").exists()
    with taskyard.open(place) as yard:
        assert {yard.get(task.id).key for task in yard.find()} == {None, "1", *(f"key of {name}" for name in names)}


def test_of_two_files_with_one_key_one_is_the_task(sh: Shell, place: str) -> None:
    drop(place, "one", {"taskId": "t", "n": 1})
    assert sh.run("reap_stale").line.startswith("taken in ")
    drop(place, "two", {"taskId": "t", "n": 2})
    assert f"1 files {LEFT}" in sh.run("claim_task", "none").err
    with taskyard.open(place, worker="ada") as yard:
        assert yard.add("default", {"taskId": "t", "n": 1}, key="t").id == next(iter(yard.find())).id
        with pytest.raises(TaskyardError):
            yard.add("default", 3, key="t")
        yard.sweep()
        assert [entry["name"] for entry in yard.set_aside()] == ["two"]


def test_the_oldest_comes_first_and_priorities_count(sh: Shell, place: str) -> None:
    for number in range(4):
        path = drop(place, f"{9 - number}", {"n": number, "priority": 5 - (number == 2)})
        stamp = path.stat().st_ctime_ns
        while Path(place, "todo").stat().st_ctime_ns == stamp:
            Path(place, "todo").touch()  # until the clock of files has ticked
    files = [json.loads(sh.claim()[1].read_text())["n"] for _ in range(4)]
    assert files == [2, 0, 1, 3]


def test_it_says_once_what_it_leaves(sh: Shell, place: str) -> None:
    drop(place, "left", '{"uses": "db"}')
    said = sh.script("for n in 1 2 3; do claim_task; done; process_loop --drain true")
    assert said.err.count(LEFT) == 1


def test_in_a_yard_that_a_group_shares_files_of_one_alone_are_left(sh: Shell, tmp_path: Path) -> None:
    place = str(tmp_path / "shared")
    taskyard.init(place, shared=True).close()
    drop(place, "ours", "{}").chmod(0o664)
    drop(place, "mine", "{}").chmod(0o644)
    drop(place, "keyed", '{"taskId": 1}').chmod(0o644)
    said = sh.run("reap_stale", env={"TASKYARD": place})
    assert said.out.count("taken in ") == 2
    assert "mine.json: the yard's group cannot write it" in said.err


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
def test_of_many_who_take_in_at_once_each_file_becomes_one_task(sh: Shell, place: str, keyed: bool) -> None:
    files = 40
    for number in range(files):
        drop(place, f"{number}", {"n": number, **({"taskId": f"t-{number}"} if keyed else {})})
    reapers = [
        subprocess.Popen([*sh.words, str(shells.CLIENT), "reap_stale"], env=sh.environment(), stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    reapers += [
        subprocess.Popen(
            [*tools.COMMAND, "--yard", place, "janitor"], env=tools.environment(), stdout=subprocess.DEVNULL
        )
    ]
    assert [process.wait(tools.PATIENCE) for process in reapers] == [0, 0, 0]
    with taskyard.open(place, worker="ada") as yard:
        assert len(check_places(place)) == files
        assert sorted(yard.get(task.id).data["n"] for task in yard.find()) == list(range(files))
        assert yard.set_aside() == []
        assert dropped_names(place) == []
        taken(yard.claim()).done()
        yard.sweep()  # where a janitor may have helped a shell, the shell's note is looked up by the next one
        check_log(yard)
