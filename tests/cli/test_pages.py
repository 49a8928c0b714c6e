"""What people see: tables, pages, times, colours."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.core.ids import short
from taskyard.core.times import moment, rfc3339
from taskyard.doors.cli import ages, output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer


def test_add_prints_the_id_alone(run: Callable[..., Answer], yard: Path) -> None:
    answer = run("add", "build")
    assert len(answer.out) == 22
    assert answer.err == ""
    assert run("show", answer.out.strip()).code == 0


def test_add_from_lines_prints_how_many(run: Callable[..., Answer], yard: Path) -> None:
    three, one = (run("add", "--from", "-", stdin='{"kind": "a"}\n' * number) for number in (3, 1))
    assert (three.err, one.err) == ("3 tasks added\n", "1 task added\n")
    assert [len(line) for line in three.out.splitlines()] == [21, 21, 21]


def test_init_tells_the_next_three_commands(run: Callable[..., Answer], place: Path) -> None:
    text = run("init").out
    assert str(place / ".taskyard") in text
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  taskyard")] == ["add", "claim", "done"]
    assert "export" not in text
    assert f"export TASKYARD={place / 'other'}" in run("init", "other").out


def test_claim_prints_the_handle_and_what_to_say_next(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    id = ask("add", "build", "--title", "Docs", "--data", '{"target": "html"}')["task"]["id"]
    first = ask("claim", "--worker", "ada")["claim"]
    ask("fail", first, "--reason", "no disk")
    ask("retry", id)
    text = run("claim").out
    handle = text.split()[1]
    assert handle.startswith(id)
    for part in ("Docs", '"target": "html"', "build", "no disk", "ada", "(in ", f"taskyard done {handle}"):
        assert part in text
    assert run("done", handle).out == f"{short(id)} is done\n"


def test_the_verbs_on_a_claim_say_in_a_line_what_became_of_the_task(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    id = ask("add", "build")["task"]["id"]
    handle, name = ask("claim")["claim"], short(id)
    assert run("heartbeat", handle).out.startswith("yours until ")
    assert run("note", handle, "x").out == f"noted on {name}\n"
    assert run("release", handle).out == f"{name} is handed back: todo\n"
    assert "1 of 3 attempts" in run("fail", ask("claim")["claim"], "--reason", "x").out
    assert run("retry", id).out == f"{name} is todo\n"
    assert run("fail", ask("claim")["claim"], "--no-retry").out == f"{name} is failed\n"
    assert run("wait", id).out == f"{name}  failed\n"


def test_a_list_is_an_aligned_table_without_colour_in_a_pipe(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a", "title": "漢字"}\n{"kind": "longer", "title": "plain"}\n')[
        "ids"
    ]
    ask("claim", ids[1], "--worker", "ada")
    lines = run("list").out.splitlines()
    assert lines[0].split() == ["ID", "STATE", "P", "KIND", "TITLE", "WORKER", "AGE"]
    assert "\x1b" not in "".join(lines)
    assert len({output.width(line) for line in lines}) == 1
    assert all(short(id) == line.split()[0] for id, line in zip(ids, lines[1:], strict=True))
    assert "ada" in lines[2]


def test_an_empty_list_says_so_beside_the_output(run: Callable[..., Answer], yard: Path) -> None:
    answer = run("ready")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("nothing is ready: there is no task\n")


def test_a_list_that_goes_on_says_how_to_see_more(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 3)["ids"]
    assert run("list", "--limit", "2").out.splitlines()[-1] == f"more: --cursor {ids[1]}"


def test_stats_is_a_table_of_kinds_and_states(run: Callable[..., Answer], ask: Callable[..., Any]) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n{"kind": "b"}\n{"kind": "b"}\n')
    lines = run("stats").out.splitlines()
    assert lines[-3:-1] == ["last minute: 3 added", "last hour: 3 added"]
    assert lines[-1].startswith("oldest: 0-")
    head, *rows = (line.split() for line in lines[:-3])
    todo = head.index("todo")
    assert [(row[0], row[todo], row[-1]) for row in rows] == [("a", "1", "1"), ("b", "2", "2"), ("all", "3", "3")]


def test_show_is_a_page_with_history_notes_and_stale_results(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    id = ask("add", "build", "--title", "Docs", "--data", '{"a": 1}', "--mission", "M")["task"]["id"]
    late = ask("claim", "--worker", "ada")["claim"]
    ask("note", late, "first line\nsecond \x1b[31mline")
    ask("release", late)
    ask("done", ask("claim")["claim"], "--result", "[1]")
    ask("done", late, "--result", '"too late"', code=4)
    text = run("show", id[:8]).out
    for part in (
        id,
        "done",
        "Docs",
        '"a": 1',
        "History",
        "released",
        "Notes",
        "first line",
        "Stale results",
        "too late",
        "ago)",
    ):
        assert part in text
    assert "\x1b" not in text


def test_titles_are_cut_on_a_narrow_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "todo", "漢" * 200), ("2", "done", "short")]
    heads = ("ID", "STATE", "TITLE")
    assert "漢" * 200 in output.table(heads, rows, states=1, shrink=2)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = output.table(heads, rows, states=1, shrink=2).splitlines()
    assert max(map(output.width, lines)) <= 40
    assert lines[1].endswith("...")


@pytest.mark.parametrize(("environment", "wanted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wanted: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.paint("done", "done") == "done"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (output.paint("done", "done") != "done") is wanted


def test_widths_count_columns_not_characters() -> None:
    assert [output.width(text) for text in ("abc", "漢字", "e\u0301", "😀", "")] == [3, 4, 1, 2, 0]
    assert output.cut("漢字漢字漢字", 8) == "漢字..."
    assert output.plain("a\x1b[31m\x9b\r\u202e\nb") == "a\\x1b[31m\\x9b\\r\\u202e\nb"


def test_moments_are_read_as_they_are_written() -> None:
    for ms in (0, 951_782_400_123, 1_709_164_799_999, 1_735_689_600_000, 4_102_444_800_000):
        assert ages.milliseconds(rfc3339(ms)) == ms == moment(rfc3339(ms), "it")


def test_times_are_told_relative_to_now() -> None:
    now = time.time_ns() // 1_000_000
    assert [ages.short(seconds) for seconds in (0, 59, 60, 3_599, 3_600, 86_400 * 3)] == [
        "0s",
        "59s",
        "1m",
        "59m",
        "1h",
        "3d",
    ]
    assert ages.ago(rfc3339(now - 181_000)) == "3m ago"
    assert ages.ago(rfc3339(now + 181_000)) == "in 3m"
    assert ages.short(-5) == "0s"


def test_titles_come_before_ids_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("0-kf12", "processing", "5", "build", "Fix the login of the second form", "ada", "3m")]
    heads = ("ID", "STATE", "P", "KIND", "TITLE", "WORKER", "AGE")

    def line(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return output.table(heads, rows, states=1, shrink=4, first_to_go=(2, 6, 5, 3)).splitlines()[1]

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert line(80) == "0-kf12  processing  5  build  Fix the login of the second form  ada     3m"
    assert line(70) == "Fix the login of the sec...  0-kf12  processing  5  build  ada     3m"
    assert line(50) == "Fix the login of the second...  0-kf12  processing"
    assert line(40) == "Fix the login of ...  0-kf12  processing"


def test_a_list_has_what_is_open_first_and_pages_go_on_to_what_has_ended(ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "build"}\n' * 6)["ids"]
    for id in ids[:2]:
        ask("done", ask("claim", id)["claim"])
    ask("cancel", ids[3])
    order = [ids[2], ids[4], ids[5], ids[0], ids[1], ids[3]]
    assert [task["id"] for task in ask("list")["tasks"]] == order
    for size in (1, 2, 3, 4, 6):
        seen: list[str] = []
        cursor: str | None = None
        while cursor is not None or not seen:
            page = ask("list", "--limit", str(size), *(() if cursor is None else ("--cursor", cursor)))
            seen += [task["id"] for task in page["tasks"]]
            cursor = page["next"]
        assert seen == order, size
    assert ask("list", "--limit", "3", "--kind", "nothing")["next"] is None


def test_states_of_a_list_may_be_several_and_open_is_all_that_have_not_ended(ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "build"}\n' * 3)["ids"]
    ask("done", ask("claim", ids[0])["claim"])
    ask("claim", ids[1])

    def listed(*argv: str) -> list[str]:
        return [task["id"] for task in ask("list", *argv)["tasks"]]

    assert listed("--state", "open") == ids[1:]
    assert listed("--state", "done,todo") == listed("--state", "done", "--state", "todo") == [ids[0], ids[2]]
    assert listed("--state", "open,done") == ids
    assert listed("--state", "open, done") == ids
    assert "open" in ask("list", "--state", "todo,nonsense", code=2)["hint"]
    assert [task["id"] for task in ask("ready", "--state", "open")["tasks"]] == [ids[2]]


def test_a_list_tells_how_far_a_task_is_and_why_it_is_where_it_is(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    assert "REASON" not in run("list").out
    first = ask("add", "build")["task"]["id"]
    assert run("list").out.splitlines()[0].split() == ["ID", "STATE", "P", "KIND", "TITLE", "WORKER", "AGE"]
    ask("add", "ship", "--after", first)
    ask("heartbeat", ask("claim", first)["claim"], "--progress", "0.4")
    ask(
        "fail",
        ask("claim", ask("add", "bad")["task"]["id"])["claim"],
        "--reason",
        "no such customer\nat all",
        "--no-retry",
    )
    ask("fail", ask("claim", ask("add", "odd")["task"]["id"])["claim"], "--reason", "the network is down")
    called_off = ask("add", "off")["task"]["id"]
    ask("cancel", called_off, "--reason", "not needed")
    assert ask("show", called_off)["task"]["error"] == "not needed"
    lines = {line.split()[3]: line for line in run("list").out.splitlines()}
    assert lines["off"].endswith("not needed")
    assert lines["KIND"].split()[-2:] == ["PROGRESS", "REASON"]
    assert lines["build"].split()[-2:] == ["40%", "-"]
    assert lines["ship"].endswith(f"after {short(first)}")
    assert lines["bad"].endswith("no such customer")
    assert "due in " in lines["odd"]
    assert lines["odd"].endswith("s; the network is down")
