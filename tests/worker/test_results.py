"""What a command's ending means: its exit code, its result, and its last words."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from taskyard.worker.command import REASON_MOST, Command, _filled, last_object
from taskyard.worker.guard_client import Ended
from taskyard.worker.outcome import Ending

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard.worker.outcome import Outcome


def meaning(folder: Path | str, **ended: object) -> Outcome:
    """What this ending of a command comes to."""
    return Command(["work"])._meaning(Ended({"code": 0, **ended}), str(folder), 7)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("no object here", None),
        ("[1, 2] 3 null", None),
        ('{"a": 1}', {"a": 1}),
        ('starting {up}\n{"a": 1}\ndone}\n', {"a": 1}),
        ('{"a": 1} {"b": 2}', {"b": 2}),
        ('{"a": {"b": 2}}', {"a": {"b": 2}}),
        ('{"a": 1} {"b": ', None),
        ('{{"a": 1}}', None),
        ('{"outer": {"inner": 1}, ', None),
        ('{"a": 1}\nset {1,2}  {} done\n', {"a": 1}),
        ('{"a": 1}\n[{"in": 2}]\n', {"a": 1}),
        ('result: {"a": 1}  \n\nbye\n', {"a": 1}),
        ('{"a": "{\\"b\\": 2}"}', {"a": '{"b": 2}'}),
        ('log {"level": "info"}\n{\n  "ok": true\n}\n', {"ok": True}),
    ],
)
def test_the_last_object_of_a_text_is_found_whatever_stands_around_it(text: str, found: object) -> None:
    assert last_object(text) == found


@pytest.mark.parametrize("text", ["{" * 1_000_000, '{"a":' * 200_000, '{"' + "a" * 1_000_000, '{"a" ' * 60_000])
def test_a_text_made_to_be_looked_through_for_ever_is_not(text: str) -> None:
    began = time.process_time()
    assert last_object(text) is None
    assert time.process_time() - began < 5


def test_result_json_comes_before_standard_output(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('["from the file"]')
    assert meaning(tmp_path, stdout='{"from": "stdout"}').result == ["from the file"]


def test_without_result_json_the_last_object_on_standard_output_is_the_result(tmp_path: Path) -> None:
    assert meaning(tmp_path, stdout='{"from": "stdout"}').result == {"from": "stdout"}
    assert meaning("/nowhere", stdout='{"from": "stdout"}').result == {"from": "stdout"}
    assert meaning(tmp_path, stdout="hello").result is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"nothing", b"NaN", b'"\\ud800"', b"[" * 100_000, b"x" * (3 << 20)]
)
def test_a_result_json_that_is_none_is_an_error_that_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result.json").write_bytes(content)
    ended = meaning(tmp_path, stdout='{"not": "this"}')
    assert ended.ending is Ending.ERROR
    assert "result" in str(ended.reason)


def test_a_result_that_is_too_large_is_an_error_that_names_the_limit(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps("x" * (5 << 20)))
    ended = meaning(tmp_path)
    assert ended.ending is Ending.ERROR
    assert "1048576" in str(ended.reason)


@pytest.mark.parametrize("what", ["directory", "dangling link", "fifo", "device"])
def test_a_result_json_that_is_no_file_is_an_error_and_waits_for_nobody(tmp_path: Path, what: str) -> None:
    path = tmp_path / "result.json"
    if what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if what == "device" else "/nowhere")
    ended = meaning(tmp_path)
    assert ended.ending is Ending.ERROR
    assert "result.json cannot be read" in str(ended.reason)


def test_an_object_inside_of_one_whose_beginning_was_not_kept_is_no_result() -> None:
    inner = '[{"inner": 1}, {"inner": 2}]}\n'
    assert meaning("/nowhere", stdout=inner, cut=True).result is None
    assert meaning("/nowhere", stdout='  {"inner": 1}\n]}\n', cut=True).result is None
    assert meaning("/nowhere", stdout=inner + '{"whole": true}\n', cut=True).result == {"whole": True}
    assert meaning("/nowhere", stdout=inner).result is None


def test_an_object_that_is_too_long_to_be_seen_whole_is_an_error_and_not_forgotten() -> None:
    ended = meaning("/nowhere", stdout="1, 2, 3]}\n", cut=True)
    assert ended.ending is Ending.ERROR
    assert "longer than 1048576 bytes" in str(ended.reason)
    assert meaning("/nowhere", stdout="a long log\n", cut=True).ending is Ending.DONE


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (0, Ending.DONE),
        (75, Ending.LATER),
        (65, Ending.FATAL),
        (1, Ending.ERROR),
        (127, Ending.ERROR),
        (-9, Ending.ERROR),
    ],
)
def test_every_exit_code_has_its_meaning(code: int, ending: Ending) -> None:
    assert meaning("/nowhere", code=code).ending is ending


def test_the_reason_is_how_it_ended_and_the_end_of_standard_error() -> None:
    assert meaning("/nowhere", code=3, stderr=" no flour \n").reason == "exit 3: no flour"
    assert meaning("/nowhere", code=3).reason == "exit 3"
    assert meaning("/nowhere", code=-9).reason == "killed by SIGKILL"
    assert meaning("/nowhere", code=-63).reason == "killed by signal 63"
    assert meaning("/nowhere", code=75, stderr="busy").reason == "busy"
    assert meaning("/nowhere", code=75).reason is None
    assert meaning("/nowhere", code=0, timed_out=True, stderr="slow").reason == "timed out after 7 s: slow"
    assert meaning("/nowhere", error="bake: No such file or directory").reason == (
        "the command cannot be started: bake: No such file or directory"
    )
    long = str(meaning("/nowhere", code=1, stderr="x" * 10_000 + "the cause").reason)
    assert long.endswith("the cause")
    assert len(long) < REASON_MOST + 50


def test_placeholders_are_filled_once_and_all_else_is_left_as_it_is() -> None:
    stands_for = {"{id}": "{kind}", "{kind}": "a{id}b", "{file}": "/x/{id}"}
    assert _filled("--task={id}/{kind}", stands_for) == "--task={kind}/a{id}b"
    assert _filled("{file}", stands_for) == "/x/{id}"
    for word in ("{other}", "${id", "{}", "{ id }", "{{", "%s"):
        assert _filled(word, stands_for) == word
