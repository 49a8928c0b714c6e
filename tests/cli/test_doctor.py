"""`doctor` on the command line: which place is meant, what is said of it, and how."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.doctor.test_peers import TOGETHER
from tests.processes.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Answer

ROOT = Path(__file__).parent.parent.parent


def verdicts(data: Any) -> dict[str, str]:
    return {check["check"]: check["verdict"] for check in data["checks"] if check["verdict"] != "green"}


def test_the_answer_has_a_verdict_and_every_check_with_its_reason(ask: Callable[..., Any], yard: Path) -> None:
    data = ask("doctor")
    assert (data["verdict"], data["place"]) == ("green", str(yard))
    assert verdicts(data) == {}
    for check in data["checks"]:
        assert list(check)[:4] == ["check", "verdict", "reason", "hint"]
    names = [check["check"] for check in data["checks"]]
    assert len(names) == len(set(names)) == 24


def test_the_place_is_the_word_then_the_yard_option_then_the_one_that_is_meant(
    run: Callable[..., Answer], yard: Path, place: Path
) -> None:
    for name in ("first", "second"):
        (place / name).mkdir()
    assert run("doctor", "first", "--yard", "second", "--json").data["place"] == str(place / "first")
    assert run("doctor", "--yard", "second", "--json").data["place"] == str(place / "second")
    assert run("doctor", "--json").data["place"] == str(yard)
    assert run("doctor", f"file://{place}/first", "--json").data["place"] == str(place / "first")
    assert [os.listdir(place / name) for name in ("first", "second")] == [[], []]


def test_a_directory_without_a_yard_is_examined_as_a_place_for_one(run: Callable[..., Answer], place: Path) -> None:
    answer = run("doctor", str(place), "--json")
    checks = {check["check"]: check for check in answer.data["checks"]}
    assert (answer.code, checks["yard"]["is_yard"]) == (0, False)
    assert os.listdir(place) == []


def test_no_yard_is_exit_2_and_says_how_to_ask_for_a_place(run: Callable[..., Answer], place: Path) -> None:
    answer = run("doctor", "--json")
    assert (answer.code, answer.error["code"]) == (2, "invalid")
    assert "taskyard doctor PATH" in answer.error["hint"]


def test_a_place_that_is_missing_is_exit_8_and_a_file_is_exit_2(run: Callable[..., Answer], place: Path) -> None:
    answer = run("doctor", "nowhere", "--json")
    assert (answer.code, answer.error["code"]) == (8, "unavailable")
    assert str(place / "nowhere") in answer.error["message"]
    (place / "file").touch()
    answer = run("doctor", "file", "--json")
    assert (answer.code, answer.error["code"]) == (2, "invalid")
    (place / "loop").symlink_to("loop")
    assert run("doctor", "loop", "--json").code == 8


def test_memory_is_green_and_says_why(run: Callable[..., Answer]) -> None:
    for words in (("memory:",), ("memory:x", "--peer")):
        answer = run("doctor", *words, "--json")
        assert (answer.code, answer.data["verdict"]) == (0, "green")
        assert "memory" in answer.data["checks"][0]["reason"]


@pytest.mark.parametrize(
    "words",
    [("--processes", "1"), ("--processes", "65"), ("--processes", "x"), ("--wait", "-1", "--peer"), ("a", "b"), ("",)],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], run: Callable[..., Answer], yard: Path) -> None:
    answer = run("doctor", *words, "--json")
    assert (answer.code, answer.error["code"]) == (2, "invalid")


@pytest.mark.parametrize("content", ["", "[]", '{"taskyard": 2}', '{"taskyard": 1, "settings": {"durability": "x"}}'])
def test_a_yard_that_this_version_cannot_keep_to_is_refused(
    content: str, run: Callable[..., Answer], yard: Path
) -> None:
    (yard / "yard.json").write_text(content)
    answer = run("doctor", "--yard", str(yard), "--json")
    assert answer.code == 1
    assert verdicts(answer.data) == {"yard": "refuse"}


def test_a_link_in_place_of_a_folder_is_refused_and_not_followed(
    run: Callable[..., Answer], yard: Path, place: Path
) -> None:
    elsewhere = place / "elsewhere"
    (yard / "done").rename(elsewhere)
    (yard / "done").symlink_to(elsewhere)
    answer = run("doctor", "--json")
    assert answer.code == 1
    assert verdicts(answer.data) == {"folders": "refuse"}
    assert "done (a symbolic link)" in next(c["reason"] for c in answer.data["checks"] if c["check"] == "folders")
    before = elsewhere.stat().st_mtime_ns
    run("doctor")
    assert elsewhere.stat().st_mtime_ns == before


def test_a_folder_that_is_missing_is_a_warning_with_the_way_to_make_it(run: Callable[..., Answer], yard: Path) -> None:
    (yard / "keys").rmdir()
    answer = run("doctor", "--json")
    assert (answer.code, verdicts(answer.data)) == (0, {"folders": "warn"})
    hint = next(check["hint"] for check in answer.data["checks"] if check["check"] == "folders")
    assert os.system(hint.split("with: ")[1]) == 0
    assert verdicts(run("doctor", "--json").data) == {}


def test_people_get_a_line_for_each_check_and_the_way_out_below(run: Callable[..., Answer], yard: Path) -> None:
    (yard / "keys").rmdir()
    (yard / "todo").rename(yard / "aside")
    (yard / "todo").touch()
    answer = run("doctor")
    lines = answer.out.splitlines()
    assert lines[0] == str(yard)
    body = [line for line in lines if re.match("green|warn|refuse", line)]
    assert len(body) == 24
    column = {line.index(re.split(r"\s{2,}", line)[2]) for line in body}
    assert len(column) == 1, "reasons stand in one column"
    refused = lines.index(next(line for line in lines if line.startswith("refuse")))
    assert lines[refused + 1].lstrip().startswith("-> ")
    assert lines[refused + 1].index("->") in column
    assert lines[-1].startswith("REFUSE  not safe")
    assert "\x1b" not in answer.out


def test_on_a_terminal_it_is_coloured_and_fits(yard: Path) -> None:
    os.rmdir(yard / "keys")
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    terminal = Terminal(
        [sys.executable, "-m", "taskyard", "doctor", str(yard)], size=(72, 60), env={**environment, "TERM": "xterm"}
    )
    try:
        assert terminal.end() == 0
        screen = terminal.screen()
    finally:
        terminal.close()
    assert terminal.painted
    assert "WARN  usable" in screen
    for line in screen.splitlines():
        assert len(line) <= 72
    assert "cd " in screen
    assert "mkdir keys" in screen


def test_the_page_about_the_doctor_has_every_check(ask: Callable[..., Any]) -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    alone, together = page.split("## Two machines")
    named = {name for row in re.findall(r"^\| (`.*?) \|", alone, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == {check["check"] for check in ask("doctor")["checks"]}
    assert set(re.findall(r"^\| `(\w+)` \|", together, re.MULTILINE)) == TOGETHER
