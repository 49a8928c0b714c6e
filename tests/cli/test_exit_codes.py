"""Every exit code, with the error that goes with it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import times
from taskyard.doors.cli import replies
from tests.conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

MALFORMED = "nonsense"


def test_each_error_of_the_family_has_its_exit_code() -> None:
    def exit_of(error: type[taskyard.TaskyardError]) -> int:
        return replies.EXITS.get(error.code, 1)

    assert exit_of(taskyard.TaskyardError) == 1
    assert exit_of(taskyard.Invalid) == exit_of(taskyard.NoYard) == 2
    assert exit_of(replies.NothingReady) == 3
    assert exit_of(taskyard.ClaimLost) == 4
    assert exit_of(taskyard.TimedOut) == 5
    assert exit_of(taskyard.NotFound) == exit_of(taskyard.Ambiguous) == 6
    assert exit_of(taskyard.Conflict) == 7
    assert exit_of(taskyard.Unavailable) == 8


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("frobnicate",),
        ("claim", "--no-such-option"),
        ("--kind", "x", "claim"),
        ("claim", "--kind"),
        ("show",),
        ("show", "a", "b"),
        ("add",),
        ("add", "bad/kind"),
        ("add", "build", "--priority", "high"),
        ("add", "build", "--priority", "10"),
        ("add", "build", "--max-attempts", "0"),
        ("add", "build", "--delay", "soon"),
        ("add", "build", "--delay", "1h", "--not-before", "2050-01-01T00:00:00Z"),
        ("add", "build", "--lease", "-1"),
        ("add", "build", "--not-before", "tomorrow"),
        ("add", "build", "--data", "{bad"),
        ("add", "build", "--data", "NaN"),
        ("add", "build", "--data", "[" * 100_000),
        ("add", "build", "--data", "@missing.json"),
        ("add", "build", "--from", "-"),
        ("list", "--worker", ""),
        ("list", "--worker", "a\nb"),
        ("list", "--mission", ""),
        ("add", "build", "--delay", "1_0"),
        ("add", "--from", "-", "--title", "x"),
        ("add", "--from", "missing.jsonl"),
        ("fsck", "--show", "-1"),
        ("claim", "--wait", "long"),
        ("claim", "--kind", "a b"),
        ("claim", "--worker", ""),
        ("claim", "--json=yes"),
        ("list", "--state", "sleeping"),
        ("ready", "--state", "sleeping"),
        ("list", "--limit", "0"),
        ("list", "--cursor", "x"),
        ("done", MALFORMED),
        ("done",),
        ("note", "text without a claim"),
        ("heartbeat", MALFORMED, "--progress", "much"),
        ("init", "--durability", "eternal"),
        ("janitor", "--every", "0"),
        ("wait", "--timeout", "x", "0000"),
        ("edit",),
        ("edit", "0000"),
        ("edit", "0000", "--priority", "high"),
        ("resume",),
        ("pause", "a b"),
        ("unpause", "a", "b"),
        ("log", "--since", "yesterday"),
        ("log", "--follow=yes"),
        ("claim", "--keep", "0"),
        ("claim", "--keep", "me"),
        ("add", "build", "--key", ""),
        ("show", "bytes \udcff"),
    ],
)
def test_what_can_never_be_right_exits_2(run: Callable[..., Answer], yard: Path, argv: tuple[str, ...]) -> None:
    people = run(*argv)
    assert (people.code, people.out) == (2, "")
    assert people.err.startswith("taskyard: ")
    assert "Traceback" not in people.err
    machines = run("--json", *argv)
    assert (machines.code, machines.error["code"], machines.err) == (2, "invalid", "")


def test_without_a_yard_the_hint_says_how_to_make_one(run: Callable[..., Answer]) -> None:
    answer = run("claim")
    assert answer.code == 2
    assert "\n  run 'taskyard init'" in answer.err


def test_a_named_yard_that_is_missing_exits_8(run: Callable[..., Answer]) -> None:
    answer = run("--yard", "elsewhere", "claim", "--json")
    assert (answer.code, answer.error["code"]) == (8, "unavailable")


def test_a_malformed_handle_exits_2_whatever_the_yard_says(run: Callable[..., Answer]) -> None:
    assert run("--yard", "elsewhere", "done", MALFORMED).code == 2


def test_nothing_ready_exits_3_also_after_a_wait(ask: Callable[..., Any]) -> None:
    assert ask("claim", code=3)["code"] == "nothing_ready"
    assert ask("claim", "--wait", "0.05", code=3)["code"] == "nothing_ready"
    assert ask("ready")["tasks"] == []


def test_a_lost_claim_exits_4(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    handle = ask("claim")["claim"]
    ask("cancel", id)
    for verb in ("heartbeat", "done", "release"):
        assert ask(verb, handle, code=4)["code"] == "claim_lost"
    assert ask("fail", handle, "--reason", "x", code=4)["code"] == "claim_lost"
    assert ask("note", handle, "x", code=4)["code"] == "claim_lost"


def test_a_wait_that_times_out_exits_5(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("wait", id, "--timeout", "0.05", code=5)["code"] == "timed_out"


def test_a_wait_for_a_task_that_is_not_done_exits_1_with_its_verdict(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    ask("cancel", id)
    assert ask("wait", id, code=1)["tasks"][0]["state"] == "cancelled"


def test_an_id_that_names_no_task_exits_6(ask: Callable[..., Any]) -> None:
    for verb in ("show", "cancel", "retry", "wait", "claim", "edit"):
        change = ("--title", "x") if verb == "edit" else ()
        assert ask(verb, "zzzz00000000", *change, code=6)["code"] == "not_found"
        assert ask(verb, "no-id", *change, code=6)["code"] == "not_found"


def test_a_beginning_that_several_tasks_share_exits_6(ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 2)["ids"]
    assert ask("show", ids[0][:4], code=6)["code"] == "ambiguous"


def test_a_move_that_is_not_allowed_exits_7(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("retry", id, code=7)["code"] == "conflict"
    handle = ask("claim")["claim"]
    ask("done", handle)
    assert ask("cancel", id, code=7)["code"] == "conflict"
    assert ask("fail", handle, "--reason", "x", code=7)["code"] == "conflict"


def test_a_task_id_where_a_handle_is_due_exits_2_with_the_hint(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    error = ask("done", id, code=2)
    assert "task id" in error["message"]
    assert "handle" in error["hint"]


def test_a_lapsed_claim_that_nobody_has_reaped_is_done_with_exit_0(ask: Callable[..., Any], yard: Path) -> None:
    settings = json.loads((yard / "yard.json").read_text())
    settings["settings"]["sweep_every"] = 0.001
    (yard / "yard.json").write_text(json.dumps(settings))
    ask("add", "build")
    claim = ask("claim", "--lease", "0.05")
    wait_until(lambda: times.rfc3339(int(time.time() * 1000) - 20) > claim["lease_until"])
    assert ask("show", claim["task"]["id"])["task"]["state"] == "processing"
    assert ask("stats")["counts"]["processing"] == 1
    assert ask("done", claim["claim"])["task"]["state"] == "done"


def test_done_with_another_result_exits_7_and_names_what_is_held_now(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_WORKER", "ada")
    first = ask("add", "build")["task"]["id"]
    stale = ask("claim")["claim"]
    ask("done", stale, "--result", '"first"')
    ask("add", "build")
    now = ask("claim")["claim"]
    monkeypatch.setenv("TASKYARD_CLAIM", stale)
    error = ask("done", "--result", '"second"', code=7)
    assert (error["code"], first in error["message"], now in error["hint"]) == ("conflict", True, True)
    assert ask("done", "--result", '"first"')["task"]["result"] == "first"
    assert [late["result"] for late in ask("show", first)["stale_results"]] == ["second"]


def test_a_lost_handle_is_told_of_where_its_task_is_named(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_WORKER", "ada")
    id = ask("add", "build")["task"]["id"]
    ask("claim")
    assert "resume --worker ada" in ask("claim", id, code=7)["hint"]
    for verb in (("done", id), ("fail", id), ("release", id), ("heartbeat", id), ("note", id, "x")):
        assert "resume --worker ada" in ask(*verb, code=2)["hint"], verb
    assert ask("resume")["claims"][0]["task"]["id"] == id


def guard_error(run: Callable[..., Answer], *words: str) -> Any:
    """The error of a guard that was not started; no option can stand after its command."""
    answer = run("--json", "guard", *words)
    assert answer.code == 2, (words, answer.out, answer.err)
    return answer.error


def test_a_mistyped_handle_exits_2_and_one_that_differs_wholly_4(
    ask: Callable[..., Any], run: Callable[..., Answer]
) -> None:
    id = ask("add", "build")["task"]["id"]
    handle = ask("claim")["claim"]
    head, _, nonce = handle.rpartition(".")
    swapped = nonce.translate(str.maketrans("0123456789abcdefghjkmnpqrstvwxyz", "1032547698badcfehgkjnmqpsrvtxwzy"))
    mistyped = f"{head}.{swapped[0]}{nonce[1:]}"
    for verb in (("done",), ("fail", "--reason", "x"), ("heartbeat",), ("release",), ("fence",), ("fence", "--check")):
        assert "mistyped" in ask(*verb, mistyped, code=2)["message"]
    assert "mistyped" in ask("publish", mistyped, __file__, "copy", code=2)["message"]
    assert "mistyped" in guard_error(run, mistyped, "--", "true")["message"]
    assert [event["event"] for event in ask("log", "--task", id)["events"]] == ["added", "claimed"]
    assert ask("done", f"{head}.{swapped}", code=4)["code"] == "claim_lost"
    assert ask("done", handle)["task"]["state"] == "done"


def test_the_word_before_the_dashes_of_guard_is_a_handle(
    ask: Callable[..., Any], run: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_WORKER", "ada")
    id = ask("add", "build")["task"]["id"]
    assert guard_error(run, id, "--", "true") == ask("done", id, code=2)
    handle = ask("claim")["claim"]
    monkeypatch.setenv("TASKYARD_CLAIM", handle)
    assert guard_error(run, id, "--", "true") == ask("done", id, code=2)
    error = guard_error(run, "nonsense", "--", "true")
    assert (error["message"], "id.fence.nonce" in error["hint"]) == ("not a claim's handle: 'nonsense'", True)
    assert "a word too many before --: 'more'" in guard_error(run, handle, "more", "--", "true")["message"]
    for words in ((handle,), (handle, "--")):
        error = guard_error(run, *words)
        assert error["message"] == "guard needs a command after the handle"
        assert error["hint"] == "usage: taskyard guard [HANDLE] -- CMD..."


def test_publish_says_which_of_its_words_is_missing(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    handle = ask("claim")["claim"]
    error = ask("publish", handle, "a.txt", code=2)
    assert error["message"] == "publish needs SRC and DST after the handle"
    assert error["hint"] == "usage: taskyard publish [HANDLE] SRC DST"
    assert ask("publish", handle, "", "", code=2)["message"] == "SRC is empty"
    assert ask("publish", handle, __file__, "", code=2)["message"] == "DST is empty"


def test_no_handle_at_all_says_where_one_comes_from(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_CLAIM", "")
    assert "TASKYARD_CLAIM" in ask("release", code=2)["hint"]


def test_a_note_without_its_text_is_not_a_note_of_the_handle(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("add", "build")
    handle = ask("claim")["claim"]
    monkeypatch.setenv("TASKYARD_CLAIM", handle)
    assert ask("note", handle, code=2)["code"] == "invalid"


def test_a_misspelt_option_is_told_which_ones_there_are(ask: Callable[..., Any]) -> None:
    assert "--priority" in ask("add", "x", "--prority", "1", code=2)["hint"]


def test_bad_json_is_told_with_its_position(ask: Callable[..., Any]) -> None:
    assert "line 1 column 8" in ask("add", "build", "--data", '{"a": 1', code=2)["message"]
    assert '"hello"' in ask("add", "build", "--data", "hello", code=2)["hint"]
    assert "byte 1" in ask("add", "build", "--data", "-", code=2, stdin=b'"\xff"')["message"]


@pytest.mark.parametrize(
    "bad",
    ["{", "[]", '{"data": 1}', '{"kind": "a b"}', '{"kind": "a", "colour": 1}', '{"kind": "a", "priority": "high"}'],
)
def test_one_bad_line_is_named_and_nothing_is_added(ask: Callable[..., Any], bad: str) -> None:
    error = ask("add", "--from", "-", code=2, stdin=f'{{"kind": "a"}}\n\n{bad}\n{{"kind": "b"}}\n')
    assert error["message"].startswith("stdin, line 3: ")
    assert "task 2" not in error["message"]
    assert ask("list")["tasks"] == []


def test_a_line_that_comes_after_what_can_be_no_task_is_named(ask: Callable[..., Any]) -> None:
    error = ask("add", "--from", "-", code=6, stdin='\n{"kind": "a"}\n{"kind": "b", "after": ["!"]}\n')
    assert error["message"].startswith("stdin, line 3: no task has the id")
    assert ask("list")["tasks"] == []


def test_several_files_are_refused_rather_than_all_but_the_last_forgotten(ask: Callable[..., Any], yard: Path) -> None:
    for name in ("one", "two"):
        (yard.parent / name).write_text('{"kind": "a"}\n')
    assert "more than once" in ask("add", "--from", "one", "--from", "two", code=2)["message"]
    assert ask("list")["tasks"] == []


def test_what_nobody_foresaw_exits_1_without_a_traceback(
    run: Callable[..., Answer], yard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(taskyard.Yard, "stats", broken)
    answer = run("stats", "--json")
    assert (answer.code, answer.error["code"], answer.err) == (1, "internal", "")
    assert "ZeroDivisionError" in answer.error["message"]
    assert "Traceback" not in run("stats").err
    monkeypatch.setenv("TASKYARD_DEBUG", "1")
    debugged = run("stats", "--json")
    assert debugged.error["code"] == "internal"
    assert "Traceback" in debugged.err


def test_ctrl_c_exits_130_quietly(run: Callable[..., Answer], yard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(taskyard.Yard, "stats", interrupted)
    answer = run("stats", "--json")
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_a_yard_that_has_lost_its_settings_is_not_called_missing(run: Callable[..., Answer], place: Path) -> None:
    run("init")
    (place / ".taskyard/yard.json").unlink()
    for words, code in ((("list",), 2), (("--yard", ".taskyard", "list"), 8)):
        answer = run(*words)
        assert answer.code == code
        assert f"{place}/.taskyard has no yard.json" in answer.err
        assert f"'taskyard fsck --yard {place}/.taskyard'" in answer.err


@pytest.mark.parametrize(
    "words",
    [("add", "build", "--priority", "11"), ("create", "build", "--priority", "high"), ("add", "build", "--title")],
)
def test_the_hint_for_a_bad_value_names_the_verb(
    run: Callable[..., Answer], place: Path, words: tuple[str, ...]
) -> None:
    run("init")
    answer = run(*words)
    assert answer.code == 2
    assert "'taskyard help add' lists what is allowed" in answer.err
